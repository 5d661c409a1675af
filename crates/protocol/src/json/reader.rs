//! JSON to values: one pass, nothing allocated but what escapes force.
//!
//! A line break is not white space here: it ends a command, so a command never contains one.

use std::borrow::Cow;

use model::limits::NESTING_MAX;
use model::{Payload, UserId};

use super::base64;
use crate::read::{Fault, Level, Source};

/// Reads values from one line.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// What comes next, white space passed over.
    pub fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// How many bytes have been read.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Takes the line break, or the end of the frame, that must follow a command.
    pub fn end_of_line(&mut self) -> Result<(), Fault> {
        match self.peek() {
            None => Ok(()),
            Some(b'\n') => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(self.fault("a line break must stand between two commands")),
        }
    }

    #[cold]
    fn fault(&self, why: &str) -> Fault {
        let why = match self.bytes.get(self.at) {
            Some(b'\n') => "a line break inside a command",
            _ => why,
        };
        Fault::syntax("JSON", self.at, why)
    }

    fn expect(&mut self, byte: u8, why: &str) -> Result<(), Fault> {
        if self.peek() != Some(byte) {
            return Err(self.fault(why));
        }
        self.at += 1;
        Ok(())
    }

    fn literal(&mut self, word: &[u8]) -> bool {
        let found = self.bytes[self.at..].starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    /// The bytes of a string whose opening quote comes next: borrowed, unless it has escapes.
    fn string(&mut self) -> Result<Cow<'a, [u8]>, Fault> {
        self.at += 1;
        let start = self.at;
        self.at += plain_run(&self.bytes[start..]);
        match self.bytes.get(self.at) {
            Some(b'"') => {
                let text = &self.bytes[start..self.at];
                self.at += 1;
                Ok(Cow::Borrowed(text))
            }
            Some(b'\\') => self.string_with_escapes(start).map(Cow::Owned),
            Some(_) => Err(self.fault("a control character in a string")),
            None => Err(self.fault("a string without an end")),
        }
    }

    #[cold]
    fn string_with_escapes(&mut self, start: usize) -> Result<Vec<u8>, Fault> {
        let mut text = self.bytes[start..self.at].to_vec();
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    self.at += 1;
                    let char = self.escape()?;
                    text.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                }
                Some(0..=0x1f) => return Err(self.fault("a control character in a string")),
                Some(_) => {
                    let run = plain_run(&self.bytes[self.at..]);
                    text.extend_from_slice(&self.bytes[self.at..self.at + run]);
                    self.at += run;
                }
                None => return Err(self.fault("a string without an end")),
            }
        }
    }

    /// The character an escape stands for; the backslash has been read.
    fn escape(&mut self) -> Result<char, Fault> {
        const WHY: &str = "an escape that does not exist";
        let char = match self.bytes.get(self.at) {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(*byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                let unit = self.four_digits()?;
                let point = match unit {
                    0xd800..0xdc00 if self.literal(b"\\u") => {
                        let low = self.four_digits()?;
                        if !(0xdc00..0xe000).contains(&low) {
                            return Err(self.fault("half of a surrogate pair"));
                        }
                        0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00)
                    }
                    _ => unit,
                };
                return char::from_u32(point).ok_or_else(|| self.fault("half of a surrogate pair"));
            }
            _ => return Err(self.fault(WHY)),
        };
        self.at += 1;
        Ok(char)
    }

    fn four_digits(&mut self) -> Result<u32, Fault> {
        let mut value = 0;
        for _ in 0..4 {
            let digit = self.bytes.get(self.at).and_then(|byte| char::from(*byte).to_digit(16));
            value =
                value << 4 | digit.ok_or_else(|| self.fault("four hexadecimal digits must follow \\u"))?;
            self.at += 1;
        }
        Ok(value)
    }

    /// The bytes of a string, if a string comes next.
    #[inline]
    fn string_or(&mut self, otherwise: fn() -> Fault) -> Result<Cow<'a, [u8]>, Fault> {
        if self.bytes.get(self.at) == Some(&b'"') { self.string() } else { Err(otherwise()) }
    }

    fn utf8(&self, bytes: Cow<'a, [u8]>) -> Result<Cow<'a, str>, Fault> {
        const WHY: &str = "a string that is not UTF-8 ends";
        match bytes {
            Cow::Borrowed(bytes) => {
                std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| self.fault(WHY))
            }
            Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).map_err(|_| self.fault(WHY)),
        }
    }
}

/// How many bytes from the start can stand in a string as they are: neither quote, backslash nor control
/// character. Looks at eight bytes at a time ("Bit Twiddling Hacks", Anderson: a byte less than n, a byte equal to n).
#[inline]
fn plain_run(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let less_than_space = |word: u64| word.wrapping_sub(ONES * 0x20) & !word & HIGH;
    let equal_to = |word: u64, byte: u8| {
        let word = word ^ (ONES * u64::from(byte));
        word.wrapping_sub(ONES) & !word & HIGH
    };
    let mut at = 0;
    let (words, tail) = bytes.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word);
        let found = less_than_space(word) | equal_to(word, b'"') | equal_to(word, b'\\');
        if found != 0 {
            // A borrow can only mark bytes above the first true one, which is the lowest.
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + tail.iter().take_while(|byte| **byte >= b' ' && **byte != b'"' && **byte != b'\\').count()
}

impl<'a> Source<'a> for Reader<'a> {
    fn open_map(&mut self) -> Result<Level, Fault> {
        if self.peek() != Some(b'{') {
            return Err(Fault::not_a_map());
        }
        self.at += 1;
        Ok(Level { left: 0, started: false })
    }

    fn next_key(&mut self, level: &mut Level) -> Result<Option<Cow<'a, str>>, Fault> {
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                return Ok(None);
            }
            Some(b',') if level.started => {
                self.at += 1;
                self.peek();
            }
            Some(b'"') if !level.started => {}
            _ if level.started => return Err(self.fault("a comma or the end of the object must follow")),
            _ => return Err(self.fault("a key must follow")),
        }
        level.started = true;
        if self.bytes.get(self.at) != Some(&b'"') {
            return Err(self.fault("a key must follow"));
        }
        let key = self.string()?;
        let key = self.utf8(key)?;
        self.expect(b':', "a colon must follow a key")?;
        self.peek();
        Ok(Some(key))
    }

    fn open_list(&mut self) -> Result<Level, Fault> {
        if self.bytes.get(self.at) != Some(&b'[') {
            return Err(Fault::not_a_list());
        }
        self.at += 1;
        Ok(Level { left: 0, started: false })
    }

    fn next_item(&mut self, level: &mut Level) -> Result<bool, Fault> {
        match self.peek() {
            Some(b']') => {
                self.at += 1;
                return Ok(false);
            }
            Some(b',') if level.started => {
                self.at += 1;
                self.peek();
            }
            _ if level.started => return Err(self.fault("a comma or the end of the list must follow")),
            _ => {}
        }
        level.started = true;
        Ok(true)
    }

    fn integer(&mut self, min: u64, max: u64) -> Result<u64, Fault> {
        let refused = || Fault::not_an_integer(min, max);
        let start = self.at;
        let mut value: u64 = 0;
        while let Some(byte @ b'0'..=b'9') = self.bytes.get(self.at) {
            let digit = u64::from(byte - b'0');
            value = value.checked_mul(10).and_then(|v| v.checked_add(digit)).ok_or_else(refused)?;
            self.at += 1;
        }
        let digits = &self.bytes[start..self.at];
        if digits.len() > 1 && digits[0] == b'0' {
            return Err(self.fault("a number that begins with 0 ends"));
        }
        let goes_on = matches!(self.bytes.get(self.at), Some(b'.' | b'e' | b'E'));
        if digits.is_empty() || goes_on || value < min || value > max {
            return Err(refused());
        }
        Ok(value)
    }

    fn boolean(&mut self) -> Result<bool, Fault> {
        if self.literal(b"true") {
            Ok(true)
        } else if self.literal(b"false") {
            Ok(false)
        } else {
            Err(Fault::not_a_boolean())
        }
    }

    fn text(&mut self) -> Result<Cow<'a, str>, Fault> {
        let bytes = self.string_or(Fault::not_text)?;
        self.utf8(bytes)
    }

    fn uuid(&mut self) -> Result<[u8; 16], Fault> {
        let bytes = self.string_or(Fault::not_a_uuid)?;
        let text = std::str::from_utf8(&bytes).map_err(|_| Fault::not_a_uuid())?;
        let id: UserId = text.parse().map_err(|_| Fault::not_a_uuid())?;
        Ok(id.0)
    }

    fn payload(&mut self, bytes_max: usize) -> Result<Payload, Fault> {
        base64::payload(&self.string_or(Fault::not_bytes)?, bytes_max)
    }

    /// Counts brackets and does not pair them: what is skipped is thrown away.
    fn skip(&mut self, outside: usize) -> Result<(), Fault> {
        let mut open = 0;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.string()?;
                }
                Some(b'{' | b'[') => {
                    open += 1;
                    self.at += 1;
                    if outside + open > NESTING_MAX {
                        return Err(Fault::too_deep());
                    }
                    continue;
                }
                Some(b'}' | b']') if open > 0 => {
                    open -= 1;
                    self.at += 1;
                }
                Some(b',' | b':') if open > 0 => {
                    self.at += 1;
                    continue;
                }
                Some(b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z') => self.at += 1,
                _ => return Err(self.fault("a value must follow")),
            }
            let scalar_goes_on = matches!(
                self.bytes.get(self.at),
                Some(b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z')
            );
            if open == 0 && !scalar_goes_on {
                return Ok(());
            }
        }
    }
}
