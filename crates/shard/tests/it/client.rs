//! The other end of one connection: what is on the wire, as a client sees it.

use std::collections::VecDeque;

use model::Mono;
use protocol::Encoding;
use serde_json::Value;
use shard::Close;
use websocket::{Event, MessageKind, Opcode, Pool, Receiver, Response, ResponseReader, Settings};

use crate::wire;

/// The nonce of RFC 6455, section 1.3.
const KEY: [u8; 24] = *b"dGhlIHNhbXBsZSBub25jZQ==";
/// A client may choose any mask.
pub const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// What a client has heard.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// The connection is a WebSocket, with this subprotocol.
    Upgraded(Option<String>),
    /// It did not become one.
    Refused(u16),
    /// A reply or a push.
    Object(Value),
    Ping,
    Pong(String),
    Close(Option<u16>, String),
}

pub struct Client {
    pub shard: usize,
    pub slot: u32,
    encoding: Encoding,
    upgraded: bool,
    head: Vec<u8>,
    receiver: Receiver,
    pool: Pool,
    pub heard: VecDeque<Heard>,
    /// How the server ended the connection.
    pub closed: Option<Close>,
    /// Its socket takes what is written to it.
    pub reading: bool,
    /// What waits for the socket.
    pub unsent: Vec<u8>,
    /// Everything it has sent.
    pub sent: Vec<u8>,
    /// Everything that was written to it.
    pub written: Vec<u8>,
}

impl Client {
    pub fn new(shard: usize, slot: u32, encoding: Encoding) -> Self {
        Client {
            shard,
            slot,
            encoding,
            upgraded: false,
            head: Vec::new(),
            receiver: Receiver::new(),
            pool: Pool::default(),
            heard: VecDeque::new(),
            closed: None,
            reading: true,
            unsent: Vec::new(),
            sent: Vec::new(),
            written: Vec::new(),
        }
    }

    /// The server writes.
    pub fn write(&mut self, bytes: &[u8]) {
        self.written.extend_from_slice(bytes);
        self.unsent.extend_from_slice(bytes);
        if self.reading {
            self.read();
        }
    }

    /// Takes what waits.
    pub fn read(&mut self) {
        let mut bytes = std::mem::take(&mut self.unsent);
        if !self.upgraded {
            self.head.append(&mut bytes);
            match ResponseReader::new().advance(&self.head, &KEY) {
                Ok(Response::Incomplete) => return,
                Ok(Response::Accepted { subprotocol, head_bytes }) => {
                    self.heard.push_back(Heard::Upgraded(subprotocol.map(str::to_owned)));
                    self.upgraded = true;
                    bytes = self.head.split_off(head_bytes);
                }
                Err(websocket::HandshakeError::Refused { status }) => {
                    return self.heard.push_back(Heard::Refused(status));
                }
                Err(error) => panic!("{error}"),
            }
        }
        self.frames(&mut bytes);
    }

    fn frames(&mut self, bytes: &mut [u8]) {
        let settings = Settings::client(usize::MAX);
        let mut frames = self.receiver.feed(&settings, &mut self.pool, Mono(0), bytes);
        while let Some(event) = frames.next().expect("the server keeps to RFC 6455") {
            match event {
                Event::Message { kind, bytes } => {
                    assert_eq!(
                        kind == MessageKind::Binary,
                        self.encoding.is_binary(),
                        "frames of the right kind"
                    );
                    self.heard.extend(wire::decode(self.encoding, bytes).into_iter().map(Heard::Object));
                }
                Event::Ping(_) => self.heard.push_back(Heard::Ping),
                Event::Pong(bytes) => {
                    self.heard.push_back(Heard::Pong(String::from_utf8_lossy(bytes).into_owned()));
                }
                Event::Close { code, reason } => self.heard.push_back(Heard::Close(code, reason.to_owned())),
            }
        }
    }
}

/// The head of a request to upgrade.
pub fn request(encoding: Encoding, headers: &[(&str, &str)]) -> Vec<u8> {
    let subprotocol = match encoding {
        Encoding::Json => "throng.v1.json",
        Encoding::Cbor => "throng.v1.cbor",
    };
    let mut head = Vec::new();
    websocket::write_request(&mut head, "chat.example", "/v1/socket", &KEY, &[subprotocol], headers);
    head
}

/// A frame of a client.
pub fn frame(opcode: Opcode, fin: bool, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    websocket::encode_masked_frame(&mut out, opcode, fin, MASK, payload);
    out
}

/// A message of a client in so many fragments.
pub fn message(encoding: Encoding, payload: &[u8], fragments: usize) -> Vec<u8> {
    let first = if encoding.is_binary() { Opcode::Binary } else { Opcode::Text };
    let mut out = Vec::new();
    for part in 0..fragments {
        let (from, to) = (payload.len() * part / fragments, payload.len() * (part + 1) / fragments);
        let opcode = if part == 0 { first } else { Opcode::Continuation };
        out.extend(frame(opcode, part + 1 == fragments, &payload[from..to]));
    }
    out
}
