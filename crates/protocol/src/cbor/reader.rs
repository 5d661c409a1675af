//! CBOR to values.

use std::borrow::Cow;

use model::Payload;
use model::limits::NESTING_MAX;

use crate::read::{Fault, Level, Source};

/// Major types, RFC 8949 section 3.1.
const UNSIGNED: u8 = 0;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const TAG: u8 = 6;
const SIMPLE: u8 = 7;

/// The first byte of an item and its argument.
struct Head {
    major: u8,
    /// The low five bits of the first byte; tells a float from a simple value.
    info: u8,
    argument: u64,
}

/// Where the first item of `bytes` ends. An error means that nobody can tell, so the rest of the frame is lost.
///
/// Items are counted and not stacked, so depth costs nothing; each head is looked at once.
pub(crate) fn item_end(bytes: &[u8]) -> Result<usize, Fault> {
    let mut reader = Reader::new(bytes);
    let mut items_left: u64 = 1;
    while items_left > 0 {
        items_left -= 1;
        let more = reader.pass_over_head()?;
        // An item takes at least one byte: a count that cannot be true is refused before it is believed.
        items_left = items_left
            .checked_add(more)
            .filter(|items| *items <= reader.left() as u64)
            .ok_or_else(|| reader.fault("more items announced than there are bytes"))?;
    }
    Ok(reader.at)
}

/// Reads values from one item.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    #[cold]
    fn fault(&self, why: &str) -> Fault {
        Fault::syntax("CBOR", self.at, why)
    }

    /// The next item's head, which is not taken.
    fn peek(&self) -> Result<(Head, usize), Fault> {
        let Some(first) = self.bytes.get(self.at) else { return Err(self.fault("an item must follow")) };
        let (major, info) = (first >> 5, first & 31);
        let following = match info {
            0..24 => 0,
            24..28 => 1 << (info - 24),
            31 => return Err(self.fault("an item of indefinite length, which this server does not take,")),
            _ => return Err(self.fault("a reserved head")),
        };
        let Some(argument) = self.bytes.get(self.at + 1..self.at + 1 + following) else {
            return Err(self.fault("an item cut short"));
        };
        let argument = match following {
            0 => u64::from(info),
            _ => argument.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)),
        };
        if major == SIMPLE && info == 24 && argument < 32 {
            return Err(self.fault("a simple value in a form that is not allowed"));
        }
        Ok((Head { major, info, argument }, self.at + 1 + following))
    }

    /// The argument of the next head, if it is of this major type; otherwise nothing is taken.
    #[inline]
    fn argument_of(&mut self, major: u8) -> Result<Option<u64>, Fault> {
        let (head, after) = self.peek()?;
        if head.major != major {
            return Ok(None);
        }
        self.at = after;
        Ok(Some(head.argument))
    }

    /// So many bytes.
    fn take(&mut self, len: u64) -> Result<&'a [u8], Fault> {
        if len > self.left() as u64 {
            return Err(self.fault("a string cut short"));
        }
        let start = self.at;
        self.at += len as usize;
        Ok(&self.bytes[start..self.at])
    }

    /// Takes a head, and a string's content with it, and says how many items belong to it.
    fn pass_over_head(&mut self) -> Result<u64, Fault> {
        let (head, after) = self.peek()?;
        self.at = after;
        match head.major {
            BYTES | TEXT => self.take(head.argument).map(|_| 0),
            ARRAY => Ok(head.argument),
            MAP => head.argument.checked_mul(2).ok_or_else(|| self.fault("a map too large")),
            TAG => Ok(1),
            _ => Ok(0),
        }
    }

    #[inline]
    fn byte_string(&mut self, otherwise: fn() -> Fault) -> Result<&'a [u8], Fault> {
        let len = self.argument_of(BYTES)?.ok_or_else(otherwise)?;
        self.take(len)
    }

    #[inline]
    fn text_string(&mut self, otherwise: fn() -> Fault) -> Result<&'a str, Fault> {
        let len = self.argument_of(TEXT)?.ok_or_else(otherwise)?;
        let bytes = self.take(len)?;
        std::str::from_utf8(bytes).map_err(|_| self.fault("a text string that is not UTF-8 ends"))
    }

    fn open(&mut self, major: u8, otherwise: fn() -> Fault) -> Result<Level, Fault> {
        let left = self.argument_of(major)?.ok_or_else(otherwise)?;
        Ok(Level { left, started: true })
    }
}

impl<'a> Source<'a> for Reader<'a> {
    fn open_map(&mut self) -> Result<Level, Fault> {
        self.open(MAP, Fault::not_a_map)
    }

    fn next_key(&mut self, level: &mut Level) -> Result<Option<Cow<'a, str>>, Fault> {
        if level.left == 0 {
            return Ok(None);
        }
        level.left -= 1;
        self.text_string(|| Fault::value("a key must be text")).map(|key| Some(Cow::Borrowed(key)))
    }

    fn open_list(&mut self) -> Result<Level, Fault> {
        self.open(ARRAY, Fault::not_a_list)
    }

    fn next_item(&mut self, level: &mut Level) -> Result<bool, Fault> {
        let follows = level.left > 0;
        level.left = level.left.saturating_sub(1);
        Ok(follows)
    }

    fn integer(&mut self, min: u64, max: u64) -> Result<u64, Fault> {
        let value = self.argument_of(UNSIGNED)?;
        value.filter(|value| (min..=max).contains(value)).ok_or_else(|| Fault::not_an_integer(min, max))
    }

    fn boolean(&mut self) -> Result<bool, Fault> {
        let (head, after) = self.peek()?;
        self.at = after;
        match (head.major, head.info) {
            (SIMPLE, 20) => Ok(false),
            (SIMPLE, 21) => Ok(true),
            _ => Err(Fault::not_a_boolean()),
        }
    }

    fn text(&mut self) -> Result<Cow<'a, str>, Fault> {
        self.text_string(Fault::not_text).map(Cow::Borrowed)
    }

    fn uuid(&mut self) -> Result<[u8; 16], Fault> {
        self.byte_string(Fault::not_a_uuid)?.try_into().map_err(|_| Fault::not_a_uuid())
    }

    fn payload(&mut self, bytes_max: usize) -> Result<Payload, Fault> {
        let bytes = self.byte_string(Fault::not_bytes)?;
        if bytes.len() > bytes_max {
            return Err(Fault::too_large(bytes.len(), bytes_max));
        }
        Ok(Payload::from(bytes))
    }

    fn skip(&mut self, outside: usize) -> Result<(), Fault> {
        // Items still to come in each open level; a tag counts as a level of one item.
        let mut left = [0_u64; NESTING_MAX];
        let mut open = 0;
        loop {
            let more = self.pass_over_head()?;
            if more > 0 {
                if outside + open >= NESTING_MAX {
                    return Err(Fault::too_deep());
                }
                left[open] = more;
                open += 1;
            }
            while open > 0 && left[open - 1] == 0 {
                open -= 1;
            }
            if open == 0 {
                return Ok(());
            }
            left[open - 1] -= 1;
        }
    }
}
