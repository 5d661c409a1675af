//! The client's end of one connection: bytes to what the server says, requests to bytes.
//!
//! Owns the opening, frames and the numbers of requests. Deliberately knows nothing of what a client wants or remembers.

use std::collections::BTreeMap;

use model::{ConversationId, Entry, Mono, Seq, Span};
use protocol::client::{Incoming, decode, encode_request};
use protocol::{Answer, CloseCode, Command, ConversationPush, Encoding, ErrorCode, Push, Request, RequestId};
use websocket::{Event, MessageKind, Opcode, Pool, Receiver, Response, ResponseReader, Settings};

use crate::random::Random;
use crate::wires::WireId;

/// What a client has heard.
#[derive(Debug)]
pub enum Heard {
    /// The connection is a WebSocket now.
    Upgraded,
    /// It did not become one.
    Refused(u16),
    /// A request was answered.
    Reply(Option<u64>, Result<Said, Wrong>),
    /// An entry of a log.
    Entry(ConversationId, Entry),
    /// A passing message.
    Passing(ConversationId),
    /// How far somebody is.
    Receipt(protocol::Receipt),
    /// This user is a member, now or as before.
    Member(ConversationId),
    /// This user is no member any more.
    NoMember(ConversationId),
    /// Everything pending was pushed.
    CaughtUp,
    /// The token ends soon.
    TokenExpiring,
    /// The server says why it closes.
    Disconnect(CloseCode),
    /// The server asks for a pong.
    Ping(Vec<u8>),
    /// The server closes.
    Closed(Option<u16>),
    /// Something that no server may say.
    Nonsense(String),
}

impl Heard {
    /// Whether it is one of those pushes that belong to a session.
    pub fn is_pushed(&self) -> bool {
        use Heard::{CaughtUp, Entry, Member, NoMember, Passing, Receipt, TokenExpiring};
        matches!(
            self,
            Entry(..) | Passing(_) | Receipt(_) | Member(_) | NoMember(_) | CaughtUp | TokenExpiring
        )
    }
}

/// A page of a log.
#[derive(Debug)]
pub struct SyncPage {
    /// In the order of the log.
    pub entries: Vec<Entry>,
    /// The last place of the log.
    pub head: Seq,
    /// Whether there is more.
    pub more: bool,
}

/// A good answer, as far as the client needs it.
#[derive(Debug)]
pub enum Said {
    /// The session stands.
    Connected,
    /// The token was taken.
    Refreshed,
    /// A durable message has its place.
    Sent(protocol::Sent),
    /// A page of a log.
    Page(SyncPage),
    /// It is done; with the name of the answer in code.
    Done(&'static str),
}

impl Said {
    /// The name of the answer in code.
    pub fn name(&self) -> &'static str {
        match self {
            Said::Connected => "Answer::Connect",
            Said::Refreshed => "Answer::Refresh",
            Said::Sent(_) => "Answer::Send",
            Said::Page(_) => "Answer::Sync",
            Said::Done(name) => name,
        }
    }
}

/// A refusal.
#[derive(Debug)]
pub struct Wrong {
    /// Its row of the table.
    pub code: ErrorCode,
    /// What was said about it.
    pub message: String,
    /// How long to wait before the next attempt.
    pub retry_after: Span,
}

/// What a request was about, until it is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked<T> {
    /// A session.
    Connect,
    /// A longer session.
    Refresh,
    /// Nothing.
    Ping,
    /// Something else.
    Other(T),
}

/// One connection as the client sees it.
pub struct Link<T> {
    /// The wire it goes over.
    pub wire: WireId,
    /// When it was opened.
    pub since: Mono,
    encoding: Encoding,
    key: [u8; 24],
    reader: ResponseReader,
    head: Vec<u8>,
    /// The opening succeeded.
    pub upgraded: bool,
    /// `connect` was sent.
    pub introduced: bool,
    /// `connect` was answered.
    pub connected: bool,
    /// `caught_up` was pushed.
    pub caught_up: bool,
    receiver: Receiver,
    out: Vec<u8>,
    batch: Vec<u8>,
    next_id: u64,
    /// Requests that wait for an answer.
    pub awaiting: BTreeMap<u64, Asked<T>>,
    /// The last place pushed over this connection, by conversation.
    pub pushed: BTreeMap<ConversationId, Seq>,
    /// The first place pushed over this connection, by conversation.
    pub first: BTreeMap<ConversationId, Seq>,
    /// What must have been pushed before `caught_up`, by conversation.
    pub expected: BTreeMap<ConversationId, (Seq, Seq)>,
    /// The close code the server announced.
    pub farewell: Option<CloseCode>,
    /// The client reads nothing before then.
    pub stalled_until: Mono,
    /// A frame is never sent in fragments.
    pub whole_frames: bool,
}

impl<T> Link<T> {
    /// Begins with the request to upgrade.
    pub fn open(
        wire: WireId,
        now: Mono,
        encoding: Encoding,
        bearer: Option<&str>,
        random: &mut Random,
    ) -> Self {
        let key = websocket::client_key(random.bytes16());
        let mut out = Vec::new();
        let authorization = bearer.map(|token| format!("Bearer {token}"));
        let headers: Vec<(&str, &str)> =
            authorization.iter().map(|value| ("Authorization", value.as_str())).collect();
        let subprotocols: &[&str] = match encoding {
            // JSON is also what is spoken when nothing is offered.
            Encoding::Json if random.below(2) == 0 => &[],
            Encoding::Json => &["throng.v1.json"],
            Encoding::Cbor => &["throng.v1.cbor"],
        };
        websocket::write_request(&mut out, "localhost", "/v1/socket", &key, subprotocols, &headers);
        Link {
            wire,
            since: now,
            encoding,
            key,
            reader: ResponseReader::new(),
            head: Vec::new(),
            upgraded: false,
            introduced: false,
            connected: false,
            caught_up: false,
            receiver: Receiver::new(),
            out,
            batch: Vec::new(),
            next_id: 1,
            awaiting: BTreeMap::new(),
            pushed: BTreeMap::new(),
            first: BTreeMap::new(),
            expected: BTreeMap::new(),
            farewell: None,
            stalled_until: Mono(0),
            whole_frames: false,
        }
    }

    /// Puts a request into the frame that is being put together. Without `asked` it has no id.
    pub fn request(&mut self, command: Command<'_>, asked: Option<Asked<T>>) {
        if !self.batch.is_empty() {
            self.batch.extend_from_slice(self.encoding.separator());
        }
        let id = asked.map(|asked| {
            let id = self.next_id;
            self.next_id += 1;
            self.awaiting.insert(id, asked);
            RequestId::new(id).expect("counted from 1")
        });
        encode_request(self.encoding, &mut self.batch, &Request { id, command });
    }

    /// Bytes of the frame that is being put together.
    pub fn batched(&self) -> usize {
        self.batch.len()
    }

    /// Ends the frame that is being put together; now and then it goes out in fragments.
    pub fn frame(&mut self, random: &mut Random) {
        if self.batch.is_empty() {
            return;
        }
        let opcode = if self.encoding.is_binary() { Opcode::Binary } else { Opcode::Text };
        let batch = std::mem::take(&mut self.batch);
        let (mut rest, mut opcode) = (&batch[..], opcode);
        while !self.whole_frames && random.below(16) == 0 && rest.len() > 1 {
            let cut = 1 + random.below(rest.len() - 1);
            let key = (random.next() as u32).to_be_bytes();
            websocket::encode_masked_frame(&mut self.out, opcode, false, key, &rest[..cut]);
            if random.below(4) == 0 {
                self.control(Opcode::Ping, b"between", random);
            }
            (rest, opcode) = (&rest[cut..], Opcode::Continuation);
        }
        let key = (random.next() as u32).to_be_bytes();
        websocket::encode_masked_frame(&mut self.out, opcode, true, key, rest);
        self.batch = batch;
        self.batch.clear();
    }

    /// Sends a control frame.
    pub fn control(&mut self, opcode: Opcode, payload: &[u8], random: &mut Random) {
        let key = (random.next() as u32).to_be_bytes();
        websocket::encode_masked_frame(&mut self.out, opcode, true, key, payload);
    }

    /// Says goodbye.
    pub fn close(&mut self, random: &mut Random) {
        let key = (random.next() as u32).to_be_bytes();
        websocket::encode_close(&mut self.out, 1000, "", Some(key));
    }

    /// What is to go over the wire.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Takes apart what came over the wire.
    pub fn hear(&mut self, pool: &mut Pool, now: Mono, mut bytes: Vec<u8>, heard: &mut Vec<Heard>) {
        if !self.upgraded {
            self.head.append(&mut bytes);
            match self.reader.advance(&self.head, &self.key) {
                Ok(Response::Incomplete) => return,
                Ok(Response::Accepted { head_bytes, .. }) => {
                    self.upgraded = true;
                    bytes = self.head.split_off(head_bytes);
                    heard.push(Heard::Upgraded);
                }
                Err(websocket::HandshakeError::Refused { status }) => {
                    return heard.push(Heard::Refused(status));
                }
                Err(error) => return heard.push(Heard::Nonsense(error.to_string())),
            }
        }
        let settings = Settings::client(1 << 22);
        let mut frames = self.receiver.feed(&settings, pool, now, &mut bytes);
        loop {
            match frames.next() {
                Ok(None) => break,
                Ok(Some(Event::Message { kind, bytes })) => {
                    if (kind == MessageKind::Binary) != self.encoding.is_binary() {
                        heard.push(Heard::Nonsense("a frame of the other kind".to_owned()));
                    }
                    for incoming in decode(self.encoding, bytes) {
                        heard.push(match incoming {
                            Ok(incoming) => sort(incoming),
                            Err(error) => Heard::Nonsense(error.to_string()),
                        });
                    }
                }
                Ok(Some(Event::Ping(payload))) => heard.push(Heard::Ping(payload.to_vec())),
                Ok(Some(Event::Pong(_))) => {}
                Ok(Some(Event::Close { code, .. })) => heard.push(Heard::Closed(code)),
                Err(error) => {
                    heard.push(Heard::Nonsense(error.to_string()));
                    break;
                }
            }
        }
    }
}

fn sort(incoming: Incoming<'_>) -> Heard {
    match incoming {
        Incoming::Reply(reply) => {
            let outcome = match reply.outcome {
                Ok(Answer::Connect(_)) => Ok(Said::Connected),
                Ok(Answer::Refresh { .. }) => Ok(Said::Refreshed),
                Ok(Answer::Send(sent)) => Ok(Said::Sent(sent)),
                Ok(Answer::Sync(page)) => Ok(Said::Page(SyncPage {
                    entries: page.entries.into_owned(),
                    head: page.head,
                    more: page.more,
                })),
                Ok(Answer::Ping) => Ok(Said::Done("Answer::Ping")),
                Ok(Answer::SendPassing) => Ok(Said::Done("Answer::SendPassing")),
                Ok(Answer::Recv) => Ok(Said::Done("Answer::Recv")),
                Ok(Answer::Read) => Ok(Said::Done("Answer::Read")),
                Err(refusal) => Err(Wrong {
                    code: refusal.code,
                    message: refusal.message.into_owned(),
                    retry_after: refusal.retry_after,
                }),
            };
            Heard::Reply(reply.id.map(RequestId::get), outcome)
        }
        Incoming::Push(push) => match push {
            Push::Message { conversation, entry } => Heard::Entry(conversation, entry.into_owned()),
            Push::Passing(passing) => Heard::Passing(passing.conversation),
            Push::Receipt(receipt) => Heard::Receipt(receipt),
            Push::Conversation(ConversationPush::Added(summary) | ConversationPush::Changed(summary)) => {
                Heard::Member(summary.id)
            }
            Push::Conversation(ConversationPush::Removed(id)) => Heard::NoMember(id),
            Push::CaughtUp => Heard::CaughtUp,
            Push::TokenExpiring { .. } => Heard::TokenExpiring,
            Push::Disconnect(disconnect) => Heard::Disconnect(disconnect.code),
        },
        Incoming::Unknown => Heard::Nonsense("a push nobody knows".to_owned()),
    }
}
