//! The proxy carries bytes unchanged and in order, and each trouble is what it says.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use torture::chance::{Chance, seed};
use torture::proxy::{FROZEN_MAX, Nature, Proxy, Trouble};

/// Longest wait for something that must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Accepts one connection and does something with it.
fn server<T: Send + 'static>(
    serve: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (SocketAddr, JoinHandle<T>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let thread = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("somebody connects");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket of ours");
        serve(stream)
    });
    (address, thread)
}

fn connect(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(proxy.address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket of ours");
    stream
}

/// All until the sender has sent everything.
fn everything(mut stream: &TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("an orderly end");
    all
}

/// What has come before the end, however that is.
fn beginning(mut stream: &TcpStream) -> (Vec<u8>, Option<ErrorKind>) {
    let mut all = Vec::new();
    let end = stream.read_to_end(&mut all).err().map(|error| error.kind());
    (all, end)
}

/// Always the same trouble, with the first piece.
fn only(trouble: Trouble) -> Nature {
    Nature { troubles: vec![trouble], troubled: 10_000, ..Nature::slow() }
}

fn noise(chance: &mut Chance, count: usize) -> Vec<u8> {
    (0..count).map(|_| chance.between(0, 255) as u8).collect()
}

#[test]
fn what_it_delays_and_splits_arrives_unchanged_in_both_directions() {
    let seed = seed();
    let mut chance = Chance::from_seed(seed);
    let (up, down) = (noise(&mut chance, 100_000), noise(&mut chance, 70_000));
    let answer = down.clone();
    let (address, served) = server(move |mut stream| {
        let reader = stream.try_clone().expect("a second handle");
        let heard = std::thread::spawn(move || everything(&reader));
        stream.write_all(&answer).expect("open");
        stream.shutdown(Shutdown::Write).expect("open");
        heard.join().expect("it reads to the end")
    });
    let nature = Nature { delay_max: Duration::from_micros(300), ..Nature::slow() };
    let proxy = Proxy::start(address, nature, seed);
    let mut client = connect(&proxy);
    let writer = client.try_clone().expect("a second handle");
    let heard = std::thread::spawn(move || everything(&writer));
    client.write_all(&up).expect("open");
    client.shutdown(Shutdown::Write).expect("open");
    assert!(served.join().expect("the server hears everything") == up);
    assert!(heard.join().expect("the client hears everything") == down);
    assert_eq!(proxy.connections(), 1);
}

#[test]
fn a_piece_is_no_longer_than_it_may_be() {
    let (address, served) = server(|mut stream| {
        let mut sizes = Vec::new();
        let mut bytes = [0; 1024];
        while sizes.iter().sum::<usize>() < 100 {
            sizes.push(stream.read(&mut bytes).expect("open"));
        }
        sizes
    });
    // Far enough apart that no two are read as one.
    let nature = Nature { delay_max: Duration::from_millis(40), piece_max: 10, ..Nature::slow() };
    let proxy = Proxy::start(address, nature, seed());
    connect_and_hold(&proxy, &[7; 100]);
    let sizes = served.join().expect("it reads a hundred bytes");
    assert!(
        sizes.len() >= 3,
        "a hundred bytes come in pieces of ten at most, few of them together: {sizes:?}"
    );
}

/// Sends this and stays until the other side is done with it.
fn connect_and_hold(proxy: &Proxy, bytes: &[u8]) {
    let mut client = connect(proxy);
    client.write_all(bytes).expect("open");
    let _ = beginning(&client);
}

#[test]
fn a_cut_loses_the_end_and_closes_both_sides() {
    for seed in seed_and_more() {
        let (address, served) = server(|stream| beginning(&stream).0);
        let proxy = Proxy::start(address, only(Trouble::Cut), seed);
        let mut client = connect(&proxy);
        client.write_all(&[1; 5_000]).expect("open");
        assert_eq!(beginning(&client).0, [0; 0], "the client hears nothing but the end");
        let arrived = served.join().expect("it reads to the end");
        assert!(arrived.len() <= 200 && arrived.iter().all(|byte| *byte == 1), "a part of the first piece");
        assert_eq!(proxy.happened(Trouble::Cut), 1);
    }
}

#[test]
fn a_reset_resets_both_sides() {
    for seed in seed_and_more() {
        let (address, served) = server(|stream| beginning(&stream).1);
        let proxy = Proxy::start(address, only(Trouble::Reset), seed);
        let mut client = connect(&proxy);
        client.write_all(&[1; 50]).expect("open");
        assert_eq!(beginning(&client).1, Some(ErrorKind::ConnectionReset));
        assert_eq!(served.join().expect("it reads to the end"), Some(ErrorKind::ConnectionReset));
    }
}

#[test]
fn a_half_close_leaves_the_other_direction_alone() {
    let (address, served) = server(|mut stream| {
        // The client's first piece, or a part of it, and then its end; and all that goes the other way.
        let heard = everything(&stream);
        stream.write_all(&[2; 1]).expect("open");
        heard
    });
    let proxy = Proxy::start(address, only(Trouble::HalfClose), seed());
    let mut client = connect(&proxy);
    client.write_all(&[1; 5_000]).expect("open");
    assert!(served.join().expect("it reads to the end").len() <= 200);
    // Its one byte meets the same trouble, which may swallow it, but no reset.
    assert!(everything(&client).len() <= 1);
    assert_eq!(proxy.happened(Trouble::HalfClose), 2);
}

#[test]
fn a_stall_ends() {
    let (address, served) = server(|stream| everything(&stream));
    let proxy = Proxy::start(address, only(Trouble::Stall), seed());
    let began = Instant::now();
    let mut client = connect(&proxy);
    client.write_all(b"x").expect("open");
    client.shutdown(Shutdown::Write).expect("open");
    assert_eq!(served.join().expect("it reads to the end"), b"x");
    assert!(began.elapsed() >= Duration::from_millis(200), "it stood still for a while");
    assert_eq!(proxy.happened(Trouble::Stall), 1);
}

#[test]
fn what_is_frozen_says_nothing() {
    assert!(FROZEN_MAX > Duration::from_secs(2));
    let (address, served) = server(|mut stream| {
        stream.set_read_timeout(Some(Duration::from_secs(1))).expect("a socket of ours");
        stream.read(&mut [0]).map_err(|error| error.kind())
    });
    let proxy = Proxy::start(address, only(Trouble::Freeze), seed());
    let mut client = connect(&proxy);
    client.write_all(b"x").expect("open");
    assert_eq!(served.join().expect("it waits in vain"), Err(ErrorKind::WouldBlock));
    assert_eq!(proxy.happened(Trouble::Freeze), 1);
}

#[test]
fn without_a_server_the_client_is_reset() {
    let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    let proxy = Proxy::start(nobody.expect("a port that was free"), Nature::slow(), seed());
    assert_eq!(beginning(&connect(&proxy)).1, Some(ErrorKind::ConnectionReset));
}

#[test]
fn the_same_seed_brings_the_same_troubles() {
    let lengths = |seed: u64| -> Vec<usize> {
        (0..6)
            .map(|connection| {
                let (address, served) = server(|stream| beginning(&stream).0.len());
                let proxy = Proxy::start(address, only(Trouble::Cut), seed + connection);
                connect_and_hold(&proxy, &[1; 200]);
                served.join().expect("it reads to the end")
            })
            .collect()
    };
    let seed = seed();
    assert_eq!(lengths(seed), lengths(seed));
    assert_ne!(lengths(1), lengths(100), "and another one others");
}

fn seed_and_more() -> std::ops::Range<u64> {
    let first = seed();
    first..first + 8
}
