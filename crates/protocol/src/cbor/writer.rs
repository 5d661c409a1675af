//! Values to CBOR, each head as short as it can be (RFC 8949, section 4.1).

use crate::write::Sink;

/// Appends CBOR to a buffer.
pub(crate) struct Writer<'o> {
    out: &'o mut Vec<u8>,
}

impl<'o> Writer<'o> {
    pub fn new(out: &'o mut Vec<u8>) -> Writer<'o> {
        Writer { out }
    }

    fn head(&mut self, major: u8, argument: u64) {
        let major = major << 5;
        if argument < 24 {
            self.out.push(major | argument as u8);
        } else if let Ok(argument) = u8::try_from(argument) {
            self.out.extend_from_slice(&[major | 24, argument]);
        } else if let Ok(argument) = u16::try_from(argument) {
            let [a, b] = argument.to_be_bytes();
            self.out.extend_from_slice(&[major | 25, a, b]);
        } else if let Ok(argument) = u32::try_from(argument) {
            let [a, b, c, d] = argument.to_be_bytes();
            self.out.extend_from_slice(&[major | 26, a, b, c, d]);
        } else {
            self.out.push(major | 27);
            self.out.extend_from_slice(&argument.to_be_bytes());
        }
    }
}

impl Sink for Writer<'_> {
    fn map(&mut self, fields: usize) {
        self.head(5, fields as u64);
    }

    fn end_map(&mut self) {}

    fn list(&mut self, items: usize) {
        self.head(4, items as u64);
    }

    fn item(&mut self) {}

    fn end_list(&mut self) {}

    fn key(&mut self, name: &'static str) {
        self.text(name);
    }

    fn integer(&mut self, value: u64) {
        self.head(0, value);
    }

    fn boolean(&mut self, value: bool) {
        self.out.push(if value { 0xf5 } else { 0xf4 });
    }

    fn text(&mut self, value: &str) {
        self.head(3, value.len() as u64);
        self.out.extend_from_slice(value.as_bytes());
    }

    fn uuid(&mut self, value: &[u8; 16]) {
        self.bytes(value);
    }

    fn bytes(&mut self, value: &[u8]) {
        self.head(2, value.len() as u64);
        self.out.extend_from_slice(value);
    }
}
