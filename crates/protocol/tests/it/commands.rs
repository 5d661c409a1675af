//! Each verb, in both encodings, from bytes written by hand.

use model::{Payload, Seq};
use protocol::{Command, Encoding, Request, Token};

use crate::bytes::{CLIENT, CONV, cbor, json, one, request};

/// The same command in both notations is read as the same request.
fn check(in_json: &str, in_cbor: &str, expected: Request<'_>) {
    assert_eq!(one(Encoding::Json, &json(in_json)), Ok(expected.clone()), "{in_json}");
    assert_eq!(one(Encoding::Cbor, &cbor(in_cbor)), Ok(expected), "{in_cbor}");
}

fn payload(bytes: &[u8]) -> Payload {
    Payload::from(bytes)
}

#[test]
fn connect_with_and_without_a_token() {
    let token = Some(Token("a.b-c_d.e".into()));
    check(
        r#"{"id":1,"connect":{"token":"a.b-c_d.e"}}"#,
        "a2 62'id' 01 67'connect' a1 65'token' 69'a.b-c_d.e'",
        request(1, Command::Connect { token }),
    );
    check(
        r#"{"id":1,"connect":{}}"#,
        "a2 62'id' 01 67'connect' a0",
        request(1, Command::Connect { token: None }),
    );
}

#[test]
fn refresh() {
    check(
        r#"{"refresh":{"token":"t"},"id":9007199254740991}"#,
        "a2 67'refresh' a1 65'token' 61't' 62'id' 1b 001fffffffffffff",
        request(9_007_199_254_740_991, Command::Refresh { token: Token("t".into()) }),
    );
}

#[test]
fn ping_with_and_without_an_id() {
    check(r#"{"id":24,"ping":{}}"#, "a2 62'id' 1818 64'ping' a0", request(24, Command::Ping));
    check(r#"{"ping":{}}"#, "a1 64'ping' a0", Request { id: None, command: Command::Ping });
}

#[test]
fn durable_send() {
    let command = Command::Send { conversation: CONV, client_id: CLIENT, payload: payload(b"foobar") };
    // The base64 is that of RFC 4648, section 10.
    check(
        r#"{"id":7,"send":{"conv":"CONV","client_id":"CLIENT","payload":"Zm9vYmFy"}}"#,
        "a2 62'id' 07 64'send' a3 64'conv' CONV 69'client_id' CLIENT 67'payload' 46'foobar'",
        request(7, command.clone()),
    );
    check(
        r#"{"id":7,"send":{"passing":false,"payload":"Zm9vYmFy","client_id":"CLIENT","conv":"CONV"}}"#,
        "a2 62'id' 07 64'send' a4 67'passing' f4 67'payload' 46'foobar' 69'client_id' CLIENT 64'conv' CONV",
        request(7, command),
    );
}

#[test]
fn passing_send() {
    check(
        r#"{"id":7,"send":{"conv":"CONV","payload":"Zg==","passing":true}}"#,
        "a2 62'id' 07 64'send' a3 64'conv' CONV 67'payload' 41'f' 67'passing' f5",
        request(7, Command::SendPassing { conversation: CONV, payload: payload(b"f") }),
    );
}

#[test]
fn payloads_of_every_padding() {
    // RFC 4648, section 10.
    for (text, bytes) in [
        ("", ""),
        ("Zg==", "f"),
        ("Zm8=", "fo"),
        ("Zm9v", "foo"),
        ("Zm9vYg==", "foob"),
        ("Zm9vYmE=", "fooba"),
    ] {
        check(
            &format!(r#"{{"send":{{"conv":"CONV","passing":true,"payload":"{text}"}}}}"#),
            &format!("a1 64'send' a3 64'conv' CONV 67'passing' f5 67'payload' 4{}'{bytes}'", bytes.len()),
            Request {
                id: None,
                command: Command::SendPassing { conversation: CONV, payload: payload(bytes.as_bytes()) },
            },
        );
    }
}

#[test]
fn recv_and_read() {
    check(
        r#"{"id":1,"recv":{"conv":"CONV","seq":1000000}}"#,
        "a2 62'id' 01 64'recv' a2 64'conv' CONV 63'seq' 1a000f4240",
        request(1, Command::Recv { conversation: CONV, seq: Seq(1_000_000) }),
    );
    check(
        r#"{"id":1,"read":{"conv":"CONV","seq":1}}"#,
        "a2 62'id' 01 64'read' a2 64'conv' CONV 63'seq' 01",
        request(1, Command::Read { conversation: CONV, seq: Seq(1) }),
    );
}

#[test]
fn sync() {
    check(
        r#"{"id":1,"sync":{"conv":"CONV","after":0,"limit":256}}"#,
        "a2 62'id' 01 64'sync' a3 64'conv' CONV 65'after' 00 65'limit' 190100",
        request(1, Command::Sync { conversation: CONV, after: Seq(0), limit: 256 }),
    );
}

#[test]
fn json_may_have_white_space_and_escapes() {
    // The first key is "id", the base64 has the escaped slash that some encoders write, the token a pair of
    // surrogates (RFC 8259, section 7).
    let text = "\t{ \"\\u0069d\" : 7 ,\r\"send\":{\"conv\":\"CONV\", \"passing\" : true,\"payload\":\"\\/\\/\\/\\/\" } } ";
    let expected = Command::SendPassing { conversation: CONV, payload: payload(&[255, 255, 255]) };
    assert_eq!(one(Encoding::Json, &json(text)), Ok(request(7, expected)));
    let text = r#"{"id":1,"connect":{"token":"\ud834\udd1e\"\\\/\b\f\n\r\t\u00e9"}}"#;
    let token = Some(Token("\u{1d11e}\"\\/\u{8}\u{c}\n\r\té".into()));
    assert_eq!(one(Encoding::Json, text.as_bytes()), Ok(request(1, Command::Connect { token })));
}

#[test]
fn cbor_heads_may_be_longer_than_needed() {
    // RFC 8949, section 4.1: the shortest form is preferred, the others are well-formed.
    let bytes = cbor("b90002 7a00000002'id' 1b0000000000000007 7b0000000000000004'ping' ba00000000");
    assert_eq!(one(Encoding::Cbor, &bytes), Ok(request(7, Command::Ping)));
}

#[test]
fn secrets_and_payloads_are_not_printed() {
    let text = json(r#"{"id":1,"connect":{"token":"s3cret"}}"#);
    let printed = format!("{:?}", one(Encoding::Json, &text));
    assert!(!printed.contains("s3cret"), "{printed}");
}
