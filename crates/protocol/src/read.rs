//! Reading values without knowing how they are written.
//!
//! Owns the questions a verb asks of its bytes ([`Source`]) and the answer when they are wrong ([`Fault`]). The
//! sentences stand here, once, so that a mistake is named in the same words in JSON as in CBOR.

use std::borrow::Cow;

use model::Payload;
use model::limits::NESTING_MAX;

use crate::{ErrorCode, Refusal};

/// Where a [`Source`] is within one open map or list.
#[derive(Debug)]
pub(crate) struct Level {
    /// CBOR: entries still to come.
    pub left: u64,
    /// JSON: whether an entry has been read, so that a comma is due.
    pub started: bool,
}

/// Values one after the other. Each question either takes a whole value or fails; after a failure the place is
/// anywhere, and the command is given up.
pub(crate) trait Source<'a> {
    /// Enters a map.
    fn open_map(&mut self) -> Result<Level, Fault>;
    /// The next key of a map; its value must be read before the next call. `None` leaves the map.
    fn next_key(&mut self, level: &mut Level) -> Result<Option<Cow<'a, str>>, Fault>;
    /// Enters a list.
    fn open_list(&mut self) -> Result<Level, Fault>;
    /// Whether an item follows, which must then be read. `false` leaves the list.
    fn next_item(&mut self, level: &mut Level) -> Result<bool, Fault>;
    /// An integer within the range, both ends included.
    fn integer(&mut self, min: u64, max: u64) -> Result<u64, Fault>;
    /// True or false.
    fn boolean(&mut self) -> Result<bool, Fault>;
    /// Text.
    fn text(&mut self) -> Result<Cow<'a, str>, Fault>;
    /// The 16 bytes of a UUID.
    fn uuid(&mut self) -> Result<[u8; 16], Fault>;
    /// Bytes that become a payload, with one allocation.
    fn payload(&mut self, bytes_max: usize) -> Result<Payload, Fault>;
    /// Passes over a value of any kind that stands within `outside` open levels. Never recurses; gives up when more
    /// than [`NESTING_MAX`] levels are open in all.
    fn skip(&mut self, outside: usize) -> Result<(), Fault>;
}

/// What is wrong with a command, and where. On the failing path only, so it may allocate; one word in a result.
#[derive(Debug)]
pub(crate) struct Fault(Box<Detail>);

#[derive(Debug)]
struct Detail {
    code: ErrorCode,
    /// The fields that lead there, outermost first: `send.conv`.
    path: String,
    what: Cow<'static, str>,
    too_deep: bool,
}

impl Fault {
    fn new(code: ErrorCode, what: impl Into<Cow<'static, str>>) -> Fault {
        Fault(Box::new(Detail { code, path: String::new(), what: what.into(), too_deep: false }))
    }

    /// Something `bad_request` says about a value: "must be a UUID".
    pub fn value(what: impl Into<Cow<'static, str>>) -> Fault {
        Fault::new(ErrorCode::BadRequest, what)
    }

    /// The bytes are not of the encoding.
    pub fn syntax(encoding: &'static str, at: usize, why: &str) -> Fault {
        Fault::value(format!("not {encoding}: {why} at byte {at}"))
    }

    pub fn not_a_map() -> Fault {
        Fault::value("must be a map (an object in JSON)")
    }

    pub fn not_a_list() -> Fault {
        Fault::value("must be a list")
    }

    pub fn not_an_integer(min: u64, max: u64) -> Fault {
        Fault::value(format!("must be an integer from {min} to {max}"))
    }

    pub fn not_a_boolean() -> Fault {
        Fault::value("must be true or false")
    }

    pub fn not_text() -> Fault {
        Fault::value("must be text")
    }

    pub fn not_a_uuid() -> Fault {
        Fault::value("must be a UUID (hyphenated text in JSON, 16 bytes in CBOR)")
    }

    pub fn not_bytes() -> Fault {
        Fault::value("must be bytes (standard base64 with padding in JSON, a byte string in CBOR)")
    }

    pub fn too_large(bytes: usize, bytes_max: usize) -> Fault {
        Fault::new(ErrorCode::TooLarge, format!("{bytes} bytes are more than the {bytes_max} allowed"))
    }

    pub fn too_deep() -> Fault {
        let mut fault = Fault::value(format!("nested deeper than {NESTING_MAX} levels"));
        fault.0.too_deep = true;
        fault
    }

    pub fn given_twice(name: &str) -> Fault {
        Fault::value("given twice").at(name)
    }

    pub fn missing(name: &str) -> Fault {
        Fault::value("is required").at(name)
    }

    pub fn unknown_field(name: &str) -> Fault {
        Fault::value("unknown field").at(name)
    }

    pub fn unknown_verb(name: &str) -> Fault {
        Fault::new(ErrorCode::UnknownVerb, "unknown verb").at(name)
    }

    /// The same fault, seen from outside the field that holds it.
    pub fn at(mut self, name: &str) -> Fault {
        let name = shortened(name);
        let path = &mut self.0.path;
        if !path.is_empty() {
            path.insert(0, '.');
        }
        path.insert_str(0, &name);
        self
    }

    pub fn is_too_deep(&self) -> bool {
        self.0.too_deep
    }

    pub fn into_refusal(self) -> Refusal<'static> {
        let Detail { code, path, what, .. } = *self.0;
        let message = if path.is_empty() { what } else { format!("{path}: {what}").into() };
        Refusal::new(code, message)
    }
}

/// A name as the client gave it, cut to what a message needs and free of control characters.
fn shortened(name: &str) -> String {
    const CHARS_MAX: usize = 40;
    let mut short: String =
        name.chars().take(CHARS_MAX).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if name.chars().nth(CHARS_MAX).is_some() {
        short.push('…');
    }
    short
}

/// One field of a map that is being read: its name, and its value once it has come.
pub(crate) struct Field<T> {
    name: &'static str,
    value: Option<T>,
}

impl<T> Field<T> {
    pub fn new(name: &'static str) -> Field<T> {
        Field { name, value: None }
    }

    /// Takes the value just read; twice is a fault.
    #[inline]
    pub fn set(&mut self, value: Result<T, Fault>) -> Result<(), Fault> {
        match value {
            Ok(value) if self.value.is_none() => {
                self.value = Some(value);
                Ok(())
            }
            Ok(_) => Err(Fault::given_twice(self.name)),
            Err(fault) => Err(fault.at(self.name)),
        }
    }

    /// The value, which must have come.
    #[inline]
    pub fn required(self) -> Result<T, Fault> {
        self.value.ok_or_else(|| Fault::missing(self.name))
    }

    /// The value, if it has come.
    pub fn optional(self) -> Option<T> {
        self.value
    }
}
