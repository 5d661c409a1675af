//! What is sent is what the naive decoder reads.

use websocket::{
    CLOSE_REASON_BYTES_MAX, FrameBuilder, MessageKind, Opcode, Role, Settings, encode_close, encode_frame,
    encode_masked_frame,
};

use crate::reference::{Seen, decode};

const LENGTHS: [usize; 10] = [0, 1, 124, 125, 126, 127, 65_534, 65_535, 65_536, 70_000];
const KEY: [u8; 4] = [9, 0, 255, 3];

fn settings(role: Role) -> Settings {
    Settings { role, message_bytes_max: 100_000, fragments_max: 4 }
}

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 31 % 251) as u8).collect()
}

fn binary(len: usize) -> [Seen; 1] {
    [Seen::Message(MessageKind::Binary, payload(len))]
}

#[test]
fn frames_of_every_length_are_read_back() {
    for len in LENGTHS {
        let mut out = Vec::new();
        encode_frame(&mut out, Opcode::Binary, &payload(len));
        assert_eq!(decode(&settings(Role::Client), &out), binary(len), "{len}");
        out.clear();
        encode_masked_frame(&mut out, Opcode::Binary, true, KEY, &payload(len));
        assert_eq!(decode(&settings(Role::Server), &out), binary(len), "{len} masked");
    }
}

#[test]
fn a_built_frame_is_right_however_wrong_the_expectation_was() {
    for expected_len in LENGTHS {
        for len in LENGTHS {
            for (key, role) in [(None, Role::Client), (Some(KEY), Role::Server)] {
                let mut out = b"before".to_vec();
                let frame = FrameBuilder::begin(&mut out, Opcode::Binary, expected_len, key);
                out.extend(payload(len));
                frame.finish(&mut out);
                assert_eq!(&out[..6], b"before");
                assert_eq!(decode(&settings(role), &out[6..]), binary(len), "{len}, {expected_len} expected");
            }
        }
    }
}

#[test]
fn a_cancelled_frame_leaves_no_trace() {
    let mut out = b"before".to_vec();
    let frame = FrameBuilder::begin(&mut out, Opcode::Text, 300, None);
    out.extend(b"half of it");
    frame.cancel(&mut out);
    assert_eq!(out, b"before");
}

#[test]
fn a_close_reason_is_cut_between_characters() {
    let cases = [
        ("", 0),
        ("going away", 10),
        // 61 of two bytes fit into 123.
        (&"é".repeat(70), 122),
        // 41 of three bytes are exactly 123.
        (&"€".repeat(60), 123),
        (&"x".repeat(200), CLOSE_REASON_BYTES_MAX),
    ];
    for (reason, len) in cases {
        let expected = [Seen::Close(Some(4409), reason[..len].to_owned())];
        let mut out = Vec::new();
        encode_close(&mut out, 4409, reason, None);
        assert_eq!(decode(&settings(Role::Client), &out), expected);
        out.clear();
        encode_close(&mut out, 4409, reason, Some(KEY));
        assert_eq!(decode(&settings(Role::Server), &out), expected);
    }
}
