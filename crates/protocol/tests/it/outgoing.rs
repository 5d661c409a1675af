//! Each reply and push, in both encodings, against bytes written by hand.

use std::borrow::Cow;

use model::{
    Body, Change, ConversationKind, ConversationSummary, DeviceId, DeviceKey, Entry, Payload, Seq, Span,
    UserId, Wall,
};
use protocol::client::{Incoming, decode};
use protocol::{
    Answer, CloseCode, Connected, ConversationPush, Disconnect, Encoding, ErrorCode, Page, Passing, Push,
    Receipt, Refusal, Reply, RequestId, Sent, Window, encode_push, encode_reply,
};

use crate::bytes::{CLIENT, CONV, USER, cbor, json};

/// Written as noted, and read back as what it was.
fn check_reply(reply: &Reply<'_>, in_json: &str, in_cbor: &str) {
    for (encoding, expected) in [(Encoding::Json, json(in_json)), (Encoding::Cbor, cbor(in_cbor))] {
        let mut out = b"kept".to_vec();
        encode_reply(encoding, &mut out, reply);
        assert_eq!(&out[..4], b"kept");
        assert_eq!(out[4..], expected, "{}", String::from_utf8_lossy(&out));
        let read: Vec<_> = decode(encoding, &expected).collect();
        assert_eq!(read, [Ok(Incoming::Reply(reply.clone()))]);
    }
}

fn check_push(push: &Push<'_>, in_json: &str, in_cbor: &str) {
    for (encoding, expected) in [(Encoding::Json, json(in_json)), (Encoding::Cbor, cbor(in_cbor))] {
        let mut out = b"kept".to_vec();
        encode_push(encoding, &mut out, push);
        assert_eq!(out[4..], expected, "{}", String::from_utf8_lossy(&out));
        let read: Vec<_> = decode(encoding, &expected).collect();
        assert_eq!(read, [Ok(Incoming::Push(push.clone()))]);
    }
}

fn reply(answer: Answer<'_>) -> Reply<'_> {
    Reply { id: RequestId::new(7), outcome: Ok(answer) }
}

fn other_user() -> UserId {
    UserId([0x11; 16])
}

const OTHER_JSON: &str = "11111111-1111-1111-1111-111111111111";
const OTHER_CBOR: &str = "50 11111111111111111111111111111111";

#[test]
fn connect() {
    let connected = Connected {
        session: CONV.0,
        user: USER,
        device: DeviceId(2),
        server_time: Wall(1_700_000_000_000),
        ping: Span(60_000),
        reconnect: Window { min: Span(100), max: Span(5_000) },
    };
    check_reply(
        &reply(Answer::Connect(connected)),
        r#"{"id":7,"connect":{"session":"CONV","user":"USER","device":2,"server_time":1700000000000,"ping_ms":60000,"reconnect_ms":[100,5000]}}"#,
        "a2 62'id' 07 67'connect' a6 67'session' CONV 64'user' USER 66'device' 02 6b'server_time' 1b0000018bcfe56800 \
         67'ping_ms' 19ea60 6c'reconnect_ms' 82 1864 191388",
    );
}

#[test]
fn small_answers() {
    check_reply(
        &reply(Answer::Refresh { expires_at: Wall(1_000_000) }),
        r#"{"id":7,"refresh":{"expires_at":1000000}}"#,
        "a2 62'id' 07 67'refresh' a1 6a'expires_at' 1a000f4240",
    );
    for (answer, verb) in [
        (Answer::Ping, "ping"),
        (Answer::SendPassing, "send"),
        (Answer::Recv, "recv"),
        (Answer::Read, "read"),
    ] {
        check_reply(
            &reply(answer),
            &format!(r#"{{"id":7,"{verb}":{{}}}}"#),
            &format!("a2 62'id' 07 64'{verb}' a0"),
        );
    }
}

#[test]
fn a_send_says_whether_it_was_a_repeat() {
    let sent = Sent { seq: Seq(41), ts: Wall(1000), duplicate: false };
    check_reply(
        &reply(Answer::Send(sent)),
        r#"{"id":7,"send":{"seq":41,"ts":1000}}"#,
        "a2 62'id' 07 64'send' a2 63'seq' 1829 62'ts' 1903e8",
    );
    check_reply(
        &reply(Answer::Send(Sent { duplicate: true, ..sent })),
        r#"{"id":7,"send":{"seq":41,"ts":1000,"duplicate":true}}"#,
        "a2 62'id' 07 64'send' a3 63'seq' 1829 62'ts' 1903e8 69'duplicate' f5",
    );
}

#[test]
fn refusals_with_and_without_an_id() {
    let mut refusal = Refusal::new(ErrorCode::NotMember, "no \"such\"\n\u{1}é");
    refusal.retry_after = Span(0);
    check_reply(
        &Reply { id: RequestId::new(7), outcome: Err(refusal.clone()) },
        r#"{"id":7,"error":{"code":2003,"name":"not_member","message":"no \"such\"\n\u0001é","temporary":false,"retry_after_ms":0}}"#,
        "a2 62'id' 07 65'error' a5 64'code' 1907d3 64'name' 6a'not_member' 67'message' 6d'no \"such\"'0a01c3a9 \
         69'temporary' f4 6e'retry_after_ms' 00",
    );
    let refusal = Refusal { code: ErrorCode::Overloaded, message: "later".into(), retry_after: Span(250) };
    check_reply(
        &Reply { id: None, outcome: Err(refusal) },
        r#"{"error":{"code":5001,"name":"overloaded","message":"later","temporary":true,"retry_after_ms":250}}"#,
        "a1 65'error' a5 64'code' 191389 64'name' 6a'overloaded' 67'message' 65'later' 69'temporary' f5 \
         6e'retry_after_ms' 18fa",
    );
}

#[test]
fn a_success_without_an_id_is_not_sent() {
    for encoding in Encoding::ALL {
        let mut out = Vec::new();
        encode_reply(encoding, &mut out, &Reply { id: None, outcome: Ok(Answer::Ping) });
        assert!(out.is_empty());
    }
}

fn message() -> Entry {
    let from = DeviceKey { user: USER, device: DeviceId(3) };
    let body = Body::Message { from, client_id: CLIENT, payload: Payload::from(&b"foobar"[..]) };
    Entry { seq: Seq(2), ts: Wall(1000), body }
}

fn created() -> Entry {
    let change = Change::Created { by: USER, members: vec![USER, other_user()] };
    Entry { seq: Seq(1), ts: Wall(999), body: Body::Change(change) }
}

const MESSAGE_JSON: &str =
    r#"{"conv":"CONV","seq":2,"from":"USER","device":3,"ts":1000,"client_id":"CLIENT","payload":"Zm9vYmFy"}"#;
const MESSAGE_CBOR: &str = "a7 64'conv' CONV 63'seq' 02 64'from' USER 66'device' 03 62'ts' 1903e8 69'client_id' CLIENT \
                            67'payload' 46'foobar'";

#[test]
fn a_message() {
    let entry = message();
    check_push(
        &Push::Message { conversation: CONV, entry: Cow::Borrowed(&entry) },
        &format!(r#"{{"message":{MESSAGE_JSON}}}"#),
        &format!("a1 67'message' {MESSAGE_CBOR}"),
    );
}

#[test]
fn changes_of_the_membership() {
    let (by, user) = (USER, other_user());
    for (change, event, by_json, by_cbor) in [
        (Change::Added { by, user }, "added", "USER", "USER"),
        (Change::Removed { by, user }, "removed", "USER", "USER"),
        (Change::Left { user }, "left", OTHER_JSON, OTHER_CBOR),
    ] {
        let entry = Entry { seq: Seq(5), ts: Wall(10), body: Body::Change(change) };
        check_push(
            &Push::Message { conversation: CONV, entry: Cow::Owned(entry) },
            &format!(
                r#"{{"message":{{"conv":"CONV","seq":5,"ts":10,"system":{{"event":"{event}","users":["{OTHER_JSON}"],"by":"{by_json}"}}}}}}"#
            ),
            &format!(
                "a1 67'message' a4 64'conv' CONV 63'seq' 05 62'ts' 0a 66'system' a3 65'event' 6{:x}'{event}' \
                 65'users' 81 {OTHER_CBOR} 62'by' {by_cbor}",
                event.len()
            ),
        );
    }
}

#[test]
fn a_page_holds_entries_of_both_kinds() {
    let entries = [created(), message()];
    let page = Page { conversation: CONV, entries: Cow::Borrowed(&entries), head: Seq(2), more: false };
    check_reply(
        &reply(Answer::Sync(page)),
        &format!(
            r#"{{"id":7,"sync":{{"messages":[{{"conv":"CONV","seq":1,"ts":999,"system":{{"event":"created","users":["USER","{OTHER_JSON}"],"by":"USER"}}}},{MESSAGE_JSON}],"head":2,"more":false}}}}"#
        ),
        &format!(
            "a2 62'id' 07 64'sync' a3 68'messages' 82 a4 64'conv' CONV 63'seq' 01 62'ts' 1903e7 66'system' a3 \
             65'event' 67'created' 65'users' 82 USER {OTHER_CBOR} 62'by' USER {MESSAGE_CBOR} 64'head' 02 64'more' f4"
        ),
    );
}

#[test]
fn a_passing_message_has_no_place() {
    let from = DeviceKey { user: USER, device: DeviceId(3) };
    let passing = Passing { conversation: CONV, from, ts: Wall(1000), payload: Payload::from(&[0xff][..]) };
    check_push(
        &Push::Passing(passing),
        r#"{"message":{"conv":"CONV","from":"USER","device":3,"ts":1000,"payload":"/w=="}}"#,
        "a1 67'message' a5 64'conv' CONV 64'from' USER 66'device' 03 62'ts' 1903e8 67'payload' 41ff",
    );
}

#[test]
fn a_receipt() {
    check_push(
        &Push::Receipt(Receipt { conversation: CONV, user: USER, delivered: Seq(9), read: Seq(0) }),
        r#"{"receipt":{"conv":"CONV","user":"USER","delivered":9,"read":0}}"#,
        "a1 67'receipt' a4 64'conv' CONV 64'user' USER 69'delivered' 09 64'read' 00",
    );
}

#[test]
fn conversations() {
    let summary = ConversationSummary {
        id: CONV,
        kind: ConversationKind::Group,
        members: vec![USER, other_user()].into(),
        head: Seq(1),
    };
    check_push(
        &Push::Conversation(ConversationPush::Added(Cow::Borrowed(&summary))),
        &format!(
            r#"{{"conversation":{{"conv":"CONV","event":"added","kind":"group","members":["USER","{OTHER_JSON}"],"head":1}}}}"#
        ),
        &format!(
            "a1 6c'conversation' a5 64'conv' CONV 65'event' 65'added' 64'kind' 65'group' 67'members' 82 USER \
             {OTHER_CBOR} 64'head' 01"
        ),
    );
    let summary = ConversationSummary { kind: ConversationKind::Direct, members: [].into(), ..summary };
    check_push(
        &Push::Conversation(ConversationPush::Changed(Cow::Borrowed(&summary))),
        r#"{"conversation":{"conv":"CONV","event":"changed","kind":"direct","members":[],"head":1}}"#,
        "a1 6c'conversation' a5 64'conv' CONV 65'event' 67'changed' 64'kind' 66'direct' 67'members' 80 64'head' 01",
    );
    check_push(
        &Push::Conversation(ConversationPush::Removed(CONV)),
        r#"{"conversation":{"conv":"CONV","event":"removed"}}"#,
        "a1 6c'conversation' a2 64'conv' CONV 65'event' 67'removed'",
    );
}

#[test]
fn the_rest_of_the_pushes() {
    check_push(&Push::CaughtUp, r#"{"caught_up":{}}"#, "a1 69'caught_up' a0");
    check_push(
        &Push::TokenExpiring { expires_at: Wall(24) },
        r#"{"token_expiring":{"expires_at":24}}"#,
        "a1 6e'token_expiring' a1 6a'expires_at' 1818",
    );
    let after = Window { min: Span(0), max: Span(1000) };
    check_push(
        &Push::Disconnect(Disconnect { code: CloseCode::Draining, reason: "bye".into(), after }),
        r#"{"disconnect":{"code":4501,"reason":"bye","reconnect":true,"after_ms":[0,1000]}}"#,
        "a1 6a'disconnect' a4 64'code' 191195 66'reason' 63'bye' 69'reconnect' f5 68'after_ms' 82 00 1903e8",
    );
    check_push(
        &Push::Disconnect(Disconnect {
            code: CloseCode::Replaced,
            reason: "".into(),
            after: Window::default(),
        }),
        r#"{"disconnect":{"code":4409,"reason":"","reconnect":false,"after_ms":[0,0]}}"#,
        "a1 6a'disconnect' a4 64'code' 191139 66'reason' 60 69'reconnect' f4 68'after_ms' 82 00 00",
    );
}

#[test]
fn a_client_passes_over_what_it_does_not_know() {
    let frame = json(
        "{\"id\":7,\"new\":[{}],\"ping\":{\"later\":[1.5,{\"a\":null}]}}\n{\"party\":{\"a\":\"}\"}}\n{\"caught_up\":{}}",
    );
    let read: Vec<_> = decode(Encoding::Json, &frame).map(|read| read.expect("readable")).collect();
    let expected = [Incoming::Reply(reply(Answer::Ping)), Incoming::Unknown, Incoming::Push(Push::CaughtUp)];
    assert_eq!(read, expected);
    let frame = cbor(
        "a3 62'id' 07 63'new' 81a0 64'ping' a1 65'later' 82 f93e00 c1 01  a1 65'party' a1 61'a' 61'b'  a1 69'caught_up' a0",
    );
    let read: Vec<_> = decode(Encoding::Cbor, &frame).map(|read| read.expect("readable")).collect();
    assert_eq!(read, expected);
}
