//! Which tokens are taken, and how the others are refused.

use auth::{Grant, SigningKey, mint};
use model::{Span, Wall};

use crate::client::Answer;
use crate::server::{Server, grant, now, signing_key, token};

const ROUTES: &[(&str, &str)] = &[
    ("POST", "/v1/conversations"),
    ("GET", "/v1/conversations"),
    (
        "POST",
        "/v1/conversations/00000000-0000-4000-8000-000000000000/members/00000000-0000-4000-8000-000000000000",
    ),
    (
        "DELETE",
        "/v1/conversations/00000000-0000-4000-8000-000000000000/members/00000000-0000-4000-8000-000000000000",
    ),
    ("DELETE", "/v1/conversations/00000000-0000-4000-8000-000000000000/members/me"),
];

/// Asks for the list with these header lines.
fn list_with(server: &Server, headers: &str) -> Answer {
    let mut client = server.client();
    client.send(format!("GET /v1/conversations HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n"));
    client.answer()
}

#[test]
fn every_route_needs_a_token_before_it_looks_at_anything_else() {
    let server = Server::start();
    for (method, path) in ROUTES {
        let missing = server.ask(method, path, None, None);
        missing.problem(401, "unauthorised");
        assert_eq!(missing.header("www-authenticate"), Some("Bearer"), "{method} {path}");
        let wrong = server.ask(method, path, Some("a.b.c"), None);
        wrong.problem(401, "unauthorised");
        assert_eq!(
            wrong.header("www-authenticate"),
            Some("Bearer error=\"invalid_token\""),
            "{method} {path}"
        );
    }
}

#[test]
fn a_token_is_refused_for_what_is_wrong_with_it() {
    let server = Server::start();
    let key = signing_key();
    let good = grant("alice");
    let old = Grant { issued_at: Wall(now().0 - 120_000), lifetime: Span::seconds(60), ..good };
    server.ask("GET", "/v1/conversations", Some(&mint(&key, &old)), None).problem(401, "token_expired");
    let stranger = SigningKey::ed25519_from_seed(&[8; 32]).expect("any seed is a key");
    let secret = SigningKey::from_secret(&[b'k'; 32]).expect("long enough");
    for (token, named) in [
        (mint(&stranger, &good), "signature"),
        (mint(&secret, &good), "algorithm"),
        (mint(&key, &Grant { audience: "somebody", ..good }), "`aud`"),
        (mint(&key, &Grant { issued_at: Wall(now().0 + 300_000), ..good }), "not valid yet"),
        (mint(&key, &Grant { lifetime: Span::seconds(48 * 3600), ..good }), "longer"),
        (format!("{}x", mint(&key, &good)), "base64"),
        ("x".repeat(5_000), "too long"),
        ("a.b".to_owned(), "parts"),
    ] {
        let answer = server.ask("GET", "/v1/conversations", Some(&token), None);
        let detail = answer.problem(401, "unauthorised");
        assert!(detail.contains(named), "{detail}");
        assert!(!answer.body.contains(&token), "the token is not repeated");
    }
}

#[test]
fn there_is_one_way_to_present_a_token() {
    let server = Server::start();
    let token = token("alice");
    for good in [
        format!("Authorization: Bearer {token}\r\n"),
        format!("authorization: bEARER {token}\r\n"),
        format!("AUTHORIZATION:   Bearer   {token}  \r\n"),
    ] {
        assert_eq!(list_with(&server, &good).status, 200, "{good}");
    }
    for bad in [
        format!("Authorization: {token}\r\n"),
        format!("Authorization: Basic {token}\r\n"),
        format!("Authorization: Bearer{token}\r\n"),
        format!("Authorization: Bearer,{token}\r\n"),
        format!("Authorization: Bearer \"{token}\"\r\n"),
        format!("Authorization: Bearer {token} {token}\r\n"),
        format!("Authorization: Bearer {token}\r\nAuthorization: Bearer {token}\r\n"),
        format!("Authorization: Bearer a.b.c\r\nAuthorization: Bearer {token}\r\n"),
        format!("Proxy-Authorization: Bearer {token}\r\n"),
        format!("Cookie: token={token}\r\n"),
        format!("X-Forwarded-Authorization: Bearer {token}\r\n"),
        "Authorization:\r\n".to_owned(),
        "Authorization: Bearer\r\n".to_owned(),
    ] {
        list_with(&server, &bad).problem(401, "unauthorised");
    }
}

#[test]
fn a_token_in_the_address_is_refused_even_beside_a_good_one() {
    let server = Server::start();
    let token = token("alice");
    for query in
        [format!("access_token={token}"), format!("token={token}"), "limit=1".to_owned(), String::new()]
    {
        let path = format!("/v1/conversations?{query}");
        server.ask("GET", &path, Some(&token), None).problem(400, "bad_request");
        server.ask("GET", &path, None, None).problem(400, "bad_request");
    }
}
