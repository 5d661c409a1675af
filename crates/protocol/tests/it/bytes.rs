//! Bytes as a person writes them down, and the ids the tests share.

use model::{ClientId, ConversationId, UserId};
use protocol::{Command, DecodeError, Encoding, Request, RequestId};

/// The conversation of the examples: the UUID of RFC 9562 section 4.
pub const CONV: ConversationId = ConversationId([
    0xf8, 0x1d, 0x4f, 0xae, 0x7d, 0xec, 0x11, 0xd0, 0xa7, 0x65, 0x00, 0xa0, 0xc9, 0x1e, 0x6b, 0xf6,
]);
/// A client id, bytes 0 to 15.
pub const CLIENT: ClientId = ClientId([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
/// A user, bytes ff downwards.
pub const USER: UserId =
    UserId([0xff, 0xfe, 0xfd, 0xfc, 0xfb, 0xfa, 0xf9, 0xf8, 0xf7, 0xf6, 0xf5, 0xf4, 0xf3, 0xf2, 0xf1, 0xf0]);

/// The payload limit of the tests.
pub const PAYLOAD_MAX: usize = 1_000;

/// CBOR from a notation: hexadecimal digits are bytes, `'text'` is its own bytes, `CONV`, `CLIENT` and `USER` are
/// byte strings of the ids above, and white space is nothing.
pub fn cbor(notation: &str) -> Vec<u8> {
    let id = |bytes: &[u8; 16]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let notation = notation
        .replace("CONV", &format!("50{}", id(&CONV.0)))
        .replace("CLIENT", &format!("50{}", id(&CLIENT.0)))
        .replace("USER", &format!("50{}", id(&USER.0)));
    let mut bytes = Vec::new();
    for (index, part) in notation.split('\'').enumerate() {
        if index % 2 == 1 {
            bytes.extend_from_slice(part.as_bytes());
            continue;
        }
        let digits: Vec<u8> = part
            .chars()
            .filter(|c| !c.is_whitespace())
            .map(|c| c.to_digit(16).expect("a digit") as u8)
            .collect();
        assert!(digits.len().is_multiple_of(2), "half a byte in {part}");
        bytes.extend(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]));
    }
    bytes
}

/// JSON with the ids above in place of their names.
pub fn json(notation: &str) -> Vec<u8> {
    notation
        .replace("CONV", &CONV.to_string())
        .replace("CLIENT", &CLIENT.to_string())
        .replace("USER", &USER.to_string())
        .into_bytes()
}

/// All that a frame holds.
pub fn all(encoding: Encoding, frame: &[u8]) -> Vec<Result<Request<'_>, DecodeError>> {
    protocol::decode(encoding, frame, PAYLOAD_MAX).collect()
}

/// The one command of a frame.
pub fn one(encoding: Encoding, frame: &[u8]) -> Result<Request<'_>, DecodeError> {
    let mut all = all(encoding, frame);
    assert_eq!(all.len(), 1, "one command in {}", String::from_utf8_lossy(frame));
    all.remove(0)
}

/// A request with this id.
pub fn request(id: u64, command: Command<'_>) -> Request<'_> {
    Request { id: RequestId::new(id), command }
}
