//! The client's side of the opening.

use std::fmt;

use crate::head::{self, Line, LineScan};
use crate::key::{KEY_LEN, accept_key};

/// Appends a request head. `headers` are further ones (`Origin`, `Authorization`), taken as they are.
pub fn write_request(
    out: &mut Vec<u8>,
    host: &str,
    target: &str,
    key: &[u8; KEY_LEN],
    subprotocols: &[&str],
    headers: &[(&str, &str)],
) {
    for part in ["GET ", target, " HTTP/1.1\r\nHost: ", host] {
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(
        b"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ",
    );
    out.extend_from_slice(key);
    out.extend_from_slice(b"\r\n");
    for (index, subprotocol) in subprotocols.iter().enumerate() {
        out.extend_from_slice(if index == 0 { b"Sec-WebSocket-Protocol: ".as_slice() } else { b", " });
        out.extend_from_slice(subprotocol.as_bytes());
    }
    if !subprotocols.is_empty() {
        out.extend_from_slice(b"\r\n");
    }
    for (name, value) in headers {
        for part in [name, ": ", value, "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Reads the answer to [`write_request`], however it is cut.
#[derive(Debug, Default, Clone, Copy)]
pub struct ResponseReader {
    scan: LineScan,
}

/// How far the answer is understood.
#[derive(Debug, PartialEq, Eq)]
pub enum Response<'a> {
    /// Bytes are missing.
    Incomplete,
    /// The connection is a WebSocket.
    Accepted {
        /// The one the server chose, if any; whether it was offered is for the caller to compare.
        subprotocol: Option<&'a str>,
        /// Where the head ends; what follows in the buffer are already frames.
        head_bytes: usize,
    },
}

/// Why the connection did not become a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeError {
    /// The server answered with another status than 101.
    Refused {
        /// That status.
        status: u16,
    },
    /// The head breaks HTTP/1.1 or a limit.
    Malformed,
    /// `Upgrade` or `Connection` is missing or names something else.
    NotUpgraded,
    /// `Sec-WebSocket-Accept` is not the answer to this key.
    AcceptMismatch,
    /// An extension was chosen; none was offered.
    Extension,
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HandshakeError::Refused { status } => return write!(f, "the server answered {status}"),
            HandshakeError::Malformed => "malformed response head",
            HandshakeError::NotUpgraded => "the response does not upgrade to a WebSocket",
            HandshakeError::AcceptMismatch => "Sec-WebSocket-Accept does not match the key",
            HandshakeError::Extension => "the server chose an extension that was not offered",
        })
    }
}

impl std::error::Error for HandshakeError {}

impl ResponseReader {
    /// For a connection that has received nothing.
    pub const fn new() -> ResponseReader {
        ResponseReader { scan: LineScan::new() }
    }

    /// Looks at all bytes received so far; `key` is the one that was sent.
    pub fn advance<'a>(
        &mut self,
        bytes: &'a [u8],
        key: &[u8; KEY_LEN],
    ) -> Result<Response<'a>, HandshakeError> {
        loop {
            match self.scan.next(bytes) {
                Line::Incomplete => return Ok(Response::Incomplete),
                Line::Header | Line::Start { .. } => {}
                Line::StartTooLong | Line::TooLong | Line::TooMany => return Err(HandshakeError::Malformed),
                Line::End { head_bytes } => return parse(&bytes[..head_bytes], key),
            }
        }
    }
}

fn parse<'a>(bytes: &'a [u8], key: &[u8; KEY_LEN]) -> Result<Response<'a>, HandshakeError> {
    let mut lines = head::lines(bytes);
    let start = lines.next().unwrap_or(Ok(&[])).map_err(|_| HandshakeError::Malformed)?;
    let status = status_of(start).ok_or(HandshakeError::Malformed)?;
    if status != 101 {
        return Err(HandshakeError::Refused { status });
    }
    let (mut upgraded, mut connected, mut accepted, mut subprotocol) = (false, false, false, None);
    for line in lines {
        let line = line.map_err(|_| HandshakeError::Malformed)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = head::field(line).map_err(|_| HandshakeError::Malformed)?;
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("upgrade") {
            upgraded = value.eq_ignore_ascii_case(b"websocket");
        } else if is("connection") {
            connected |= head::lists(value, "upgrade");
        } else if is("sec-websocket-accept") {
            accepted = value == accept_key(key);
        } else if is("sec-websocket-extensions") {
            return Err(HandshakeError::Extension);
        } else if is("sec-websocket-protocol") {
            subprotocol = Some(head::ascii(value).ok_or(HandshakeError::Malformed)?);
        }
    }
    match (upgraded && connected, accepted) {
        (false, _) => Err(HandshakeError::NotUpgraded),
        (true, false) => Err(HandshakeError::AcceptMismatch),
        (true, true) => Ok(Response::Accepted { subprotocol, head_bytes: bytes.len() }),
    }
}

/// The status of `HTTP/1.1 101 …`.
fn status_of(line: &[u8]) -> Option<u16> {
    let rest = line.strip_prefix(b"HTTP/1.1 ")?;
    let (digits, after) = rest.split_first_chunk::<3>()?;
    if !(after.is_empty() || after[0] == b' ') || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}
