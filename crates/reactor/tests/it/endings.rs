//! How connections end, from both sides.

use std::io::{IoSlice, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use reactor::{Event, ListenOptions, Options, Reactor, Read, SendError};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;

use crate::driver::{
    assert_quiet, connected, connected_in, next, pattern, reactor_with, read_bytes, read_to_end, turn_until,
};

/// Longer than any test, so that only the peer's end can end a lingering socket.
const ENDLESS: Options = Options { linger: Duration::from_secs(3_600) };

const SMALL: ListenOptions = ListenOptions {
    backlog: 16,
    reuse_port: true,
    send_buffer_bytes: Some(4_096),
    receive_buffer_bytes: None,
};

fn no_event(_: &mut Reactor, event: Event) {
    panic!("{event:?} of a socket that only waits for its end");
}

fn reset(peer: TcpStream) {
    set_socket_linger(&peer, Some(Duration::ZERO)).expect("an option");
}

#[test]
fn the_last_words_arrive_although_the_peer_is_still_talking() {
    let (mut reactor, id, mut peer) = connected_in(reactor_with(ENDLESS), &SMALL);
    let words = pattern(1_000_000);
    assert!(reactor.send(id, &[IoSlice::new(&words)]).expect("taken").queued_bytes > 0);
    // Unread input at the time of closing is what makes a kernel answer with a reset.
    peer.write_all(&[1; 50_000]).expect("room");
    reactor.close_after_flush(id);
    assert_eq!(reactor.send(id, &[IoSlice::new(b"afterthought")]), Err(SendError::Stale));
    let mut talking = peer.try_clone().expect("a descriptor");
    let talker = std::thread::spawn(move || while talking.write_all(&[2; 1_000]).is_ok() {});
    let listener = peer.try_clone().expect("a descriptor");
    let reader = read_to_end(listener);
    turn_until(&mut reactor, no_event, |reactor| reactor.queued_total() == 0);
    // The peer hears the end while it may still talk; then it closes, and so does this side.
    turn_until(&mut reactor, no_event, |_| reader.is_finished());
    let heard = reader.join().expect("the reader").expect("no reset");
    assert!(heard == words, "{} bytes of {}", heard.len(), words.len());
    peer.shutdown(Shutdown::Both).expect("open");
    turn_until(&mut reactor, no_event, |reactor| reactor.sockets() == 0);
    talker.join().expect("the talker");
}

#[test]
fn a_peer_that_never_closes_is_closed_when_the_linger_is_over_and_the_wait_ends_by_itself() {
    let options = Options { linger: Duration::from_millis(30) };
    let (mut reactor, id, mut peer) = connected_in(reactor_with(options), &ListenOptions::default());
    reactor.send(id, &[IoSlice::new(b"bye")]).expect("taken");
    let began = Instant::now();
    reactor.close_after_flush(id);
    let far_longer = Duration::from_secs(10);
    while reactor.sockets() > 0 {
        assert!(began.elapsed() < far_longer, "it never closes");
        reactor.wait(Some(far_longer)).expect("a wait that ends");
        assert_eq!(reactor.next_event(), None);
    }
    assert!(began.elapsed() >= options.linger && began.elapsed() < far_longer, "{:?}", began.elapsed());
    let mut words = Vec::new();
    peer.read_to_end(&mut words).expect("no reset");
    assert_eq!(words, b"bye");
}

#[test]
fn a_peer_that_does_not_read_is_closed_when_the_linger_is_over() {
    let options = Options { linger: Duration::from_millis(30) };
    let (mut reactor, id, _peer) = connected_in(reactor_with(options), &SMALL);
    while reactor.send(id, &[IoSlice::new(&[7; 100_000])]).expect("taken").queued_bytes == 0 {}
    reactor.close_after_flush(id);
    turn_until(&mut reactor, no_event, |reactor| reactor.sockets() == 0);
    assert_eq!(reactor.queued_total(), 0);
}

#[test]
fn a_peer_that_has_said_all_still_gets_its_answer() {
    let (mut reactor, id, mut peer) = connected_in(reactor_with(ENDLESS), &SMALL);
    peer.write_all(b"question").expect("room");
    peer.shutdown(Shutdown::Write).expect("open");
    assert_eq!(read_bytes(&mut reactor, id, 8), b"question");
    assert_eq!(next(&mut reactor), Event::Readable(id));
    assert_eq!(reactor.read(id), Read::Closed);
    // Not closed at once by the caller, the end must not be reported for ever.
    assert_quiet(&mut reactor);
    let answer = pattern(1_000_000);
    reactor.send(id, &[IoSlice::new(&answer)]).expect("taken");
    reactor.close_after_flush(id);
    let reader = read_to_end(peer);
    turn_until(&mut reactor, no_event, |reactor| reactor.sockets() == 0);
    assert!(reader.join().expect("the reader").expect("no reset") == answer);
}

#[test]
fn a_reset_is_told_apart_from_a_close() {
    let (mut reactor, id, peer) = connected(&ListenOptions::default());
    reset(peer);
    assert_eq!(next(&mut reactor), Event::Readable(id));
    assert_eq!(reactor.read(id), Read::Reset(Errno::CONNRESET));
    // Even if the caller forgets to close.
    assert_quiet(&mut reactor);
    assert_eq!(reactor.read(id), Read::Closed);
    reactor.close(id);
}

#[test]
fn a_reset_while_reading_is_paused_is_told_once() {
    let (mut reactor, id, peer) = connected(&ListenOptions::default());
    reactor.pause_reading(id);
    reset(peer);
    assert_eq!(next(&mut reactor), Event::HungUp(id));
    assert_quiet(&mut reactor);
    reactor.resume_reading(id);
    assert_eq!(next(&mut reactor), Event::Readable(id));
    assert_eq!(reactor.read(id), Read::Reset(Errno::CONNRESET));
}

#[test]
fn a_reset_while_output_waits_breaks_the_flush_and_costs_nothing_after() {
    let (mut reactor, id, peer) = connected(&SMALL);
    while reactor.send(id, &[IoSlice::new(&[7; 100_000])]).expect("taken").queued_bytes == 0 {}
    reset(peer);
    // Which of the two tells is the kernel's choice; one of them must.
    let mut broken = false;
    while !broken {
        broken = match next(&mut reactor) {
            Event::Writable(id) => reactor.flush(id).is_err(),
            Event::Readable(id) => matches!(reactor.read(id), Read::Reset(_)),
            event => panic!("{event:?}"),
        };
    }
    reactor.close(id);
    assert_eq!(reactor.queued_total(), 0);
    assert_quiet(&mut reactor);
}

#[test]
fn a_reset_while_lingering_ends_it() {
    let (mut reactor, id, peer) = connected_in(reactor_with(ENDLESS), &SMALL);
    while reactor.send(id, &[IoSlice::new(&[7; 100_000])]).expect("taken").queued_bytes == 0 {}
    reactor.close_after_flush(id);
    reset(peer);
    turn_until(&mut reactor, no_event, |reactor| reactor.sockets() == 0);
}

#[test]
fn closing_drops_what_waits() {
    let (mut reactor, id, _peer) = connected(&SMALL);
    while reactor.send(id, &[IoSlice::new(&[7; 100_000])]).expect("taken").queued_bytes == 0 {}
    reactor.close(id);
    assert_eq!((reactor.queued(id), reactor.queued_total(), reactor.sockets()), (0, 0, 0));
}
