//! What `--dev` adds, and whom it refuses.

use std::path::Path;

use model::DeviceKey;

use crate::client::Answer;
use crate::server::{Options, Server, now, user};

fn server() -> Server {
    Server::with(Options { dev: true, origins: &["https://chat.example"], ..Options::default() })
}

fn post(server: &Server, path: &str, host: &str, headers: &str, body: &str) -> Answer {
    let mut client = server.client();
    client.send(format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    client.answer()
}

#[test]
fn every_file_of_the_page_is_served_as_it_is() {
    let server = server();
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    let mut served = 0;
    for entry in std::fs::read_dir(&web).expect("the page is in the repository") {
        let path = entry.expect("an entry").path();
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
        let kind = match extension {
            "html" => "text/html; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            _ => continue,
        };
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let address = if name == "index.html" { "/".to_owned() } else { format!("/{name}") };
        let answer = server.ask("GET", &address, None, None);
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)), "{address}");
        assert_eq!(answer.body, std::fs::read_to_string(&path).expect("a text"), "{address}");
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'self'; connect-src 'self' ws: wss:;"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        served += 1;
    }
    assert!(served > 3, "the page has a script and a style");
}

#[test]
fn a_token_is_given_to_whoever_asks_and_is_good() {
    let server = server();
    let before = now().0;
    let given = server.ask("POST", "/dev/token", None, Some(r#"{"user":"alice","device":7}"#));
    assert_eq!(given.status, 200);
    let given = given.json();
    assert_eq!(given["user"], user("alice").to_string());
    assert_eq!(given["device"], 7);
    let expires_at = given["expires_at"].as_u64().expect("a time");
    assert!(expires_at >= before + 3_598_000 && expires_at <= now().0 + 3_600_000, "{expires_at}");
    let token = given["token"].as_str().expect("a token");
    assert_eq!(server.ask("GET", "/v1/conversations", Some(token), None).status, 200);
    let keys = auth::Keys::new(vec![crate::server::signing_key().verifying_key()]).expect("one key");
    let identity =
        auth::verify(&keys, &auth::Rules::for_audience("throng"), token, now()).expect("a good token");
    assert_eq!(identity.device, DeviceKey { user: user("alice"), device: model::DeviceId(7) });
    assert_eq!(identity.expires_at.0, expires_at);
}

#[test]
fn a_name_is_resolved_to_the_user_its_tokens_are_for() {
    let server = server();
    let answer = server.ask("POST", "/dev/resolve", None, Some(r#"{"name":"bob"}"#));
    assert_eq!((answer.status, answer.json()), (200, serde_json::json!({"user": user("bob").to_string()})));
}

#[test]
fn what_is_wrong_with_a_request_is_named() {
    let server = server();
    let long = format!(r#"{{"user":"{}","device":1}}"#, "x".repeat(256));
    for (path, body, named) in [
        ("/dev/token", r#"{"user":"alice"}"#, "`device`"),
        ("/dev/token", r#"{"device":1}"#, "`user`"),
        ("/dev/token", r#"{"user":"alice","device":1,"admin":1}"#, "`admin`"),
        ("/dev/token", r#"{"user":"alice","user":"bob","device":1}"#, "duplicate field `user`"),
        ("/dev/token", r#"{"user":"alice","device":-1}"#, "`device`"),
        ("/dev/token", r#"{"user":"alice","device":4294967296}"#, "`device`"),
        ("/dev/token", r#"{"user":"alice","device":1.5}"#, "`device`"),
        ("/dev/token", r#"{"user":"alice","device":"1"}"#, "`device`"),
        ("/dev/token", r#"{"user":7,"device":1}"#, "name"),
        ("/dev/token", r#"{"user":"","device":1}"#, "name"),
        ("/dev/token", &long, "name"),
        ("/dev/resolve", r#"{"user":"bob"}"#, "`user`"),
        ("/dev/resolve", r#"{"name":null}"#, "name"),
        ("/dev/resolve", r#"["bob"]"#, "JSON object"),
    ] {
        let detail = server.ask("POST", path, None, Some(body)).problem(400, "bad_request");
        assert!(detail.contains(named), "{body} → {detail}");
    }
}

#[test]
fn a_page_of_another_origin_gets_nothing() {
    let server = server();
    let ask = |host: &str, headers: &str| {
        post(&server, "/dev/token", host, headers, r#"{"user":"alice","device":1}"#)
    };
    for host in [
        "localhost",
        "localhost:8080",
        "127.0.0.1:8080",
        "[::1]:8080",
        "192.168.1.5",
        "a.localhost:1",
        "chat.example",
    ] {
        assert_eq!(ask(host, "").status, 200, "{host}");
        for scheme in ["http", "https"] {
            assert_eq!(ask(host, &format!("Origin: {scheme}://{host}\r\n")).status, 200, "{scheme}://{host}");
        }
    }
    for (host, origin) in [
        ("localhost:8080", "http://localhost"),
        ("localhost:8080", "http://localhost:8081"),
        ("localhost:8080", "http://evil.example"),
        ("localhost:8080", "http://evil.example?localhost:8080"),
        ("localhost:8080", "ftp://localhost:8080"),
        ("localhost:8080", "null"),
        ("localhost:8080", ""),
        // May read the REST interface, but is no page of this server.
        ("localhost:8080", "https://chat.example"),
    ] {
        ask(host, &format!("Origin: {origin}\r\n")).problem(403, "unauthorised");
    }
    ask("localhost", "Origin: http://localhost\r\nOrigin: http://localhost\r\n").problem(403, "unauthorised");
    post(&server, "/dev/resolve", "localhost", "Origin: http://evil.example\r\n", r#"{"name":"bob"}"#)
        .problem(403, "unauthorised");
}

#[test]
fn a_name_that_was_made_to_point_here_gets_nothing() {
    let server = server();
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example:80",
        "evil.example:8080",
        "localhost@evil.example",
    ] {
        for headers in [String::new(), format!("Origin: http://{host}\r\n")] {
            let detail = post(&server, "/dev/token", host, &headers, r#"{"user":"alice","device":1}"#)
                .problem(403, "unauthorised");
            assert!(detail.contains("--dev") && detail.contains("allowed origin"), "{detail}");
        }
    }
}

#[test]
fn without_dev_there_is_none_of_it() {
    let server = Server::start();
    for path in ["/", "/app.js", "/style.css", "/icon.svg", "/index.html"] {
        server.ask("GET", path, None, None).problem(404, "not_found");
    }
    server.ask("POST", "/dev/token", None, Some(r#"{"user":"alice","device":1}"#)).problem(404, "not_found");
    server.ask("POST", "/dev/resolve", None, Some(r#"{"name":"bob"}"#)).problem(404, "not_found");
}
