//! The lines of an HTTP/1.1 head, found in one resumable pass and taken apart strictly.
//!
//! Knows nothing of what the headers mean. What RFC 9112 lets a recipient tolerate is refused here: whoever
//! tolerates what a proxy in front reads otherwise is how requests get smuggled.

use model::limits::{HEAD_BYTES_MAX, HEADERS_MAX};

/// Finds the ends of lines; remembers how far it looked, so that bytes fed one at a time are each looked at once.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct LineScan {
    scanned: u16,
    line: u16,
    lines: u16,
}

const _: () = assert!(HEAD_BYTES_MAX <= u16::MAX as usize);

/// What a look for the next line gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// The start line, from 0 to before its CRLF.
    Start { to: usize },
    /// One more header line.
    Header,
    /// The empty line; the head ends at `head_bytes`, it included.
    End { head_bytes: usize },
    /// No line end yet.
    Incomplete,
    /// The start line does not end within the limit.
    StartTooLong,
    /// The head does not end within the limit.
    TooLong,
    /// More header lines than the limit.
    TooMany,
}

impl LineScan {
    pub const fn new() -> LineScan {
        LineScan { scanned: 0, line: 0, lines: 0 }
    }

    /// Whether the start line has been seen.
    pub fn past_start(&self) -> bool {
        self.lines > 0
    }

    /// Looks for the next line in the head so far, which begins where it began at every call before.
    pub fn next(&mut self, bytes: &[u8]) -> Line {
        let end = bytes.len().min(HEAD_BYTES_MAX);
        let from = usize::from(self.scanned).min(end);
        let Some(found) = bytes[from..end].iter().position(|&byte| byte == b'\n') else {
            self.scanned = end as u16;
            return match (end == HEAD_BYTES_MAX, self.past_start()) {
                (false, _) => Line::Incomplete,
                (true, false) => Line::StartTooLong,
                (true, true) => Line::TooLong,
            };
        };
        let feed = from + found;
        let line = without_cr(&bytes[usize::from(self.line)..feed]);
        let (to, empty) = (usize::from(self.line) + line.len(), line.is_empty());
        let is_start = !self.past_start();
        self.scanned = (feed + 1) as u16;
        self.line = self.scanned;
        self.lines += 1;
        match (is_start, empty) {
            (true, _) => Line::Start { to },
            (false, true) => Line::End { head_bytes: feed + 1 },
            // The start line is one of `lines`.
            (false, false) if usize::from(self.lines) - 1 > HEADERS_MAX => Line::TooMany,
            (false, false) => Line::Header,
        }
    }
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineError {
    /// A line feed without a carriage return.
    BareLineFeed,
    /// A control character (a bare carriage return among them) where none may stand.
    ControlCharacter,
    /// A line that begins with white space: continued from the one before in HTTP/1.0.
    Folded,
    /// No colon, an empty name, or a character in the name that is no `tchar`.
    Name,
}

impl LineError {
    pub fn text(self) -> &'static str {
        match self {
            LineError::BareLineFeed => "line feed without carriage return",
            LineError::ControlCharacter => "control character in the head",
            LineError::Folded => "folded header line",
            LineError::Name => "bad header name",
        }
    }
}

/// The lines of a head that is complete, start line first. Each must end in CRLF and hold no control character.
pub(crate) fn lines(head: &[u8]) -> impl Iterator<Item = Result<&[u8], LineError>> {
    head.split_inclusive(|&byte| byte == b'\n').map(|line| {
        let line = line.strip_suffix(b"\r\n").ok_or(LineError::BareLineFeed)?;
        match line.iter().any(|&byte| (byte < b' ' && byte != b'\t') || byte == 0x7f) {
            true => Err(LineError::ControlCharacter),
            false => Ok(line),
        }
    })
}

/// A header line as name and value, the white space around the value removed.
pub(crate) fn field(line: &[u8]) -> Result<(&[u8], &[u8]), LineError> {
    if line.first().is_some_and(|&byte| byte == b' ' || byte == b'\t') {
        return Err(LineError::Folded);
    }
    let colon = line.iter().position(|&byte| byte == b':').ok_or(LineError::Name)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if is_token(name) { Ok((name, trim(value))) } else { Err(LineError::Name) }
}

/// Without the optional white space (OWS: space and tab) at both ends.
pub(crate) fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// Whether this is a `token` of RFC 9110, section 5.6.2.
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty()
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

/// The elements of a comma-separated list, empty ones left out (RFC 9110, section 5.6.1).
pub(crate) fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trim).filter(|element| !element.is_empty())
}

/// Whether a list names this token, in whatever case.
pub(crate) fn lists(value: &[u8], token: &str) -> bool {
    elements(value).any(|element| element.eq_ignore_ascii_case(token.as_bytes()))
}

/// A value that consists of visible ASCII, spaces and tabs.
pub(crate) fn ascii(value: &[u8]) -> Option<&str> {
    if value.is_ascii() { std::str::from_utf8(value).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_fed_one_at_a_time_are_each_looked_at_once() {
        let head = [b'x'; HEAD_BYTES_MAX];
        let mut scan = LineScan::new();
        for len in 1..HEAD_BYTES_MAX {
            assert_eq!(usize::from(scan.scanned), len - 1, "the look begins at the new byte");
            assert_eq!(scan.next(&head[..len]), Line::Incomplete);
        }
        assert_eq!(scan.next(&head), Line::StartTooLong);
    }
}
