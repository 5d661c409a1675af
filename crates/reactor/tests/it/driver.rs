//! A reactor and what a test wants of it: wait for this, fail if it takes too long.

use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use reactor::{Accepted, Event, ListenOptions, Options, Reactor, Read, SocketId, Waker};

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(20);

pub const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub fn reactor() -> Reactor {
    reactor_with(Options::default())
}

pub fn reactor_with(options: Options) -> Reactor {
    Reactor::new(Waker::new().expect("an eventfd"), options).expect("an epoll set")
}

pub fn listening(options: &ListenOptions) -> (Reactor, SocketAddr) {
    let mut reactor = reactor();
    let address = reactor.listen(LOOPBACK, options).expect("a free port");
    (reactor, address)
}

/// The next event, however many waits it takes.
#[track_caller]
pub fn next(reactor: &mut Reactor) -> Event {
    let began = Instant::now();
    loop {
        if let Some(event) = reactor.next_event() {
            return event;
        }
        assert!(began.elapsed() < PATIENCE, "no event");
        reactor.wait(Some(Duration::from_millis(100))).expect("a wait");
    }
}

/// Turns until something is so; every event goes to `handle`.
#[track_caller]
pub fn turn_until(
    reactor: &mut Reactor,
    mut handle: impl FnMut(&mut Reactor, Event),
    mut so: impl FnMut(&Reactor) -> bool,
) {
    let began = Instant::now();
    while !so(reactor) {
        assert!(began.elapsed() < PATIENCE, "it never came to that");
        reactor.wait(Some(Duration::from_millis(20))).expect("a wait");
        while let Some(event) = reactor.next_event() {
            handle(reactor, event);
        }
    }
}

/// The kernel has nothing (more) to report: nobody would spin.
#[track_caller]
pub fn assert_quiet(reactor: &mut Reactor) {
    // One report may be what makes the reactor disarm a socket; after it there is silence.
    reactor.wait(Some(Duration::ZERO)).expect("a wait");
    assert_eq!(reactor.next_event(), None);
    for _ in 0..3 {
        assert_eq!(
            reactor.wait(Some(Duration::ZERO)).expect("a wait"),
            0,
            "the kernel reports again and again"
        );
    }
}

#[track_caller]
pub fn accept_one(reactor: &mut Reactor) -> Accepted {
    assert_eq!(next(reactor), Event::Accept);
    let mut accepted = Vec::new();
    reactor.accept_some(1, &mut accepted).expect("a connection");
    accepted[0]
}

/// A listening reactor, a connection it has accepted, and the other end.
pub fn connected(options: &ListenOptions) -> (Reactor, SocketId, TcpStream) {
    connected_in(reactor(), options)
}

pub fn connected_in(mut reactor: Reactor, options: &ListenOptions) -> (Reactor, SocketId, TcpStream) {
    let address = reactor.listen(LOOPBACK, options).expect("a free port");
    let peer = TcpStream::connect(address).expect("a connection");
    peer.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    peer.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    let id = accept_one(&mut reactor).id;
    (reactor, id, peer)
}

/// What one socket sends until its end, or so many bytes.
#[track_caller]
pub fn read_bytes(reactor: &mut Reactor, id: SocketId, count: usize) -> Vec<u8> {
    let mut all = Vec::new();
    while all.len() < count {
        assert_eq!(next(reactor), Event::Readable(id));
        match reactor.read(id) {
            Read::Bytes(bytes) => all.extend_from_slice(bytes),
            Read::Blocked => {}
            end => panic!("{end:?} after {} bytes", all.len()),
        }
    }
    all
}

/// Reads in another thread, so that a large answer cannot block the test.
pub fn read_to_end(mut peer: TcpStream) -> std::thread::JoinHandle<std::io::Result<Vec<u8>>> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        peer.read_to_end(&mut all).map(|_| all)
    })
}

/// Bytes that tell their place, so that order and loss show.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 7 + index / 251) as u8).collect()
}
