//! Every way of cutting a stream gives the same events and the same end (attack 26).

use websocket::{Role, Settings};

use crate::receive::{masked, see_parts};
use crate::reference::decode;

const SETTINGS: Settings = Settings { role: Role::Server, message_bytes_max: 1_000, fragments_max: 4 };

fn streams() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("text and ping", [masked(0x81, "κόσμε".as_bytes()), masked(0x89, b"p")].concat()),
        (
            "fragments with control frames between",
            [masked(0x01, b"a\xe2"), masked(0x8a, b"pong"), masked(0x00, b"\x82"), masked(0x80, b"\xac")]
                .concat(),
        ),
        (
            "empty messages",
            [masked(0x81, b""), masked(0x82, b""), masked(0x02, b""), masked(0x80, b"")].concat(),
        ),
        ("close and more", [masked(0x88, b"\x03\xe8bye"), masked(0x81, b"late")].concat()),
        ("invalid text", [masked(0x81, b"ok"), masked(0x81, b"ab\xffcd"), masked(0x81, b"ok")].concat()),
        ("invalid close reason", masked(0x88, b"\x03\xe8\xff")),
        ("reserved bit after a message", [masked(0x82, b"fine"), masked(0xc2, b"not")].concat()),
        ("length not minimal", vec![0x82, 0xfe, 0x00, 0x7d, 1, 2, 3, 4]),
        ("length beyond all", [&[0x82, 0xff][..], &[0xff; 8], &[1, 2, 3, 4]].concat()),
        (
            "too many fragments",
            (0..6).flat_map(|index| masked(if index == 0 { 2 } else { 0 }, b"x")).collect(),
        ),
        ("unfinished", masked(0x81, b"never all of it")[..12].to_vec()),
    ]
}

#[test]
fn in_one_and_in_two_and_in_three_parts() {
    for (name, stream) in streams() {
        let expected = decode(&SETTINGS, &stream);
        for first in 0..=stream.len() {
            for second in first..=stream.len() {
                let parts = [&stream[..first], &stream[first..second], &stream[second..]];
                assert_eq!(see_parts(&SETTINGS, parts), expected, "{name}, cut at {first} and {second}");
            }
        }
    }
}

#[test]
fn a_byte_at_a_time() {
    for (name, stream) in streams() {
        assert_eq!(see_parts(&SETTINGS, stream.chunks(1)), decode(&SETTINGS, &stream), "{name}");
    }
}
