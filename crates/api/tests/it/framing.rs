//! Where a request ends and whom it is for has one reading (attacks 4 and 26).

use crate::client::request;
use crate::server::{Options, Server, token};

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = Server::start();
    let alice = token("alice");
    let mut client = server.client();
    let body = r#"{"kind":"group","members":[]}"#;
    client.send(
        [
            request("GET", "/livez", None, None),
            request("POST", "/v1/conversations", Some(&alice), Some(body)),
            request("GET", "/nowhere", None, None),
            request("GET", "/v1/conversations", Some(&alice), None),
            request("GET", "/v1/conversations", None, None),
        ]
        .concat(),
    );
    assert_eq!(client.answer().body, "ok\n");
    let made = client.answer();
    assert_eq!(made.status, 201);
    assert_eq!(client.answer().status, 404);
    assert_eq!(client.answer().json()["conversations"][0]["id"], made.json()["id"]);
    assert_eq!(client.answer().status, 401);
}

#[test]
fn however_a_request_is_cut_the_bytes_read_before_the_handover_come_first() {
    let server = Server::start();
    let body = r#"{"kind":"group","members":[]}"#;
    let whole = request("POST", "/v1/conversations", Some(&token("alice")), Some(body));
    for cut in (1..whole.len()).step_by(7) {
        let mut client = server.client();
        client.send(&whole[..cut]);
        // Long enough for the shard to have read the first part in most rounds; whichever way it goes must do.
        std::thread::yield_now();
        client.send(&whole[cut..]);
        assert_eq!(client.answer().status, 201, "cut after {cut} bytes");
    }
    let mut client = server.client();
    for byte in whole.as_bytes() {
        client.send([*byte]);
    }
    assert_eq!(client.answer().status, 201, "a byte at a time");
}

#[test]
fn what_two_readers_could_read_differently_is_refused() {
    let server = Server::start();
    let alice = token("alice");
    let smuggled = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (headers, status) in [
        ("Host: localhost\r\nHost: localhost\r\n", 400),
        ("Host: localhost\r\nhost: elsewhere\r\n", 400),
        ("", 400),
        ("Host: localhost\r\nTransfer-Encoding: chunked\r\n", 411),
        ("Host: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n", 411),
        ("Host: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n", 411),
        ("Host: localhost\r\nTransfer-Encoding: gzip, chunked\r\n", 411),
        ("Host: localhost\r\nTransfer-Encoding: identity\r\n", 400),
        ("Host: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n", 400),
        ("Host: localhost\r\nContent-Length: +5\r\n", 400),
        ("Host: localhost\r\nContent-Length: 0x5\r\n", 400),
        ("Host: localhost\r\nContent-Length: -1\r\n", 400),
        ("Host: localhost\r\nContent-Length : 5\r\n", 400),
        ("Host: localhost\r\nX: a\r\n b\r\n", 400),
        ("Host: localhost\r\nX: a\0b\r\n", 400),
    ] {
        let mut client = server.client();
        client.send(format!(
            "POST /v1/conversations HTTP/1.1\r\nAuthorization: Bearer {alice}\r\nContent-Type: application/json\r\n{headers}\r\n0\r\n\r\n{smuggled}"
        ));
        assert_eq!(client.answer().status, status, "{headers:?}");
        client.ended();
    }
}

#[test]
fn an_answer_says_where_it_ends() {
    let server = Server::start();
    let mut client = server.client();
    let whole = client.ask("GET", "/metrics", None, None);
    let head = client.ask("HEAD", "/livez", None, None);
    assert_eq!((head.status, head.header("content-length"), head.body.as_str()), (200, Some("3"), ""));
    assert!(whole.header("content-length").is_some());
    assert_eq!(client.ask("GET", "/livez", None, None).body, "ok\n", "and the connection goes on");
}

#[test]
fn a_head_that_is_too_long_or_has_too_many_headers_is_refused() {
    let server = Server::start();
    for headers in [format!("X: {}\r\n", "x".repeat(20_000)), "X: x\r\n".repeat(65)] {
        let mut client = server.client();
        assert_eq!(client.ask("GET", "/livez", None, None).status, 200);
        client.send(format!("GET /livez HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n"));
        assert_eq!(client.answer().status, 431);
        client.ended();
    }
}

#[test]
fn what_is_not_there_and_what_is_not_done_are_told_apart() {
    let server = Server::start();
    for path in [
        "/",
        "/v1",
        "/v1/",
        "/v1/conversations/",
        "/v2/conversations",
        "/livez/",
        "/../livez",
        "/app.js",
        "/dev/token",
    ] {
        server.ask("GET", path, Some(&token("alice")), None).problem(404, "not_found");
    }
    for (method, path, allow) in [
        ("DELETE", "/v1/conversations", "GET,HEAD,POST"),
        ("PUT", "/v1/conversations", "GET,HEAD,POST"),
        ("GET", "/v1/conversations/a/members/b", "DELETE,POST"),
        ("POST", "/v1/conversations/a/members/me", "DELETE"),
        ("POST", "/livez", "GET,HEAD"),
        ("OPTIONS", "/metrics", "GET,HEAD"),
        ("TRACE", "/readyz", "GET,HEAD"),
        ("FROBNICATE", "/openapi.json", "GET,HEAD"),
    ] {
        let answer = server.ask(method, path, Some(&token("alice")), None);
        answer.problem(405, "bad_request");
        let mut allowed: Vec<&str> = answer.header("allow").expect("Allow").split(',').collect();
        allowed.sort_unstable();
        assert_eq!(allowed.join(","), allow, "{method} {path}");
    }
}

#[test]
fn a_socket_needs_a_connection_of_its_own() {
    let server = Server::start();
    let mut client = server.client();
    assert_eq!(client.ask("GET", "/livez", None, None).status, 200);
    let answer = client.ask("GET", "/v1/socket", None, None);
    answer.problem(421, "bad_request");
    assert_eq!(answer.header("connection"), Some("close"));
    client.ended();
}

#[test]
fn every_answer_has_the_security_headers() {
    let server = Server::with(Options { dev: true, ..Options::default() });
    for path in
        ["/livez", "/readyz", "/metrics", "/openapi.json", "/v1/conversations", "/nowhere", "/", "/app.js"]
    {
        let answer = server.ask("GET", path, None, None);
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{path}");
        let policy = answer.header("content-security-policy").expect(path);
        assert!(
            policy.contains("default-src") && policy.contains("frame-ancestors 'none'"),
            "{path}: {policy}"
        );
        assert_eq!(answer.header("set-cookie"), None, "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{path}");
    }
}

#[test]
fn every_form_of_a_target_has_an_answer() {
    let server = Server::start();
    for (line, status) in [
        ("GET http://localhost/livez HTTP/1.1", 200),
        ("GET http://elsewhere.example/livez HTTP/1.1", 200),
        ("OPTIONS * HTTP/1.1", 400),
        ("CONNECT localhost:80 HTTP/1.1", 400),
        ("GET /livez?x HTTP/1.1", 200),
        ("GET //livez HTTP/1.1", 404),
        ("GET /livez HTTP/1.0", 200),
        ("GET /livez HTTP/2.0", 400),
        ("PRI * HTTP/2.0", 400),
        ("GET livez HTTP/1.1", 400),
        ("GET  /livez HTTP/1.1", 400),
        ("GET /livez", 400),
        ("\u{16}\u{3}\u{1} /livez HTTP/1.1", 400),
    ] {
        let mut client = server.client();
        client.send(format!("{line}\r\nHost: localhost\r\n\r\n"));
        assert_eq!(client.answer().status, status, "{line}");
    }
    assert_eq!(server.ask("GET", "/livez", None, None).status, 200);
}
