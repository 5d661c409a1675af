//! An HTTP/1.1 client as small as the tests allow, and as strict as the standard asks.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Client {
    pub socket: TcpStream,
    /// Received and not yet taken.
    buffer: Vec<u8>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    /// The only header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found =
            self.headers.iter().filter(|(header, _)| header == name).map(|(_, value)| value.as_str());
        let value = found.next();
        assert_eq!(found.next(), None, "{name} comes once: {self:?}");
        value
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that this is a problem with this status and name, whole and consistent, and gives its detail.
    #[track_caller]
    pub fn problem(&self, status: u16, name: &str) -> String {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let json = self.json();
        let row = protocol::ErrorCode::ALL.iter().find(|row| row.name() == name).expect("a row of the table");
        assert_eq!(json["type"], "about:blank");
        assert_eq!(json["title"], name, "{self:?}");
        assert_eq!(json["name"], name);
        assert_eq!(json["code"], row.code());
        assert_eq!(json["status"], status);
        assert_eq!(json.get("retry_after_ms").is_some(), row.temporary(), "{self:?}");
        assert_eq!(self.header("retry-after").is_some(), row.temporary(), "{self:?}");
        json["detail"].as_str().expect("a detail").to_owned()
    }
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let socket = TcpStream::connect(address).expect("the server listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        socket.set_nodelay(true).expect("no delay");
        Client { socket, buffer: Vec::new() }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.socket.write_all(bytes.as_ref()).expect("the server reads");
    }

    pub fn ask(&mut self, method: &str, path: &str, token: Option<&str>, body: Option<&str>) -> Answer {
        self.send(request(method, path, token, body));
        self.answer_to(method)
    }

    pub fn answer(&mut self) -> Answer {
        self.answer_to("GET")
    }

    fn answer_to(&mut self, method: &str) -> Answer {
        let head = self.take_head().expect("an answer, not the end of the connection");
        let mut lines = head.split("\r\n");
        let status_line = lines.next().expect("a status line");
        let status = status_line.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)).expect(status_line);
        let status: u16 = status.parse().expect("a status");
        let headers: Vec<(String, String)> = lines
            .map(|line| {
                let (name, value) =
                    line.split_once(": ").unwrap_or_else(|| panic!("a header line: {line:?}"));
                (name.to_ascii_lowercase(), value.to_owned())
            })
            .collect();
        let mut answer = Answer { status, headers, body: String::new() };
        assert_eq!(answer.header("transfer-encoding"), None, "answers have a length: {answer:?}");
        let length: usize =
            answer.header("content-length").map_or(0, |value| value.parse().expect("a length"));
        if method != "HEAD" && status != 204 && status >= 200 {
            while self.buffer.len() < length {
                assert!(self.fill(), "the whole body: {answer:?}");
            }
            answer.body = String::from_utf8(self.buffer.drain(..length).collect()).expect("text");
        }
        answer
    }

    fn take_head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = self.buffer.drain(..end + 4).take(end).collect();
                return Some(String::from_utf8(head).expect("text"));
            }
            if !self.fill() {
                return None;
            }
        }
    }

    /// Reads some more; false at the end.
    fn fill(&mut self) -> bool {
        let mut some = [0; 64 * 1024];
        match self.socket.read(&mut some) {
            Ok(0) => false,
            Ok(read) => {
                self.buffer.extend_from_slice(&some[..read]);
                true
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("nothing came for {PATIENCE:?}: {error}"),
        }
    }

    /// Waits for the end of the connection, and checks that nothing comes before it.
    #[track_caller]
    pub fn ended(&mut self) {
        while self.fill() {}
        assert_eq!(String::from_utf8_lossy(&self.buffer), "", "nothing more before the end");
    }

    /// Everything until this text is in it.
    pub fn read_until(&mut self, text: &str) -> Vec<u8> {
        let found = |buffer: &[u8]| buffer.windows(text.len()).any(|some| some == text.as_bytes());
        while !found(&self.buffer) {
            assert!(self.fill(), "{text} in {:?}", String::from_utf8_lossy(&self.buffer));
        }
        std::mem::take(&mut self.buffer)
    }
}

/// A request as most clients would send it.
pub fn request(method: &str, path: &str, token: Option<&str>, body: Option<&str>) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
    if let Some(token) = token {
        text += &format!("Authorization: Bearer {token}\r\n");
    }
    if let Some(body) = body {
        text += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    }
    text + "\r\n" + body.unwrap_or("")
}
