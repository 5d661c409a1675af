//! Payloads in JSON: RFC 4648 section 4, the standard alphabet with padding, one spelling for each value.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::Payload;

use crate::read::Fault;

/// Up to this size a payload is decoded on the stack, so that it costs one allocation and no more.
const STACK_BYTES: usize = 1024;

/// Appends the base64 of `bytes` without a buffer in between.
pub fn append(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    let written = STANDARD.encode_slice(bytes, &mut out[start..]);
    debug_assert_eq!(written.ok(), Some(out.len() - start));
}

/// How many bytes padded base64 of this text holds; wrong only for what is no base64.
fn decoded_len(text: &[u8]) -> usize {
    let padding = text.iter().rev().take(2).take_while(|byte| **byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

/// A payload of at most `bytes_max` bytes.
pub fn payload(text: &[u8], bytes_max: usize) -> Result<Payload, Fault> {
    let len = decoded_len(text);
    if len > bytes_max {
        return Err(Fault::too_large(len, bytes_max));
    }
    // The decoder wants room for whole groups.
    if text.len() / 4 * 3 <= STACK_BYTES {
        let mut room = [0; STACK_BYTES + 3];
        let len = STANDARD.decode_slice(text, &mut room).map_err(|_| Fault::not_bytes())?;
        return Ok(Payload::from(&room[..len]));
    }
    STANDARD.decode(text).map(Payload::from).map_err(|_| Fault::not_bytes())
}
