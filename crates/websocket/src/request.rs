//! The server's side of the opening: whose request it is, whether it may become a WebSocket, and the answer.

use std::fmt;

use crate::Refusal;
use crate::head::{self, Line, LineScan};
use crate::key::{self, KEY_LEN, accept_key};

/// Reads one request head of a connection, however it is cut. Six bytes.
#[derive(Debug, Default, Clone, Copy)]
pub struct RequestReader {
    scan: LineScan,
}

/// How far a request head is understood.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// Bytes are missing.
    Incomplete,
    /// Not for the socket path: the HTTP side's business, with all bytes received so far.
    Other,
    /// May become a WebSocket, if origin, subprotocol and token please the caller.
    Upgrade(Upgrade<'a>),
    /// For the socket path, and wrong; the connection closes after the answer.
    Refused(Refusal),
}

/// What the caller must know of a request that is right.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Upgrade<'a> {
    /// `Sec-WebSocket-Key`, checked.
    pub key: [u8; KEY_LEN],
    /// `Host`.
    pub host: &'a str,
    /// `Origin`, which browsers send and others may leave out.
    pub origin: Option<&'a str>,
    /// The token of `Authorization: Bearer`.
    pub bearer: Option<&'a str>,
    /// What follows the `?` of the target; known to hold no token.
    pub query: Option<&'a str>,
    /// Where the head ends; what follows in the buffer are already frames.
    pub head_bytes: usize,
    head: &'a [u8],
}

impl<'a> Upgrade<'a> {
    /// The subprotocols offered, in the client's order of preference.
    pub fn subprotocols(&self) -> Subprotocols<'a> {
        Subprotocols { lines: self.head, list: &[] }
    }
}

impl fmt::Debug for Upgrade<'_> {
    /// Without the token and the head that holds it (invariant X7).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upgrade")
            .field("host", &self.host)
            .field("origin", &self.origin)
            .field("has_bearer", &self.bearer.is_some())
            .field("head_bytes", &self.head_bytes)
            .finish_non_exhaustive()
    }
}

/// Yields the elements of all `Sec-WebSocket-Protocol` headers (there may be several).
#[derive(Clone)]
pub struct Subprotocols<'a> {
    lines: &'a [u8],
    list: &'a [u8],
}

impl<'a> Iterator for Subprotocols<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            while !self.list.is_empty() {
                let comma = self.list.iter().position(|&byte| byte == b',').unwrap_or(self.list.len());
                let element = head::trim(&self.list[..comma]);
                self.list = self.list.get(comma + 1..).unwrap_or(&[]);
                if !element.is_empty() {
                    return head::ascii(element);
                }
            }
            if self.lines.is_empty() {
                return None;
            }
            let end = self.lines.iter().position(|&byte| byte == b'\n').map_or(self.lines.len(), |at| at + 1);
            let (line, rest) = self.lines.split_at(end);
            self.lines = rest;
            // The start line has no colon before its spaces, so it is no field.
            if let Ok((name, value)) = head::field(line.trim_ascii_end())
                && name.eq_ignore_ascii_case(b"sec-websocket-protocol")
            {
                self.list = value;
            }
        }
    }
}

impl RequestReader {
    /// For a connection that has received nothing.
    pub const fn new() -> RequestReader {
        RequestReader { scan: LineScan::new() }
    }

    /// Looks at all bytes received so far (at most the new ones are read again), for an upgrade at exactly `path`.
    ///
    /// Whose request it is is known when the request line is complete; everything but [`Progress::Incomplete`] is the
    /// last word.
    pub fn advance<'a>(&mut self, bytes: &'a [u8], path: &str) -> Progress<'a> {
        if !self.scan.past_start() && starts_like_no_request(bytes) {
            return Progress::Refused(Refusal::bad_request("this is not HTTP/1.1"));
        }
        loop {
            match self.scan.next(bytes) {
                Line::Incomplete => return Progress::Incomplete,
                Line::Header => {}
                Line::Start { to } if path_of(&bytes[..to]) == Some(path.as_bytes()) => {}
                Line::Start { .. } => return Progress::Other,
                Line::StartTooLong => return Progress::Refused(Refusal::target_too_long()),
                Line::TooLong => {
                    return Progress::Refused(Refusal::headers_too_large("request head too large"));
                }
                Line::TooMany => {
                    return Progress::Refused(Refusal::headers_too_large("too many header lines"));
                }
                Line::End { head_bytes } => {
                    return match parse(&bytes[..head_bytes]) {
                        Ok(upgrade) => Progress::Upgrade(upgrade),
                        Err(refusal) => Progress::Refused(refusal),
                    };
                }
            }
        }
    }
}

/// A TLS record or other binary: told at once, since it may never send a line end.
fn starts_like_no_request(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|&byte| byte != b'\r' && byte != b'\n' && !head::is_token(&[byte]))
}

/// The path in a request line, without its query.
fn path_of(line: &[u8]) -> Option<&[u8]> {
    let target = line.split(|&byte| byte == b' ').nth(1)?;
    target.split(|&byte| byte == b'?').next()
}

/// The headers an upgrade is judged by; each may stand once.
#[derive(Default)]
struct Fields<'a> {
    host: Option<&'a [u8]>,
    upgrade: Option<&'a [u8]>,
    connection: Option<&'a [u8]>,
    key: Option<&'a [u8]>,
    version: Option<&'a [u8]>,
    origin: Option<&'a [u8]>,
    authorization: Option<&'a [u8]>,
    content_length: Option<&'a [u8]>,
    transfer_encoding: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    /// The place of a header, and what to say when it stands twice.
    fn place(&mut self, name: &[u8]) -> Option<(&mut Option<&'a [u8]>, &'static str)> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        Some(match name.len() {
            4 if is("host") => (&mut self.host, "duplicate Host"),
            6 if is("origin") => (&mut self.origin, "duplicate Origin"),
            7 if is("upgrade") => (&mut self.upgrade, "duplicate Upgrade"),
            10 if is("connection") => (&mut self.connection, "duplicate Connection"),
            13 if is("authorization") => (&mut self.authorization, "duplicate Authorization"),
            14 if is("content-length") => (&mut self.content_length, "duplicate Content-Length"),
            17 if is("sec-websocket-key") => (&mut self.key, "duplicate Sec-WebSocket-Key"),
            17 if is("transfer-encoding") => (&mut self.transfer_encoding, "duplicate Transfer-Encoding"),
            21 if is("sec-websocket-version") => (&mut self.version, "duplicate Sec-WebSocket-Version"),
            _ => return None,
        })
    }
}

fn parse(bytes: &[u8]) -> Result<Upgrade<'_>, Refusal> {
    let mut lines = head::lines(bytes);
    let start = lines.next().unwrap_or(Ok(&[])).map_err(|error| Refusal::bad_request(error.text()))?;
    let target = parse_start(start)?;
    let mut fields = Fields::default();
    for line in lines {
        let line = line.map_err(|error| Refusal::bad_request(error.text()))?;
        if line.is_empty() {
            break;
        }
        let (name, value) = head::field(line).map_err(|error| Refusal::bad_request(error.text()))?;
        if let Some((place, twice)) = fields.place(name)
            && place.replace(value).is_some()
        {
            return Err(Refusal::bad_request(twice));
        }
    }
    judge(&fields, target, bytes)
}

/// The target of a request line that is right.
fn parse_start(line: &[u8]) -> Result<&str, Refusal> {
    let mut parts = line.split(|&byte| byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Refusal::bad_request("malformed request line"));
    };
    if !head::is_token(method) {
        return Err(Refusal::bad_request("malformed method"));
    }
    if version != b"HTTP/1.1" {
        return Err(Refusal::bad_request("a WebSocket is opened with HTTP/1.1"));
    }
    if method != b"GET" {
        return Err(Refusal::method());
    }
    head::ascii(target)
        .filter(|target| !target.contains(['\t', '#']))
        .ok_or(Refusal::bad_request("malformed request target"))
}

fn judge<'a>(fields: &Fields<'a>, target: &'a str, head: &'a [u8]) -> Result<Upgrade<'a>, Refusal> {
    let bad = Refusal::bad_request;
    if fields.transfer_encoding.is_some() || fields.content_length.is_some_and(|length| length != b"0") {
        return Err(bad("an upgrade request has no body"));
    }
    let host = fields.host.ok_or(bad("Host is missing"))?;
    let host = head::ascii(host).filter(|host| is_host(host)).ok_or(bad("malformed Host"))?;
    let upgrade = fields.upgrade.ok_or(bad("Upgrade is missing"))?;
    if !head::lists(upgrade, "websocket") {
        return Err(bad("Upgrade must be websocket"));
    }
    let connection = fields.connection.ok_or(bad("Connection is missing"))?;
    if !head::lists(connection, "upgrade") {
        return Err(bad("Connection must be Upgrade"));
    }
    if fields.version != Some(b"13") {
        return Err(Refusal::version());
    }
    let key = fields.key.ok_or(bad("Sec-WebSocket-Key is missing"))?;
    let key = key::parse(key).ok_or(bad("Sec-WebSocket-Key must be the base64 of 16 bytes"))?;
    let query = target.split_once('?').map(|(_, query)| query);
    if query.is_some_and(names_a_token) {
        return Err(bad(
            "a token in the address ends up in logs: send it in the first command or in Authorization",
        ));
    }
    let origin = match fields.origin {
        None => None,
        Some(origin) => Some(head::ascii(origin).ok_or(bad("malformed Origin"))?),
    };
    let bearer = match fields.authorization {
        None => None,
        Some(value) => bearer(head::ascii(value).ok_or(bad("malformed Authorization"))?),
    };
    let upgrade = Upgrade { key, host, origin, bearer, query, head_bytes: head.len(), head };
    if upgrade.subprotocol_lists_are_malformed() {
        return Err(bad("malformed Sec-WebSocket-Protocol"));
    }
    Ok(upgrade)
}

impl Upgrade<'_> {
    /// Elements must be tokens, or an element could not be sent back in a header.
    fn subprotocol_lists_are_malformed(&self) -> bool {
        head::lines(self.head).skip(1).flatten().filter_map(|line| head::field(line).ok()).any(
            |(name, value)| {
                name.eq_ignore_ascii_case(b"sec-websocket-protocol")
                    && !head::elements(value).all(head::is_token)
            },
        )
    }
}

/// `uri-host [":" port]`, as far as characters go.
fn is_host(host: &str) -> bool {
    !host.is_empty()
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+;=:[]".contains(&byte))
}

/// The credentials of the Bearer scheme; another scheme is somebody else's (a proxy's, say).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim_matches(' ');
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Whether a query has a parameter called `token` or `access_token`, percent-encoded or not.
fn names_a_token(query: &str) -> bool {
    query.split(['&', ';']).any(|parameter| {
        let name = parameter.split('=').next().unwrap_or_default();
        ["token", "access_token"].iter().any(|known| decoded_equals(name, known))
    })
}

/// Whether a percent-encoded name is this one, in whatever case.
fn decoded_equals(name: &str, known: &str) -> bool {
    let mut known = known.bytes();
    let mut rest = name.as_bytes();
    while let [first, after @ ..] = rest {
        let (byte, after) = match after {
            [high, low, after @ ..] if *first == b'%' => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, after),
                _ => return false,
            },
            _ => (*first, after),
        };
        if known.next() != Some(byte.to_ascii_lowercase()) {
            return false;
        }
        rest = after;
    }
    known.next().is_none()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// Appends the response that makes a connection a WebSocket. The subprotocol must be one the client offered.
pub fn write_switching_protocols(out: &mut Vec<u8>, key: &[u8; KEY_LEN], subprotocol: Option<&str>) {
    out.extend_from_slice(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ",
    );
    out.extend_from_slice(&accept_key(key));
    if let Some(subprotocol) = subprotocol {
        out.extend_from_slice(b"\r\nSec-WebSocket-Protocol: ");
        out.extend_from_slice(subprotocol.as_bytes());
    }
    out.extend_from_slice(b"\r\n\r\n");
}
