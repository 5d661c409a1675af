//! A small client that blocks: one socket, the WebSocket's and the protocol's client side, nothing else.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use model::{Body, ConversationId, Entry, Mono, Seq};
use protocol::client::Incoming;
use protocol::{
    Answer, Command, Encoding, ErrorCode, Push, Receipt, Request, RequestId, Sent, Token, Window,
};
use websocket::{Event, FrameBuilder, Opcode, Pool, Receiver, Response, ResponseReader};

/// Any mask will do between a test and its own server (RFC 6455 wants one that no page can foresee).
pub const MASK: [u8; 4] = [0x5a, 0x1c, 0x33, 0xe7];
const NONCE: [u8; 16] = *b"throng's own it.";
/// Longest wait for an answer that must come.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What the server said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A durable `send` was answered.
    Sent(u64, Sent),
    /// A page of the log.
    Page(u64, Vec<Entry>, Seq),
    /// The session stands; when to come back should it break.
    Connected(u64, Window),
    /// Any other command was carried out.
    Done(u64),
    /// A command was refused.
    Refused(Option<u64>, ErrorCode),
    /// An entry of a log.
    Message(ConversationId, Entry),
    /// How far a member is.
    Receipt(Receipt),
    /// Everything that was pending has been pushed.
    CaughtUp,
    /// The last push: the code and when to come back.
    Disconnect(u16, Window),
    /// The close frame.
    Closed(Option<u16>),
    /// Passing messages, changes of membership and the like.
    Other,
}

/// One connection.
pub struct Client {
    stream: TcpStream,
    encoding: Encoding,
    receiver: Receiver,
    pool: Pool,
    heard: VecDeque<Heard>,
    next_id: u64,
}

impl Client {
    /// Connects as the device of the token.
    ///
    /// # Errors
    /// When the connection does not come about or breaks before `connect` is answered.
    pub fn open(address: SocketAddr, token: &str, encoding: Encoding) -> io::Result<Client> {
        Client::open_within(address, token, encoding, PATIENCE)
    }

    /// As [`Client::open`], with less patience.
    ///
    /// # Errors
    /// As there, and when one of the answers takes longer.
    pub fn open_within(
        address: SocketAddr,
        token: &str,
        encoding: Encoding,
        patience: Duration,
    ) -> io::Result<Client> {
        let stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        let mut client = Client {
            stream,
            encoding,
            receiver: Receiver::new(),
            pool: Pool::default(),
            heard: VecDeque::new(),
            next_id: 1,
        };
        client.upgrade(address)?;
        let id = client.ask(Command::Connect { token: Some(Token(token.into())) })?;
        match client.hear(patience)? {
            Some(Heard::Connected(connected, _)) if connected == id => Ok(client),
            other => Err(io::Error::other(format!("connect was answered with {other:?}"))),
        }
    }

    fn upgrade(&mut self, address: SocketAddr) -> io::Result<()> {
        let key = websocket::client_key(NONCE);
        let mut request = Vec::new();
        let (host, subprotocol) = (address.to_string(), self.encoding.subprotocol());
        websocket::write_request(&mut request, &host, "/v1/socket", &key, &[subprotocol], &[]);
        self.stream.write_all(&request)?;
        let (mut reader, mut head) = (ResponseReader::new(), Vec::new());
        loop {
            let mut bytes = [0; 4096];
            let count = match self.stream.read(&mut bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read?,
            };
            head.extend_from_slice(&bytes[..count]);
            match reader.advance(&head, &key).map_err(io::Error::other)? {
                Response::Incomplete => {}
                Response::Accepted { head_bytes, .. } => {
                    self.take(&mut head[head_bytes..])?;
                    return Ok(());
                }
            }
        }
    }

    /// The socket itself, for what no client should do.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends a command and returns its id.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn ask(&mut self, command: Command<'_>) -> io::Result<u64> {
        let id = self.next_id;
        self.next_id += 1;
        let opcode = if self.encoding.is_binary() { Opcode::Binary } else { Opcode::Text };
        let mut out = Vec::new();
        let frame = FrameBuilder::begin(&mut out, opcode, 300, Some(MASK));
        let request = Request { id: RequestId::new(id), command };
        protocol::client::encode_request(self.encoding, &mut out, &request);
        frame.finish(&mut out);
        self.stream.write_all(&out)?;
        Ok(id)
    }

    /// The next thing the server says; `None` when it says nothing for so long.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn hear(&mut self, within: Duration) -> io::Result<Option<Heard>> {
        let end = Instant::now() + within;
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return Ok(Some(heard));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
            let mut bytes = [0; 16 * 1024];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.take(&mut bytes[..count])?,
                Err(error) if says_nothing(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The first thing the server says that `wanted` wants; what comes before it is dropped.
    pub fn await_heard<T>(&mut self, mut wanted: impl FnMut(Heard) -> Option<T>) -> T {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let heard = self.hear(PATIENCE).expect("the connection stands");
            if let Some(found) = heard.and_then(&mut wanted) {
                return found;
            }
        }
        panic!("what was awaited has not come");
    }

    /// Takes the bytes of the server apart.
    fn take(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        let settings = websocket::Settings::client(4 * 1024 * 1024);
        let Client { receiver, pool, heard, encoding, stream, .. } = self;
        let mut frames = receiver.feed(&settings, pool, Mono(0), bytes);
        while let Some(event) = frames.next().map_err(io::Error::other)? {
            match event {
                Event::Message { bytes, .. } => {
                    for item in protocol::client::decode(*encoding, bytes) {
                        heard.push_back(understood(item.map_err(io::Error::other)?));
                    }
                }
                Event::Ping(payload) => {
                    let mut pong = Vec::new();
                    websocket::encode_masked_frame(&mut pong, Opcode::Pong, true, MASK, payload);
                    stream.write_all(&pong)?;
                }
                Event::Pong(_) => {}
                Event::Close { code, .. } => heard.push_back(Heard::Closed(code)),
            }
        }
        Ok(())
    }
}

/// Whether a read that waited for so long found nothing. One with a time limit is not gone on with by the system when a signal comes.
pub fn says_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn understood(incoming: Incoming<'_>) -> Heard {
    match incoming {
        Incoming::Reply(reply) => {
            let id = reply.id.map(RequestId::get);
            match (reply.outcome, id) {
                (Err(refusal), id) => Heard::Refused(id, refusal.code),
                (Ok(Answer::Send(sent)), Some(id)) => Heard::Sent(id, sent),
                (Ok(Answer::Connect(connected)), Some(id)) => Heard::Connected(id, connected.reconnect),
                (Ok(Answer::Sync(page)), Some(id)) => Heard::Page(id, page.entries.into_owned(), page.head),
                (Ok(_), Some(id)) => Heard::Done(id),
                (Ok(_), None) => Heard::Other,
            }
        }
        Incoming::Push(Push::Message { conversation, entry }) => {
            Heard::Message(conversation, entry.into_owned())
        }
        Incoming::Push(Push::Receipt(receipt)) => Heard::Receipt(receipt),
        Incoming::Push(Push::CaughtUp) => Heard::CaughtUp,
        Incoming::Push(Push::Disconnect(last)) => Heard::Disconnect(last.code.code(), last.after),
        Incoming::Push(_) | Incoming::Unknown => Heard::Other,
    }
}

/// The payload of an entry, if somebody sent it.
pub fn payload(entry: &Entry) -> Option<&[u8]> {
    match &entry.body {
        Body::Message { payload, .. } => Some(payload),
        Body::Change(_) => None,
    }
}
