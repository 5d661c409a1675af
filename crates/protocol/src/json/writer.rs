//! Values to JSON.

use super::base64;
use crate::write::Sink;

/// Appends JSON to a buffer.
pub(crate) struct Writer<'o> {
    out: &'o mut Vec<u8>,
    /// Whether a comma is due before the next key or item.
    comma: bool,
}

impl<'o> Writer<'o> {
    pub fn new(out: &'o mut Vec<u8>) -> Writer<'o> {
        Writer { out, comma: false }
    }

    fn comma(&mut self) {
        if self.comma {
            self.out.push(b',');
        }
        self.comma = true;
    }

    fn open(&mut self, bracket: u8) {
        self.out.push(bracket);
        self.comma = false;
    }

    fn close(&mut self, bracket: u8) {
        self.out.push(bracket);
        self.comma = true;
    }
}

impl Sink for Writer<'_> {
    fn map(&mut self, _fields: usize) {
        self.open(b'{');
    }

    fn end_map(&mut self) {
        self.close(b'}');
    }

    fn list(&mut self, _items: usize) {
        self.open(b'[');
    }

    fn item(&mut self) {
        self.comma();
    }

    fn end_list(&mut self) {
        self.close(b']');
    }

    fn key(&mut self, name: &'static str) {
        self.comma();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn integer(&mut self, mut value: u64) {
        // The longest u64 has 20 digits.
        let mut digits = [0; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        self.out.extend_from_slice(&digits[at..]);
    }

    fn boolean(&mut self, value: bool) {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }

    fn text(&mut self, value: &str) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        self.out.push(b'"');
        let bytes = value.as_bytes();
        let mut plain_from = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            if byte >= b' ' && byte != b'"' && byte != b'\\' {
                continue;
            }
            self.out.extend_from_slice(&bytes[plain_from..at]);
            plain_from = at + 1;
            match byte {
                b'"' | b'\\' => self.out.extend_from_slice(&[b'\\', byte]),
                b'\n' => self.out.extend_from_slice(b"\\n"),
                _ => {
                    let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
                    self.out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
                }
            }
        }
        self.out.extend_from_slice(&bytes[plain_from..]);
        self.out.push(b'"');
    }

    fn uuid(&mut self, value: &[u8; 16]) {
        self.out.push(b'"');
        self.out.extend_from_slice(&model::UserId(*value).text());
        self.out.push(b'"');
    }

    fn bytes(&mut self, value: &[u8]) {
        self.out.push(b'"');
        base64::append(self.out, value);
        self.out.push(b'"');
    }
}
