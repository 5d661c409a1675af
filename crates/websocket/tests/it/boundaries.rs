//! Frame lengths at every boundary of their encoding, at every split of the head (attack 6).

use websocket::{MessageKind, ProtocolError, Role, Settings};

use crate::receive::see_parts;
use crate::reference::Seen;

const KEY: [u8; 4] = [1, 2, 3, 4];

/// A binary frame's head with a length in the given number of bytes.
fn head(length: u64, length_bytes: usize) -> Vec<u8> {
    let mut head = vec![0x82];
    match length_bytes {
        0 => head.push(0x80 | length as u8),
        2 => {
            head.push(0x80 | 126);
            head.extend((length as u16).to_be_bytes());
        }
        _ => {
            head.push(0x80 | 127);
            head.extend(length.to_be_bytes());
        }
    }
    head.extend(KEY);
    head
}

fn see_at_every_split(settings: &Settings, stream: &[u8], head: usize) -> Vec<Seen> {
    let whole = see_parts(settings, [stream]);
    for cut in 1..=head.min(stream.len()) {
        let (first, second) = stream.split_at(cut);
        assert_eq!(see_parts(settings, [first, second]), whole, "cut at {cut}");
    }
    whole
}

#[test]
fn lengths_are_accepted_in_their_shortest_encoding_only() {
    use ProtocolError::{LengthNotMinimal, LengthReservedBit, MessageTooLong};
    let settings = Settings { role: Role::Server, message_bytes_max: 65_536, fragments_max: 4 };
    // (length, bytes that encode it, what comes of it)
    let cases: &[(u64, usize, Result<(), ProtocolError>)] = &[
        (0, 0, Ok(())),
        (125, 0, Ok(())),
        (0, 2, Err(LengthNotMinimal)),
        (125, 2, Err(LengthNotMinimal)),
        (126, 2, Ok(())),
        (127, 2, Ok(())),
        (65_535, 2, Ok(())),
        (0, 8, Err(LengthNotMinimal)),
        (126, 8, Err(LengthNotMinimal)),
        (65_535, 8, Err(LengthNotMinimal)),
        (65_536, 8, Ok(())),
        (65_537, 8, Err(MessageTooLong)),
        (1 << 32, 8, Err(MessageTooLong)),
        ((1 << 32) + 5, 8, Err(MessageTooLong)),
        ((1 << 63) - 1, 8, Err(MessageTooLong)),
        (1 << 63, 8, Err(LengthReservedBit)),
        ((1 << 63) + 5, 8, Err(LengthReservedBit)),
        (u64::MAX - 13, 8, Err(LengthReservedBit)),
        (u64::MAX, 8, Err(LengthReservedBit)),
    ];
    for &(length, length_bytes, outcome) in cases {
        let mut stream = head(length, length_bytes);
        let head = stream.len();
        let there = length.min(65_536) as usize;
        stream.extend((0..there).map(|index| KEY[index % 4]));
        let expected = match outcome {
            Ok(()) => Seen::Message(MessageKind::Binary, vec![0; there]),
            Err(error) => Seen::Error(error),
        };
        assert_eq!(
            see_at_every_split(&settings, &stream, head),
            [expected],
            "{length} in {length_bytes} bytes"
        );
    }
}

#[test]
fn no_length_overflows_even_without_a_limit() {
    let settings = Settings { role: Role::Server, message_bytes_max: usize::MAX, fragments_max: usize::MAX };
    let longest = (1 << 63) - 1;
    let mut stream = vec![0x02, 0x81];
    stream.extend(KEY);
    stream.push(0);
    let mut second = head(longest, 8);
    second[0] = 0x00;
    stream.extend(second);
    stream.extend([0; 1_000]);
    assert_eq!(see_at_every_split(&settings, &stream, 30), []);
}
