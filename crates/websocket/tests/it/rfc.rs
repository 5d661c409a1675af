//! The examples that RFC 6455 gives.

use websocket::{
    MessageKind, Opcode, Settings, accept_key, client_key, encode_frame, encode_head, encode_masked_frame,
};

use crate::receive::see;
use crate::reference::Seen;

const CLIENT: Settings = Settings::client(100_000);
const SERVER: Settings = Settings::server();
const MASKED_HELLO: &[u8] = &[0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
const MASKED_PONG: &[u8] = &[0x8a, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];

fn hello() -> Seen {
    Seen::Message(MessageKind::Text, b"Hello".to_vec())
}

#[test]
fn section_5_7_decodes() {
    assert_eq!(see(&CLIENT, &[0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f]), [hello()]);
    assert_eq!(see(&SERVER, MASKED_HELLO), [hello()]);
    let fragments = [0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f];
    assert_eq!(see(&CLIENT, &fragments), [hello()]);
    assert_eq!(see(&CLIENT, &[0x89, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f]), [Seen::Ping(b"Hello".to_vec())]);
    assert_eq!(see(&SERVER, MASKED_PONG), [Seen::Pong(b"Hello".to_vec())]);
    let mut medium = vec![0x82, 0x7e, 0x01, 0x00];
    medium.extend([7; 256]);
    assert_eq!(see(&CLIENT, &medium), [Seen::Message(MessageKind::Binary, vec![7; 256])]);
    let mut long = vec![0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0];
    long.extend([7; 65_536]);
    assert_eq!(see(&CLIENT, &long), [Seen::Message(MessageKind::Binary, vec![7; 65_536])]);
}

#[test]
fn section_5_7_encodes() {
    let mut out = Vec::new();
    encode_frame(&mut out, Opcode::Text, b"Hello");
    assert_eq!(out, [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f]);
    out.clear();
    encode_masked_frame(&mut out, Opcode::Text, true, [0x37, 0xfa, 0x21, 0x3d], b"Hello");
    assert_eq!(out, MASKED_HELLO);
    out.clear();
    encode_masked_frame(&mut out, Opcode::Pong, true, [0x37, 0xfa, 0x21, 0x3d], b"Hello");
    assert_eq!(out, MASKED_PONG);
    out.clear();
    encode_head(&mut out, Opcode::Text, false, 3);
    out.extend(b"Hel");
    encode_head(&mut out, Opcode::Continuation, true, 2);
    out.extend(b"lo");
    assert_eq!(out, [0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f]);
    out.clear();
    encode_head(&mut out, Opcode::Binary, true, 256);
    assert_eq!(out, [0x82, 0x7e, 0x01, 0x00]);
    out.clear();
    encode_head(&mut out, Opcode::Binary, true, 65_536);
    assert_eq!(out, [0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0]);
}

#[test]
fn section_1_3_gives_the_accept_key() {
    assert_eq!(&client_key(*b"the sample nonce"), b"dGhlIHNhbXBsZSBub25jZQ==");
    assert_eq!(&accept_key(b"dGhlIHNhbXBsZSBub25jZQ=="), b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}
