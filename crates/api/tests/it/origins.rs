//! Pages of other origins: only those that were named, and exactly those (attack 1).

use crate::client::Answer;
use crate::server::{Options, Server, token};

const ALLOWED: &str = "https://chat.example";

fn server() -> Server {
    Server::with(Options { origins: &[ALLOWED], ..Options::default() })
}

fn ask(server: &Server, method: &str, path: &str, headers: &str) -> Answer {
    let mut client = server.client();
    let token = token("alice");
    client.send(format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{headers}\r\n"
    ));
    client.answer()
}

const FOREIGN: &[&str] = &[
    "https://evil.example",
    "http://chat.example",
    "https://chat.example:8443",
    "https://chat.example.evil.example",
    "https://evil-chat.example",
    "https://CHAT.example",
    "https://chat.example/",
    "null",
    "",
];

#[test]
fn an_allowed_origin_may_read_answers_and_no_other_may() {
    let server = server();
    let answer = ask(&server, "GET", "/v1/conversations", &format!("Origin: {ALLOWED}\r\n"));
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), Some(ALLOWED));
    assert_eq!(answer.header("access-control-allow-credentials"), None, "there are no cookies");
    assert_eq!(answer.header("vary"), Some("origin"));
    for origin in FOREIGN {
        let answer = ask(&server, "GET", "/v1/conversations", &format!("Origin: {origin}\r\n"));
        assert_eq!(answer.header("access-control-allow-origin"), None, "{origin}");
        assert_eq!(answer.header("vary"), Some("origin"), "{origin}");
    }
    let twice = ask(
        &server,
        "GET",
        "/v1/conversations",
        &format!("Origin: {ALLOWED}\r\nOrigin: https://evil.example\r\n"),
    );
    assert_eq!(twice.header("access-control-allow-origin"), None);
}

#[test]
fn a_preflight_is_answered_for_an_allowed_origin_only() {
    let server = server();
    let asks = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization,content-type\r\n";
    let answer = ask(&server, "OPTIONS", "/v1/conversations", &format!("Origin: {ALLOWED}\r\n{asks}"));
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("access-control-allow-origin"), Some(ALLOWED));
    assert_eq!(answer.header("access-control-allow-methods"), Some("GET, POST, DELETE"));
    assert_eq!(answer.header("access-control-allow-headers"), Some("authorization, content-type"));
    for origin in FOREIGN {
        let answer = ask(&server, "OPTIONS", "/v1/conversations", &format!("Origin: {origin}\r\n{asks}"));
        assert_eq!(answer.status, 405, "{origin}");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{origin}");
    }
}

#[test]
fn without_a_list_no_other_origin_may_read_anything() {
    let server = Server::start();
    let answer = ask(&server, "GET", "/v1/conversations", &format!("Origin: {ALLOWED}\r\n"));
    assert_eq!(answer.header("access-control-allow-origin"), None);
    assert_eq!(answer.header("vary"), None);
}
