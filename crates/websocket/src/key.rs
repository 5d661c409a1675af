//! The key that shows that whoever answers has read the request (RFC 6455, section 4.2.2).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The base64 of 16 bytes.
pub(crate) const KEY_LEN: usize = 24;
/// The base64 of a SHA-1.
pub(crate) const ACCEPT_LEN: usize = 28;

/// What a client puts into `Sec-WebSocket-Key`, from 16 bytes chosen at random by the caller.
pub fn client_key(nonce: [u8; 16]) -> [u8; KEY_LEN] {
    encoded(&nonce)
}

/// What the server must answer in `Sec-WebSocket-Accept`.
pub fn accept_key(key: &[u8; KEY_LEN]) -> [u8; ACCEPT_LEN] {
    let mut sha1 = sha1_smol::Sha1::new();
    sha1.update(key);
    sha1.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    encoded(&sha1.digest().bytes())
}

/// The key in a request's header, when it is the base64 of exactly 16 bytes.
pub(crate) fn parse(value: &[u8]) -> Option<[u8; KEY_LEN]> {
    let key: [u8; KEY_LEN] = value.try_into().ok()?;
    let mut nonce = [0; 18];
    match STANDARD.decode_slice(key, &mut nonce) {
        Ok(16) => Some(key),
        _ => None,
    }
}

fn encoded<const LEN: usize>(bytes: &[u8]) -> [u8; LEN] {
    let mut text = [0; LEN];
    let written = STANDARD.encode_slice(bytes, &mut text);
    debug_assert_eq!(written, Ok(LEN));
    text
}
