//! Many connections, the client's half included.

use std::io::IoSlice;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use reactor::{
    ConnectError, ConnectOptions, Event, ListenOptions, Reactor, Read, SocketId, raise_descriptor_limit,
};

use crate::driver::{LOOPBACK, connected, next, reactor};

const CROWD: usize = 3_000;

/// Serves like an echo.
fn echo(server: &mut Reactor, event: Event) {
    match event {
        Event::Accept => server.accept_some(64, &mut Vec::new()).expect("room for the crowd"),
        Event::Readable(id) => {
            let mut buffer = [0; 64];
            match server.read_into(id, &mut buffer) {
                Read::Bytes(bytes) => {
                    server.send(id, &[IoSlice::new(bytes)]).expect("an open socket");
                }
                Read::Blocked => {}
                Read::Closed | Read::Reset(_) => server.close(id),
            }
        }
        event => panic!("{event:?}"),
    }
}

fn turn(reactor: &mut Reactor, mut handle: impl FnMut(&mut Reactor, Event)) {
    reactor.wait(Some(Duration::from_millis(1))).expect("a wait");
    while let Some(event) = reactor.next_event() {
        handle(reactor, event);
    }
}

#[test]
fn a_crowd_from_several_addresses_is_held_heard_and_answered() {
    let limit = raise_descriptor_limit();
    assert!(limit.now.is_none_or(|now| now > 2 * CROWD as u64 + 500), "{limit:?}");
    let (mut server, mut client) = (reactor(), reactor());
    let address = server.listen(LOOPBACK, &ListenOptions::default()).expect("a free port");
    let (mut begun, mut made, mut answered) = (0, Vec::<SocketId>::new(), 0);
    let mut rounds = 0;
    while answered < CROWD {
        rounds += 1;
        assert!(rounds < 100_000, "{begun} begun, {} made, {answered} answered", made.len());
        while begun < CROWD && begun - made.len() < 500 {
            let source = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2 + (begun % 3) as u8));
            let options = ConnectOptions { source: Some(source), ..ConnectOptions::default() };
            client.connect(address, &options).expect("a connection begun");
            begun += 1;
        }
        turn(&mut client, |client, event| match event {
            Event::Connected(id) => {
                made.push(id);
                client.send(id, &[IoSlice::new(&id.slot.to_be_bytes())]).expect("an open socket");
            }
            Event::Readable(id) => {
                if let Read::Bytes(bytes) = client.read(id) {
                    assert_eq!(bytes, id.slot.to_be_bytes(), "somebody else's answer");
                    answered += 1;
                }
            }
            event => panic!("{event:?}"),
        });
        turn(&mut server, echo);
    }
    assert_eq!((server.sockets(), client.sockets()), (CROWD, CROWD));
    for id in made {
        client.close(id);
    }
    while server.sockets() > 0 {
        turn(&mut server, echo);
    }
}

#[test]
fn a_connection_nobody_takes_fails() {
    let mut reactor = reactor();
    let nobody = reactor.listen(LOOPBACK, &ListenOptions::default()).expect("a free port");
    reactor.stop_listening();
    // The kernel may say so at once or by an event.
    match reactor.connect(nobody, &ConnectOptions::default()) {
        Err(error) => assert_eq!(error, ConnectError::Connect(rustix::io::Errno::CONNREFUSED)),
        Ok(id) => {
            assert_eq!(next(&mut reactor), Event::ConnectFailed(id, rustix::io::Errno::CONNREFUSED));
        }
    }
    assert_eq!(reactor.sockets(), 0);
}

#[test]
fn a_source_that_is_not_of_this_machine_is_refused() {
    let (mut reactor, _id, _peer) = connected(&ListenOptions::default());
    let address = reactor.listening().expect("a listener");
    // TEST-NET-1 (RFC 5737) is nobody's.
    let source = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
    let begun = reactor.connect(address, &ConnectOptions { source, ..ConnectOptions::default() });
    assert_eq!(begun, Err(ConnectError::Source(rustix::io::Errno::ADDRNOTAVAIL)));
    assert_eq!(reactor.sockets(), 1);
}
