//! How many connections there may be, how slow they may be, and how they end (attacks 3 and 11, X5).

use std::io::Write;
use std::time::{Duration, Instant};

use api::Limits;

use crate::client::{Client, request};
use crate::server::{Options, Server, token};

fn with(limits: Limits) -> Server {
    Server::with(Options { limits, ..Options::default() })
}

#[test]
fn a_slow_head_is_not_waited_for() {
    let server = with(Limits { head_deadline: Duration::from_millis(300), ..Limits::default() });
    let began = Instant::now();
    let mut slow = server.client();
    slow.send("GET /livez HTTP/1.1\r\nHost: local");
    let mut idle = server.client();
    assert_eq!(idle.ask("GET", "/livez", None, None).status, 200);
    slow.ended();
    idle.ended();
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn a_head_sent_a_byte_at_a_time_does_not_gain_time() {
    let server = with(Limits { head_deadline: Duration::from_millis(500), ..Limits::default() });
    let mut client = server.client();
    client.send("GET /livez HTTP/1.1\r\nX: ");
    let began = Instant::now();
    // Each byte comes well within the deadline, all of them do not.
    while client.socket.write_all(b"x").is_ok() {
        assert!(began.elapsed() < Duration::from_secs(10), "the connection was not closed");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn one_connection_too_many_is_told_so_and_room_comes_back() {
    let server = with(Limits { connections_max: 4, connections_per_address_max: 4, ..Limits::default() });
    let mut held: Vec<_> = (0..2).map(|_| server.client()).collect();
    for client in &mut held {
        assert_eq!(client.ask("GET", "/livez", None, None).header("connection"), None, "kept: there is room");
    }
    let mut third = server.client();
    assert_eq!(third.ask("GET", "/livez", None, None).header("connection"), Some("close"), "half is taken");
    third.ended();
    await_metric(&mut held[0], "throng_http_connections 2");
    let mut stalled: Vec<_> = (0..2).map(|_| server.client()).collect();
    for client in &mut stalled {
        client.send("GET /livez HTTP/1.1\r\n");
    }
    await_metric(&mut held[0], "throng_http_connections 4");
    let refused = server.ask("GET", "/livez", None, None);
    refused.problem(503, "overloaded");
    assert_eq!(refused.header("connection"), Some("close"));
    drop(stalled);
    await_metric(&mut held[0], "throng_http_connections 2");
    assert_eq!(server.ask("GET", "/livez", None, None).status, 200);
    assert_eq!(held[1].ask("GET", "/livez", None, None).status, 200, "those inside were not disturbed");
}

#[test]
fn one_address_cannot_take_every_place() {
    let server = with(Limits { connections_max: 100, connections_per_address_max: 1, ..Limits::default() });
    let mut held = server.client();
    assert_eq!(held.ask("GET", "/livez", None, None).status, 200);
    server.ask("GET", "/livez", None, None).problem(503, "overloaded");
    drop(held);
    while server.ask("GET", "/livez", None, None).status != 200 {}
}

#[test]
fn a_request_without_an_answer_in_time_is_given_up() {
    let server = with(Limits { answer_deadline: Duration::from_millis(300), ..Limits::default() });
    let alice = token("alice");
    let busy = server.busy.lock().expect("nobody panicked");
    server.ask("GET", "/v1/conversations", Some(&alice), None).problem(500, "internal");
    assert_eq!(server.ask("GET", "/livez", None, None).status, 200, "the others are not disturbed");
    drop(busy);
    assert_eq!(server.ask("GET", "/v1/conversations", Some(&alice), None).status, 200);
}

#[test]
fn a_client_that_takes_no_answer_is_given_up() {
    let limits = Limits { stall_deadline: Duration::from_millis(300), ..Limits::default() };
    let server = with(limits);
    let mut client = server.client();
    let many = request("GET", "/openapi.json", None, None).repeat(100);
    // Its answers fill every buffer on the way; then the server stops reading, and at last hangs up.
    let began = Instant::now();
    client.socket.set_write_timeout(Some(Duration::from_millis(100))).expect("a timeout");
    loop {
        match client.socket.write_all(many.as_bytes()) {
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock) => {}
            Err(_) => break,
            Ok(()) => {}
        }
        assert!(began.elapsed() < Duration::from_secs(20), "the connection was not closed");
    }
    assert_eq!(server.ask("GET", "/livez", None, None).status, 200);
}

#[test]
fn x5_the_end_waits_for_requests_and_not_for_idle_connections() {
    let mut server = Server::start();
    let busy = std::sync::Arc::clone(&server.busy);
    let held = busy.lock().expect("nobody panicked");
    let mut idle = server.client();
    assert_eq!(idle.ask("GET", "/livez", None, None).status, 200);
    let mut working = server.client();
    working.send(request("GET", "/v1/conversations", Some(&token("alice")), None));
    await_metric(&mut idle, "throng_store_queue_requests 1");
    server.stop();
    idle.ended();
    drop(held);
    let answer = working.answer();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("connection"), Some("close"));
    working.ended();
    server.join();
}

#[test]
fn x5_the_end_does_not_wait_for_ever() {
    let mut server = with(Limits { shutdown_deadline: Duration::from_millis(300), ..Limits::default() });
    let busy = std::sync::Arc::clone(&server.busy);
    let held = busy.lock().expect("nobody panicked");
    let mut working = server.client();
    working.send(request("GET", "/v1/conversations", Some(&token("alice")), None));
    await_metric(&mut server.client(), "throng_store_queue_requests 1");
    server.stop();
    working.ended();
    drop(held);
    server.join();
}

/// Asks until the metrics have this line.
fn await_metric(client: &mut Client, line: &str) {
    let began = Instant::now();
    while !client.ask("GET", "/metrics", None, None).body.lines().any(|shown| shown == line) {
        assert!(began.elapsed() < Duration::from_secs(20), "{line}");
    }
}
