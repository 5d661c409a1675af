//! Handing connections to another thread.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::OwnedFd;

use reactor::{HandoverError, ListenOptions, handover_pair, recv_fd, send_fd};

use crate::driver::{connected, read_bytes};

#[test]
fn a_connection_goes_on_elsewhere_with_the_bytes_already_read() {
    let (near, far) = handover_pair().expect("a pair");
    let (mut reactor, id, mut peer) = connected(&ListenOptions::default());
    peer.write_all(b"GET / HTTP/1.1\r\n").expect("room");
    let bytes = read_bytes(&mut reactor, id, 16);
    let fd = reactor.detach(id).expect("the socket");
    assert_eq!(reactor.sockets(), 0);
    send_fd(&near, &fd, &bytes).expect("room");
    drop(fd);
    // What comes after is the new owner's, and no event of this reactor.
    peer.write_all(b"\r\n").expect("room");
    assert_eq!(reactor.wait(Some(std::time::Duration::ZERO)).expect("a wait"), 0);

    let other = std::thread::spawn(move || {
        let mut buffer = [0; 8192];
        let received = recv_fd(&far, &mut buffer).expect("a message").expect("it is there");
        assert_eq!(&buffer[..received.bytes], b"GET / HTTP/1.1\r\n");
        let mut stream = TcpStream::from(received.fd);
        stream.set_nonblocking(false).expect("an option");
        let mut rest = [0; 2];
        stream.read_exact(&mut rest).expect("the rest");
        assert_eq!(&rest, b"\r\n");
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").expect("room");
        assert!(recv_fd(&far, &mut buffer).expect("open").is_none(), "nothing more is there");
    });
    let mut answer = String::new();
    peer.read_to_string(&mut answer).expect("an answer");
    assert_eq!(answer, "HTTP/1.1 204 No Content\r\n\r\n");
    other.join().expect("the other thread");
}

fn any_fd() -> OwnedFd {
    rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).expect("a descriptor")
}

#[test]
fn no_bytes_and_many_bytes_arrive_as_they_were_sent() {
    let (near, far) = handover_pair().expect("a pair");
    let mut buffer = vec![0; 70_000];
    for len in [0, 1, 8_192, 70_000] {
        let bytes = crate::driver::pattern(len);
        send_fd(&near, any_fd(), &bytes).expect("room");
        let received = recv_fd(&far, &mut buffer).expect("a message").expect("it is there");
        assert!(buffer[..received.bytes] == bytes, "{len} bytes");
    }
}

#[test]
fn a_receiver_that_does_not_keep_up_is_full_and_loses_nothing() {
    let (near, far) = handover_pair().expect("a pair");
    let fd = any_fd();
    let mut sent = 0u32;
    let error = loop {
        match send_fd(&near, &fd, &sent.to_be_bytes()) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
        assert!(sent < 1_000_000, "it is never full");
    };
    assert_eq!(error, HandoverError::Full);
    let mut buffer = [0; 64];
    for expected in 0..sent {
        let received = recv_fd(&far, &mut buffer).expect("a message").expect("it is there");
        assert_eq!(buffer[..received.bytes], expected.to_be_bytes());
    }
    send_fd(&near, &fd, b"again").expect("room again");
}

#[test]
fn a_receiver_that_is_gone_and_one_with_too_small_a_buffer_are_told_apart() {
    let (near, far) = handover_pair().expect("a pair");
    send_fd(&near, any_fd(), &[7; 100]).expect("room");
    assert_eq!(recv_fd(&far, &mut [0; 10]).map(|_| ()), Err(HandoverError::TooLong));
    drop(far);
    assert_eq!(send_fd(&near, any_fd(), b"x"), Err(HandoverError::Closed));
    let (near, far) = handover_pair().expect("a pair");
    drop(near);
    assert_eq!(recv_fd(&far, &mut [0; 10]).map(|_| ()), Err(HandoverError::Closed));
}
