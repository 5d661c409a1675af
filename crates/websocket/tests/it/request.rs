//! Request heads: the right ones, the table of wrong ones (attacks 2, 4, 5), and every way of cutting them.

use websocket::{Progress, RequestReader, write_refusal};

const PATH: &str = "/v1/socket";
const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
const GOOD: &str = "GET /v1/socket HTTP/1.1\r\n\
    Host: chat.example:8080\r\n\
    Upgrade: websocket\r\n\
    Connection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Version: 13\r\n\r\n";

/// What is known in the end, in a form that can be compared.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Incomplete,
    Other,
    Upgrade,
    Status(u16),
}

fn outcome(progress: Progress<'_>) -> Outcome {
    match progress {
        Progress::Incomplete => Outcome::Incomplete,
        Progress::Other => Outcome::Other,
        Progress::Upgrade(_) => Outcome::Upgrade,
        Progress::Refused(refusal) => Outcome::Status(refusal.status),
    }
}

/// The first word that is not "incomplete" when the head comes a byte at a time.
fn byte_by_byte(head: &[u8]) -> Outcome {
    let mut reader = RequestReader::new();
    for len in 1..=head.len() {
        let outcome = outcome(reader.advance(&head[..len], PATH));
        if outcome != Outcome::Incomplete {
            return outcome;
        }
    }
    Outcome::Incomplete
}

#[track_caller]
fn check(name: &str, head: &[u8], expected: Outcome) {
    assert_eq!(outcome(RequestReader::new().advance(head, PATH)), expected, "{name}");
    assert_eq!(byte_by_byte(head), expected, "{name}, a byte at a time");
}

fn with(header: &str) -> String {
    GOOD.replacen("\r\n\r\n", &format!("\r\n{header}\r\n\r\n"), 1)
}

fn without(header: &str) -> String {
    let line = GOOD.lines().find(|line| line.starts_with(header)).expect("a header of the good head");
    GOOD.replacen(&format!("{line}\r\n"), "", 1)
}

#[test]
fn a_good_head_tells_all_the_caller_needs() {
    let head = GOOD
        .replacen("/v1/socket", "/v1/socket?device=7", 1)
        .replacen("\r\n\r\n", "\r\nOrigin: https://chat.example\r\nSec-WebSocket-Protocol: throng.v1.cbor , chat\r\nSec-WebSocket-Protocol: throng.v1.json\r\nAuthorization: bearer abc.def.ghi\r\nCookie: caf\u{e9}=1\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n", 1);
    let mut bytes = head.clone().into_bytes();
    bytes.extend(b"\x81\x80\x00\x00\x00\x00");
    let mut reader = RequestReader::new();
    let Progress::Upgrade(upgrade) = reader.advance(&bytes, PATH) else { panic!("not an upgrade") };
    assert_eq!(&upgrade.key, b"dGhlIHNhbXBsZSBub25jZQ==");
    assert_eq!(upgrade.host, "chat.example:8080");
    assert_eq!(upgrade.origin, Some("https://chat.example"));
    assert_eq!(upgrade.bearer, Some("abc.def.ghi"));
    assert_eq!(upgrade.query, Some("device=7"));
    assert_eq!(upgrade.head_bytes, head.len(), "the frame behind the head is not touched");
    assert_eq!(upgrade.subprotocols().collect::<Vec<_>>(), ["throng.v1.cbor", "chat", "throng.v1.json"]);
    assert!(!format!("{upgrade:?}").contains("abc.def.ghi"), "a token must not get into a log");
}

#[test]
fn a_head_is_understood_at_every_split_into_two() {
    for cut in 0..GOOD.len() {
        let mut reader = RequestReader::new();
        assert_eq!(reader.advance(&GOOD.as_bytes()[..cut], PATH), Progress::Incomplete, "cut at {cut}");
        assert_eq!(outcome(reader.advance(GOOD.as_bytes(), PATH)), Outcome::Upgrade, "cut at {cut}");
    }
}

#[test]
fn a_byte_of_the_head_that_was_looked_at_is_not_looked_at_again_until_the_end() {
    // What was fed before is overwritten with bytes that no head may hold, each time: a second look would find line ends
    // and control characters in it. The last call has the whole head. So a head of n bytes costs 2 n looks, not n².
    let long = with(&format!("X: {}", "x".repeat(7_000)));
    for head in [GOOD, &long] {
        for garbage in [b'\n', b'\0', b'\r', 0xff] {
            let mut reader = RequestReader::new();
            let line = head.find('\n').expect("a request line") + 1;
            for len in 1..head.len() {
                // The request line is read when it ends, to see whose request this is.
                let mut bytes = vec![garbage; len];
                let seen = if len <= line { 0 } else { len - 1 };
                bytes[seen..].copy_from_slice(&head.as_bytes()[seen..len]);
                assert_eq!(reader.advance(&bytes, PATH), Progress::Incomplete, "{len} bytes, {garbage:#x}");
            }
            assert_eq!(outcome(reader.advance(head.as_bytes(), PATH)), Outcome::Upgrade, "{garbage:#x}");
        }
    }
}

#[test]
fn what_is_not_for_the_socket_path_is_the_http_sides_as_soon_as_the_line_is_there() {
    for line in [
        "GET / HTTP/1.1\r\n",
        "GET /v1/socket/ HTTP/1.1\r\n",
        "GET /v1/socketx HTTP/1.1\r\n",
        "GET /v1/sock HTTP/1.1\r\n",
        "GET /V1/SOCKET HTTP/1.1\r\n",
        "GET /v1/%73ocket HTTP/1.1\r\n",
        "GET //v1/socket HTTP/1.1\r\n",
        "GET /v1/../v1/socket HTTP/1.1\r\n",
        "GET http://h/v1/socket HTTP/1.1\r\n",
        "GET /v1/socket#x HTTP/1.1\r\n",
        "GET /v1/conversations?then=/v1/socket HTTP/1.1\r\n",
        "POST /v1/conversations HTTP/1.1\r\n",
        "OPTIONS * HTTP/1.1\r\n",
        "PRI * HTTP/2.0\r\n",
        "nonsense\r\n",
        "\r\n",
        "GET / HTTP/1.0\n",
    ] {
        check(line, line.as_bytes(), Outcome::Other);
    }
}

#[test]
fn tolerable_variations_are_tolerated() {
    for (name, head) in [
        ("names in other case", GOOD.replace("Upgrade: websocket", "UPGRADE: WebSocket")),
        ("lists", GOOD.replace("Connection: Upgrade", "connection: keep-alive, Upgrade")),
        ("no space after the colon", GOOD.replace("Host: ", "Host:")),
        ("space around the value", GOOD.replace("Host: chat.example:8080", "Host: \t chat.example:8080 \t ")),
        ("a body of nothing", with("Content-Length: 0")),
        ("another scheme", with("Authorization: Basic dXNlcjpwYXNz")),
        ("a query that is no token", GOOD.replace("/v1/socket", "/v1/socket?tokens=1&my_token=2&x=token")),
        ("an IPv6 host", GOOD.replace("chat.example", "[::1]")),
    ] {
        check(name, head.as_bytes(), Outcome::Upgrade);
    }
}

#[test]
fn malformed_heads_are_refused() {
    let cases: Vec<(&str, String, u16)> = vec![
        ("no Host", without("Host"), 400),
        ("no Upgrade", without("Upgrade"), 400),
        ("no Connection", without("Connection"), 400),
        ("no key", without("Sec-WebSocket-Key"), 400),
        ("no version", without("Sec-WebSocket-Version"), 426),
        ("version 8", GOOD.replace("Version: 13", "Version: 8"), 426),
        ("version 13 and 8", GOOD.replace("Version: 13", "Version: 13, 8"), 426),
        ("version 013", GOOD.replace("Version: 13", "Version: 013"), 426),
        ("two Hosts", with("Host: chat.example:8080"), 400),
        ("two Upgrades", with("Upgrade: websocket"), 400),
        ("two Connections", with("Connection: close"), 400),
        ("two keys", with(KEY), 400),
        ("two versions", with("Sec-WebSocket-Version: 13"), 400),
        ("two Origins", with("Origin: https://a\r\nOrigin: https://b"), 400),
        ("two Authorizations", with("Authorization: Bearer a\r\nauthorization: Bearer b"), 400),
        ("upgrade to something else", GOOD.replace("Upgrade: websocket", "Upgrade: h2c"), 400),
        ("connection closes", GOOD.replace("Connection: Upgrade", "Connection: close"), 400),
        ("key of 15 bytes", GOOD.replace("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25j"), 400),
        ("key of 17 bytes", GOOD.replace("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZXg="), 400),
        ("key of 18 bytes", GOOD.replace("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZXh4"), 400),
        ("key that is not base64", GOOD.replace("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25j*Q=="), 400),
        ("key with stray bits", GOOD.replace("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZR=="), 400),
        ("empty key", GOOD.replace("dGhlIHNhbXBsZSBub25jZQ==", ""), 400),
        ("a body", with("Content-Length: 5"), 400),
        ("a body length of 00", with("Content-Length: 00"), 400),
        ("a negative body", with("Content-Length: -1"), 400),
        ("two body lengths", with("Content-Length: 0\r\nContent-Length: 0"), 400),
        ("chunks", with("Transfer-Encoding: chunked"), 400),
        ("length and chunks", with("Content-Length: 0\r\nTransfer-Encoding: chunked"), 400),
        ("folded line", with("X-Long: one\r\n two"), 400),
        ("folded first header", GOOD.replacen("Host", " Host", 1), 400),
        ("space before the colon", GOOD.replace("Host:", "Host :"), 400),
        ("no colon", with("nonsense"), 400),
        ("empty name", with(": value"), 400),
        ("name with a control character", with("X\u{1}: 1"), 400),
        ("DEL in a value", with("X: a\u{7f}b"), 400),
        ("name that is not ASCII", with("Ü: 1"), 400),
        ("NUL in a value", with("X: a\0b"), 400),
        ("bare CR in a value", with("X: a\rHost: evil"), 400),
        ("bare LF after the request line", GOOD.replacen("\r\n", "\n", 1), 400),
        ("bare LF after a header", GOOD.replace("Upgrade: websocket\r\n", "Upgrade: websocket\n"), 400),
        ("bare LF at the end", GOOD.replace("\r\n\r\n", "\r\n\n"), 400),
        ("HTTP/1.0", GOOD.replace("HTTP/1.1", "HTTP/1.0"), 400),
        ("HTTP/2.0", GOOD.replace("HTTP/1.1", "HTTP/2.0"), 400),
        ("http/1.1", GOOD.replace("HTTP/1.1", "http/1.1"), 400),
        ("HTTP/1.1 and more", GOOD.replace("HTTP/1.1", "HTTP/1.1 x"), 400),
        ("no version at all", GOOD.replace(" HTTP/1.1", ""), 400),
        ("two spaces", GOOD.replace(" HTTP/1.1", "  HTTP/1.1"), 400),
        ("bare CR in the request line", GOOD.replace(" HTTP/1.1", " HTTP/1.1\rX"), 400),
        ("POST", GOOD.replace("GET", "POST"), 405),
        ("get", GOOD.replace("GET", "get"), 405),
        ("HEAD", GOOD.replace("GET", "HEAD"), 405),
        ("token in the query", GOOD.replace("/v1/socket", "/v1/socket?token=secret"), 400),
        ("empty token", GOOD.replace("/v1/socket", "/v1/socket?a=1&token"), 400),
        ("access_token", GOOD.replace("/v1/socket", "/v1/socket?a=b&access_token=secret"), 400),
        ("token behind percent", GOOD.replace("/v1/socket", "/v1/socket?%74oke%6E=secret"), 400),
        ("token behind a semicolon", GOOD.replace("/v1/socket", "/v1/socket?a=1;Token=secret"), 400),
        ("host with a space", GOOD.replace("chat.example", "chat example"), 400),
        ("host with a path", GOOD.replace("chat.example:8080", "chat.example/path"), 400),
        ("host with a user", GOOD.replace("chat.example", "me@chat.example"), 400),
        ("empty host", GOOD.replace("chat.example:8080", ""), 400),
        ("subprotocol with a space", with("Sec-WebSocket-Protocol: throng v1"), 400),
        ("TLS", "\u{16}\u{3}\u{1}\u{2}".to_owned(), 400),
    ];
    for (name, head, status) in &cases {
        check(name, head.as_bytes(), Outcome::Status(*status));
    }
}

#[test]
fn sixty_four_headers_are_allowed_and_the_sixty_fifth_is_refused_before_the_head_ends() {
    let headers = |count: usize| {
        let more: String = (0..count - 5).map(|index| format!("X-{index}: 1\r\n")).collect();
        GOOD.replacen("\r\n\r\n", &format!("\r\n{more}\r\n"), 1)
    };
    check("64 headers", headers(64).as_bytes(), Outcome::Upgrade);
    check("65 headers", headers(65).as_bytes(), Outcome::Status(431));
    let unfinished = headers(65);
    check("65 headers without an end", unfinished.trim_end().as_bytes(), Outcome::Incomplete);
    check("65 headers, one line end", &unfinished.as_bytes()[..unfinished.len() - 2], Outcome::Status(431));
}

#[test]
fn a_head_of_8_kib_is_allowed_and_a_longer_one_is_refused() {
    let of_length = |length: usize| {
        let head = with("X: ");
        let filler = "x".repeat(length - head.len());
        head.replacen("X: \r\n", &format!("X: {filler}\r\n"), 1)
    };
    check("8192 bytes", of_length(8_192).as_bytes(), Outcome::Upgrade);
    check("8193 bytes", of_length(8_193).as_bytes(), Outcome::Status(431));
    let endless = format!("GET /v1/socket?{} HTTP/1.1\r\n", "x".repeat(9_000));
    check("a request line without end", endless.as_bytes(), Outcome::Status(414));
    check("8191 bytes of it", &endless.as_bytes()[..8_191], Outcome::Incomplete);
}

#[test]
fn frames_behind_the_head_do_not_count_as_head() {
    let mut bytes = GOOD.as_bytes().to_vec();
    bytes.extend([b'x'; 20_000]);
    let mut reader = RequestReader::new();
    let Progress::Upgrade(upgrade) = reader.advance(&bytes, PATH) else { panic!("not an upgrade") };
    assert_eq!(upgrade.head_bytes, GOOD.len());
}

#[test]
fn a_refusal_is_a_problem_document_and_closes() {
    let mut out = Vec::new();
    let Progress::Refused(refusal) =
        RequestReader::new().advance(GOOD.replace("Version: 13", "Version: 12").as_bytes(), PATH)
    else {
        panic!("not refused")
    };
    refusal.write(&mut out);
    let response = String::from_utf8(out).expect("text");
    let (head, body) = response.split_once("\r\n\r\n").expect("a head");
    let lines: Vec<&str> = head.split("\r\n").collect();
    assert_eq!(lines[0], "HTTP/1.1 426 Upgrade Required");
    for line in [
        "Sec-WebSocket-Version: 13",
        "Upgrade: websocket",
        "Connection: close, Upgrade",
        "Content-Type: application/problem+json",
        &format!("Content-Length: {}", body.len()),
    ] {
        assert!(lines.contains(&line), "{line} in {lines:?}");
    }
    assert_eq!(
        body,
        "{\"type\":\"about:blank\",\"title\":\"Upgrade Required\",\"status\":426,\"detail\":\"Sec-WebSocket-Version must be 13\"}\n"
    );

    let mut out = Vec::new();
    write_refusal(&mut out, 503, "say \"later\"\n\\", &[("Retry-After", "7")]);
    let response = String::from_utf8(out).expect("text");
    assert!(
        response.starts_with("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\nConnection: close\r\n")
    );
    assert!(response.ends_with("\"detail\":\"say \\\"later\\\"\\u000a\\\\\"}\n"), "{response}");
}
