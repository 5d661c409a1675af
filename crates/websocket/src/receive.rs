//! Bytes to events. Owns what is incomplete of one connection, and nothing while nothing is.

use model::Mono;

use crate::frame::{self, Head};
use crate::{FRAME_HEAD_BYTES_MAX, Opcode, ProtocolError, Settings, close, mask};

/// Which of the two kinds a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// UTF-8, checked.
    Text,
    /// Any bytes.
    Binary,
}

/// What a peer sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A whole message, put together from its fragments.
    Message {
        /// Text is checked to be UTF-8.
        kind: MessageKind,
        /// The unmasked bytes.
        bytes: &'a [u8],
    },
    /// To be answered with a pong of the same bytes.
    Ping(&'a [u8]),
    /// The answer to a ping, or a pong nobody asked for.
    Pong(&'a [u8]),
    /// The peer's last frame; nothing after it is looked at.
    Close {
        /// Absent when the frame was empty.
        code: Option<u16>,
        /// At most 123 bytes.
        reason: &'a str,
    },
}

/// The receiving half of one connection: a null pointer while nothing is incomplete.
#[derive(Debug, Default)]
pub struct Receiver {
    partial: Option<Box<Partial>>,
}

const _: () = assert!(size_of::<Receiver>() == 8);

/// What is incomplete. A head, a frame and a message can each be, one inside the other.
#[derive(Debug, Default)]
struct Partial {
    since: Mono,
    /// The first bytes of a head.
    head: [u8; FRAME_HEAD_BYTES_MAX],
    head_len: u8,
    /// Nothing more is looked at: the peer closed, or broke the rules.
    ended: bool,
    /// What the last event was made of, to be dropped when the next one is asked for.
    lent: Lent,
    frame: Option<OpenFrame>,
    message: Option<OpenMessage>,
    /// The message so far; behind it, the payload so far of a control frame that stands between its fragments.
    buffer: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Lent {
    #[default]
    Nothing,
    Control,
    Message,
}

/// A frame whose payload is not all here.
#[derive(Debug)]
struct OpenFrame {
    head: Head,
    received: usize,
}

/// A message whose FIN is not here.
#[derive(Debug)]
struct OpenMessage {
    kind: MessageKind,
    fragments: usize,
    len: usize,
    /// How far the text is known to be UTF-8; behind it are at most three bytes of an incomplete character.
    checked: usize,
}

impl Partial {
    fn is_empty(&self) -> bool {
        self.head_len == 0 && self.frame.is_none() && self.message.is_none() && !self.ended
    }

    /// Checks the text that has come since the last look, failing on the first byte that cannot be right.
    fn check_text(&mut self, last: bool) -> Result<(), ProtocolError> {
        let Some(message) = &mut self.message else { return Ok(()) };
        if message.kind == MessageKind::Binary {
            return Ok(());
        }
        match std::str::from_utf8(&self.buffer[message.checked..message.len]) {
            Ok(_) => message.checked = message.len,
            Err(error) if error.error_len().is_none() && !last => message.checked += error.valid_up_to(),
            Err(_) => return Err(ProtocolError::InvalidUtf8),
        }
        Ok(())
    }
}

/// Partial messages that were finished, kept with their buffers for the next connection that needs one.
#[derive(Debug)]
pub struct Pool {
    #[expect(clippy::vec_box, reason = "the boxes move to connections and back; unboxing them would copy")]
    idle: Vec<Box<Partial>>,
    idle_max: usize,
}

impl Pool {
    /// A larger buffer is not kept.
    const BUFFER_BYTES_MAX: usize = 128 * 1024;

    /// A pool that keeps at most `idle_max` of them, each with a buffer of at most 128 KiB.
    pub fn new(idle_max: usize) -> Pool {
        Pool { idle: Vec::new(), idle_max }
    }

    fn take(&mut self, now: Mono) -> Box<Partial> {
        let mut partial = self.idle.pop().unwrap_or_default();
        partial.since = now;
        partial
    }

    fn give_back(&mut self, mut partial: Box<Partial>) {
        if self.idle.len() < self.idle_max && partial.buffer.capacity() <= Pool::BUFFER_BYTES_MAX {
            let mut buffer = std::mem::take(&mut partial.buffer);
            buffer.clear();
            *partial = Partial { buffer, ..Partial::default() };
            self.idle.push(partial);
        }
    }
}

impl Default for Pool {
    fn default() -> Pool {
        Pool::new(16)
    }
}

impl Receiver {
    /// A connection that has received nothing.
    pub const fn new() -> Receiver {
        Receiver { partial: None }
    }

    /// Begins to take `bytes` apart; they are unmasked in place. Pull [`Frames::next`] until it says `None` or fails:
    /// what is not pulled is lost.
    pub fn feed<'a>(
        &'a mut self,
        settings: &'a Settings,
        pool: &'a mut Pool,
        now: Mono,
        bytes: &'a mut [u8],
    ) -> Frames<'a> {
        Frames { receiver: self, settings, pool, now, input: bytes, at: 0 }
    }

    /// Since when something has been incomplete: a head, a frame or a message without its FIN.
    pub fn partial_since(&self) -> Option<Mono> {
        self.partial.as_ref().filter(|partial| !partial.ended).map(|partial| partial.since)
    }

    /// Bytes of memory this connection holds for what is incomplete.
    pub fn partial_bytes(&self) -> usize {
        self.partial.as_ref().map_or(0, |partial| size_of::<Partial>() + partial.buffer.capacity())
    }

    /// Gives back what is incomplete; for a connection that ends.
    pub fn discard(&mut self, pool: &mut Pool) {
        if let Some(partial) = self.partial.take() {
            pool.give_back(partial);
        }
    }
}

/// The events of one feed, each borrowed from the input or from what was kept of earlier ones.
#[derive(Debug)]
pub struct Frames<'a> {
    receiver: &'a mut Receiver,
    settings: &'a Settings,
    pool: &'a mut Pool,
    now: Mono,
    input: &'a mut [u8],
    at: usize,
}

/// An event found: what it is, where its payload stands.
struct Found {
    opcode: Opcode,
    place: Place,
    from: usize,
    to: usize,
}

enum Place {
    Input,
    Buffer,
}

impl Frames<'_> {
    /// The next event; `None` when the input is used up or the connection has ended. After an error there is nothing more.
    #[expect(clippy::should_implement_trait, reason = "a lending iterator: the event borrows from it")]
    pub fn next(&mut self) -> Result<Option<Event<'_>>, ProtocolError> {
        self.settle();
        match self.advance() {
            Ok(None) => {
                self.settle();
                Ok(None)
            }
            Ok(Some(found)) => {
                if found.opcode == Opcode::Close {
                    self.end();
                }
                self.event(found)
            }
            Err(error) => {
                self.end();
                Err(error)
            }
        }
    }

    /// Drops what the last event was made of, and the partial with it when nothing else is incomplete.
    fn settle(&mut self) {
        let Some(partial) = &mut self.receiver.partial else { return };
        match std::mem::take(&mut partial.lent) {
            Lent::Nothing => {}
            Lent::Control => {
                partial.buffer.truncate(partial.message.as_ref().map_or(0, |message| message.len))
            }
            Lent::Message => partial.message = None,
        }
        if partial.is_empty() {
            self.receiver.discard(self.pool);
        }
    }

    fn end(&mut self) {
        self.partial().ended = true;
    }

    /// The partial, taken from the pool when there is none.
    fn partial(&mut self) -> &mut Partial {
        self.receiver.partial.get_or_insert_with(|| self.pool.take(self.now))
    }

    fn advance(&mut self) -> Result<Option<Found>, ProtocolError> {
        loop {
            if self.receiver.partial.as_ref().is_some_and(|partial| partial.ended) {
                return Ok(None);
            }
            if self.receiver.partial.as_ref().is_some_and(|partial| partial.frame.is_some()) {
                if !self.take_payload()? {
                    return Ok(None);
                }
                match self.finish_frame()? {
                    Some(found) => return Ok(Some(found)),
                    None => continue,
                }
            }
            let Some(head) = self.take_head()? else { return Ok(None) };
            self.check_sequence(&head)?;
            if let Some(found) = self.take_whole(&head)? {
                return Ok(Some(found));
            }
            self.begin_frame(head);
        }
    }

    /// The next head, from the input alone when it is all there.
    fn take_head(&mut self) -> Result<Option<Head>, ProtocolError> {
        let rest = &self.input[self.at..];
        let role = self.settings.role;
        if let Some(partial) = &mut self.receiver.partial
            && partial.head_len > 0
        {
            let before = usize::from(partial.head_len);
            let more = rest.len().min(FRAME_HEAD_BYTES_MAX - before);
            partial.head[before..before + more].copy_from_slice(&rest[..more]);
            return match frame::decode_head(role, &partial.head[..before + more])? {
                Some((head, used)) => {
                    partial.head_len = 0;
                    self.at += used - before;
                    Ok(Some(head))
                }
                None => {
                    partial.head_len = (before + more) as u8;
                    self.at += more;
                    Ok(None)
                }
            };
        }
        match frame::decode_head(role, rest)? {
            Some((head, used)) => {
                self.at += used;
                Ok(Some(head))
            }
            None => {
                let (from, len) = (self.at, rest.len());
                self.at += len;
                if len > 0 {
                    let partial = self.receiver.partial.get_or_insert_with(|| self.pool.take(self.now));
                    partial.head[..len].copy_from_slice(&self.input[from..]);
                    partial.head_len = len as u8;
                }
                Ok(None)
            }
        }
    }

    /// Whether a frame may come now, and is not too long. Lengths are compared, never added.
    fn check_sequence(&self, head: &Head) -> Result<(), ProtocolError> {
        if head.opcode.is_control() {
            return Ok(());
        }
        let message = self.receiver.partial.as_ref().and_then(|partial| partial.message.as_ref());
        let room = match (message, head.opcode) {
            (Some(message), Opcode::Continuation) => {
                if message.fragments >= self.settings.fragments_max {
                    return Err(ProtocolError::TooManyFragments);
                }
                self.settings.message_bytes_max - message.len
            }
            (None, Opcode::Continuation) => return Err(ProtocolError::UnexpectedContinuation),
            (Some(_), _) => return Err(ProtocolError::ExpectedContinuation),
            (None, _) => self.settings.message_bytes_max,
        };
        if head.length > room as u64 { Err(ProtocolError::MessageTooLong) } else { Ok(()) }
    }

    /// A frame that is an event by itself and is all in the input: nothing is copied.
    fn take_whole(&mut self, head: &Head) -> Result<Option<Found>, ProtocolError> {
        let rest = self.input.len() - self.at;
        let alone = head.opcode.is_control() || (head.fin && head.opcode != Opcode::Continuation);
        if !alone || head.length > rest as u64 {
            return Ok(None);
        }
        let (from, to) = (self.at, self.at + head.length as usize);
        self.at = to;
        mask::apply(head.mask, 0, &mut self.input[from..to]);
        if head.opcode == Opcode::Text && std::str::from_utf8(&self.input[from..to]).is_err() {
            return Err(ProtocolError::InvalidUtf8);
        }
        Ok(Some(Found { opcode: head.opcode, place: Place::Input, from, to }))
    }

    /// Notes that a frame has begun whose payload goes into the buffer.
    fn begin_frame(&mut self, head: Head) {
        let partial = self.partial();
        match (&mut partial.message, head.opcode) {
            (Some(message), Opcode::Continuation) => message.fragments += 1,
            (None, Opcode::Text | Opcode::Binary) => {
                let kind = if head.opcode == Opcode::Text { MessageKind::Text } else { MessageKind::Binary };
                partial.message = Some(OpenMessage { kind, fragments: 1, len: 0, checked: 0 });
            }
            _ => {}
        }
        partial.frame = Some(OpenFrame { head, received: 0 });
    }

    /// Moves what is there of the open frame's payload into the buffer; whether it is complete.
    fn take_payload(&mut self) -> Result<bool, ProtocolError> {
        /// So much is reserved for a frame before its bytes have come; a peer pays for the rest by sending it.
        const RESERVED_BYTES: usize = 4 * 1024;
        let Some(partial) = &mut self.receiver.partial else { return Ok(true) };
        let Some(frame) = &mut partial.frame else { return Ok(true) };
        let missing = frame.head.length as usize - frame.received;
        let bytes = &mut self.input[self.at..];
        let count = missing.min(bytes.len());
        let bytes = &mut bytes[..count];
        mask::apply(frame.head.mask, frame.received, bytes);
        partial.buffer.reserve(missing.min(count.max(RESERVED_BYTES)));
        partial.buffer.extend_from_slice(bytes);
        self.at += count;
        frame.received += count;
        let is_control = frame.head.opcode.is_control();
        let complete = count == missing;
        let last = complete && frame.head.fin;
        if !is_control {
            if let Some(message) = &mut partial.message {
                message.len += count;
            }
            partial.check_text(last)?;
        }
        Ok(complete)
    }

    /// The event that a complete frame makes, if it makes one.
    fn finish_frame(&mut self) -> Result<Option<Found>, ProtocolError> {
        let Some(partial) = &mut self.receiver.partial else { return Ok(None) };
        let Some(OpenFrame { head, .. }) = partial.frame.take() else { return Ok(None) };
        let message_len = partial.message.as_ref().map_or(0, |message| message.len);
        if head.opcode.is_control() {
            partial.lent = Lent::Control;
            let to = partial.buffer.len();
            return Ok(Some(Found { opcode: head.opcode, place: Place::Buffer, from: message_len, to }));
        }
        if !head.fin {
            return Ok(None);
        }
        let opcode = match partial.message.as_ref().map(|message| message.kind) {
            Some(MessageKind::Text) => Opcode::Text,
            _ => Opcode::Binary,
        };
        partial.lent = Lent::Message;
        Ok(Some(Found { opcode, place: Place::Buffer, from: 0, to: message_len }))
    }

    fn event(&self, found: Found) -> Result<Option<Event<'_>>, ProtocolError> {
        let bytes = match (found.place, &self.receiver.partial) {
            (Place::Buffer, Some(partial)) => &partial.buffer[found.from..found.to],
            _ => &self.input[found.from..found.to],
        };
        Ok(Some(match found.opcode {
            Opcode::Text => Event::Message { kind: MessageKind::Text, bytes },
            Opcode::Binary | Opcode::Continuation => Event::Message { kind: MessageKind::Binary, bytes },
            Opcode::Ping => Event::Ping(bytes),
            Opcode::Pong => Event::Pong(bytes),
            Opcode::Close => {
                let (code, reason) = close::parse(bytes)?;
                Event::Close { code, reason }
            }
        }))
    }
}

impl Drop for Frames<'_> {
    /// An idle connection keeps nothing, even when its last event was not followed by another look.
    fn drop(&mut self) {
        self.settle();
    }
}
