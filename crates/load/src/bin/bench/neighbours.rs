//! What good clients notice of bad ones: the 99th percentile of a message's way while somebody misbehaves, beside that of a quiet
//! time in the same round.
//!
//! Pairs send at a fixed pace, far from what the server can do, so that what is measured is waiting and not throughput. A message's way
//! ends when the sender has been told that the other device has it. Those who misbehave come from a thread of their own, which yields to
//! all others: what is measured is the server's work for them, not their own on the same cores.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use load::{Client, Ending, FleetOptions, Said, Server, ServerOptions, Stage};
use model::{ClientId, Mono, Payload};
use protocol::{Command, Encoding};
use websocket::{Opcode, Pool};

use crate::chat::Chat;

const MASK: [u8; 4] = [0x12, 0x34, 0x56, 0x78];
/// Connections with half a message.
const HALVES: usize = 1_000;
/// Messages that wait for the one who never reads, from so many writers.
const WAITING: usize = 10_000;
const WRITERS: usize = 10;
/// The first user of those who misbehave.
const BAD: usize = 1_000_000;

/// A way to misbehave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bad {
    /// A hundred thousand pings without reading, again and again.
    Pings,
    /// A thousand who send half a message and nothing more.
    Halves,
    /// One who never reads while ten thousand messages are sent to it.
    Sleeper,
}

pub fn run(arguments: &[String]) -> Result<(), String> {
    let pairs: usize = super::option(arguments, "--pairs", 50)?;
    let rounds: usize = super::option(arguments, "--rounds", 3)?;
    let seconds: u64 = super::option(arguments, "--seconds", 8)?;
    let shards: u16 = super::option(arguments, "--shards", 2)?;
    let pace = Duration::from_millis(super::option(arguments, "--pace-ms", 50)?);
    let folder = tempfile::tempdir().map_err(told)?;
    let server =
        Server::start(&ServerOptions { shards, data: folder.path().to_owned(), settings: Vec::new() })?;
    let options = FleetOptions { connecting_max: 64, ..FleetOptions::new(server.address) };
    let (mut fleet, mut chat) = Chat::connect(&server, options, 0, pairs, 1)?;
    println!("{pairs} pairs, a message each {pace:?}, {shards} shards; each phase {seconds} s");
    let bad = [Bad::Pings, Bad::Halves, Bad::Sleeper];
    let mut ratios = [const { Vec::new() }; 3];
    let mut fleet_phase = |bad: Option<Bad>| -> Result<Duration, String> {
        let (cpu, stop) = (server.cpu()?, AtomicBool::new(false));
        let time = Duration::from_secs(seconds);
        let done = std::thread::scope(|scope| {
            let misbehaving = scope.spawn(|| bad.map_or(Ok(()), |bad| misbehave(&server, bad, time, &stop)));
            let done = chat.paced(&mut fleet, pace, time);
            stop.store(true, Ordering::Relaxed);
            misbehaving.join().map_err(|_| "who misbehaves panicked".to_owned())??;
            done
        });
        let mut done = done?;
        let (p50, p99) = (done.quantile(0.5), done.quantile(0.99));
        println!(
            "{:<8} {} messages, p50 {:.2} ms, p99 {:.2} ms; server {:.0} % of one CPU, {:.1} MiB",
            bad.map_or("quiet".to_owned(), |bad| format!("{bad:?}").to_lowercase()),
            done.count(),
            p50.as_secs_f64() * 1e3,
            p99.as_secs_f64() * 1e3,
            (server.cpu()? - cpu).as_secs_f64() / seconds as f64 * 100.0,
            server.resident_bytes()? as f64 / f64::from(1 << 20),
        );
        Ok(p99)
    };
    fleet_phase(None)?;
    for round in 1..=rounds {
        println!("round {round}");
        let quiet = fleet_phase(None)?;
        for (bad, ratios) in bad.iter().zip(&mut ratios) {
            ratios.push(fleet_phase(Some(*bad))?.as_secs_f64() / quiet.as_secs_f64());
        }
    }
    chat.verify()?;
    let medians = ratios.map(|mut ratios| super::middle(&mut ratios));
    for (bad, median) in bad.iter().zip(medians) {
        super::part(&format!("{bad:?}, the middle of {rounds}"), median, "of the quiet p99");
    }
    super::verdict("neighbours", medians.into_iter().fold(0.0, f64::max), "of the quiet p99", true, 1.5);
    Ok(())
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Misbehaves until told to stop.
fn misbehave(server: &Server, bad: Bad, time: Duration, stop: &AtomicBool) -> Result<(), String> {
    let going_on = || !stop.load(Ordering::Relaxed);
    rustix::process::setpriority_process(Some(rustix::thread::gettid()), 19).map_err(told)?;
    match bad {
        Bad::Pings => {
            let mut frame = Vec::new();
            websocket::encode_masked_frame(&mut frame, Opcode::Ping, true, MASK, b"anybody there?");
            let flood = frame.repeat(100_000);
            while going_on() {
                let (mut stream, _) = open(server, BAD)?;
                // The server closes in the middle of it.
                let _ = stream.write_all(&flood);
                let _ = std::io::copy(&mut stream, &mut std::io::sink());
            }
        }
        Bad::Halves => {
            let mut frame = Vec::new();
            websocket::encode_masked_frame(&mut frame, Opcode::Text, true, MASK, &[b' '; 60_000]);
            let mut streams = Vec::new();
            for number in 0..HALVES {
                if !going_on() {
                    return Err("there was no time to open all of them".into());
                }
                let (mut stream, _) = open(server, BAD + number)?;
                stream.write_all(&frame[..8_000]).map_err(told)?;
                streams.push(stream);
            }
            while going_on() {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Bad::Sleeper => {
            let sleeper = BAD + HALVES;
            let mut writers = Vec::new();
            for writer in sleeper + 1..=sleeper + WRITERS {
                let conversation = server.direct(writer, sleeper)?;
                let (stream, client) = open(server, writer)?;
                writers.push((stream, client, conversation));
            }
            let _never_read = open(server, sleeper)?;
            // All of them in four fifths of the time.
            let each = time.mul_f64(0.8) / (WAITING / WRITERS) as u32;
            let began = Instant::now();
            // Others in every phase.
            let first = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos() as u64;
            for number in 0..WAITING / WRITERS {
                for (stream, client, conversation) in &mut writers {
                    let mut client_id = *b"for the sleeper.";
                    client_id[..8].copy_from_slice(&(first + number as u64).to_be_bytes());
                    let payload = Payload::from(vec![0x5a; 140]);
                    let command = Command::Send {
                        conversation: *conversation,
                        client_id: ClientId(client_id),
                        payload,
                    };
                    let mut out = Vec::new();
                    client.request(None, command, &mut out);
                    stream.write_all(&out).map_err(told)?;
                }
                std::thread::sleep((each * number as u32).saturating_sub(began.elapsed()));
            }
            if !going_on() {
                return Err("there was no time to send all of them".into());
            }
            while going_on() {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
    Ok(())
}

/// Device 1 of a user, let in.
fn open(server: &Server, user: usize) -> Result<(TcpStream, Client), String> {
    let mut stream = TcpStream::connect(server.address).map_err(told)?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).map_err(told)?;
    let (mut client, mut pool, mut out) = (Client::new(Encoding::Json), Pool::default(), Vec::new());
    client.open(&server.address.to_string(), load::SOCKET_PATH, &server.token(user), &mut out);
    let mut buffer = [0; 4_096];
    while client.stage() != Stage::Open {
        stream.write_all(&out).map_err(told)?;
        out.clear();
        let count = stream.read(&mut buffer).map_err(told)?;
        let mut over = (count == 0).then_some(Ending::Broken);
        client.received(&mut pool, Mono(0), &mut buffer[..count], &mut out, &mut |said, _| {
            if let Said::Over(why) = said {
                over = Some(why);
            }
        });
        if let Some(why) = over {
            return Err(format!("user {user}: {why}"));
        }
    }
    Ok((stream, client))
}
