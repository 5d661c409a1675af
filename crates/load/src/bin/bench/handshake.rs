//! Authenticated connects a second, beside the same number of bare ones in the same run.
//!
//! A bare one is a TCP connection and two echoes of 220 bytes over it, which is what the upgrade and `connect` cannot be cheaper
//! than. Both sides of both are one thread each, with as many under way at a time, and every connection stays until its round is over.

use std::collections::HashMap;
use std::io::{IoSlice, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use load::{Context, Fleet, FleetOptions, Said, Scenario, Server, ServerOptions};
use protocol::Connected;
use reactor::{ConnectOptions, Event, Options, Reactor, Waker};
use rustix::event::{Timespec, epoll};

/// Bytes of one echo.
const BYTES: usize = 220;
/// Connections under way at a time.
const UNDER_WAY: usize = 256;
/// How long a round may take.
const PATIENCE: Duration = Duration::from_secs(120);
const LISTENER: u64 = u64::MAX;

/// Does nothing once it is in.
struct Quiet;

impl Scenario for Quiet {
    fn connected(&mut self, _: &mut Context<'_>, _: usize, _: &Connected) {}
    fn said(&mut self, _: &mut Context<'_>, _: usize, _: Said<'_>) {}
}

pub fn run(arguments: &[String]) -> Result<(), String> {
    let count: usize = super::option(arguments, "--connections", 8_000)?;
    let rounds: usize = super::option(arguments, "--rounds", 5)?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let settings = vec![
        ("THRONG_CONNECTIONS_UNAUTHENTICATED_PER_ADDRESS_MAX", "8192".to_owned()),
        ("THRONG_ADMISSION_CONNECTS_PER_SECOND", "1000000".to_owned()),
        ("THRONG_ADMISSION_BURST", "1000000".to_owned()),
    ];
    // One shard: one thread each side, as the bare one has.
    let options = ServerOptions { shards: 1, data: folder.path().to_owned(), settings };
    let server = Server::start(&options)?;
    println!(
        "{count} connections a round, {UNDER_WAY} under way at a time, {rounds} rounds after one that makes devices known"
    );
    authenticated(&server, count, 0)?;
    let (mut ratios, mut bares, mut ours) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=rounds {
        let cpu = server.cpu()?;
        let (bare, authenticated) = (bare(count)?, authenticated(&server, count, round)?);
        println!(
            "round {round}: {bare:.0} bare and {authenticated:.0} authenticated a second, {:.0} µs of the server's CPU each",
            (server.cpu()? - cpu).as_micros() as f64 / count as f64
        );
        ratios.push(authenticated / bare);
        bares.push(bare);
        ours.push(authenticated);
    }
    super::part("bare connect and two echoes", super::middle(&mut bares), "a second");
    super::part("authenticated connect", super::middle(&mut ours), "a second");
    super::verdict("handshake", super::middle(&mut ratios), "of the bare rate", false, 0.6);
    Ok(())
}

/// Authenticated connects a second. Each round comes from an address of its own: the ports of the round before are still kept by the
/// kernel (TIME_WAIT), and looking for one between them takes time. The bare ones have a new listener each time.
fn authenticated(server: &Server, count: usize, round: usize) -> Result<f64, String> {
    let tokens = (0..count).map(|user| server.token(user)).collect();
    let options = FleetOptions {
        connecting_max: UNDER_WAY,
        first_source: round as u16,
        ..FleetOptions::new(server.address)
    };
    let mut fleet = Fleet::with_tokens(options, tokens).map_err(|error| error.to_string())?;
    let began = Instant::now();
    let all = fleet
        .run(&mut Quiet, PATIENCE, |fleet, _| fleet.open() == count || fleet.failures() > 0)
        .map_err(|error| error.to_string())?;
    if !all || fleet.open() != count {
        return Err(format!("{} of {count} connected: {:?}", fleet.open(), fleet.failure()));
    }
    Ok(count as f64 / began.elapsed().as_secs_f64())
}

/// Bare connects with two echoes a second.
fn bare(count: usize) -> Result<f64, String> {
    let told = |error: std::io::Error| error.to_string();
    // The standard library's backlog is short; this one is as long as the server's.
    let listener = TcpListener::bind("127.0.0.1:0").map_err(told)?;
    rustix::net::listen(&listener, 4_096).map_err(|errno| errno.to_string())?;
    listener.set_nonblocking(true).map_err(told)?;
    let address = listener.local_addr().map_err(told)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let server = scope.spawn(|| echo(&listener, &stop));
        let rate = connect(address, count);
        stop.store(true, Ordering::Relaxed);
        server.join().map_err(|_| "the echo thread panicked".to_owned())??;
        rate
    })
}

/// Takes connections and says back what they say, until it is told to stop.
fn echo(listener: &TcpListener, stop: &AtomicBool) -> Result<(), String> {
    let told = |errno: rustix::io::Errno| errno.to_string();
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(told)?;
    let watch = |fd: rustix::fd::BorrowedFd<'_>, token: u64| {
        epoll::add(&set, fd, epoll::EventData::new_u64(token), epoll::EventFlags::IN).map_err(told)
    };
    watch(listener.as_fd(), LISTENER)?;
    let mut streams: Vec<Option<TcpStream>> = Vec::new();
    let (mut events, mut buffer) = (Vec::with_capacity(512), [0; 4096]);
    let wait = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    while !stop.load(Ordering::Relaxed) {
        events.clear();
        epoll::wait(&set, rustix::buffer::spare_capacity(&mut events), Some(&wait)).map_err(told)?;
        for event in &events {
            if event.data.u64() == LISTENER {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true).map_err(|error| error.to_string())?;
                    watch(stream.as_fd(), streams.len() as u64)?;
                    streams.push(Some(stream));
                }
                continue;
            }
            let slot = &mut streams[event.data.u64() as usize];
            let Some(stream) = slot else { continue };
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => *slot = None,
                Ok(read) => stream.write_all(&buffer[..read]).map_err(|error| error.to_string())?,
            }
        }
    }
    Ok(())
}

fn connect(address: SocketAddr, count: usize) -> Result<f64, String> {
    let told = |error: std::io::Error| error.to_string();
    let mut reactor = Reactor::new(Waker::new().map_err(told)?, Options::default()).map_err(told)?;
    let options =
        ConnectOptions { source: Some(IpAddr::V4(Ipv4Addr::new(127, 3, 0, 1))), ..ConnectOptions::default() };
    let message = [b'x'; BYTES];
    let mut buffer = vec![0; 4096];
    // What has come of a connection's two echoes.
    let mut came: HashMap<u32, usize> = HashMap::new();
    let (mut begun, mut done) = (0, 0);
    let began = Instant::now();
    while done < count {
        if began.elapsed() > PATIENCE {
            return Err(format!("{done} of {count} bare connections were done after {PATIENCE:?}"));
        }
        while begun < count && begun - done < UNDER_WAY {
            reactor.connect(address, &options).map_err(|error| format!("{error}: {error:?}"))?;
            begun += 1;
        }
        reactor.wait(Some(Duration::from_millis(20))).map_err(told)?;
        while let Some(event) = reactor.next_event() {
            match event {
                Event::Connected(id) => {
                    came.insert(id.slot, 0);
                    reactor.send(id, &[IoSlice::new(&message)]).map_err(|error| format!("{error:?}"))?;
                }
                Event::Readable(id) => {
                    let reactor::Read::Bytes(bytes) = reactor.read_into(id, &mut buffer) else { continue };
                    let bytes = bytes.len();
                    let sum = came.entry(id.slot).or_default();
                    let before = *sum / BYTES;
                    *sum += bytes;
                    match *sum / BYTES {
                        1 if before == 0 => {
                            reactor
                                .send(id, &[IoSlice::new(&message)])
                                .map_err(|error| format!("{error:?}"))?;
                        }
                        2 => done += 1,
                        _ => {}
                    }
                }
                Event::ConnectFailed(_, errno) => return Err(format!("a bare connection failed: {errno}")),
                Event::Writable(_) | Event::HungUp(_) | Event::Accept | Event::Woken => {}
            }
        }
    }
    Ok(count as f64 / began.elapsed().as_secs_f64())
}
