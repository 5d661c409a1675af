//! Any bytes, in any pieces, read as the naive decoder reads them in one; and an idle receiver keeps nothing.
//!
//! The first byte chooses the role and the size of the pieces; the rest is the stream.

use model::Mono;
use websocket::{Event, Pool, Receiver, Role, Settings};

#[path = "../../websocket/tests/it/reference.rs"]
mod reference;
use reference::Seen;

/// See the module.
pub fn frames(data: &[u8]) {
    let Some((&choice, stream)) = data.split_first() else { return };
    let role = if choice & 1 == 0 { Role::Server } else { Role::Client };
    let settings = Settings { role, message_bytes_max: 400, fragments_max: 4 };
    let piece = match choice >> 1 {
        0 => stream.len().max(1),
        len => usize::from(len),
    };
    let (mut receiver, mut pool) = (Receiver::new(), Pool::new(1));
    let mut seen = Vec::new();
    for bytes in stream.chunks(piece) {
        see(&mut receiver, &mut pool, &settings, bytes, &mut seen);
        assert!(receiver.partial_since().is_none() || receiver.partial_bytes() > 0);
        // What is kept is bounded by the limits, whatever was claimed.
        assert!(receiver.partial_bytes() < 10_000);
    }
    assert_eq!(seen, reference::decode(&settings, stream));
}

fn see(receiver: &mut Receiver, pool: &mut Pool, settings: &Settings, bytes: &[u8], seen: &mut Vec<Seen>) {
    let mut bytes = bytes.to_vec();
    let mut frames = receiver.feed(settings, pool, Mono(0), &mut bytes);
    loop {
        seen.push(match frames.next() {
            Ok(None) => return,
            Ok(Some(Event::Message { kind, bytes })) => Seen::Message(kind, bytes.to_vec()),
            Ok(Some(Event::Ping(bytes))) => Seen::Ping(bytes.to_vec()),
            Ok(Some(Event::Pong(bytes))) => Seen::Pong(bytes.to_vec()),
            Ok(Some(Event::Close { code, reason })) => Seen::Close(code, reason.to_owned()),
            Err(error) => Seen::Error(error),
        });
    }
}
