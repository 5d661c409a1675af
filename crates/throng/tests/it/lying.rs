//! Servers that lie, and a load generator that notices: a message damaged, dropped, doubled or out of order is told with its evidence.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use model::{Body, DeviceId, DeviceKey, Entry, Mono, Payload, Seq, Span, UserId, Wall};
use protocol::{Answer, Command, Connected, Encoding, Push, Reply, Sent, Token, Window};
use websocket::{Event, Opcode, Pool, Receiver, Settings};

use crate::load::{load, run};
use crate::run::Place;

/// The message that is lied about; there are some before and after it.
const LIED_ABOUT: u64 = 5;

/// What a server does to one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    Nothing,
    Damage,
    Drop,
    DropLast,
    Double,
    DoubleUnderAnotherPlace,
    Swap,
    Misplace,
}

/// A server for one pair, which stores nothing.
struct Liar {
    lie: Lie,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    receiver: Option<TcpStream>,
    seq: u64,
    messages: u64,
    held_back: Option<Entry>,
}

impl Liar {
    fn start(lie: Lie) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let liar = Arc::new(Liar { lie, state: Mutex::default() });
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (liar, stream) = (Arc::clone(&liar), stream.expect("a connection"));
                std::thread::spawn(move || liar.serve(stream));
            }
        });
        address
    }

    /// One connection, until it ends. Who it is its token says.
    fn serve(&self, mut stream: TcpStream) {
        let mut head = Vec::new();
        let end = loop {
            let mut byte = [0; 1];
            if stream.read(&mut byte).unwrap_or(0) == 0 {
                return;
            }
            head.extend_from_slice(&byte);
            if head.ends_with(b"\r\n\r\n") {
                break String::from_utf8(head).expect("a head is ASCII");
            }
        };
        let key = end.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).expect("a key");
        let accept = websocket::accept_key(key.as_bytes().try_into().expect("24 bytes"));
        let accept = String::from_utf8(accept.to_vec()).expect("base64");
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\
             Sec-WebSocket-Protocol: throng.v1.json\r\n\r\n"
        );
        stream.write_all(answer.as_bytes()).expect("a client");
        let (mut receiver, mut pool, mut buffer) = (Receiver::new(), Pool::default(), [0; 64 * 1024]);
        loop {
            let count = match stream.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(count) => count,
            };
            let settings = Settings::server();
            let mut frames = receiver.feed(&settings, &mut pool, Mono(0), &mut buffer[..count]);
            while let Ok(Some(event)) = frames.next() {
                let Event::Message { bytes, .. } = event else { continue };
                for request in protocol::decode(Encoding::Json, bytes, 65_536) {
                    let request = request.expect("the generator speaks the protocol");
                    let id = request.id;
                    if let Some(answer) = self.obey(&stream, request.command) {
                        say(&stream, |out| {
                            protocol::encode_reply(Encoding::Json, out, &Reply { id, outcome: Ok(answer) });
                        });
                    }
                }
            }
        }
    }

    fn obey(&self, stream: &TcpStream, command: Command<'_>) -> Option<Answer<'static>> {
        match command {
            Command::Connect { token: Some(Token(token)) } => {
                if token == "receiver" {
                    self.state.lock().expect("nobody panics").receiver =
                        Some(stream.try_clone().expect("a handle"));
                }
                let window = Window { min: Span(100), max: Span(200) };
                let (user, device) = (UserId([7; 16]), DeviceId(1));
                let ping = Span::seconds(60);
                let connected = Connected {
                    session: [1; 16],
                    user,
                    device,
                    server_time: Wall(0),
                    ping,
                    reconnect: window,
                };
                Some(Answer::Connect(connected))
            }
            Command::Send { conversation, client_id, payload } => {
                let mut state = self.state.lock().expect("nobody panics");
                state.seq += 1;
                state.messages += 1;
                let from = DeviceKey { user: UserId([7; 16]), device: DeviceId(1) };
                let seq = Seq(state.seq);
                let entry = Entry { seq, ts: Wall(0), body: Body::Message { from, client_id, payload } };
                for entry in self.lies(&mut state, entry) {
                    if let Some(receiver) = &state.receiver {
                        let entry = std::borrow::Cow::Owned(entry);
                        say(receiver, |out| {
                            protocol::encode_push(
                                Encoding::Json,
                                out,
                                &Push::Message { conversation, entry },
                            );
                        });
                    }
                }
                let told = if self.lie == Lie::Misplace && state.messages == LIED_ABOUT {
                    Seq(seq.0 + 100)
                } else {
                    seq
                };
                Some(Answer::Send(Sent { seq: told, ts: Wall(0), duplicate: false }))
            }
            _ => None,
        }
    }

    /// What is pushed for an entry.
    fn lies(&self, state: &mut State, mut entry: Entry) -> Vec<Entry> {
        let held_back = state.held_back.take();
        let mut pushed = vec![entry.clone()];
        pushed.extend(held_back);
        if self.lie == Lie::DropLast && state.messages >= LIED_ABOUT {
            return Vec::new();
        }
        if state.messages != LIED_ABOUT {
            return pushed;
        }
        match self.lie {
            Lie::Nothing | Lie::Misplace | Lie::DropLast => pushed,
            Lie::Damage => {
                if let Body::Message { payload, .. } = &mut entry.body {
                    let mut bytes = payload.to_vec();
                    bytes[40] ^= 0x10;
                    *payload = Payload::from(bytes);
                }
                vec![entry]
            }
            Lie::Drop => Vec::new(),
            Lie::Double => vec![entry.clone(), entry],
            Lie::DoubleUnderAnotherPlace => {
                state.seq += 1;
                let again = Entry { seq: Seq(state.seq), ..entry.clone() };
                vec![entry, again]
            }
            Lie::Swap => {
                state.held_back = Some(entry);
                Vec::new()
            }
        }
    }
}

fn say(mut stream: &TcpStream, encode: impl FnOnce(&mut Vec<u8>)) {
    let (mut item, mut frame) = (Vec::new(), Vec::new());
    encode(&mut item);
    websocket::encode_frame(&mut frame, Opcode::Text, &item);
    // Who has gone is told nothing.
    let _ = stream.write_all(&frame);
}

#[test]
fn every_lie_is_told_with_its_evidence_and_honesty_is_not() {
    for (lie, said) in [
        (Lie::Nothing, &[][..]),
        (
            Lie::Damage,
            &[
                "corrupted: ",
                "seq 5: expected message 4 as it was sent; came: ",
                "differ from byte 40 on",
                "damaged",
            ],
        ),
        (
            Lie::Drop,
            &[
                "out of order: ",
                "seq 6: expected seq 5 next; came: seq 6",
                "lost: ",
                "expected message 4, which its sender was told is stored",
            ],
        ),
        (Lie::DropLast, &["lost: ", "seq 5: ", "came: nothing; the last was seq 4"]),
        (Lie::Double, &["doubled: ", "seq 5: expected seq 6 next on this connection"]),
        (Lie::DoubleUnderAnotherPlace, &["doubled: ", "seq 6: expected ", "(pair 0 message 4, whole)"]),
        (
            Lie::Swap,
            &[
                "out of order: ",
                "seq 6: expected seq 5 next; came: seq 6",
                "seq 5: expected seq 7 next on this connection",
            ],
        ),
        (Lie::Misplace, &["misplaced: ", "expected message 4 at the place its sender was told, 105"]),
    ] {
        eprintln!("{lie:?}");
        let place = Place::new();
        place.write("tokens", "00000000-0000-4000-8000-000000000000 1 sender\n00000000-0000-4000-8000-000000000001 1 receiver\n");
        let address = Liar::start(lie);
        let outcome = run(&place, &load(address, "chat --rate 20 --hold 1s --timeout 2s --size 64..90"));
        match said {
            [] => {
                assert_eq!(outcome.code, 0, "{outcome:?}");
                assert!(outcome.out.contains("violations: 0\n"), "{}", outcome.out);
            }
            said => {
                assert_eq!(outcome.code, 1, "{outcome:?}");
                assert!(
                    outcome.out.contains("\nVIOLATIONS: ") && outcome.err.contains("VIOLATION, "),
                    "{outcome:?}"
                );
                for said in said {
                    assert!(outcome.out.contains(said), "{said} is not in {}", outcome.out);
                }
            }
        }
    }
}
