//! Accepting, reading, and whose turn it is.

use std::io::{IoSlice, Read as _, Write as _};
use std::net::TcpStream;

use model::limits::TURN_BYTES_PER_CONNECTION;
use reactor::{Event, ListenOptions, Read, SendError, Sent};

use crate::driver::{accept_one, assert_quiet, connected, listening, next, pattern, read_bytes, turn_until};

#[test]
fn a_connection_is_accepted_read_answered_and_closed() {
    let (mut reactor, address) = listening(&ListenOptions::default());
    let mut peer = TcpStream::connect(address).expect("a connection");
    let accepted = accept_one(&mut reactor);
    assert_eq!(accepted.peer, peer.local_addr().expect("an address"));
    let id = accepted.id;
    assert_eq!(reactor.sockets(), 1);

    peer.write_all(b"hello").expect("room");
    assert_eq!(next(&mut reactor), Event::Readable(id));
    assert_eq!(reactor.read(id), Read::Bytes(&mut b"hello".to_owned()));
    assert_eq!(reactor.read(id), Read::Blocked, "one read per event");

    let sent = reactor.send(id, &[IoSlice::new(b"good"), IoSlice::new(b""), IoSlice::new(b" day")]);
    assert_eq!(sent, Ok(Sent { queued_bytes: 0 }));
    let mut answer = [0; 8];
    peer.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"good day");

    drop(peer);
    assert_eq!(next(&mut reactor), Event::Readable(id));
    assert_eq!(reactor.read(id), Read::Closed);
    reactor.close(id);
    assert_eq!(reactor.sockets(), 0);
    assert_quiet(&mut reactor);
}

#[test]
fn a_stale_id_reaches_nobody() {
    let (mut reactor, first, peer) = connected(&ListenOptions::default());
    reactor.close(first);
    drop(peer);
    let mut peer = TcpStream::connect(reactor.listening().expect("a listener")).expect("a connection");
    let second = accept_one(&mut reactor).id;
    assert_eq!(second.slot, first.slot, "small numbers are used again");
    assert_ne!(second.generation, first.generation);

    assert_eq!(reactor.send(first, &[IoSlice::new(b"for the dead")]), Err(SendError::Stale));
    assert_eq!(reactor.read(first), Read::Closed);
    assert_eq!((reactor.queued(first), reactor.flush(first)), (0, Err(SendError::Stale)));
    assert!(reactor.detach(first).is_none());
    reactor.pause_reading(first);
    reactor.close_after_flush(first);
    reactor.close(first);
    assert_eq!(reactor.sockets(), 1);
    assert_eq!(reactor.tenant(first.slot), Some(second));

    peer.write_all(b"alive").expect("room");
    assert_eq!(read_bytes(&mut reactor, second, 5), b"alive");
}

#[test]
fn accepted_sockets_do_not_delay_small_writes_and_close_on_exec() {
    let (mut reactor, id, _peer) = connected(&ListenOptions::default());
    let fd = reactor.detach(id).expect("the socket");
    assert_eq!(rustix::net::sockopt::tcp_nodelay(&fd), Ok(true));
    let flags = rustix::io::fcntl_getfd(&fd).expect("flags");
    assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
}

#[test]
fn a_chatterbox_gets_one_turn_and_the_quiet_one_comes_next() {
    let (mut reactor, address) = listening(&ListenOptions::default());
    let mut loud_peer = TcpStream::connect(address).expect("a connection");
    let loud = accept_one(&mut reactor).id;
    let mut quiet_peer = TcpStream::connect(address).expect("a connection");
    let quiet = accept_one(&mut reactor).id;

    let all = pattern(TURN_BYTES_PER_CONNECTION * 8);
    let sent = all.clone();
    let writer = std::thread::spawn(move || loud_peer.write_all(&sent).map(|()| loud_peer));
    let mut read = Vec::new();
    let mut quiet_heard = false;
    // Speak up once the loud one is well under way.
    while read.len() < all.len() {
        match next(&mut reactor) {
            Event::Readable(id) if id == loud => {
                if let Read::Bytes(bytes) = reactor.read(loud) {
                    assert!(bytes.len() <= TURN_BYTES_PER_CONNECTION);
                    read.extend_from_slice(bytes);
                }
                assert_eq!(reactor.read(loud), Read::Blocked);
                if read.len() > all.len() / 4 && !quiet_heard {
                    quiet_peer.write_all(b"x").expect("room");
                    reactor.wait(None).expect("a wait");
                    let events: Vec<Event> = std::iter::from_fn(|| reactor.next_event()).collect();
                    assert!(events.contains(&Event::Readable(quiet)), "{events:?}");
                    assert_eq!(reactor.read(quiet), Read::Bytes(&mut b"x".to_owned()));
                    quiet_heard = true;
                    // An event is not repeated, so it has to be answered.
                    if events.contains(&Event::Readable(loud))
                        && let Read::Bytes(bytes) = reactor.read(loud)
                    {
                        read.extend_from_slice(bytes);
                    }
                }
            }
            Event::Readable(id) if id == quiet => panic!("it was read already"),
            event => panic!("{event:?}"),
        }
    }
    assert!(quiet_heard);
    assert_eq!(read, all);
    writer.join().expect("the writer").expect("written");
}

#[test]
fn what_a_read_left_comes_in_the_next_turns_and_then_the_end() {
    let (mut reactor, id, mut peer) = connected(&ListenOptions::default());
    let all = pattern(1_000);
    peer.write_all(&all).expect("room");
    drop(peer);
    // Bytes and end are here together: the kernel has no more news of this socket.
    let mut read = Vec::new();
    let mut buffer = [0; 64];
    loop {
        assert_eq!(next(&mut reactor), Event::Readable(id));
        match reactor.read_into(id, &mut buffer) {
            Read::Bytes(bytes) => read.extend_from_slice(bytes),
            Read::Blocked => {}
            end => break assert_eq!(end, Read::Closed),
        }
        assert_eq!(reactor.next_event(), None, "the others have their turn first");
    }
    assert_eq!(read, all);
    reactor.close(id);
    assert_quiet(&mut reactor);
}

#[test]
fn what_a_read_left_waits_while_reading_is_paused() {
    let (mut reactor, id, mut peer) = connected(&ListenOptions::default());
    peer.write_all(b"first, second").expect("room");
    assert_eq!(next(&mut reactor), Event::Readable(id));
    let mut buffer = [0; 7];
    assert_eq!(reactor.read_into(id, &mut buffer), Read::Bytes(&mut b"first, ".to_owned()));
    reactor.pause_reading(id);
    assert_quiet(&mut reactor);
    reactor.resume_reading(id);
    assert_eq!(read_bytes(&mut reactor, id, 6), b"second");
}

#[test]
fn paused_reading_leaves_bytes_with_the_kernel_until_it_resumes() {
    let (mut reactor, id, mut peer) = connected(&ListenOptions::default());
    reactor.pause_reading(id);
    peer.write_all(b"later").expect("room");
    assert_quiet(&mut reactor);
    assert_eq!(reactor.read(id), Read::Blocked);
    reactor.resume_reading(id);
    assert_eq!(read_bytes(&mut reactor, id, 5), b"later");
}

#[test]
fn paused_accepting_leaves_connections_in_line_until_it_resumes() {
    let (mut reactor, address) = listening(&ListenOptions::default());
    reactor.pause_accepting();
    let peer = TcpStream::connect(address).expect("the kernel completes it");
    assert_quiet(&mut reactor);
    let mut accepted = Vec::new();
    assert_eq!(reactor.accept_some(8, &mut accepted), Ok(()));
    assert_eq!(accepted, []);
    reactor.resume_accepting();
    assert_eq!(accept_one(&mut reactor).peer, peer.local_addr().expect("an address"));
}

#[test]
fn accepting_is_bounded_by_its_batch_and_goes_on_in_the_next_turn() {
    let (mut reactor, address) = listening(&ListenOptions::default());
    let peers: Vec<TcpStream> = (0..5).map(|_| TcpStream::connect(address).expect("a connection")).collect();
    let mut accepted = Vec::new();
    assert_eq!(next(&mut reactor), Event::Accept);
    reactor.accept_some(2, &mut accepted).expect("two");
    assert_eq!(accepted.len(), 2);
    let accept = |reactor: &mut reactor::Reactor, event| {
        assert_eq!(event, Event::Accept);
        reactor.accept_some(2, &mut accepted).expect("two more at most");
    };
    turn_until(&mut reactor, accept, |reactor| reactor.sockets() == peers.len());
    assert_eq!(accepted.len(), 5);
}

#[test]
fn after_listening_stops_nobody_gets_in_and_those_inside_stay() {
    let (mut reactor, id, mut peer) = connected(&ListenOptions::default());
    let address = reactor.listening().expect("a listener");
    reactor.stop_listening();
    assert_eq!(reactor.listening(), None);
    assert!(TcpStream::connect(address).is_err());
    peer.write_all(b"still here").expect("room");
    assert_eq!(read_bytes(&mut reactor, id, 10), b"still here");
}

#[test]
fn read_into_leaves_the_bytes_with_the_caller() {
    let (mut reactor, id, mut peer) = connected(&ListenOptions::default());
    peer.write_all(b"mine").expect("room");
    assert_eq!(next(&mut reactor), Event::Readable(id));
    let mut buffer = [0; 64];
    let Read::Bytes(bytes) = reactor.read_into(id, &mut buffer) else { panic!("no bytes") };
    // The reactor is free while the bytes are in use.
    reactor.send(id, &[IoSlice::new(bytes)]).expect("sent");
    let mut echo = [0; 4];
    peer.read_exact(&mut echo).expect("an echo");
    assert_eq!(&echo, b"mine");
}
