//! What is refused, and in which words: the same in both encodings.

use protocol::{Encoding, ErrorCode};

use crate::bytes::{cbor, json, one};

/// Refused with this code and message, still usable afterwards, and answered under id 7.
fn refused(encoding: Encoding, frame: &[u8], code: ErrorCode, message: &str) {
    let shown = String::from_utf8_lossy(frame);
    let error = one(encoding, frame).expect_err(&shown);
    assert_eq!(error.refusal.message, message, "{shown}");
    assert_eq!(error.refusal.code, code, "{shown}");
    assert_eq!(error.id.map(|id| id.get()), Some(7), "{shown}");
    assert!(!error.fatal, "{shown}");
}

/// The same mistake in both notations, the same words.
fn check(in_json: &str, in_cbor: &str, code: ErrorCode, message: &str) {
    refused(Encoding::Json, &json(in_json), code, message);
    refused(Encoding::Cbor, &cbor(in_cbor), code, message);
}

fn bad(in_json: &str, in_cbor: &str, message: &str) {
    check(in_json, in_cbor, ErrorCode::BadRequest, message);
}

#[test]
fn a_command_has_one_known_verb() {
    check(
        r#"{"id":7,"typing":{"conv":"CONV","on":true}}"#,
        "a2 62'id' 07 66'typing' a2 64'conv' CONV 62'on' f5",
        ErrorCode::UnknownVerb,
        "typing: unknown verb",
    );
    check(
        r#"{"typing":[{"a":[1.5e3,null,"x"]}],"id":7}"#,
        "a2 66'typing' 81 a1 61'a' 83 f95dc0 f6 61'x' 62'id' 07",
        ErrorCode::UnknownVerb,
        "typing: unknown verb",
    );
    bad(r#"{"id":7}"#, "a1 62'id' 07", "command: a verb is required");
    bad(
        r#"{"id":7,"ping":{},"connect":{}}"#,
        "a3 62'id' 07 64'ping' a0 67'connect' a0",
        "connect: a command has exactly one verb",
    );
    bad(r#"{"id":7,"ping":{},"ping":{}}"#, "a3 62'id' 07 64'ping' a0 64'ping' a0", "ping: given twice");
    check(
        r#"{"id":7,"ping":{},"note":1}"#,
        "a3 62'id' 07 64'ping' a0 64'note' 01",
        ErrorCode::UnknownVerb,
        "note: unknown verb",
    );
}

#[test]
fn fields_are_known_and_come_once() {
    bad(r#"{"id":7,"ping":{"now":1}}"#, "a2 62'id' 07 64'ping' a1 63'now' 01", "ping.now: unknown field");
    bad(
        r#"{"id":7,"connect":{"token":"a","device":1}}"#,
        "a2 62'id' 07 67'connect' a2 65'token' 61'a' 66'device' 01",
        "connect.device: unknown field",
    );
    bad(
        r#"{"id":7,"recv":{"conv":"CONV","seq":1,"seq":2}}"#,
        "a2 62'id' 07 64'recv' a3 64'conv' CONV 63'seq' 01 63'seq' 02",
        "recv.seq: given twice",
    );
    bad(
        r#"{"id":7,"send":{"conv":"CONV","client_id":"CLIENT","payloads":{}}}"#,
        "a2 62'id' 07 64'send' a3 64'conv' CONV 69'client_id' CLIENT 68'payloads' a0",
        "send.payloads: unknown field",
    );
    bad(
        r#"{"id":7,"send":{"conv":"CONV","client_id":"CLIENT","payload":"","passing":true}}"#,
        "a2 62'id' 07 64'send' a4 64'conv' CONV 69'client_id' CLIENT 67'payload' 40 67'passing' f5",
        "send.client_id: a passing message has none, because it is not stored",
    );
}

#[test]
fn a_long_or_dirty_name_is_cut_and_cleaned() {
    let name = "n".repeat(200);
    bad(
        &format!(r#"{{"id":7,"ping":{{"{name}":1}}}}"#),
        &format!("a2 62'id' 07 64'ping' a1 78c8'{name}' 01"),
        &format!("ping.{}…: unknown field", "n".repeat(40)),
    );
    bad(
        r#"{"id":7,"ping":{"a\u0007\nb":1}}"#,
        "a2 62'id' 07 64'ping' a1 64'a'070a'b' 01",
        "ping.a\u{fffd}\u{fffd}b: unknown field",
    );
}

#[test]
fn required_fields_are_named() {
    for (fields_json, fields_cbor, message) in [
        (r#""send":{}"#, "64'send' a0", "send.conv: is required"),
        (r#""send":{"conv":"CONV"}"#, "64'send' a1 64'conv' CONV", "send.client_id: is required"),
        (
            r#""send":{"conv":"CONV","client_id":"CLIENT"}"#,
            "64'send' a2 64'conv' CONV 69'client_id' CLIENT",
            "send.payload: is required",
        ),
        (
            r#""send":{"conv":"CONV","passing":true}"#,
            "64'send' a2 64'conv' CONV 67'passing' f5",
            "send.payload: is required",
        ),
        (r#""recv":{"seq":1}"#, "64'recv' a1 63'seq' 01", "recv.conv: is required"),
        (r#""read":{"conv":"CONV"}"#, "64'read' a1 64'conv' CONV", "read.seq: is required"),
        (r#""refresh":{}"#, "67'refresh' a0", "refresh.token: is required"),
        (
            r#""sync":{"conv":"CONV","limit":1}"#,
            "64'sync' a2 64'conv' CONV 65'limit' 01",
            "sync.after: is required",
        ),
        (
            r#""sync":{"conv":"CONV","after":1}"#,
            "64'sync' a2 64'conv' CONV 65'after' 01",
            "sync.limit: is required",
        ),
    ] {
        bad(&format!(r#"{{"id":7,{fields_json}}}"#), &format!("a2 62'id' 07 {fields_cbor}"), message);
    }
}

#[test]
fn integers_are_integers_in_their_range() {
    const SEQ: &str = "recv.seq: must be an integer from 1 to 9007199254740991";
    for (in_json, in_cbor) in [
        ("0", "00"),
        ("-1", "20"),
        ("1.0", "f93c00"),
        ("1e0", "fb3ff0000000000000"),
        ("9007199254740992", "1b0020000000000000"),
        ("18446744073709551616", "c249010000000000000000"),
        ("99999999999999999999999999", "3bffffffffffffffff"),
        (r#""1""#, "61'1'"),
        ("null", "f6"),
        ("true", "f5"),
        ("[1]", "8101"),
        ("{}", "a0"),
    ] {
        bad(
            &format!(r#"{{"id":7,"recv":{{"conv":"CONV","seq":{in_json}}}}}"#),
            &format!("a2 62'id' 07 64'recv' a2 64'conv' CONV 63'seq' {in_cbor}"),
            SEQ,
        );
    }
    for (in_json, in_cbor) in [("0", "00"), ("257", "190101")] {
        bad(
            &format!(r#"{{"id":7,"sync":{{"conv":"CONV","after":0,"limit":{in_json}}}}}"#),
            &format!("a2 62'id' 07 64'sync' a3 64'conv' CONV 65'after' 00 65'limit' {in_cbor}"),
            "sync.limit: must be an integer from 1 to 256",
        );
    }
}

#[test]
fn an_id_that_is_none_is_not_answered_under() {
    for (in_json, in_cbor) in [
        ("0", "00"),
        ("9007199254740992", "1b0020000000000000"),
        (r#""7""#, "61'7'"),
        ("7.0", "f94700"),
        ("-7", "26"),
    ] {
        let frames = [
            (Encoding::Json, json(&format!(r#"{{"id":{in_json},"ping":{{}}}}"#))),
            (Encoding::Cbor, cbor(&format!("a2 62'id' {in_cbor} 64'ping' a0"))),
        ];
        for (encoding, frame) in frames {
            let error = one(encoding, &frame).expect_err(in_json);
            assert_eq!(error.refusal.message, "id: must be an integer from 1 to 9007199254740991");
            assert_eq!(error.id, None);
        }
    }
    // Of two, nobody knows which.
    let frames = [
        (Encoding::Json, json(r#"{"id":7,"ping":{},"id":8}"#)),
        (Encoding::Cbor, cbor("a3 62'id' 07 64'ping' a0 62'id' 08")),
    ];
    for (encoding, frame) in frames {
        let error = one(encoding, &frame).expect_err("two ids");
        assert_eq!((error.refusal.message.as_ref(), error.id), ("id: given twice", None));
    }
}

#[test]
fn ids_are_uuids() {
    const CONV_WRONG: &str = "recv.conv: must be a UUID (hyphenated text in JSON, 16 bytes in CBOR)";
    for (in_json, in_cbor) in [
        (r#""""#, "40"),
        (r#""f81d4fae7dec11d0a76500a0c91e6bf6""#, "4f000102030405060708090a0b0c0d0e"),
        (r#""f81d4fae-7dec-11d0-a765-00a0c91e6bfg""#, "51000102030405060708090a0b0c0d0e0f10"),
        (r#""é81d4fae-7dec-11d0-a765-00a0c91e6bf""#, "7824'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'"),
        ("7", "07"),
        // A tagged UUID (tag 37) is a tag first of all.
        ("null", "d825 50000102030405060708090a0b0c0d0e0f"),
    ] {
        bad(
            &format!(r#"{{"id":7,"recv":{{"conv":{in_json},"seq":1}}}}"#),
            &format!("a2 62'id' 07 64'recv' a2 64'conv' {in_cbor} 63'seq' 01"),
            CONV_WRONG,
        );
    }
}

#[test]
fn payloads_are_bytes_with_one_spelling() {
    const WRONG: &str =
        "send.payload: must be bytes (standard base64 with padding in JSON, a byte string in CBOR)";
    for (in_json, in_cbor) in [
        // Padding missing, too much, or in the middle; the URL alphabet; a space; trailing bits that are not 0.
        (r#""Zg""#, "61'f'"),
        (r#""Zg=""#, "f6"),
        (r#""Zg===""#, "80"),
        (r#""Zg==Zg==""#, "a0"),
        (r#""__--""#, "00"),
        (r#""Zm9v Zm9v""#, "f5"),
        (r#""Zh==""#, "f93c00"),
        (r#""Zm9=""#, "c1 00"),
        ("null", "f7"),
        ("[102]", "81 1866"),
    ] {
        bad(
            &format!(r#"{{"id":7,"send":{{"conv":"CONV","client_id":"CLIENT","payload":{in_json}}}}}"#),
            &format!("a2 62'id' 07 64'send' a3 64'conv' CONV 69'client_id' CLIENT 67'payload' {in_cbor}"),
            WRONG,
        );
    }
}

#[test]
fn the_payload_limit_is_exact() {
    // The limit of these tests is 1000 bytes, 0x3e8; 1000 bytes are 1336 characters of base64 with two of padding.
    let frames = |bytes: usize, base64: String| {
        let head = "a2 62'id' 07 64'send' a3 64'conv' CONV 69'client_id' CLIENT 67'payload' 59";
        [
            (
                Encoding::Json,
                json(&format!(
                    r#"{{"id":7,"send":{{"conv":"CONV","client_id":"CLIENT","payload":"{base64}"}}}}"#
                )),
            ),
            (Encoding::Cbor, cbor(&format!("{head} {bytes:04x} {}", "00".repeat(bytes)))),
        ]
    };
    for (encoding, frame) in frames(1000, format!("{}==", "A".repeat(1334))) {
        assert!(one(encoding, &frame).is_ok());
    }
    for (encoding, frame) in frames(1001, format!("{}=", "A".repeat(1335))) {
        refused(
            encoding,
            &frame,
            ErrorCode::TooLarge,
            "send.payload: 1001 bytes are more than the 1000 allowed",
        );
    }
}

#[test]
fn values_have_the_type_of_their_field() {
    bad(
        r#"{"id":7,"connect":{"token":7}}"#,
        "a2 62'id' 07 67'connect' a1 65'token' 07",
        "connect.token: must be text",
    );
    bad(
        r#"{"id":7,"connect":{"token":null}}"#,
        "a2 62'id' 07 67'connect' a1 65'token' f6",
        "connect.token: must be text",
    );
    bad(
        r#"{"id":7,"send":{"conv":"CONV","payload":"","passing":1}}"#,
        "a2 62'id' 07 64'send' a3 64'conv' CONV 67'payload' 40 67'passing' 01",
        "send.passing: must be true or false",
    );
    for (in_json, in_cbor) in [("[]", "80"), ("null", "f6"), ("1", "01"), (r#""x""#, "61'x'")] {
        bad(
            &format!(r#"{{"id":7,"ping":{in_json}}}"#),
            &format!("a2 62'id' 07 64'ping' {in_cbor}"),
            "ping: must be a map (an object in JSON)",
        );
    }
    for (encoding, frame) in
        [(Encoding::Json, json("[]")), (Encoding::Cbor, cbor("80")), (Encoding::Cbor, cbor("d9d9f7 a0"))]
    {
        let error = one(encoding, &frame).expect_err("no map");
        assert_eq!(error.refusal.message, "command: must be a map (an object in JSON)");
        assert_eq!((error.id, error.fatal), (None, false));
    }
}

#[test]
fn depth_is_bounded_and_costs_no_stack() {
    // 16 levels are allowed, of which the command itself is one; what is within is refused for what it is.
    let nested = |levels: usize| {
        (
            format!(r#"{{"id":7,"deep":{}1{}}}"#, "[".repeat(levels), "]".repeat(levels)),
            format!("a2 62'id' 07 64'deep' {} 01", "81".repeat(levels)),
        )
    };
    let (in_json, in_cbor) = nested(15);
    check(&in_json, &in_cbor, ErrorCode::UnknownVerb, "deep: unknown verb");
    for levels in [16, 200_000] {
        let (in_json, in_cbor) = nested(levels);
        bad(&in_json, &in_cbor, "nested deeper than 16 levels");
    }
}

#[test]
fn broken_json_says_where() {
    for (text, message) in [
        (r#"{"id":7,"ping":{}"#, "not JSON: a comma or the end of the object must follow at byte 17"),
        (r#"{"id":7,"ping":{}}x"#, "not JSON: a line break must stand between two commands at byte 18"),
        (
            r#"{"id":7,"ping":{}} {"ping":{}}"#,
            "not JSON: a line break must stand between two commands at byte 19",
        ),
        (r#"{"id":7,"ping":{},}"#, "not JSON: a key must follow at byte 18"),
        (r#"{"id":7,,"ping":{}}"#, "not JSON: a key must follow at byte 8"),
        (r#"{"id":7,ping:{}}"#, "not JSON: a key must follow at byte 8"),
        (r#"{"id":7,"ping"{}}"#, "not JSON: a colon must follow a key at byte 14"),
        (r#"{"id":7,"pi\ng":{}}"#, "pi\u{fffd}g: unknown verb"),
        (r#"{"id":7,"pi\xg":{}}"#, "not JSON: an escape that does not exist at byte 12"),
        (r#"{"id":7,"\ud800":{}}"#, "not JSON: half of a surrogate pair at byte 15"),
        (r#"{"id":7,"\ud800\u0041":{}}"#, "not JSON: half of a surrogate pair at byte 21"),
        (r#"{"id":7,"\udc00":{}}"#, "not JSON: half of a surrogate pair at byte 15"),
        (r#"{"id":7,"\u00g0":{}}"#, "not JSON: four hexadecimal digits must follow \\u at byte 13"),
        ("{\"id\":7,\"a\tb\":{}}", "not JSON: a control character in a string at byte 10"),
        (r#"{"id":7,"ping"#, "not JSON: a string without an end at byte 13"),
        (r#"{"id":7,"recv":{"seq":01}}"#, "recv.seq: not JSON: a number that begins with 0 ends at byte 24"),
    ] {
        let error = one(Encoding::Json, text.as_bytes()).expect_err(text);
        assert_eq!(error.refusal.message, message, "{text}");
        assert_eq!(
            error.refusal.code,
            if message.contains("verb") { ErrorCode::UnknownVerb } else { ErrorCode::BadRequest }
        );
        assert!(!error.fatal, "{text}");
        assert_eq!(error.id.map(|id| id.get()), Some(7), "{text}");
    }
    let error = one(Encoding::Json, b"{\"id\":7,\"p\xff\":{}}").expect_err("not UTF-8");
    assert!(error.refusal.message.contains("not UTF-8"), "{}", error.refusal.message);
}

#[test]
fn keys_of_a_cbor_map_are_text() {
    refused(Encoding::Cbor, &cbor("a2 62'id' 07 01 a0"), ErrorCode::BadRequest, "a key must be text");
    refused(Encoding::Cbor, &cbor("a2 62'id' 07 44'ping' a0"), ErrorCode::BadRequest, "a key must be text");
    let error = one(Encoding::Cbor, &cbor("a2 62'id' 07 62c328 a0")).expect_err("not UTF-8");
    assert!(error.refusal.message.contains("not UTF-8"), "{}", error.refusal.message);
    assert!(!error.fatal);
}
