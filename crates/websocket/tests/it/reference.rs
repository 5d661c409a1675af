//! A decoder as naive as can be: all bytes at once, bit by bit as the RFC draws them, copying everything.
//!
//! It shares no code with the crate but the names of events and errors.

use websocket::{MessageKind, ProtocolError, Role, Settings};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Message(MessageKind, Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<u16>, String),
    Error(ProtocolError),
}

pub fn decode(settings: &Settings, stream: &[u8]) -> Vec<Seen> {
    let mut seen = Vec::new();
    if let Err(error) = decode_until_wrong(settings, stream, &mut seen) {
        seen.push(Seen::Error(error));
    }
    seen
}

fn bit(byte: u8, number: u32) -> bool {
    (byte >> (7 - number)) & 1 == 1
}

fn decode_until_wrong(settings: &Settings, stream: &[u8], seen: &mut Vec<Seen>) -> Result<(), ProtocolError> {
    let mut bytes = stream.to_vec();
    let mut message: Option<(MessageKind, Vec<u8>, usize)> = None;
    loop {
        if bytes.len() < 2 {
            return Ok(());
        }
        let fin = bit(bytes[0], 0);
        if bit(bytes[0], 1) || bit(bytes[0], 2) || bit(bytes[0], 3) {
            return Err(ProtocolError::ReservedBit);
        }
        let opcode = bytes[0] % 16;
        if (3..8).contains(&opcode) || opcode > 10 {
            return Err(ProtocolError::ReservedOpcode(opcode));
        }
        let masked = bit(bytes[1], 0);
        match settings.role {
            Role::Server if !masked => return Err(ProtocolError::Unmasked),
            Role::Client if masked => return Err(ProtocolError::Masked),
            _ => {}
        }
        let short = bytes[1] % 128;
        if opcode >= 8 && !fin {
            return Err(ProtocolError::ControlFragmented);
        }
        if opcode >= 8 && short > 125 {
            return Err(ProtocolError::ControlTooLong);
        }
        let extended = match short {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        if bytes.len() < 2 + extended {
            return Ok(());
        }
        let mut length = if extended == 0 { u128::from(short) } else { 0 };
        for byte in &bytes[2..2 + extended] {
            length = length * 256 + u128::from(*byte);
        }
        if length >= 1 << 63 {
            return Err(ProtocolError::LengthReservedBit);
        }
        if (extended == 2 && length <= 125) || (extended == 8 && length <= 65_535) {
            return Err(ProtocolError::LengthNotMinimal);
        }
        let head = 2 + extended + if masked { 4 } else { 0 };
        if bytes.len() < head {
            return Ok(());
        }
        if opcode < 8 {
            let before = message.as_ref().map_or(0, |(_, bytes, _)| bytes.len());
            match (&message, opcode) {
                (None, 0) => return Err(ProtocolError::UnexpectedContinuation),
                (Some(_), 1 | 2) => return Err(ProtocolError::ExpectedContinuation),
                (Some((_, _, fragments)), 0) if *fragments + 1 > settings.fragments_max => {
                    return Err(ProtocolError::TooManyFragments);
                }
                _ => {}
            }
            if before as u128 + length > settings.message_bytes_max as u128 {
                return Err(ProtocolError::MessageTooLong);
            }
        }
        let key = if masked { bytes[head - 4..head].to_vec() } else { vec![0; 4] };
        let there = (bytes.len() - head).min(length as usize);
        let complete = there as u128 == length;
        let payload: Vec<u8> = (0..there).map(|index| bytes[head + index] ^ key[index % 4]).collect();
        if opcode < 8 {
            let (kind, mut whole, fragments) = message.take().unwrap_or_else(|| {
                (if opcode == 1 { MessageKind::Text } else { MessageKind::Binary }, Vec::new(), 0)
            });
            whole.extend(payload);
            let done = complete && fin;
            if kind == MessageKind::Text && !(if done { is_utf8(&whole) } else { may_become_utf8(&whole) }) {
                return Err(ProtocolError::InvalidUtf8);
            }
            if done {
                seen.push(Seen::Message(kind, whole));
            } else {
                message = Some((kind, whole, fragments + 1));
            }
        } else if complete {
            match opcode {
                9 => seen.push(Seen::Ping(payload)),
                10 => seen.push(Seen::Pong(payload)),
                _ => {
                    seen.push(close(&payload)?);
                    return Ok(());
                }
            }
        }
        if !complete {
            return Ok(());
        }
        bytes.drain(..head + there);
    }
}

fn close(payload: &[u8]) -> Result<Seen, ProtocolError> {
    if payload.is_empty() {
        return Ok(Seen::Close(None, String::new()));
    }
    if payload.len() == 1 {
        return Err(ProtocolError::TruncatedCloseCode);
    }
    let code = u16::from(payload[0]) * 256 + u16::from(payload[1]);
    // RFC 6455, section 7.4, and the IANA registry for 1012 to 1014.
    let allowed = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014];
    if !allowed.contains(&code) && !(3000..5000).contains(&code) {
        return Err(ProtocolError::InvalidCloseCode(code));
    }
    if !is_utf8(&payload[2..]) {
        return Err(ProtocolError::InvalidUtf8);
    }
    Ok(Seen::Close(Some(code), String::from_utf8_lossy(&payload[2..]).into_owned()))
}

/// Table 3-7 of the Unicode standard: the well-formed byte sequences, as the range of each of their bytes.
const WELL_FORMED: [&[(u8, u8)]; 9] = [
    &[(0x00, 0x7f)],
    &[(0xc2, 0xdf), (0x80, 0xbf)],
    &[(0xe0, 0xe0), (0xa0, 0xbf), (0x80, 0xbf)],
    &[(0xe1, 0xec), (0x80, 0xbf), (0x80, 0xbf)],
    &[(0xed, 0xed), (0x80, 0x9f), (0x80, 0xbf)],
    &[(0xee, 0xef), (0x80, 0xbf), (0x80, 0xbf)],
    &[(0xf0, 0xf0), (0x90, 0xbf), (0x80, 0xbf), (0x80, 0xbf)],
    &[(0xf1, 0xf3), (0x80, 0xbf), (0x80, 0xbf), (0x80, 0xbf)],
    &[(0xf4, 0xf4), (0x80, 0x8f), (0x80, 0xbf), (0x80, 0xbf)],
];

/// What is left over after as many whole characters as there are.
fn after_whole_characters(mut bytes: &[u8]) -> &[u8] {
    'characters: while !bytes.is_empty() {
        for ranges in WELL_FORMED {
            let fits = bytes.len() >= ranges.len()
                && ranges.iter().zip(bytes).all(|((low, high), byte)| (*low..=*high).contains(byte));
            if fits {
                bytes = &bytes[ranges.len()..];
                continue 'characters;
            }
        }
        break;
    }
    bytes
}

fn is_utf8(bytes: &[u8]) -> bool {
    after_whole_characters(bytes).is_empty()
}

fn may_become_utf8(bytes: &[u8]) -> bool {
    let rest = after_whole_characters(bytes);
    rest.is_empty()
        || WELL_FORMED.iter().any(|ranges| {
            rest.len() < ranges.len()
                && ranges.iter().zip(rest).all(|((low, high), byte)| (*low..=*high).contains(byte))
        })
}
