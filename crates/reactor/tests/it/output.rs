//! Output a socket does not take at once.

use std::io::IoSlice;

use reactor::{ConnectOptions, Event, ListenOptions, Options, Reactor, Read, SendError, Sent, SocketId};

use crate::driver::{accept_one, assert_quiet, connected, next, pattern, reactor, read_to_end, turn_until};

const SMALL: ListenOptions = ListenOptions {
    backlog: 16,
    reuse_port: true,
    send_buffer_bytes: Some(4_096),
    receive_buffer_bytes: None,
};

fn flush(reactor: &mut Reactor, event: Event) {
    let Event::Writable(id) = event else { panic!("{event:?}") };
    reactor.flush(id).expect("an open socket");
}

#[test]
fn what_the_kernel_does_not_take_waits_in_order_and_goes_out_when_it_can() {
    let (mut reactor, id, peer) = connected(&SMALL);
    let all = pattern(3_000_000);
    let (first, rest) = all.split_at(1_000_003);
    let (second, third) = rest.split_at(17);
    let Sent { queued_bytes } = reactor.send(id, &[IoSlice::new(first)]).expect("taken");
    assert!(queued_bytes > 0, "a socket with a small buffer does not take a megabyte");
    assert_eq!((reactor.queued(id), reactor.queued_total()), (queued_bytes, queued_bytes));
    // A second send waits behind the first, even if there should be room by now.
    let sent = reactor.send(id, &[IoSlice::new(second), IoSlice::new(third)]);
    assert_eq!(sent, Ok(Sent { queued_bytes: queued_bytes + rest.len() }));

    let reader = read_to_end(peer);
    turn_until(&mut reactor, flush, |reactor| reactor.queued(id) == 0);
    assert_eq!(reactor.queued_total(), 0);
    assert_quiet(&mut reactor);
    reactor.close(id);
    assert!(reader.join().expect("the reader").expect("no reset") == all, "the bytes differ");
}

#[test]
fn more_slices_than_the_kernel_takes_in_one_call_are_all_sent() {
    let (mut reactor, id, peer) = connected(&ListenOptions::default());
    let all = pattern(3_000);
    let slices: Vec<IoSlice<'_>> = all.chunks(1).map(IoSlice::new).collect();
    reactor.send(id, &slices).expect("taken");
    let reader = read_to_end(peer);
    turn_until(&mut reactor, flush, |reactor| reactor.queued(id) == 0);
    reactor.close(id);
    assert_eq!(reader.join().expect("the reader").expect("no reset"), all);
}

#[test]
fn writability_and_readability_at_once_are_told_one_after_the_other() {
    let (mut reactor, id, peer) = connected(&SMALL);
    while reactor.send(id, &[IoSlice::new(&[7; 100_000])]).expect("taken").queued_bytes == 0 {}
    let mut writer = peer.try_clone().expect("a descriptor");
    std::io::Write::write_all(&mut writer, b"busy").expect("room");
    let reader = read_to_end(peer);
    let (mut wrote, mut read) = (false, false);
    let handle = |reactor: &mut Reactor, event| match event {
        Event::Writable(id) => {
            wrote = true;
            reactor.flush(id).expect("an open socket");
        }
        Event::Readable(id) => {
            read = true;
            assert_eq!(reactor.read(id), Read::Bytes(&mut b"busy".to_owned()));
        }
        event => panic!("{event:?}"),
    };
    turn_until(&mut reactor, handle, |reactor| reactor.queued(id) == 0);
    assert!(wrote && read);
    reactor.close(id);
    reader.join().expect("the reader").expect("no reset");
}

#[test]
fn sending_to_a_connection_that_broke_says_so_and_raises_no_signal() {
    let (mut reactor, id, peer) = connected(&ListenOptions::default());
    rustix::net::sockopt::set_socket_linger(&peer, Some(std::time::Duration::ZERO)).expect("an option");
    drop(peer);
    // The reset may be reported by the first send or by the second.
    let first = reactor.send(id, &[IoSlice::new(b"anyone?")]);
    let error = first.and_then(|_| reactor.send(id, &[IoSlice::new(b"anyone?")])).expect_err("nobody");
    assert!(matches!(error, SendError::Broken(_)), "{error:?}");
}

/// Two reactors, one connecting to the other, driven in turns.
fn both_ends() -> (Reactor, SocketId, Reactor, SocketId) {
    let mut server = reactor();
    let address = server.listen(crate::driver::LOOPBACK, &SMALL).expect("a free port");
    let mut client = crate::driver::reactor_with(Options::default());
    let near = client.connect(address, &ConnectOptions::default()).expect("begun");
    let far = accept_one(&mut server).id;
    (server, far, client, near)
}

#[test]
fn what_is_sent_before_the_connection_is_made_goes_out_after() {
    let (mut server, far, mut client, near) = both_ends();
    let sent = client.send(near, &[IoSlice::new(b"early")]).expect("taken");
    assert_eq!(sent.queued_bytes, 5);
    assert_eq!(next(&mut client), Event::Connected(near));
    turn_until(&mut client, flush, |client| client.queued(near) == 0);
    assert_eq!(crate::driver::read_bytes(&mut server, far, 5), b"early");
}
