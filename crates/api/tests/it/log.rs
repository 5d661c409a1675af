//! What is logged, and what never is (X7, attack 27).

use std::fmt::{Debug, Write};
use std::sync::{Mutex, Once, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::server::{Server, token, user};

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps every event of the process, whatever its level.
struct Keeper;

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).expect("a string takes everything");
    }
}

impl Subscriber for Keeper {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("{} {}", event.metadata().level(), event.metadata().target()));
        event.record(&mut line);
        LINES.lock().unwrap_or_else(PoisonError::into_inner).push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// From now on everything is kept.
pub fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Keeper).expect("nobody else listens"));
}

/// The lines with this text in them.
fn lines_with(text: &str) -> Vec<String> {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    lines.iter().filter(|line| line.contains(text)).cloned().collect()
}

#[test]
fn x7_no_token_and_no_body_is_logged() {
    let server = Server::start();
    let (alice, other) = (token("x7-alice"), user("x7-other"));
    let body = format!(r#"{{"kind":"direct","members":["{other}"]}}"#);
    assert_eq!(server.ask("POST", "/v1/conversations", Some(&alice), Some(&body)).status, 201);
    assert_eq!(server.ask("GET", &format!("/v1/conversations?token={alice}"), None, None).status, 400);
    assert_eq!(server.ask("GET", &format!("/v1/x7?token={alice}"), Some("x7-not.a.token"), None).status, 404);
    assert_eq!(server.ask("POST", "/v1/conversations", Some(&alice), Some("{\"x7-secret\":1}")).status, 400);
    assert_eq!(lines_with("path=/v1/x7 ").len(), 1, "there is an access log");
    for secret in [alice.as_str(), "x7-not.a.token", &other.to_string(), "x7-secret"] {
        assert_eq!(lines_with(secret), [""; 0]);
    }
}

#[test]
fn a_path_cannot_forge_a_line() {
    let server = Server::start();
    // What is not a legal address never gets as far as the access log; what is stays as it was sent.
    assert_eq!(server.ask("GET", "/forge%0aERROR%1b[31m", None, None).status, 404);
    assert_eq!(lines_with("path=/forge%0aERROR%1b[31m ").len(), 1);
    let mut client = server.client();
    client.send("GET /forge\u{85}\u{2028}more HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let status = client.answer().status;
    assert!([400, 404].contains(&status), "{status}");
    for line in lines_with("/forge") {
        assert!(!line.contains(|c: char| c.is_control() || c == '\u{2028}'), "{line:?}");
    }
}
