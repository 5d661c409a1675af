//! Health, and the description.

use std::sync::atomic::Ordering;

use serde_json::json;

use crate::server::{Server, token};

#[test]
fn a_server_that_works_is_alive_and_ready() {
    let server = Server::start();
    let live = server.ask("GET", "/livez", None, None);
    assert_eq!((live.status, live.body.as_str()), (200, "ok\n"));
    let ready = server.ask("GET", "/readyz", None, None);
    assert_eq!(ready.status, 200);
    assert_eq!(
        ready.json(),
        json!({"ready": true, "store_writable": true, "shards_turning": true, "stopping": false})
    );
}

#[test]
fn s4_a_full_disk_is_not_ready_and_recovers() {
    let server = Server::start();
    let write = || {
        let body = r#"{"kind":"group","members":[]}"#;
        server.ask("POST", "/v1/conversations", Some(&token("alice")), Some(body)).status
    };
    server.full.store(true, Ordering::SeqCst);
    assert_eq!(write(), 503);
    let ready = server.ask("GET", "/readyz", None, None);
    assert_eq!(ready.status, 503);
    assert_eq!(
        ready.json(),
        json!({"ready": false, "store_writable": false, "shards_turning": true, "stopping": false})
    );
    assert_eq!(server.ask("GET", "/livez", None, None).status, 200, "a restart would not help");
    server.full.store(false, Ordering::SeqCst);
    assert_eq!(write(), 201);
    assert_eq!(server.ask("GET", "/readyz", None, None).status, 200);
}

#[test]
fn the_description_is_served_as_it_is_kept() {
    let server = Server::start();
    let answer = server.ask("GET", "/openapi.json", None, None);
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    assert_eq!(answer.body, include_str!("../../src/openapi.json"));
}
