//! What a receiver keeps, and what it does not.

use model::Mono;
use websocket::{Event, MessageKind, Opcode, Pool, ProtocolError, Receiver, Role, Settings};

use crate::reference::Seen;

pub const SERVER: Settings = Settings::server();

/// A masked frame (client to server) with any first byte.
pub fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let key = [0x37, 0xfa, 0x21, 0x3d];
    let mut frame = vec![first];
    match payload.len() {
        len @ 0..=125 => frame.push(0x80 | len as u8),
        len @ 126..=65_535 => {
            frame.push(0x80 | 126);
            frame.extend((len as u16).to_be_bytes());
        }
        len => {
            frame.push(0x80 | 127);
            frame.extend((len as u64).to_be_bytes());
        }
    }
    frame.extend(key);
    frame.extend(payload.iter().enumerate().map(|(index, byte)| byte ^ key[index % 4]));
    frame
}

/// Everything one receiver sees when the parts come one after the other.
pub fn see_parts<'a>(settings: &Settings, parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<Seen> {
    let (mut receiver, mut pool) = (Receiver::new(), Pool::default());
    let mut seen = Vec::new();
    for part in parts {
        see_into(&mut receiver, &mut pool, settings, Mono(0), part, &mut seen);
    }
    seen
}

pub fn see(settings: &Settings, stream: &[u8]) -> Vec<Seen> {
    see_parts(settings, [stream])
}

fn see_into(
    receiver: &mut Receiver,
    pool: &mut Pool,
    settings: &Settings,
    now: Mono,
    bytes: &[u8],
    seen: &mut Vec<Seen>,
) {
    let mut bytes = bytes.to_vec();
    let mut frames = receiver.feed(settings, pool, now, &mut bytes);
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

fn text(text: &str) -> Seen {
    Seen::Message(MessageKind::Text, text.as_bytes().to_vec())
}

#[test]
fn a_whole_message_is_a_slice_of_the_input_and_leaves_nothing_behind() {
    let (mut receiver, mut pool) = (Receiver::new(), Pool::default());
    let mut input = [masked(0x82, b"first"), masked(0x81, &[b'x'; 300]), masked(0x89, b"ping")].concat();
    let within = input.as_ptr_range();
    let mut frames = receiver.feed(&SERVER, &mut pool, Mono(5), &mut input);
    let mut count = 0;
    while let Some(event) = frames.next().expect("valid frames") {
        let (Event::Message { bytes, .. } | Event::Ping(bytes)) = event else { panic!("{event:?}") };
        assert!(within.contains(&bytes.as_ptr()), "{bytes:?} was copied");
        count += 1;
    }
    drop(frames);
    assert_eq!(count, 3);
    assert_eq!((receiver.partial_bytes(), receiver.partial_since()), (0, None));
}

#[test]
fn what_is_incomplete_says_since_when_and_ends_with_its_message() {
    let (mut receiver, mut pool) = (Receiver::new(), Pool::default());
    let mut feed = |receiver: &mut Receiver, at: u64, bytes: &[u8]| {
        let mut seen = Vec::new();
        see_into(receiver, &mut pool, &SERVER, Mono(at), bytes, &mut seen);
        seen
    };
    // One byte of a head is enough to owe the rest.
    assert_eq!(feed(&mut receiver, 10, &[0x01]), []);
    assert_eq!(receiver.partial_since(), Some(Mono(10)));
    assert_eq!(feed(&mut receiver, 20, &masked(0x01, b"Hel")[1..]), []);
    assert_eq!(receiver.partial_since(), Some(Mono(10)), "the first byte counts");
    // A control frame between the fragments does not make the message younger, whole or cut.
    assert_eq!(feed(&mut receiver, 30, &masked(0x89, b"p")), [Seen::Ping(b"p".to_vec())]);
    let ping = masked(0x89, b"q");
    assert_eq!(feed(&mut receiver, 31, &ping[..3]), []);
    assert_eq!(feed(&mut receiver, 32, &ping[3..]), [Seen::Ping(b"q".to_vec())]);
    assert_eq!(receiver.partial_since(), Some(Mono(10)));
    // Its end and the next one's beginning in one read: the new one is as old as that read.
    let end_and_next = [masked(0x80, b"lo"), masked(0x82, b"next")[..4].to_vec()].concat();
    assert_eq!(feed(&mut receiver, 40, &end_and_next), [text("Hello")]);
    assert_eq!(receiver.partial_since(), Some(Mono(40)));
    assert_eq!(
        feed(&mut receiver, 50, &masked(0x82, b"next")[4..]),
        [Seen::Message(MessageKind::Binary, b"next".to_vec())]
    );
    assert_eq!((receiver.partial_bytes(), receiver.partial_since()), (0, None));
}

#[test]
fn an_event_that_is_not_followed_by_another_look_leaves_nothing_behind() {
    let (mut receiver, mut pool) = (Receiver::new(), Pool::default());
    let frame = masked(0x82, b"cut in two");
    let (mut first, mut second) = (frame[..9].to_vec(), frame[9..].to_vec());
    assert!(receiver.feed(&SERVER, &mut pool, Mono(0), &mut first).next().expect("valid").is_none());
    let mut frames = receiver.feed(&SERVER, &mut pool, Mono(0), &mut second);
    assert!(frames.next().expect("valid").is_some());
    drop(frames);
    assert_eq!(receiver.partial_bytes(), 0);
}

#[test]
fn a_claimed_length_costs_what_was_sent_and_not_what_was_claimed() {
    let (mut receiver, mut pool) = (Receiver::new(), Pool::default());
    let mut head = masked(0x82, &vec![0; SERVER.message_bytes_max]);
    head.truncate(20);
    let mut frames = receiver.feed(&SERVER, &mut pool, Mono(0), &mut head);
    assert!(frames.next().expect("valid").is_none());
    drop(frames);
    assert!(receiver.partial_bytes() < 5_000, "{} bytes for 20", receiver.partial_bytes());
}

#[test]
fn fragments_without_end_stop_at_their_number_and_at_their_bytes() {
    let few = Settings { fragments_max: 64, message_bytes_max: 1_000, role: Role::Server };
    let mut stream = masked(0x02, b"x");
    for _ in 0..64 {
        stream.extend(masked(0x00, b"x"));
    }
    assert_eq!(see(&few, &stream), [Seen::Error(ProtocolError::TooManyFragments)]);
    assert_eq!(ProtocolError::TooManyFragments.close_code(), 1008);
    // The 64th may be the last.
    let (last_allowed, _) = stream.split_at(stream.len() - 2 * masked(0, b"x").len());
    let mut whole = last_allowed.to_vec();
    whole.extend(masked(0x80, b"x"));
    assert_eq!(see(&few, &whole), [Seen::Message(MessageKind::Binary, vec![b'x'; 64])]);

    let stream = [masked(0x02, &[b'x'; 900]), masked(0x00, &[b'x'; 100]), masked(0x00, b"x")].concat();
    assert_eq!(see(&few, &stream), [Seen::Error(ProtocolError::MessageTooLong)]);
    assert_eq!(ProtocolError::MessageTooLong.close_code(), 1009);
}

#[test]
fn empty_fragments_count_too() {
    let few = Settings { fragments_max: 3, message_bytes_max: 1_000, role: Role::Server };
    let stream = [masked(0x02, b""), masked(0x00, b""), masked(0x00, b""), masked(0x80, b"")].concat();
    assert_eq!(see(&few, &stream), [Seen::Error(ProtocolError::TooManyFragments)]);
}

#[test]
fn control_frames_between_fragments_come_at_once_and_change_nothing() {
    let stream = [
        masked(0x01, b"Hel"),
        masked(0x89, b"are you there"),
        masked(0x00, b"lo, "),
        masked(0x8a, b""),
        masked(0x80, b"world"),
    ]
    .concat();
    let expected = [Seen::Ping(b"are you there".to_vec()), Seen::Pong(Vec::new()), text("Hello, world")];
    assert_eq!(see(&SERVER, &stream), expected);
}

#[test]
fn text_fails_at_the_first_byte_that_cannot_be_right() {
    // (the payload's beginning, of a frame that claims more; whether it can still become UTF-8)
    let cases: &[(&[u8], bool)] = &[
        (b"plain", true),
        (&[0xce], true),
        (&[0xce, 0xba, 0xe1], true),
        (&[0xe1, 0xbd], true),
        (&[0xf4, 0x8f, 0xbf], true),
        (&[0x80], false),
        (&[0xc0], false),
        (&[0xed, 0xa0], false),
        (&[0xf4, 0x90], false),
        (&[0xf5], false),
        (&[0xce, 0x41], false),
    ];
    for (beginning, possible) in cases {
        let mut payload = beginning.to_vec();
        payload.resize(100, b'x');
        let frame = masked(0x81, &payload);
        let cut = frame.len() - 100 + beginning.len();
        let expected: &[Seen] = if *possible { &[] } else { &[Seen::Error(ProtocolError::InvalidUtf8)] };
        assert_eq!(see(&SERVER, &frame[..cut]), expected, "{beginning:x?}");
    }
}

#[test]
fn characters_may_be_cut_between_fragments_but_not_by_the_end() {
    let euro = "€".as_bytes();
    let whole = [masked(0x01, &euro[..1]), masked(0x00, &euro[1..2]), masked(0x80, &euro[2..])].concat();
    assert_eq!(see(&SERVER, &whole), [text("€")]);
    let cut = [masked(0x01, &euro[..1]), masked(0x80, &euro[1..2])].concat();
    assert_eq!(see(&SERVER, &cut), [Seen::Error(ProtocolError::InvalidUtf8)]);
    assert_eq!(ProtocolError::InvalidUtf8.close_code(), 1007);
}

#[test]
fn frames_that_break_the_rules_are_refused_with_their_close_code() {
    use ProtocolError::*;
    let unmasked = |first: u8, payload: &[u8]| {
        let mut frame = vec![first, payload.len() as u8];
        frame.extend(payload);
        frame
    };
    let cases: &[(&str, Vec<u8>, ProtocolError)] = &[
        ("RSV1", masked(0xc1, b"x"), ReservedBit),
        ("RSV2", masked(0xa1, b"x"), ReservedBit),
        ("RSV3", masked(0x91, b"x"), ReservedBit),
        ("opcode 3", masked(0x83, b"x"), ReservedOpcode(3)),
        ("opcode 7", masked(0x87, b"x"), ReservedOpcode(7)),
        ("opcode 11", masked(0x8b, b""), ReservedOpcode(11)),
        ("opcode 15", masked(0x8f, b""), ReservedOpcode(15)),
        ("no mask", unmasked(0x81, b"x"), Unmasked),
        ("ping without FIN", masked(0x09, b"x"), ControlFragmented),
        ("close without FIN", masked(0x08, b""), ControlFragmented),
        ("ping of 126 bytes", masked(0x89, &[0; 126]), ControlTooLong),
        ("continuation of nothing", masked(0x80, b"x"), UnexpectedContinuation),
        ("first fragment that continues", masked(0x00, b"x"), UnexpectedContinuation),
        ("text in text", [masked(0x01, b"x"), masked(0x81, b"x")].concat(), ExpectedContinuation),
        ("binary in text", [masked(0x01, b"x"), masked(0x02, b"x")].concat(), ExpectedContinuation),
        ("close of one byte", masked(0x88, b"x"), TruncatedCloseCode),
        ("close reason not UTF-8", masked(0x88, &[3, 232, 0xff]), InvalidUtf8),
    ];
    for (name, stream, error) in cases {
        assert_eq!(see(&SERVER, stream), [Seen::Error(*error)], "{name}");
        let code = if *error == InvalidUtf8 { 1007 } else { 1002 };
        assert_eq!(error.close_code(), code, "{name}");
    }
    let client = Settings::client(1_000);
    assert_eq!(see(&client, &masked(0x81, b"x")), [Seen::Error(Masked)]);
    assert_eq!(see(&client, &unmasked(0x81, b"x")), [text("x")]);
}

#[test]
fn close_codes_are_those_that_may_be_sent() {
    let close = |code: u16| masked(0x88, &[&code.to_be_bytes()[..], b"why"].concat());
    for code in [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1014, 3000, 3999, 4000, 4999] {
        assert_eq!(see(&SERVER, &close(code)), [Seen::Close(Some(code), "why".to_owned())]);
    }
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535] {
        assert_eq!(see(&SERVER, &close(code)), [Seen::Error(ProtocolError::InvalidCloseCode(code))]);
    }
}

#[test]
fn nothing_is_looked_at_after_a_close_or_an_error() {
    let after_close = [masked(0x88, &[3, 232]), masked(0x81, b"late")];
    let parts = || after_close.iter().map(Vec::as_slice);
    assert_eq!(see_parts(&SERVER, parts()), [Seen::Close(Some(1000), String::new())]);
    assert_eq!(see(&SERVER, &after_close.concat()), [Seen::Close(Some(1000), String::new())]);
    let after_error = [masked(0x83, b""), masked(0x81, b"late")];
    let parts = after_error.iter().map(Vec::as_slice);
    assert_eq!(see_parts(&SERVER, parts), [Seen::Error(ProtocolError::ReservedOpcode(3))]);
}

#[test]
fn a_hundred_thousand_pings_keep_nothing() {
    let (mut receiver, mut pool) = (Receiver::new(), Pool::default());
    let mut seen = Vec::new();
    let frame = masked(0x89, &[b'p'; 125]);
    for _ in 0..100_000 {
        see_into(&mut receiver, &mut pool, &SERVER, Mono(0), &frame, &mut seen);
        assert!(matches!(seen.pop(), Some(Seen::Ping(_))));
    }
    assert_eq!(receiver.partial_bytes(), 0);
}

#[test]
fn a_buffer_is_used_again_by_the_next_partial_message() {
    let (mut receiver, mut pool) = (Receiver::new(), Pool::new(1));
    let long = masked(0x82, &[7; 10_000]);
    let mut first = long[..9_000].to_vec();
    assert!(receiver.feed(&SERVER, &mut pool, Mono(0), &mut first).next().expect("valid").is_none());
    let held = receiver.partial_bytes();
    receiver.discard(&mut pool);
    assert_eq!(receiver.partial_bytes(), 0);
    let mut short = masked(0x82, &[7; 10])[..8].to_vec();
    assert!(receiver.feed(&SERVER, &mut pool, Mono(0), &mut short).next().expect("valid").is_none());
    assert_eq!(receiver.partial_bytes(), held, "the pooled buffer");
    let mut rest = masked(0x82, &[7; 10])[8..].to_vec();
    let mut frames = receiver.feed(&SERVER, &mut pool, Mono(0), &mut rest);
    let event = frames.next().expect("valid");
    assert_eq!(event, Some(Event::Message { kind: MessageKind::Binary, bytes: &[7; 10] }));
}

#[test]
fn control_opcodes_are_those_with_the_high_bit() {
    let control = [Opcode::Close, Opcode::Ping, Opcode::Pong];
    let data = [Opcode::Continuation, Opcode::Text, Opcode::Binary];
    assert!(control.iter().all(|opcode| opcode.is_control()));
    assert!(!data.iter().any(|opcode| opcode.is_control()));
}
