//! Bodies: one reading, and a name for what is wrong (attack 14).

use std::time::{Duration, Instant};

use api::Limits;

use crate::client::{Answer, request};
use crate::server::{Options, Server, token};

const PATH: &str = "/v1/conversations";
const BOB: &str = "c0a8e1d4-1f2b-4c3d-9e8f-7a6b5c4d3e2f";

fn post(server: &Server, body: &str) -> Answer {
    server.ask("POST", PATH, Some(&token("alice")), Some(body))
}

fn typed(server: &Server, header: &str) -> Answer {
    let body = format!(r#"{{"kind":"direct","members":["{BOB}"]}}"#);
    let mut client = server.client();
    let token = token("alice");
    client.send(format!(
        "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{header}Content-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    client.answer()
}

#[test]
fn what_is_wrong_with_a_body_is_named() {
    let server = Server::start();
    let deep = format!("{{\"kind\":{}", "[".repeat(10_000));
    let deep_unknown = format!("{{\"x\":{}", "[".repeat(10_000));
    for (body, named) in [
        ("", "JSON object"),
        (" ", "JSON object"),
        ("null", "JSON object"),
        ("[]", "JSON object"),
        (&format!(r#"["direct",["{BOB}"]]"#), "JSON object"),
        ("\u{feff}{}", "JSON object"),
        ("{", "EOF"),
        ("{}", "`kind`"),
        (r#"{"kind":"direct"}"#, "`members`"),
        (&format!(r#"{{"members":["{BOB}"]}}"#), "`kind`"),
        (&format!(r#"{{"kind":"direct","members":["{BOB}"],"admin":true}}"#), "`admin`"),
        (&format!(r#"{{"Kind":"direct","members":["{BOB}"]}}"#), "`Kind`"),
        (&format!(r#"{{"kind":"direct","kind":"group","members":["{BOB}"]}}"#), "duplicate field `kind`"),
        (
            &format!(r#"{{"kind":"group","k\u0069nd":"direct","members":["{BOB}"]}}"#),
            "duplicate field `kind`",
        ),
        (&format!(r#"{{"kind":"direct","members":["{BOB}"],"members":[]}}"#), "duplicate field `members`"),
        (&format!(r#"{{"kind":"party","members":["{BOB}"]}}"#), "`kind`"),
        (&format!(r#"{{"kind":1,"members":["{BOB}"]}}"#), "`kind`"),
        (&format!(r#"{{"kind":null,"members":["{BOB}"]}}"#), "`kind`"),
        (&format!(r#"{{"kind":{{"direct":null}},"members":["{BOB}"]}}"#), "`kind`"),
        (&format!(r#"{{"kind":["direct"],"members":["{BOB}"]}}"#), "`kind`"),
        (&format!(r#"{{"kind":"direct","members":"{BOB}"}}"#), "`members`"),
        (&format!(r#"{{"kind":"direct","members":{{"{BOB}":1}}}}"#), "`members`"),
        (r#"{"kind":"direct","members":null}"#, "`members`"),
        (r#"{"kind":"direct","members":[1]}"#, "`members`"),
        (r#"{"kind":"direct","members":[null]}"#, "`members`"),
        (r#"{"kind":"direct","members":["bob"]}"#, "`members`"),
        (r#"{"kind":"direct","members":["c0a8e1d41f2b4c3d9e8f7a6b5c4d3e2f"]}"#, "`members`"),
        (&format!(r#"{{"kind":"direct","members":["{BOB}"]}} {{}}"#), "trailing"),
        (&format!(r#"{{"kind":"direct","members":["{BOB}"],}}"#), "trailing comma"),
        (&format!("{{'kind':'direct','members':['{BOB}']}}"), "key must be a string"),
        (&deep, "`kind`"),
        (&deep_unknown, "`x`"),
    ] {
        let detail = post(&server, body).problem(400, "bad_request");
        assert!(detail.contains(named), "{:.80} → {detail}", body);
    }
}

#[test]
fn a_detail_repeats_little_of_what_was_sent() {
    let server = Server::start();
    let detail = post(&server, &format!("{{\"{}\":1}}", "ü".repeat(20_000))).problem(400, "bad_request");
    assert!(detail.len() <= 256 && detail.contains('ü'), "{detail}");
}

#[test]
fn a_body_that_is_not_utf_8_is_refused() {
    let server = Server::start();
    let mut client = server.client();
    let token = token("alice");
    client.send(format!("POST {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"));
    client.send(b"{\"k\xffnd\":1");
    client.answer().problem(400, "bad_request");
}

#[test]
fn a_body_must_say_that_it_is_json() {
    let server = Server::start();
    for header in [
        "Content-Type: application/json\r\n",
        "content-type: APPLICATION/JSON; charset=utf-8\r\n",
        "Content-Type:application/json ;x=\"y\"\r\n",
    ] {
        let status = typed(&server, header).status;
        assert!([200, 201].contains(&status), "{header}: {status}");
    }
    // The others are what a form on somebody's page could send without asking first.
    for header in [
        "",
        "Content-Type: text/plain\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "Content-Type: multipart/form-data; boundary=x\r\n",
        "Content-Type: application/jsonx\r\n",
        "Content-Type: text/plain; application/json\r\n",
    ] {
        typed(&server, header).problem(415, "bad_request");
    }
}

#[test]
fn routes_without_a_body_take_none() {
    let server = Server::start();
    let path = format!("/v1/conversations/{BOB}/members/{BOB}");
    for method in ["POST", "DELETE"] {
        server.ask(method, &path, Some(&token("alice")), Some("{}")).problem(400, "bad_request");
        server.ask(method, &path, Some(&token("alice")), Some("")).problem(403, "not_member");
    }
}

#[test]
fn a_body_that_is_too_long_is_refused_before_it_is_read() {
    let server = Server::start();
    let fits = format!(r#"{{"kind":"direct","members":["{BOB}"]{}}}"#, " ".repeat(65_536 - 68));
    assert_eq!(fits.len(), 65_536);
    assert_eq!(post(&server, &fits).status, 201);
    let mut client = server.client();
    let token = token("alice");
    client.send(format!(
        "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: 65537\r\n\r\n"
    ));
    let answer = client.answer();
    answer.problem(413, "too_large");
    assert_eq!(answer.header("connection"), Some("close"));
    client.ended();
}

#[test]
fn a_body_that_does_not_come_in_time_is_not_waited_for() {
    let limits = Limits { body_deadline: Duration::from_millis(200), ..Limits::default() };
    let server = Server::with(Options { limits, ..Options::default() });
    let mut client = server.client();
    let whole = request("POST", PATH, Some(&token("alice")), Some(&" ".repeat(100)));
    client.send(&whole[..whole.len() - 50]);
    let began = Instant::now();
    client.answer().problem(408, "bad_request");
    client.ended();
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_body_that_ends_early_harms_nobody() {
    let server = Server::start();
    let mut client = server.client();
    let whole = request("POST", PATH, Some(&token("alice")), Some(&" ".repeat(100)));
    client.send(&whole[..whole.len() - 50]);
    client.socket.shutdown(std::net::Shutdown::Write).expect("half a close");
    client.answer().problem(400, "bad_request");
    client.ended();
    assert_eq!(server.ask("GET", "/livez", None, None).status, 200);
}
