//! Frames to bytes, appended to a buffer of the caller.

use crate::close::{self, CLOSE_REASON_BYTES_MAX};
use crate::{CONTROL_PAYLOAD_BYTES_MAX, FRAME_HEAD_BYTES_MAX, Opcode, mask};

const FIN: u8 = 0x80;
const MASKED: u8 = 0x80;

/// A head without its mask key, in the shortest encoding, and how many of the bytes it takes.
fn head(opcode: Opcode, fin: bool, masked: bool, len: usize) -> ([u8; 10], usize) {
    let mut bytes = [0; 10];
    bytes[0] = opcode as u8 | if fin { FIN } else { 0 };
    let used = match len {
        0..=125 => {
            bytes[1] = len as u8;
            2
        }
        126..=0xffff => {
            bytes[1] = 126;
            bytes[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            4
        }
        _ => {
            bytes[1] = 127;
            bytes[2..10].copy_from_slice(&(len as u64).to_be_bytes());
            10
        }
    };
    if masked {
        bytes[1] |= MASKED;
    }
    (bytes, used)
}

/// Appends the head of an unmasked frame (server role) whose payload of `len` bytes the caller sends after it.
pub fn encode_head(out: &mut Vec<u8>, opcode: Opcode, fin: bool, len: usize) {
    debug_assert!(!opcode.is_control() || (fin && len <= CONTROL_PAYLOAD_BYTES_MAX));
    let (bytes, used) = head(opcode, fin, false, len);
    out.extend_from_slice(&bytes[..used]);
}

/// Appends a whole unmasked frame (server role) with FIN.
pub fn encode_frame(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8]) {
    out.reserve(payload.len() + 10);
    encode_head(out, opcode, true, payload.len());
    out.extend_from_slice(payload);
}

/// Appends a whole masked frame (client role). The key must be unpredictable for whoever chose the payload
/// (RFC 6455, section 10.3); where it comes from is the caller's business.
pub fn encode_masked_frame(out: &mut Vec<u8>, opcode: Opcode, fin: bool, key: [u8; 4], payload: &[u8]) {
    debug_assert!(!opcode.is_control() || (fin && payload.len() <= CONTROL_PAYLOAD_BYTES_MAX));
    let (bytes, used) = head(opcode, fin, true, payload.len());
    out.reserve(payload.len() + FRAME_HEAD_BYTES_MAX);
    out.extend_from_slice(&bytes[..used]);
    out.extend_from_slice(&key);
    let start = out.len();
    out.extend_from_slice(payload);
    mask::apply(key, 0, &mut out[start..]);
}

/// Appends a close frame: unmasked without a key (server role), masked with one (client role). The reason is cut to
/// [`CLOSE_REASON_BYTES_MAX`] at a character's boundary.
pub fn encode_close(out: &mut Vec<u8>, code: u16, reason: &str, key: Option<[u8; 4]>) {
    debug_assert!(crate::close_code_allowed(code), "{code} may not be sent");
    let reason = close::fitting(reason).as_bytes();
    let mut payload = [0; 2 + CLOSE_REASON_BYTES_MAX];
    payload[..2].copy_from_slice(&code.to_be_bytes());
    payload[2..2 + reason.len()].copy_from_slice(reason);
    let payload = &payload[..2 + reason.len()];
    match key {
        None => encode_frame(out, Opcode::Close, payload),
        Some(key) => encode_masked_frame(out, Opcode::Close, true, key, payload),
    }
}

/// A frame whose payload is written straight into the output and whose head is filled in afterwards.
///
/// Room for the head is reserved by the *expected* length. When the guess was right nothing moves; when the payload
/// turned out short enough for a smaller head, at most 125 bytes (or, after a guess above 64 KiB, the payload) move down.
///
/// ```
/// use websocket::{FrameBuilder, Opcode};
/// let mut out = Vec::new();
/// let frame = FrameBuilder::begin(&mut out, Opcode::Text, 300, None);
/// out.extend_from_slice(b"Hello");
/// frame.finish(&mut out);
/// assert_eq!(out, b"\x81\x05Hello");
/// ```
#[derive(Debug)]
#[must_use = "a frame that is begun must be finished, or the output is garbage"]
pub struct FrameBuilder {
    start: usize,
    room: usize,
    opcode: Opcode,
    key: Option<[u8; 4]>,
}

impl FrameBuilder {
    /// Reserves a head at the end of `out`. With a `key` the frame is masked (client role).
    pub fn begin(
        out: &mut Vec<u8>,
        opcode: Opcode,
        expected_len: usize,
        key: Option<[u8; 4]>,
    ) -> FrameBuilder {
        let start = out.len();
        let (_, used) = head(opcode, true, false, expected_len);
        let room = used + if key.is_some() { 4 } else { 0 };
        out.reserve(expected_len + room);
        out.resize(start + room, 0);
        FrameBuilder { start, room, opcode, key }
    }

    /// Writes the head before whatever was appended since [`FrameBuilder::begin`], which is the payload.
    pub fn finish(self, out: &mut Vec<u8>) {
        let payload = self.start + self.room;
        let len = out.len() - payload;
        debug_assert!(!self.opcode.is_control() || len <= CONTROL_PAYLOAD_BYTES_MAX);
        let (bytes, used) = head(self.opcode, true, self.key.is_some(), len);
        let needed = used + if self.key.is_some() { 4 } else { 0 };
        if needed < self.room {
            out.copy_within(payload.., self.start + needed);
            out.truncate(self.start + needed + len);
        } else if needed > self.room {
            out.resize(self.start + needed + len, 0);
            out.copy_within(payload..payload + len, self.start + needed);
        }
        out[self.start..self.start + used].copy_from_slice(&bytes[..used]);
        if let Some(key) = self.key {
            let payload = self.start + needed;
            out[payload - 4..payload].copy_from_slice(&key);
            mask::apply(key, 0, &mut out[payload..]);
        }
    }

    /// Takes back the head and whatever was appended since.
    pub fn cancel(self, out: &mut Vec<u8>) {
        out.truncate(self.start);
    }
}
