//! Identifiers, each its own type so that one cannot stand where another is meant.

use std::fmt;
use std::str::FromStr;

/// Why a text is not a UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseUuidError;

impl fmt::Display for ParseUuidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a UUID in its hyphenated form of 36 characters")
    }
}

impl std::error::Error for ParseUuidError {}

/// Writes 16 bytes in the hyphenated lower-case form of RFC 9562, section 4.
fn format_uuid(bytes: &[u8; 16]) -> [u8; 36] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut text = [b'-'; 36];
    let mut at = 0;
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            at += 1;
        }
        text[at] = HEX[usize::from(byte >> 4)];
        text[at + 1] = HEX[usize::from(byte & 15)];
        at += 2;
    }
    text
}

/// Where the two digits of each byte stand.
const DIGITS: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

/// The value of every hexadecimal digit, and [`NO_DIGIT`] for all else.
const VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value] as usize] = value as u8;
        values[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    values
};
const NO_DIGIT: u8 = 0xff;

/// Every command has one or two of these, so it branches once, at the end.
fn parse_uuid(text: &str) -> Result<[u8; 16], ParseUuidError> {
    let text: &[u8; 36] = text.as_bytes().try_into().map_err(|_| ParseUuidError)?;
    let mut bytes = [0; 16];
    let mut seen = 0;
    for (byte, at) in bytes.iter_mut().zip(DIGITS) {
        let (high, low) = (VALUES[usize::from(text[at])], VALUES[usize::from(text[at + 1])]);
        *byte = high << 4 | low & 0x0f;
        seen |= high | low;
    }
    let hyphens = [text[8], text[13], text[18], text[23]] == [b'-'; 4];
    if hyphens && seen < 16 { Ok(bytes) } else { Err(ParseUuidError) }
}

macro_rules! uuid_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; 16]);

        impl $name {
            /// The hyphenated lower-case text, without allocating.
            pub fn text(&self) -> [u8; 36] {
                format_uuid(&self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(std::str::from_utf8(&self.text()).expect("hexadecimal digits are ASCII"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseUuidError;
            fn from_str(text: &str) -> Result<Self, ParseUuidError> {
                parse_uuid(text).map($name)
            }
        }
    };
}

uuid_newtype! {
    /// A person (or a program) as the identity provider knows it.
    UserId
}
uuid_newtype! {
    /// An ordered log with members.
    ConversationId
}
uuid_newtype! {
    /// What a sender calls its own message, so that a repeat is recognised.
    ClientId
}

/// One of a user's devices; unique only within the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub u32);

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One device of one user: what holds a cursor and what a session belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceKey {
    /// The user the device belongs to.
    pub user: UserId,
    /// Which of the user's devices.
    pub device: DeviceId,
}

impl fmt::Display for DeviceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.user, self.device)
    }
}

impl fmt::Debug for DeviceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A place in a conversation's log: the first entry is 1, and there are no gaps. 0 means "before the first".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(pub u64);

impl Seq {
    /// Before the first entry.
    pub const ZERO: Seq = Seq(0);

    /// The place after this one.
    pub const fn next(self) -> Seq {
        Seq(self.0 + 1)
    }

    /// The place before this one; before [`Seq::ZERO`] there is only itself.
    pub const fn previous(self) -> Seq {
        Seq(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The unit of single-writer state, 0 ..= 255.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId(pub u8);

/// One core's share of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u16);

/// A connection, for as long as it lives: a slot of its shard's table, and how often that slot was used before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    /// The shard that accepted it.
    pub shard: ShardId,
    /// The slot in that shard's connection table.
    pub slot: u32,
    /// Distinguishes the slot's tenants; a stale id never reaches the next tenant.
    pub generation: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuid_text_is_that_of_rfc_9562() {
        // The example of RFC 9562, section 4.
        let text = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";
        let id: UserId = text.parse().expect("a valid UUID");
        assert_eq!(id.0[..4], [0xf8, 0x1d, 0x4f, 0xae]);
        assert_eq!(id.0[15], 0xf6);
        assert_eq!(id.to_string(), text);
        assert_eq!("F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6".parse(), Ok(id));
    }

    #[test]
    fn what_is_no_uuid_is_refused() {
        for text in [
            "",
            "f81d4fae7dec11d0a76500a0c91e6bf6",
            "f81d4fae-7dec-11d0-a765-00a0c91e6bf",
            "g81d4fae-7dec-11d0-a765-00a0c91e6bf6",
            "f81d4fae-7dec-11d0-a76500-a0c91e6bf6",
            "é1d4fae-7dec-11d0-a765-00a0c91e6bf6x",
            "f81d4fae-7dec-11d0-a765-00a0c91e6bfG",
            "f81d4fae-7dec-11d0-a765-00a0c91e6b:6",
            "f81d4fae07dec-11d0-a765-00a0c91e6bf6",
            "f81d4fae-7dec-11d0-a765000a0c91e6bf6",
        ] {
            assert_eq!(text.parse::<UserId>(), Err(ParseUuidError), "{text}");
        }
    }
}
