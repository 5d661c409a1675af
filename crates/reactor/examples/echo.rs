//! A WebSocket echo server: one reactor, one thread, the two rooms and nothing else.
//!
//! `cargo run --release --example echo -- 127.0.0.1:9001`
//!
//! Accepts every path, large messages in many fragments, and no compression. It is what the Autobahn cases run against
//! (`tests/autobahn`), and the shortest complete use of `reactor` with `websocket`.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::time::Instant;

use model::Mono;
use reactor::{Accepted, Event, ListenOptions, Options, Reactor, Read, SocketId, Waker};
use websocket::{Pool, Progress, ProtocolError, Receiver, RequestReader, Role, Settings};

/// Room for the largest Autobahn case, with its largest number of fragments.
const SETTINGS: Settings =
    Settings { role: Role::Server, message_bytes_max: 64 * 1024 * 1024, fragments_max: 1_000_000 };
/// Above so many waiting bytes a connection is not read from, until they are out.
const QUEUED_BYTES_MAX: usize = 1024 * 1024;
const ACCEPTS_MAX: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address: SocketAddr =
        std::env::args().nth(1).ok_or("usage: echo ADDRESS:PORT")?.parse().map_err(|_| "not ADDRESS:PORT")?;
    reactor::raise_descriptor_limit();
    let mut echo = Echo::new()?;
    let address = echo.reactor.listen(address, &ListenOptions::default())?;
    println!("listening on {address}");
    loop {
        echo.turn()?;
    }
}

/// Where a connection is.
enum Stage {
    Opening { reader: RequestReader, head: Vec<u8> },
    Open(Receiver),
}

/// What to do with a connection once its output is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Stay,
    Close,
}

struct Echo {
    reactor: Reactor,
    began: Instant,
    connections: Vec<Option<Stage>>,
    accepted: Vec<Accepted>,
    pool: Pool,
    out: Vec<u8>,
}

impl Echo {
    fn new() -> std::io::Result<Echo> {
        Ok(Echo {
            reactor: Reactor::new(Waker::new()?, Options::default())?,
            began: Instant::now(),
            connections: Vec::new(),
            accepted: Vec::new(),
            pool: Pool::default(),
            out: Vec::new(),
        })
    }

    fn turn(&mut self) -> std::io::Result<()> {
        self.reactor.wait(None)?;
        let now = Mono(self.began.elapsed().as_millis() as u64);
        while let Some(event) = self.reactor.next_event() {
            match event {
                Event::Accept => self.accept(),
                Event::Readable(id) => self.read(id, now),
                Event::Writable(id) => self.flush(id),
                Event::HungUp(id) => self.reactor.close(id),
                Event::Connected(_) | Event::ConnectFailed(..) | Event::Woken => {}
            }
        }
        Ok(())
    }

    fn accept(&mut self) {
        if let Err(error) = self.reactor.accept_some(ACCEPTS_MAX, &mut self.accepted) {
            eprintln!("{error}");
        }
        for Accepted { id, .. } in self.accepted.drain(..) {
            let slot = id.slot as usize;
            if self.connections.len() <= slot {
                self.connections.resize_with(slot + 1, || None);
            }
            self.connections[slot] = Some(Stage::Opening { reader: RequestReader::new(), head: Vec::new() });
        }
    }

    fn read(&mut self, id: SocketId, now: Mono) {
        let Some(stage) = &mut self.connections[id.slot as usize] else { return };
        self.out.clear();
        let then = match self.reactor.read(id) {
            Read::Blocked => return,
            Read::Closed | Read::Reset(_) => return self.reactor.close(id),
            Read::Bytes(bytes) => take(stage, &mut self.pool, now, bytes, &mut self.out),
        };
        let sent = match self.out.as_slice() {
            [] => Ok(0),
            out => self.reactor.send(id, &[IoSlice::new(out)]).map(|sent| sent.queued_bytes),
        };
        match (sent, then) {
            (Err(_), _) => self.reactor.close(id),
            (Ok(_), Then::Close) => self.reactor.close_after_flush(id),
            (Ok(queued), Then::Stay) if queued > QUEUED_BYTES_MAX => self.reactor.pause_reading(id),
            (Ok(_), Then::Stay) => {}
        }
    }

    fn flush(&mut self, id: SocketId) {
        match self.reactor.flush(id) {
            Ok(sent) if sent.queued_bytes == 0 => self.reactor.resume_reading(id),
            Ok(_) => {}
            Err(_) => self.reactor.close(id),
        }
    }
}

/// Takes what was read, and appends what is to be answered.
fn take(stage: &mut Stage, pool: &mut Pool, now: Mono, bytes: &mut [u8], out: &mut Vec<u8>) -> Then {
    match stage {
        Stage::Open(receiver) => echo(receiver, pool, now, bytes, out),
        Stage::Opening { reader, head } => {
            head.extend_from_slice(bytes);
            let path = requested_path(head);
            match reader.advance(head, &path) {
                Progress::Incomplete => Then::Stay,
                Progress::Other => {
                    websocket::write_refusal(out, 404, "there is only a WebSocket here", &[]);
                    Then::Close
                }
                Progress::Refused(refusal) => {
                    refusal.write(out);
                    Then::Close
                }
                Progress::Upgrade(upgrade) => {
                    websocket::write_switching_protocols(out, &upgrade.key, None);
                    let mut receiver = Receiver::new();
                    let frames = upgrade.head_bytes;
                    let then = echo(&mut receiver, pool, now, &mut head[frames..], out);
                    *stage = Stage::Open(receiver);
                    then
                }
            }
        }
    }
}

/// The path of whatever was asked for, since this server has no path of its own.
fn requested_path(head: &[u8]) -> String {
    let target = head.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
    String::from_utf8_lossy(target.split(|&byte| byte == b'?').next().unwrap_or_default()).into_owned()
}

fn echo(receiver: &mut Receiver, pool: &mut Pool, now: Mono, bytes: &mut [u8], out: &mut Vec<u8>) -> Then {
    use websocket::{Event, MessageKind, Opcode, encode_close, encode_frame};
    let mut frames = receiver.feed(&SETTINGS, pool, now, bytes);
    loop {
        match frames.next() {
            Ok(None) => return Then::Stay,
            Ok(Some(Event::Message { kind: MessageKind::Text, bytes })) => {
                encode_frame(out, Opcode::Text, bytes)
            }
            Ok(Some(Event::Message { kind: MessageKind::Binary, bytes })) => {
                encode_frame(out, Opcode::Binary, bytes);
            }
            Ok(Some(Event::Ping(bytes))) => encode_frame(out, Opcode::Pong, bytes),
            Ok(Some(Event::Pong(_))) => {}
            Ok(Some(Event::Close { code, .. })) => {
                match code {
                    Some(code) => encode_close(out, code, "", None),
                    None => encode_frame(out, Opcode::Close, b""),
                }
                return Then::Close;
            }
            Err(error) => {
                encode_close(out, ProtocolError::close_code(error), &error.to_string(), None);
                return Then::Close;
            }
        }
    }
}
