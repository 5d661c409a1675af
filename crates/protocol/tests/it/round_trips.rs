//! Random values through one side and out of the other, and past readers that somebody else wrote.

use std::borrow::Cow;

use base64::Engine as _;
use minicbor::Decoder;
use minicbor::data::Type;
use model::limits::SYNC_LIMIT_MAX;
use model::{
    Body, Change, ClientId, ConversationId, ConversationKind, ConversationSummary, DeviceId, DeviceKey,
    Entry, Payload, Seq, Span, UserId, Wall,
};
use protocol::client::{Incoming, encode_request};
use protocol::{
    Answer, CloseCode, Command, Connected, ConversationPush, Disconnect, Encoding, ErrorCode, Page, Passing,
    Push, Receipt, Refusal, Reply, Request, RequestId, Sent, Token, Window, client, decode, encode_push,
    encode_reply,
};

use crate::random::Random;

const ROUNDS: usize = 2_000;
/// Reaches past the size up to which payloads are decoded on the stack.
const PAYLOAD_END: u64 = 3_000;

fn id(random: &mut Random) -> Option<RequestId> {
    (!random.chance(5)).then(|| RequestId::new(random.integer().max(1))).flatten()
}

fn payload(random: &mut Random) -> Payload {
    let end = if random.chance(4) { PAYLOAD_END } else { 8 };
    Payload::from(random.bytes(end))
}

fn conversation(random: &mut Random) -> ConversationId {
    ConversationId(random.uuid())
}

fn seq(random: &mut Random) -> Seq {
    Seq(random.integer().max(1))
}

fn users(random: &mut Random) -> Vec<UserId> {
    (0..random.below(40)).map(|_| UserId(random.uuid())).collect()
}

fn device(random: &mut Random) -> DeviceKey {
    DeviceKey { user: UserId(random.uuid()), device: DeviceId(random.next() as u32) }
}

pub fn command(random: &mut Random) -> Command<'static> {
    let conversation = conversation(random);
    match random.below(8) {
        0 => Command::Connect { token: (!random.chance(3)).then(|| Token(random.text(50).into())) },
        1 => Command::Refresh { token: Token(random.text(50).into()) },
        2 => Command::Ping,
        3 => Command::Send { conversation, client_id: ClientId(random.uuid()), payload: payload(random) },
        4 => Command::SendPassing { conversation, payload: payload(random) },
        5 => Command::Recv { conversation, seq: seq(random) },
        6 => Command::Read { conversation, seq: seq(random) },
        _ => {
            let limit = 1 + random.below(u64::from(SYNC_LIMIT_MAX)) as u32;
            Command::Sync { conversation, after: Seq(random.integer()), limit }
        }
    }
}

fn entry(random: &mut Random) -> Entry {
    let (by, user) = (UserId(random.uuid()), UserId(random.uuid()));
    let body = match random.below(8) {
        0 => Body::Change(Change::Created { by, members: users(random) }),
        1 => Body::Change(Change::Added { by, user }),
        2 => Body::Change(Change::Removed { by, user }),
        3 => Body::Change(Change::Left { user }),
        _ => Body::Message {
            from: device(random),
            client_id: ClientId(random.uuid()),
            payload: payload(random),
        },
    };
    Entry { seq: seq(random), ts: Wall(random.integer()), body }
}

fn window(random: &mut Random) -> Window {
    Window { min: Span(random.integer()), max: Span(random.integer()) }
}

fn answer(random: &mut Random) -> Answer<'static> {
    match random.below(8) {
        0 => Answer::Connect(Connected {
            session: random.uuid(),
            user: UserId(random.uuid()),
            device: DeviceId(random.next() as u32),
            server_time: Wall(random.integer()),
            ping: Span(random.integer()),
            reconnect: window(random),
        }),
        1 => Answer::Refresh { expires_at: Wall(random.integer()) },
        2 => Answer::Ping,
        3 => Answer::Send(Sent { seq: seq(random), ts: Wall(random.integer()), duplicate: random.chance(2) }),
        4 => Answer::SendPassing,
        5 => Answer::Recv,
        6 => Answer::Read,
        _ => {
            // An empty page does not say of which log it is.
            let entries = (0..1 + random.below(5)).map(|_| entry(random)).collect();
            let (conversation, head, more) = (conversation(random), seq(random), random.chance(2));
            Answer::Sync(Page { conversation, entries: Cow::Owned(entries), head, more })
        }
    }
}

fn reply(random: &mut Random) -> Reply<'static> {
    if random.chance(3) {
        let code = ErrorCode::ALL[random.below(ErrorCode::ALL.len() as u64) as usize];
        let refusal = Refusal { code, message: random.text(80).into(), retry_after: Span(random.integer()) };
        return Reply { id: id(random), outcome: Err(refusal) };
    }
    Reply { id: RequestId::new(random.integer().max(1)), outcome: Ok(answer(random)) }
}

fn push(random: &mut Random) -> Push<'static> {
    let conversation = conversation(random);
    match random.below(8) {
        0 => Push::Passing(Passing {
            conversation,
            from: device(random),
            ts: Wall(random.integer()),
            payload: payload(random),
        }),
        1 => Push::Receipt(Receipt {
            conversation,
            user: UserId(random.uuid()),
            delivered: seq(random),
            read: Seq(random.integer()),
        }),
        2 => Push::Conversation(conversation_push(random)),
        3 => Push::CaughtUp,
        4 => Push::TokenExpiring { expires_at: Wall(random.integer()) },
        5 => {
            let code = CloseCode::ALL[random.below(CloseCode::ALL.len() as u64) as usize];
            Push::Disconnect(Disconnect { code, reason: random.text(30).into(), after: window(random) })
        }
        _ => Push::Message { conversation, entry: Cow::Owned(entry(random)) },
    }
}

fn conversation_push(random: &mut Random) -> ConversationPush<'static> {
    let kind = if random.chance(2) { ConversationKind::Direct } else { ConversationKind::Group };
    let id = conversation(random);
    let summary = ConversationSummary { id, kind, members: users(random).into(), head: seq(random) };
    match random.below(3) {
        0 => ConversationPush::Added(Cow::Owned(summary)),
        1 => ConversationPush::Changed(Cow::Owned(summary)),
        _ => ConversationPush::Removed(id),
    }
}

/// Some items in one frame, with the separator between them.
fn frame<T>(encoding: Encoding, items: &[T], append: impl Fn(&mut Vec<u8>, &T)) -> Vec<u8> {
    let mut frame = Vec::new();
    for item in items {
        if !frame.is_empty() {
            frame.extend_from_slice(encoding.separator());
        }
        append(&mut frame, item);
    }
    frame
}

#[test]
fn what_a_client_writes_the_server_reads() {
    let mut random = Random::seeded("what_a_client_writes_the_server_reads");
    for _ in 0..ROUNDS {
        let requests: Vec<Request<'_>> = (0..random.below(5))
            .map(|_| Request { id: id(&mut random), command: command(&mut random) })
            .collect();
        for encoding in Encoding::ALL {
            let frame = frame(encoding, &requests, |out, request| encode_request(encoding, out, request));
            let read: Result<Vec<_>, _> = decode(encoding, &frame, PAYLOAD_END as usize).collect();
            assert_eq!(read.as_deref(), Ok(&*requests), "{encoding:?}");
        }
    }
}

#[test]
fn what_the_server_writes_a_client_reads() {
    let mut random = Random::seeded("what_the_server_writes_a_client_reads");
    for _ in 0..ROUNDS {
        let items: Vec<Incoming<'_>> = (0..random.below(5))
            .map(|_| match random.below(2) {
                0 => Incoming::Reply(reply(&mut random)),
                _ => Incoming::Push(push(&mut random)),
            })
            .collect();
        let write = |encoding| {
            frame(encoding, &items, |out, item| match item {
                Incoming::Reply(reply) => encode_reply(encoding, out, reply),
                Incoming::Push(push) => encode_push(encoding, out, push),
                Incoming::Unknown => unreachable!("the server writes nothing unknown"),
            })
        };
        let (in_json, in_cbor) = (write(Encoding::Json), write(Encoding::Cbor));
        for (encoding, frame) in [(Encoding::Json, &in_json), (Encoding::Cbor, &in_cbor)] {
            let read: Result<Vec<_>, _> = client::decode(encoding, frame).collect();
            assert_eq!(read.as_deref(), Ok(&*items), "{encoding:?}");
        }
        others_agree(&in_json, &in_cbor);
    }
}

/// serde_json and minicbor read the two frames as the same values.
fn others_agree(in_json: &[u8], in_cbor: &[u8]) {
    let in_json = std::str::from_utf8(in_json).expect("text");
    let mut others = Decoder::new(in_cbor);
    for line in in_json.lines() {
        let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        same(&value, &mut others);
    }
    assert_eq!(others.position(), in_cbor.len());
}

fn same(value: &serde_json::Value, others: &mut Decoder<'_>) {
    use serde_json::Value;
    const READABLE: &str = "CBOR of this type";
    match (value, others.datatype().expect("an item")) {
        (Value::Object(fields), Type::Map) => {
            let len = others.map().expect(READABLE).expect("of definite length");
            assert_eq!(fields.len() as u64, len);
            for _ in 0..len {
                let name = others.str().expect("a key must be text");
                same(&fields[name], others);
            }
        }
        (Value::Array(items), Type::Array) => {
            let len = others.array().expect(READABLE).expect("of definite length");
            assert_eq!(items.len() as u64, len);
            items.iter().for_each(|item| same(item, others));
        }
        (Value::String(text), Type::String) => assert_eq!(text, others.str().expect(READABLE)),
        (Value::Bool(is), Type::Bool) => assert_eq!(*is, others.bool().expect(READABLE)),
        (Value::Number(number), Type::U8 | Type::U16 | Type::U32 | Type::U64) => {
            assert_eq!(number.as_u64(), Some(others.u64().expect(READABLE)));
        }
        (Value::String(text), Type::Bytes) => {
            let bytes = others.bytes().expect(READABLE);
            match text.parse::<UserId>() {
                Ok(id) => assert_eq!(id.0, bytes),
                Err(_) => {
                    assert_eq!(base64::engine::general_purpose::STANDARD.decode(text).as_deref(), Ok(bytes))
                }
            }
        }
        (value, other) => panic!("{value} is not {other}"),
    }
}
