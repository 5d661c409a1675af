//! The answer to a request that does not become a WebSocket.

use std::io::Write as _;

/// Why a request is refused, as [`write_refusal`] writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// One sentence for whoever wrote the client.
    pub reason: &'static str,
    /// Headers that the status asks for.
    pub headers: &'static [(&'static str, &'static str)],
}

impl Refusal {
    pub(crate) const fn bad_request(reason: &'static str) -> Refusal {
        Refusal { status: 400, reason, headers: &[] }
    }

    pub(crate) const fn method() -> Refusal {
        Refusal { status: 405, reason: "a WebSocket is opened with GET", headers: &[("Allow", "GET")] }
    }

    pub(crate) const fn target_too_long() -> Refusal {
        Refusal { status: 414, reason: "request line too long", headers: &[] }
    }

    pub(crate) const fn version() -> Refusal {
        Refusal {
            status: 426,
            reason: "Sec-WebSocket-Version must be 13",
            headers: &[("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")],
        }
    }

    pub(crate) const fn headers_too_large(reason: &'static str) -> Refusal {
        Refusal { status: 431, reason, headers: &[] }
    }

    /// Appends the whole response.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_refusal(out, self.status, self.reason, self.headers);
    }
}

/// Appends a whole HTTP/1.1 response with a problem document (RFC 9457), after which the connection closes.
pub fn write_refusal(out: &mut Vec<u8>, status: u16, reason: &str, headers: &[(&str, &str)]) {
    let title = title(status);
    let mut body = Vec::with_capacity(96 + reason.len());
    push(&mut body, format_args!(r#"{{"type":"about:blank","title":"{title}","status":{status},"detail":""#));
    push_json_escaped(&mut body, reason);
    body.extend_from_slice(b"\"}\n");

    push(out, format_args!("HTTP/1.1 {status} {title}\r\n"));
    for (name, value) in headers {
        push(out, format_args!("{name}: {value}\r\n"));
    }
    // Whoever sends Upgrade must name it in Connection (RFC 9110, section 7.8).
    let upgrade = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("upgrade"));
    out.extend_from_slice(if upgrade { b"Connection: close, Upgrade\r\n" } else { b"Connection: close\r\n" });
    push(
        out,
        format_args!(
            "Content-Type: application/problem+json\r\nCache-Control: no-store\r\nContent-Length: {}\r\n\r\n",
            body.len()
        ),
    );
    out.extend_from_slice(&body);
}

fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a vector takes whatever is written");
}

fn push_json_escaped(out: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..0x20 => push(out, format_args!("\\u{byte:04x}")),
            _ => out.push(byte),
        }
    }
}

/// The reason phrase of the statuses a socket path answers with.
fn title(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        414 => "URI Too Long",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Refused",
    }
}
