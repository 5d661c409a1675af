//! The client's opening against the server's, and the answers a client must not believe.

use websocket::{
    HandshakeError, Progress, RequestReader, Response, ResponseReader, client_key, write_refusal,
    write_request, write_switching_protocols,
};

const KEY: [u8; 24] = *b"dGhlIHNhbXBsZSBub25jZQ==";

#[test]
fn client_and_server_understand_each_other_at_every_split() {
    let key = client_key([7; 16]);
    let mut request = Vec::new();
    let headers = [("Origin", "https://chat.example"), ("Authorization", "Bearer t.o.k")];
    write_request(
        &mut request,
        "chat.example",
        "/v1/socket",
        &key,
        &["throng.v1.cbor", "throng.v1.json"],
        &headers,
    );
    let Progress::Upgrade(upgrade) = RequestReader::new().advance(&request, "/v1/socket") else {
        panic!("{}", String::from_utf8_lossy(&request))
    };
    assert_eq!((upgrade.key, upgrade.bearer), (key, Some("t.o.k")));
    assert_eq!(upgrade.origin, Some("https://chat.example"));
    assert_eq!(upgrade.subprotocols().collect::<Vec<_>>(), ["throng.v1.cbor", "throng.v1.json"]);

    let mut response = Vec::new();
    write_switching_protocols(&mut response, &upgrade.key, Some("throng.v1.cbor"));
    let head_bytes = response.len();
    response.extend(b"\x81\x02hi");
    for cut in 0..head_bytes {
        let mut reader = ResponseReader::new();
        assert_eq!(reader.advance(&response[..cut], &key), Ok(Response::Incomplete));
        let expected = Response::Accepted { subprotocol: Some("throng.v1.cbor"), head_bytes };
        assert_eq!(reader.advance(&response, &key), Ok(expected), "cut at {cut}");
    }
}

#[test]
fn an_answer_without_a_subprotocol_names_none() {
    let mut response = Vec::new();
    write_switching_protocols(&mut response, &KEY, None);
    let expected = Response::Accepted { subprotocol: None, head_bytes: response.len() };
    assert_eq!(ResponseReader::new().advance(&response, &KEY), Ok(expected));
}

#[test]
fn wrong_answers_are_told_apart() {
    let mut good = Vec::new();
    write_switching_protocols(&mut good, &KEY, None);
    let good = String::from_utf8(good).expect("text");
    let mut refused = Vec::new();
    write_refusal(&mut refused, 503, "later", &[]);
    let refused = String::from_utf8(refused).expect("text");
    for (answer, error) in [
        (refused, HandshakeError::Refused { status: 503 }),
        (good.replace("101", "200"), HandshakeError::Refused { status: 200 }),
        (good.replace("s3pP", "S3pP"), HandshakeError::AcceptMismatch),
        (good.replace("Sec-WebSocket-Accept", "X"), HandshakeError::AcceptMismatch),
        (good.replace("Upgrade: websocket", "Upgrade: h2c"), HandshakeError::NotUpgraded),
        (good.replace("Connection: Upgrade", "Connection: close"), HandshakeError::NotUpgraded),
        (good.replace("HTTP/1.1", "HTTP/1.0"), HandshakeError::Malformed),
        (good.replace("101 ", "1011 "), HandshakeError::Malformed),
        (good.replace("Upgrade:", "Upgrade :"), HandshakeError::Malformed),
        (good.replace("\r\n\r\n", "\r\nSec-WebSocket-Extensions: x\r\n\r\n"), HandshakeError::Extension),
        ("HTTP/1.1 200 OK\r\n".to_owned() + &"X: y\r\n".repeat(70), HandshakeError::Malformed),
        ("x".repeat(9_000), HandshakeError::Malformed),
    ] {
        assert_eq!(ResponseReader::new().advance(answer.as_bytes(), &KEY), Err(error), "{answer}");
    }
}
