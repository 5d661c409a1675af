//! One client's session, sans-IO: bytes from the server go in, what the server said and bytes for it come out.
//!
//! ```text
//!  Connecting ──▶ Upgrading ──▶ Authenticating ──▶ Open ──▶ Closed
//! ```

use std::fmt;

use model::Mono;
use protocol::client::Incoming;
use protocol::{Answer, Command, Connected, Encoding, ErrorCode, Request, RequestId, Token};
use websocket::{
    Event, FrameBuilder, HandshakeError, Opcode, Pool, Receiver, Response, ResponseReader, Role, Settings,
};

/// Where a server has its socket.
pub const SOCKET_PATH: &str = "/v1/socket";

/// Messages from the server may be as long as a page.
pub const SETTINGS: Settings =
    Settings { role: Role::Client, message_bytes_max: 4 * 1024 * 1024, fragments_max: 1 };

/// The mask key of every frame. RFC 6455 wants an unpredictable one so that a page cannot plant bytes for a proxy; a load
/// generator has neither, and a constant keeps runs repeatable.
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
const NONCE: [u8; 16] = *b"throng load test";

/// What a client awaits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The TCP connection.
    Connecting,
    /// The answer to the upgrade.
    Upgrading,
    /// The answer to `connect`.
    Authenticating,
    /// Nothing: the session stands.
    Open,
    /// It is over.
    Closed,
}

/// What a client was told.
#[derive(Debug)]
pub enum Said<'a> {
    /// The session stands.
    Connected(Connected),
    /// An item of a frame.
    Incoming(Incoming<'a>),
    /// A ping was answered.
    Pinged,
    /// The connection is over; says why.
    Over(Ending),
}

/// Why a connection is over, or did not come about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The client has no token to come with.
    NoToken(String),
    /// There was no TCP connection.
    Unreachable(String),
    /// The upgrade was answered with this status.
    NotUpgraded(u16),
    /// `connect` was refused.
    Refused(ErrorCode, String),
    /// The server closed, with a code or without.
    Closed(Option<u16>, String),
    /// The connection broke without a word.
    Broken,
    /// What the server said cannot be, or cannot be read.
    Wrong(String),
    /// The client took too long to be let in, and gave up.
    TimedOut,
    /// The client left by itself.
    Left,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::NoToken(why) => write!(f, "there is no token: {why}"),
            Ending::Unreachable(why) => write!(f, "cannot connect: {why}"),
            Ending::NotUpgraded(status) => write!(f, "the upgrade was answered with {status}"),
            Ending::Refused(code, message) => write!(f, "connect was refused: {} {message}", code.name()),
            Ending::Closed(Some(code), reason) => write!(f, "the server closed with {code} {reason}"),
            Ending::Closed(None, _) => f.write_str("the server closed without a code"),
            Ending::Broken => f.write_str("the connection broke"),
            Ending::Wrong(what) => write!(f, "the server broke the protocol: {what}"),
            Ending::TimedOut => f.write_str("the client was not let in in time"),
            Ending::Left => f.write_str("the client left"),
        }
    }
}

/// One client.
#[derive(Debug)]
pub struct Client {
    stage: Stage,
    encoding: Encoding,
    reader: ResponseReader,
    head: Vec<u8>,
    receiver: Receiver,
}

impl Client {
    /// Not connected yet.
    pub const fn new(encoding: Encoding) -> Self {
        Client {
            stage: Stage::Connecting,
            encoding,
            reader: ResponseReader::new(),
            head: Vec::new(),
            receiver: Receiver::new(),
        }
    }

    /// What it awaits.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The TCP connection stands: asks for the upgrade and, right behind it, to be let in.
    pub fn open(&mut self, host: &str, path: &str, token: &str, out: &mut Vec<u8>) {
        let key = websocket::client_key(NONCE);
        websocket::write_request(out, host, path, &key, &[self.encoding.subprotocol()], &[]);
        self.stage = Stage::Upgrading;
        let token = Some(Token(token.into()));
        self.request(RequestId::new(1), Command::Connect { token }, out);
    }

    /// Asks something.
    pub fn request(&mut self, id: Option<RequestId>, command: Command<'_>, out: &mut Vec<u8>) {
        let opcode = if self.encoding.is_binary() { Opcode::Binary } else { Opcode::Text };
        let frame = FrameBuilder::begin(out, opcode, 300, Some(MASK));
        protocol::client::encode_request(self.encoding, out, &Request { id, command });
        frame.finish(out);
    }

    /// Says goodbye.
    pub fn leave(&mut self, out: &mut Vec<u8>) {
        websocket::encode_close(out, 1_000, "", Some(MASK));
        self.stage = Stage::Closed;
    }

    /// Takes bytes; what they say goes to `each`, what must be answered at once to `out`.
    pub fn received(
        &mut self,
        pool: &mut Pool,
        now: Mono,
        bytes: &mut [u8],
        out: &mut Vec<u8>,
        each: &mut impl FnMut(Said<'_>, &mut Vec<u8>),
    ) {
        if self.stage == Stage::Upgrading {
            self.head.extend_from_slice(bytes);
            let mut head = std::mem::take(&mut self.head);
            match self.reader.advance(&head, &websocket::client_key(NONCE)) {
                Ok(Response::Incomplete) => self.head = head,
                Ok(Response::Accepted { head_bytes, .. }) => {
                    self.stage = Stage::Authenticating;
                    self.frames(pool, now, &mut head[head_bytes..], out, each);
                }
                Err(HandshakeError::Refused { status }) => self.over(Ending::NotUpgraded(status), out, each),
                Err(error) => self.over(Ending::Wrong(error.to_string()), out, each),
            }
        } else if self.stage != Stage::Closed {
            self.frames(pool, now, bytes, out, each);
        }
    }

    fn frames(
        &mut self,
        pool: &mut Pool,
        now: Mono,
        bytes: &mut [u8],
        out: &mut Vec<u8>,
        each: &mut impl FnMut(Said<'_>, &mut Vec<u8>),
    ) {
        let (encoding, stage) = (self.encoding, &mut self.stage);
        let mut frames = self.receiver.feed(&SETTINGS, pool, now, bytes);
        let why = loop {
            match frames.next() {
                Ok(None) => return,
                Ok(Some(Event::Message { bytes, .. })) => {
                    for item in protocol::client::decode(encoding, bytes) {
                        match item {
                            Ok(incoming) => tell(stage, incoming, out, each),
                            Err(error) => each(Said::Over(Ending::Wrong(error.to_string())), out),
                        }
                    }
                }
                Ok(Some(Event::Ping(payload))) => {
                    websocket::encode_masked_frame(out, Opcode::Pong, true, MASK, payload);
                    each(Said::Pinged, out);
                }
                Ok(Some(Event::Pong(_))) => {}
                Ok(Some(Event::Close { code, reason })) => break Ending::Closed(code, reason.to_owned()),
                Err(error) => break Ending::Wrong(error.to_string()),
            }
        };
        drop(frames);
        self.over(why, out, each);
    }

    fn over(&mut self, why: Ending, out: &mut Vec<u8>, each: &mut impl FnMut(Said<'_>, &mut Vec<u8>)) {
        self.stage = Stage::Closed;
        each(Said::Over(why), out);
    }

    /// The socket is gone.
    pub fn close(&mut self) {
        self.stage = Stage::Closed;
    }
}

fn tell(
    stage: &mut Stage,
    incoming: Incoming<'_>,
    out: &mut Vec<u8>,
    each: &mut impl FnMut(Said<'_>, &mut Vec<u8>),
) {
    match incoming {
        Incoming::Reply(reply) if *stage == Stage::Authenticating => match reply.outcome {
            Ok(Answer::Connect(connected)) => {
                *stage = Stage::Open;
                each(Said::Connected(connected), out);
            }
            Ok(answer) => {
                let what = format!("the first reply was that of {}", answer.verb());
                each(Said::Over(Ending::Wrong(what)), out);
            }
            Err(refusal) => {
                each(Said::Over(Ending::Refused(refusal.code, refusal.message.into_owned())), out);
            }
        },
        incoming => each(Said::Incoming(incoming), out),
    }
}
