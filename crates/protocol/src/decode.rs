//! The server's side of reading: the commands of one frame, strictly.

use std::borrow::Cow;

use model::limits::SYNC_LIMIT_MAX;
use model::{ClientId, ConversationId, Seq};

use crate::read::{Fault, Field, Source};
use crate::{Command, Encoding, INTEGER_MAX, Refusal, Request, RequestId, Token, cbor, json};

/// A command that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// The command's id, if that much could be read.
    pub id: Option<RequestId>,
    /// What to answer.
    pub refusal: Refusal<'static>,
    /// The rest of the frame cannot be read either, because nobody can tell where the next command begins: close
    /// with 4400. [`Commands`] then ends.
    pub fatal: bool,
}

/// The commands of one WebSocket message, in order. Payloads longer than `payload_bytes_max` are refused.
///
/// A command that is refused does not spoil the ones after it, unless the error is fatal. An empty frame, or an
/// empty line in JSON, holds no command and is no error.
pub fn decode(encoding: Encoding, frame: &[u8], payload_bytes_max: usize) -> Commands<'_> {
    Commands { encoding, rest: frame, payload_bytes_max }
}

/// See [`decode`].
#[derive(Debug, Clone)]
pub struct Commands<'a> {
    encoding: Encoding,
    rest: &'a [u8],
    payload_bytes_max: usize,
}

impl<'a> Iterator for Commands<'a> {
    type Item = Result<Request<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.encoding {
            Encoding::Json => self.next_line(),
            Encoding::Cbor => self.next_item(),
        }
    }
}

impl std::iter::FusedIterator for Commands<'_> {}

impl<'a> Commands<'a> {
    fn next_line(&mut self) -> Option<Result<Request<'a>, DecodeError>> {
        loop {
            let mut reader = json::Reader::new(self.rest);
            match reader.peek() {
                None => {
                    self.rest = &[];
                    return None;
                }
                Some(b'\n') => self.rest = &self.rest[reader.position() + 1..],
                Some(_) => break,
            }
        }
        let mut reader = json::Reader::new(self.rest);
        let read = request(&mut reader, self.payload_bytes_max)
            .and_then(|request| reader.end_of_line().map(|()| request));
        match read {
            Ok(request) => {
                self.rest = &self.rest[reader.position()..];
                Some(Ok(request))
            }
            Err(fault) => {
                // No command contains a line break, not even in a string, so the next one begins after the first.
                let end = self.rest.iter().position(|byte| *byte == b'\n');
                let (line, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
                self.rest = rest;
                Some(Err(refused(fault, &mut json::Reader::new(line), false)))
            }
        }
    }

    fn next_item(&mut self) -> Option<Result<Request<'a>, DecodeError>> {
        if self.rest.is_empty() {
            return None;
        }
        let end = match cbor::item_end(self.rest) {
            Ok(end) => end,
            Err(fault) => {
                let error = refused(fault, &mut cbor::Reader::new(self.rest), true);
                self.rest = &[];
                return Some(Err(error));
            }
        };
        let (item, rest) = self.rest.split_at(end);
        self.rest = rest;
        let read = request(&mut cbor::Reader::new(item), self.payload_bytes_max);
        Some(read.map_err(|fault| refused(fault, &mut cbor::Reader::new(item), false)))
    }
}

/// What to answer to a command that has this fault; looks at it a second time, from its start, for its id.
#[cold]
fn refused<'a>(fault: Fault, source: &mut impl Source<'a>, fatal: bool) -> DecodeError {
    let mut id = None;
    let looked = find_id(source, &mut id);
    let refusal = match looked {
        Err(deeper) if deeper.is_too_deep() => deeper.into_refusal(),
        _ => fault.into_refusal(),
    };
    DecodeError { id, refusal, fatal }
}

/// Finds the id of a command that is wrong in some other way. An id given twice is no id.
fn find_id<'a>(source: &mut impl Source<'a>, id: &mut Option<RequestId>) -> Result<(), Fault> {
    let mut seen = false;
    let mut level = source.open_map()?;
    while let Some(key) = source.next_key(&mut level)? {
        if key == "id" {
            *id = None;
            let value = source.integer(1, INTEGER_MAX)?;
            if !seen {
                *id = RequestId::new(value);
            }
            seen = true;
        } else {
            source.skip(1)?;
        }
    }
    Ok(())
}

/// Reads one command: an id, perhaps, and exactly one verb, in either order.
fn request<'a>(source: &mut impl Source<'a>, payload_bytes_max: usize) -> Result<Request<'a>, Fault> {
    let mut id = Field::new("id");
    let mut command: Option<Command<'a>> = None;
    let mut level = source.open_map().map_err(|fault| fault.at("command"))?;
    while let Some(key) = source.next_key(&mut level)? {
        if key == "id" {
            id.set(source.integer(1, INTEGER_MAX))?;
            continue;
        }
        let verb = verb(&key).ok_or_else(|| Fault::unknown_verb(&key))?;
        match &command {
            Some(other) if other.verb() == key => return Err(Fault::given_twice(&key)),
            Some(_) => return Err(Fault::value("a command has exactly one verb").at(&key)),
            None => command = Some(fields(source, verb, payload_bytes_max).map_err(|fault| fault.at(&key))?),
        }
    }
    let command = command.ok_or_else(|| Fault::value("a verb is required").at("command"))?;
    Ok(Request { id: id.optional().and_then(RequestId::new), command })
}

enum Verb {
    Connect,
    Refresh,
    Ping,
    Send,
    Recv,
    Read,
    Sync,
}

fn verb(name: &str) -> Option<Verb> {
    Some(match name {
        "send" => Verb::Send,
        "recv" => Verb::Recv,
        "read" => Verb::Read,
        "sync" => Verb::Sync,
        "ping" => Verb::Ping,
        "connect" => Verb::Connect,
        "refresh" => Verb::Refresh,
        _ => return None,
    })
}

fn fields<'a>(
    source: &mut impl Source<'a>,
    verb: Verb,
    payload_bytes_max: usize,
) -> Result<Command<'a>, Fault> {
    match verb {
        Verb::Connect => connect(source),
        Verb::Refresh => refresh(source),
        Verb::Ping => ping(source),
        Verb::Send => send(source, payload_bytes_max),
        Verb::Recv => place(source).map(|(conversation, seq)| Command::Recv { conversation, seq }),
        Verb::Read => place(source).map(|(conversation, seq)| Command::Read { conversation, seq }),
        Verb::Sync => sync(source),
    }
}

fn token<'a>(source: &mut impl Source<'a>) -> Result<Option<Token<'a>>, Fault> {
    let mut token = Field::<Cow<'a, str>>::new("token");
    let mut level = source.open_map()?;
    while let Some(key) = source.next_key(&mut level)? {
        match &*key {
            "token" => token.set(source.text())?,
            other => return Err(Fault::unknown_field(other)),
        }
    }
    Ok(token.optional().map(Token))
}

fn connect<'a>(source: &mut impl Source<'a>) -> Result<Command<'a>, Fault> {
    token(source).map(|token| Command::Connect { token })
}

fn refresh<'a>(source: &mut impl Source<'a>) -> Result<Command<'a>, Fault> {
    let token = token(source)?.ok_or_else(|| Fault::missing("token"))?;
    Ok(Command::Refresh { token })
}

fn ping<'a>(source: &mut impl Source<'a>) -> Result<Command<'a>, Fault> {
    let mut level = source.open_map()?;
    match source.next_key(&mut level)? {
        None => Ok(Command::Ping),
        Some(key) => Err(Fault::unknown_field(&key)),
    }
}

fn send<'a>(source: &mut impl Source<'a>, payload_bytes_max: usize) -> Result<Command<'a>, Fault> {
    let mut conversation = Field::new("conv");
    let mut client_id = Field::new("client_id");
    let mut payload = Field::new("payload");
    let mut passing = Field::new("passing");
    let mut level = source.open_map()?;
    while let Some(key) = source.next_key(&mut level)? {
        match &*key {
            "conv" => conversation.set(source.uuid())?,
            "client_id" => client_id.set(source.uuid())?,
            "payload" => payload.set(source.payload(payload_bytes_max))?,
            "passing" => passing.set(source.boolean())?,
            other => return Err(Fault::unknown_field(other)),
        }
    }
    let conversation = ConversationId(conversation.required()?);
    if passing.optional().unwrap_or(false) {
        return match client_id.optional() {
            None => Ok(Command::SendPassing { conversation, payload: payload.required()? }),
            Some(_) => {
                Err(Fault::value("a passing message has none, because it is not stored").at("client_id"))
            }
        };
    }
    let client_id = ClientId(client_id.required()?);
    Ok(Command::Send { conversation, client_id, payload: payload.required()? })
}

/// A conversation and a place in it.
fn place<'a>(source: &mut impl Source<'a>) -> Result<(ConversationId, Seq), Fault> {
    let mut conversation = Field::new("conv");
    let mut seq = Field::new("seq");
    let mut level = source.open_map()?;
    while let Some(key) = source.next_key(&mut level)? {
        match &*key {
            "conv" => conversation.set(source.uuid())?,
            "seq" => seq.set(source.integer(1, INTEGER_MAX))?,
            other => return Err(Fault::unknown_field(other)),
        }
    }
    Ok((ConversationId(conversation.required()?), Seq(seq.required()?)))
}

fn sync<'a>(source: &mut impl Source<'a>) -> Result<Command<'a>, Fault> {
    let mut conversation = Field::new("conv");
    let mut after = Field::new("after");
    let mut limit = Field::new("limit");
    let mut level = source.open_map()?;
    while let Some(key) = source.next_key(&mut level)? {
        match &*key {
            "conv" => conversation.set(source.uuid())?,
            "after" => after.set(source.integer(0, INTEGER_MAX))?,
            "limit" => limit.set(source.integer(1, u64::from(SYNC_LIMIT_MAX)))?,
            other => return Err(Fault::unknown_field(other)),
        }
    }
    Ok(Command::Sync {
        conversation: ConversationId(conversation.required()?),
        after: Seq(after.required()?),
        // In range, because it was read so.
        limit: limit.required()? as u32,
    })
}
