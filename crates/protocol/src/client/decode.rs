//! Replies and pushes of one frame.

use std::borrow::Cow;
use std::fmt;

use model::{
    Body, Change, ClientId, ConversationId, ConversationKind, ConversationSummary, DeviceId, DeviceKey,
    Entry, Payload, Seq, Span, UserId, Wall,
};

use crate::read::{Fault, Field, Source};
use crate::{
    Answer, CloseCode, Connected, ConversationPush, Disconnect, Encoding, ErrorCode, Page, Passing, Push,
    Receipt, Refusal, Reply, RequestId, Sent, Window, cbor, json,
};

/// What a client can receive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// The answer to a request.
    Reply(Reply<'a>),
    /// Something said unasked.
    Push(Push<'a>),
    /// A push of a kind this client does not know; to be ignored.
    Unknown,
}

/// What the server sent cannot be read; says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable(pub String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreadable {}

impl From<Fault> for Unreadable {
    fn from(fault: Fault) -> Unreadable {
        Unreadable(fault.into_refusal().message.into_owned())
    }
}

/// The items of one WebSocket message from the server, in order. Ends after the first that cannot be read.
pub fn decode(encoding: Encoding, frame: &[u8]) -> Items<'_> {
    Items { encoding, rest: frame }
}

/// See [`decode`].
#[derive(Debug, Clone)]
pub struct Items<'a> {
    encoding: Encoding,
    rest: &'a [u8],
}

impl<'a> Iterator for Items<'a> {
    type Item = Result<Incoming<'a>, Unreadable>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let read = match self.encoding {
            Encoding::Json => self.line(),
            Encoding::Cbor => self.item(),
        };
        match read {
            Ok((incoming, len)) => {
                self.rest = &self.rest[len..];
                Some(Ok(incoming))
            }
            Err(fault) => {
                self.rest = &[];
                Some(Err(fault.into()))
            }
        }
    }
}

impl<'a> Items<'a> {
    fn line(&self) -> Result<(Incoming<'a>, usize), Fault> {
        let mut reader = json::Reader::new(self.rest);
        let incoming = incoming(&mut reader)?;
        reader.end_of_line()?;
        Ok((incoming, reader.position()))
    }

    fn item(&self) -> Result<(Incoming<'a>, usize), Fault> {
        let end = cbor::item_end(self.rest)?;
        Ok((incoming(&mut cbor::Reader::new(&self.rest[..end]))?, end))
    }
}

fn ignore<'a>(source: &mut impl Source<'a>) -> Result<(), Fault> {
    source.skip(1)
}

fn incoming<'a>(source: &mut impl Source<'a>) -> Result<Incoming<'a>, Fault> {
    let mut id = None;
    let mut outcome = None;
    let mut push = None;
    let mut level = source.open_map()?;
    while let Some(key) = source.next_key(&mut level)? {
        match &*key {
            "id" => id = RequestId::new(source.integer(0, u64::MAX)?),
            "error" => outcome = Some(Err(refusal(source)?)),
            "connect" => outcome = Some(Ok(Answer::Connect(connected(source)?))),
            "refresh" => outcome = Some(Ok(Answer::Refresh { expires_at: expires_at(source)? })),
            "send" => outcome = Some(Ok(sent(source)?)),
            "sync" => outcome = Some(Ok(Answer::Sync(page(source)?))),
            "ping" => outcome = Some(Ok(nothing(source, Answer::Ping)?)),
            "recv" => outcome = Some(Ok(nothing(source, Answer::Recv)?)),
            "read" => outcome = Some(Ok(nothing(source, Answer::Read)?)),
            "message" => push = Some(message_or_passing(source)?),
            "receipt" => push = Some(Push::Receipt(receipt(source)?)),
            "conversation" => push = Some(Push::Conversation(conversation(source)?)),
            "caught_up" => push = Some(nothing(source, Push::CaughtUp)?),
            "token_expiring" => push = Some(Push::TokenExpiring { expires_at: expires_at(source)? }),
            "disconnect" => push = Some(Push::Disconnect(disconnect(source)?)),
            _ => ignore(source)?,
        }
    }
    Ok(match (outcome, push) {
        (Some(outcome), _) => Incoming::Reply(Reply { id, outcome }),
        (None, Some(push)) => Incoming::Push(push),
        (None, None) => Incoming::Unknown,
    })
}

/// Reads a map of which no field matters.
fn nothing<'a, T>(source: &mut impl Source<'a>, value: T) -> Result<T, Fault> {
    ignore(source).map(|()| value)
}

fn number<'a>(source: &mut impl Source<'a>) -> Result<u64, Fault> {
    source.integer(0, u64::MAX)
}

fn device<'a>(source: &mut impl Source<'a>) -> Result<DeviceId, Fault> {
    source.integer(0, u64::from(u32::MAX)).map(|device| DeviceId(device as u32))
}

/// Reads a map in which one field matters, an integer.
fn expires_at<'a>(source: &mut impl Source<'a>) -> Result<Wall, Fault> {
    let mut expires_at = Field::new("expires_at");
    let mut level = source.open_map()?;
    while let Some(key) = source.next_key(&mut level)? {
        match &*key {
            "expires_at" => expires_at.set(number(source))?,
            _ => ignore(source)?,
        }
    }
    expires_at.required().map(Wall)
}

fn window<'a>(source: &mut impl Source<'a>) -> Result<Window, Fault> {
    let mut spans = [Span(0); 2];
    let mut level = source.open_list()?;
    for span in &mut spans {
        if !source.next_item(&mut level)? {
            return Err(Fault::value("must be two numbers"));
        }
        *span = Span(number(source)?);
    }
    match source.next_item(&mut level)? {
        false => Ok(Window { min: spans[0], max: spans[1] }),
        true => Err(Fault::value("must be two numbers")),
    }
}

fn connected<'a>(source: &mut impl Source<'a>) -> Result<Connected, Fault> {
    let mut session = Field::new("session");
    let mut user = Field::new("user");
    let mut device_id = Field::new("device");
    let mut server_time = Field::new("server_time");
    let mut ping = Field::new("ping_ms");
    let mut reconnect = Field::new("reconnect_ms");
    let mut level = source.open_map()?;
    while let Some(key) = source.next_key(&mut level)? {
        match &*key {
            "session" => session.set(source.uuid())?,
            "user" => user.set(source.uuid())?,
            "device" => device_id.set(device(source))?,
            "server_time" => server_time.set(number(source))?,
            "ping_ms" => ping.set(number(source))?,
            "reconnect_ms" => reconnect.set(window(source))?,
            _ => ignore(source)?,
        }
    }
    Ok(Connected {
        session: session.required()?,
        user: UserId(user.required()?),
        device: device_id.required()?,
        server_time: Wall(server_time.required()?),
        ping: Span(ping.required()?),
        reconnect: reconnect.required()?,
    })
}

fn refusal<'a>(source: &mut impl Source<'a>) -> Result<Refusal<'a>, Fault> {
    let mut code = Field::new("code");
    let mut message = Field::new("message");
    let mut retry_after = Field::new("retry_after_ms");
    let mut level = source.open_map()?;
    while let Some(key) = source.next_key(&mut level)? {
        match &*key {
            "code" => code.set(number(source))?,
            "message" => message.set(source.text())?,
            "retry_after_ms" => retry_after.set(number(source))?,
            _ => ignore(source)?,
        }
    }
    Ok(Refusal {
        code: ErrorCode::from_code(code.required()?).ok_or_else(|| Fault::value("unknown error code"))?,
        message: message.required()?,
        retry_after: Span(retry_after.required()?),
    })
}

/// A `send` reply: with a `seq` when it was durable, without when it was passing.
fn sent<'a>(source: &mut impl Source<'a>) -> Result<Answer<'a>, Fault> {
    let mut seq = Field::new("seq");
    let mut ts = Field::new("ts");
    let mut duplicate = Field::new("duplicate");
    let mut level = source.open_map()?;
    while let Some(key) = source.next_key(&mut level)? {
        match &*key {
            "seq" => seq.set(number(source))?,
            "ts" => ts.set(number(source))?,
            "duplicate" => duplicate.set(source.boolean())?,
            _ => ignore(source)?,
        }
    }
    let Some(seq) = seq.optional() else { return Ok(Answer::SendPassing) };
    let duplicate = duplicate.optional().unwrap_or(false);
    Ok(Answer::Send(Sent { seq: Seq(seq), ts: Wall(ts.required()?), duplicate }))
}

fn page<'a>(source: &mut impl Source<'a>) -> Result<Page<'a>, Fault> {
    let mut messages = Field::new("messages");
    let mut head = Field::new("head");
    let mut more = Field::new("more");
    let mut level = source.open_map()?;
    while let Some(key) = source.next_key(&mut level)? {
        match &*key {
            "messages" => messages.set(page_messages(source))?,
            "head" => head.set(number(source))?,
            "more" => more.set(source.boolean())?,
            _ => ignore(source)?,
        }
    }
    let (conversation, entries) = messages.required()?;
    Ok(Page {
        conversation,
        entries: Cow::Owned(entries),
        head: Seq(head.required()?),
        more: more.required()?,
    })
}

/// The entries of a page and the log they are of; an empty page does not say which, and the nil UUID stands in.
fn page_messages<'a>(source: &mut impl Source<'a>) -> Result<(ConversationId, Vec<Entry>), Fault> {
    let mut log = ConversationId([0; 16]);
    let mut entries = Vec::new();
    let mut level = source.open_list()?;
    while source.next_item(&mut level)? {
        match message_or_passing(source)? {
            Push::Message { conversation, entry } => {
                log = conversation;
                entries.push(entry.into_owned());
            }
            _ => return Err(Fault::missing("seq")),
        }
    }
    Ok((log, entries))
}

fn message_or_passing<'a>(source: &mut impl Source<'a>) -> Result<Push<'a>, Fault> {
    let mut conversation = Field::new("conv");
    let mut seq = Field::new("seq");
    let mut from = Field::new("from");
    let mut device_id = Field::new("device");
    let mut ts = Field::new("ts");
    let mut client_id = Field::new("client_id");
    let mut payload: Field<Payload> = Field::new("payload");
    let mut system = Field::new("system");
    let mut level = source.open_map()?;
    while let Some(key) = source.next_key(&mut level)? {
        match &*key {
            "conv" => conversation.set(source.uuid())?,
            "seq" => seq.set(number(source))?,
            "from" => from.set(source.uuid())?,
            "device" => device_id.set(device(source))?,
            "ts" => ts.set(number(source))?,
            "client_id" => client_id.set(source.uuid())?,
            "payload" => payload.set(source.payload(usize::MAX))?,
            "system" => system.set(change(source))?,
            _ => ignore(source)?,
        }
    }
    let conversation = ConversationId(conversation.required()?);
    let ts = Wall(ts.required()?);
    let seq = seq.optional().map(Seq);
    if let Some(change) = system.optional() {
        let seq = seq.ok_or_else(|| Fault::missing("seq"))?;
        let entry = Cow::Owned(Entry { seq, ts, body: Body::Change(change) });
        return Ok(Push::Message { conversation, entry });
    }
    let from = DeviceKey { user: UserId(from.required()?), device: device_id.required()? };
    let payload = payload.required()?;
    let Some(seq) = seq else { return Ok(Push::Passing(Passing { conversation, from, ts, payload })) };
    let body = Body::Message { from, client_id: ClientId(client_id.required()?), payload };
    Ok(Push::Message { conversation, entry: Cow::Owned(Entry { seq, ts, body }) })
}

fn change<'a>(source: &mut impl Source<'a>) -> Result<Change, Fault> {
    let mut event = Field::new("event");
    let mut user_list = Field::new("users");
    let mut by = Field::new("by");
    let mut level = source.open_map()?;
    while let Some(key) = source.next_key(&mut level)? {
        match &*key {
            "event" => event.set(source.text())?,
            "users" => user_list.set(users(source))?,
            "by" => by.set(source.uuid())?,
            _ => ignore(source)?,
        }
    }
    let by = UserId(by.required()?);
    let members = user_list.required()?;
    let event = event.required()?;
    if event == "created" {
        return Ok(Change::Created { by, members });
    }
    let [user] = *members else { return Err(Fault::value("must be one user").at("users")) };
    match &*event {
        "added" => Ok(Change::Added { by, user }),
        "removed" => Ok(Change::Removed { by, user }),
        "left" => Ok(Change::Left { user }),
        _ => Err(Fault::value("unknown event")),
    }
}

fn users<'a>(source: &mut impl Source<'a>) -> Result<Vec<UserId>, Fault> {
    let mut users = Vec::new();
    let mut level = source.open_list()?;
    while source.next_item(&mut level)? {
        users.push(UserId(source.uuid()?));
    }
    Ok(users)
}

fn receipt<'a>(source: &mut impl Source<'a>) -> Result<Receipt, Fault> {
    let mut conversation = Field::new("conv");
    let mut user = Field::new("user");
    let mut delivered = Field::new("delivered");
    let mut read = Field::new("read");
    let mut level = source.open_map()?;
    while let Some(key) = source.next_key(&mut level)? {
        match &*key {
            "conv" => conversation.set(source.uuid())?,
            "user" => user.set(source.uuid())?,
            "delivered" => delivered.set(number(source))?,
            "read" => read.set(number(source))?,
            _ => ignore(source)?,
        }
    }
    Ok(Receipt {
        conversation: ConversationId(conversation.required()?),
        user: UserId(user.required()?),
        delivered: Seq(delivered.required()?),
        read: Seq(read.required()?),
    })
}

fn conversation<'a>(source: &mut impl Source<'a>) -> Result<ConversationPush<'a>, Fault> {
    let mut conversation = Field::new("conv");
    let mut event = Field::new("event");
    let mut kind = Field::new("kind");
    let mut members = Field::new("members");
    let mut head = Field::new("head");
    let mut level = source.open_map()?;
    while let Some(key) = source.next_key(&mut level)? {
        match &*key {
            "conv" => conversation.set(source.uuid())?,
            "event" => event.set(source.text())?,
            "kind" => kind.set(source.text())?,
            "members" => members.set(users(source))?,
            "head" => head.set(number(source))?,
            _ => ignore(source)?,
        }
    }
    let id = ConversationId(conversation.required()?);
    let event = event.required()?;
    if event == "removed" {
        return Ok(ConversationPush::Removed(id));
    }
    let kind = match &*kind.required()? {
        "direct" => ConversationKind::Direct,
        "group" => ConversationKind::Group,
        _ => return Err(Fault::value("unknown kind")),
    };
    let members = members.required()?.into();
    let summary = Cow::Owned(ConversationSummary { id, kind, members, head: Seq(head.required()?) });
    match &*event {
        "added" => Ok(ConversationPush::Added(summary)),
        "changed" => Ok(ConversationPush::Changed(summary)),
        _ => Err(Fault::value("unknown event")),
    }
}

fn disconnect<'a>(source: &mut impl Source<'a>) -> Result<Disconnect<'a>, Fault> {
    let mut code = Field::new("code");
    let mut reason = Field::new("reason");
    let mut after = Field::new("after_ms");
    let mut level = source.open_map()?;
    while let Some(key) = source.next_key(&mut level)? {
        match &*key {
            "code" => code.set(number(source))?,
            "reason" => reason.set(source.text())?,
            "after_ms" => after.set(window(source))?,
            _ => ignore(source)?,
        }
    }
    Ok(Disconnect {
        code: CloseCode::from_code(code.required()?).ok_or_else(|| Fault::value("unknown close code"))?,
        reason: reason.required()?,
        after: after.required()?,
    })
}
