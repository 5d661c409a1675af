//! The head of a frame (RFC 6455, section 5.2), and what both directions must agree on.

use crate::ProtocolError;

/// Longest head: two bytes, a 64-bit length and a mask key.
pub const FRAME_HEAD_BYTES_MAX: usize = 14;
/// Longest payload of a control frame.
pub const CONTROL_PAYLOAD_BYTES_MAX: usize = 125;

/// Which end of a connection this is. It decides who masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Receives masked frames, sends unmasked ones.
    Server,
    /// Receives unmasked frames, sends masked ones.
    Client,
}

/// What all connections of one kind share, so that no connection has to store it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The role of this end.
    pub role: Role,
    /// Longest message accepted, in bytes.
    pub message_bytes_max: usize,
    /// Most fragments of one message.
    pub fragments_max: usize,
}

impl Settings {
    /// What a server accepts from its clients: the limits of `model`.
    pub const fn server() -> Settings {
        Settings {
            role: Role::Server,
            message_bytes_max: model::limits::CLIENT_MESSAGE_BYTES_MAX,
            fragments_max: model::limits::FRAGMENTS_MAX,
        }
    }

    /// A client that accepts messages up to `message_bytes_max`.
    pub const fn client(message_bytes_max: usize) -> Settings {
        Settings { role: Role::Client, message_bytes_max, fragments_max: model::limits::FRAGMENTS_MAX }
    }
}

/// What a frame is (RFC 6455, section 11.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    /// The next fragment of a message.
    Continuation = 0,
    /// The first (or only) fragment of a text message.
    Text = 1,
    /// The first (or only) fragment of a binary message.
    Binary = 2,
    /// The last frame of its sender.
    Close = 8,
    /// Asks for a pong.
    Ping = 9,
    /// Answers a ping, or says that its sender lives.
    Pong = 10,
}

impl Opcode {
    fn from_nibble(nibble: u8) -> Result<Opcode, ProtocolError> {
        Ok(match nibble {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            other => return Err(ProtocolError::ReservedOpcode(other)),
        })
    }

    /// Whether frames of this kind may stand between the fragments of a message.
    pub fn is_control(self) -> bool {
        self as u8 & 8 != 0
    }
}

/// A decoded head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub fin: bool,
    pub opcode: Opcode,
    /// All zero when the frame is not masked, which is the same as a mask that changes nothing.
    pub mask: [u8; 4],
    pub length: u64,
}

/// Decodes a head from the start of `bytes`, and says how many bytes it took; `None` when there are too few.
///
/// Each rule is checked as soon as the bytes it speaks of are there, in the order of the bytes, so that the verdict
/// does not depend on how the bytes were cut.
pub(crate) fn decode_head(role: Role, bytes: &[u8]) -> Result<Option<(Head, usize)>, ProtocolError> {
    let [first, second, rest @ ..] = bytes else { return Ok(None) };
    if first & 0x70 != 0 {
        return Err(ProtocolError::ReservedBit);
    }
    let fin = first & 0x80 != 0;
    let opcode = Opcode::from_nibble(first & 0x0f)?;
    let masked = second & 0x80 != 0;
    match (role, masked) {
        (Role::Server, false) => return Err(ProtocolError::Unmasked),
        (Role::Client, true) => return Err(ProtocolError::Masked),
        (Role::Server, true) | (Role::Client, false) => {}
    }
    let short = second & 0x7f;
    if opcode.is_control() {
        if !fin {
            return Err(ProtocolError::ControlFragmented);
        }
        if usize::from(short) > CONTROL_PAYLOAD_BYTES_MAX {
            return Err(ProtocolError::ControlTooLong);
        }
    }
    let Some((length, rest)) = decode_length(short, rest)? else { return Ok(None) };
    let (mask, rest) = match rest {
        rest if !masked => ([0; 4], rest),
        [a, b, c, d, rest @ ..] => ([*a, *b, *c, *d], rest),
        _ => return Ok(None),
    };
    Ok(Some((Head { fin, opcode, mask, length }, bytes.len() - rest.len())))
}

/// The payload length that begins with the seven bits `short`, and what follows it.
fn decode_length(short: u8, rest: &[u8]) -> Result<Option<(u64, &[u8])>, ProtocolError> {
    match short {
        126 => {
            let Some((wide, rest)) = rest.split_first_chunk::<2>() else { return Ok(None) };
            let length = u64::from(u16::from_be_bytes(*wide));
            if length < 126 { Err(ProtocolError::LengthNotMinimal) } else { Ok(Some((length, rest))) }
        }
        127 => {
            let Some((wide, rest)) = rest.split_first_chunk::<8>() else { return Ok(None) };
            let length = u64::from_be_bytes(*wide);
            if length >> 63 != 0 {
                Err(ProtocolError::LengthReservedBit)
            } else if length <= u64::from(u16::MAX) {
                Err(ProtocolError::LengthNotMinimal)
            } else {
                Ok(Some((length, rest)))
            }
        }
        short => Ok(Some((u64::from(short), rest))),
    }
}
