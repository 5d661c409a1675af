//! One HTTP/1.1 connection over which the same few questions are asked again and again.
//!
//! Kept open, because a new connection for each question would measure the kernel's handshake and the server's accepting, and because
//! the server would be asked to accept where a crowd wants in. When the other side has closed it meanwhile it is opened anew, and only then is the
//! time taken. Knows no more of HTTP than answers with a length.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// No answer is longer; a wrong address shall not fill the memory.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// The head of an answer is never longer.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// An address as typed: `http://HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// What goes into `Host`, with the port.
    authority: String,
    address: SocketAddr,
}

impl Url {
    /// Reads it and looks the name up.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn parse(text: &str) -> Result<Url, String> {
        let rest = text.strip_prefix("http://").ok_or_else(|| {
            format!(
                "`{text}` must begin with http://: the sampler asks the server itself, not a proxy before it"
            )
        })?;
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.is_empty()
            || authority.contains(['/', '?', '#', '@'])
            || authority.contains(char::is_whitespace)
        {
            return Err(format!("`{text}` must be http://HOST:PORT and nothing else"));
        }
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let authority = if has_port { authority.to_owned() } else { format!("{authority}:80") };
        let mut addresses = authority.to_socket_addrs().map_err(|error| format!("`{text}`: {error}"))?;
        let address = addresses.next().ok_or_else(|| format!("`{text}`: the host has no address"))?;
        Ok(Url { authority, address })
    }
}

/// An answer, and how long it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: String,
    /// From the first byte of the question to the last of the answer.
    pub took: Duration,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum AskError {
    /// None came in time; that is how long was waited.
    Timeout(Duration),
    /// The connection could not be had, broke, or what came is no answer that is understood here.
    Unreachable(io::Error),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskError::Timeout(waited) => write!(f, "no answer in {} ms", waited.as_millis()),
            AskError::Unreachable(error) => error.fmt(f),
        }
    }
}

/// A connection that is opened when it is needed.
#[derive(Debug)]
pub struct Connection {
    url: Url,
    stream: Option<TcpStream>,
}

impl Connection {
    /// To this server; nothing is opened yet.
    pub fn new(url: Url) -> Connection {
        Connection { url, stream: None }
    }

    /// Asks, and waits so long at most.
    ///
    /// # Errors
    /// When there is no answer; the next question then opens a new connection.
    pub fn get(&mut self, path: &str, token: Option<&str>, within: Duration) -> Result<Answer, AskError> {
        if let Some(stream) = self.stream.take() {
            match self.ask(stream, path, token, within) {
                // Closed while nothing was asked.
                Err(AskError::Unreachable(_)) => {}
                outcome => return outcome,
            }
        }
        let stream =
            TcpStream::connect_timeout(&self.url.address, within).map_err(|error| match error.kind() {
                ErrorKind::TimedOut => AskError::Timeout(within),
                _ => AskError::Unreachable(error),
            })?;
        stream.set_nodelay(true).map_err(AskError::Unreachable)?;
        self.ask(stream, path, token, within)
    }

    fn ask(
        &mut self,
        mut stream: TcpStream,
        path: &str,
        token: Option<&str>,
        within: Duration,
    ) -> Result<Answer, AskError> {
        let authorization =
            token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let question = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{authorization}\r\n", self.url.authority);
        let began = Instant::now();
        let outcome = exchange(&mut stream, question.as_bytes(), began, within);
        let took = began.elapsed();
        match outcome {
            Ok((head, body)) => {
                if !head.closes {
                    self.stream = Some(stream);
                }
                Ok(Answer { status: head.status, body, took })
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(AskError::Timeout(took))
            }
            Err(error) => Err(AskError::Unreachable(error)),
        }
    }
}

struct Head {
    status: u16,
    length: usize,
    closes: bool,
}

fn exchange(
    stream: &mut TcpStream,
    question: &[u8],
    began: Instant,
    within: Duration,
) -> io::Result<(Head, String)> {
    let left =
        || within.checked_sub(began.elapsed()).filter(|left| !left.is_zero()).ok_or(ErrorKind::TimedOut);
    stream.set_write_timeout(Some(left()?))?;
    stream.write_all(question)?;
    let (mut received, mut chunk) = (Vec::new(), [0; 16 << 10]);
    let mut more = |received: &mut Vec<u8>| -> io::Result<()> {
        stream.set_read_timeout(Some(left()?))?;
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        received.extend_from_slice(&chunk[..count]);
        Ok(())
    };
    let body_at = loop {
        if let Some(at) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if received.len() > HEAD_BYTES_MAX {
            return Err(not_understood("the answer has no end of its head"));
        }
        more(&mut received)?;
    };
    let head = parse_head(&received[..body_at])?;
    while received.len() < body_at + head.length {
        more(&mut received)?;
    }
    let body = String::from_utf8(received[body_at..body_at + head.length].to_vec())
        .map_err(|_| not_understood("the answer is no text"))?;
    Ok((head, body))
}

fn parse_head(bytes: &[u8]) -> io::Result<Head> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.split("\r\n");
    let status_line = lines.next().unwrap_or("");
    let status = status_line.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
    let status = status.ok_or_else(|| not_understood("what answers does not speak HTTP/1.1"))?;
    let fields: Vec<(String, &str)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim()))
        .collect();
    let field = |name: &str| fields.iter().find(|(found, _)| found == name).map(|(_, value)| *value);
    let length = field("content-length").and_then(|length| length.parse().ok());
    let length = length.ok_or_else(|| not_understood("the answer does not say how long it is"))?;
    if length > ANSWER_BYTES_MAX {
        return Err(not_understood("the answer is too long"));
    }
    let closes = field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    Ok(Head { status, length, closes })
}

fn not_understood(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    const LONG: Duration = Duration::from_secs(30);

    fn answer(stream: &mut TcpStream, text: &str) {
        let mut question = Vec::new();
        while !question.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a question");
            question.push(byte[0]);
        }
        let question = String::from_utf8(question).expect("text");
        assert!(question.starts_with("GET /x HTTP/1.1\r\nHost: 127.0.0.1:"), "{question}");
        assert!(question.contains("\r\nAuthorization: Bearer t\r\n"), "{question}");
        // In pieces, as a network may deliver it.
        for piece in text.as_bytes().chunks(7) {
            stream.write_all(piece).expect("somebody listens");
        }
    }

    fn connection(listener: &TcpListener) -> Connection {
        let address = listener.local_addr().expect("bound");
        Connection::new(Url::parse(&format!("http://{address}/")).expect("a url"))
    }

    #[test]
    fn one_connection_serves_many_questions_and_is_opened_anew_when_it_was_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut connection = connection(&listener);
        let server = thread::spawn(move || {
            let (mut first, _) = listener.accept().expect("a connection");
            answer(&mut first, "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\none");
            answer(&mut first, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
            drop(first);
            let (mut second, _) = listener.accept().expect("another");
            answer(&mut second, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nthree");
        });
        let mut get = || connection.get("/x", Some("t"), LONG).expect("an answer");
        assert_eq!(
            {
                let one = get();
                (one.status, one.body)
            },
            (200, "one".into())
        );
        assert_eq!(
            {
                let two = get();
                (two.status, two.body)
            },
            (404, String::new())
        );
        assert_eq!(
            {
                let three = get();
                (three.status, three.body)
            },
            (200, "three".into())
        );
        server.join().expect("it did its part");
    }

    #[test]
    fn who_does_not_answer_is_told_from_who_is_not_there() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut silent = connection(&listener);
        let waited = Duration::from_millis(50);
        assert!(matches!(silent.get("/x", None, waited), Err(AskError::Timeout(took)) if took >= waited));
        drop(listener);
        assert!(matches!(silent.get("/x", None, LONG), Err(AskError::Unreachable(_))));
    }

    #[test]
    fn what_is_no_answer_is_said_so() {
        for (text, said) in [
            ("SSH-2.0-x\r\n\r\n", "what answers does not speak HTTP/1.1"),
            ("HTTP/1.1 200 OK\r\n\r\n", "the answer does not say how long it is"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "the answer is too long"),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let mut connection = connection(&listener);
            let server = thread::spawn(move || {
                let (mut stream, _) = listener.accept().expect("a connection");
                answer(&mut stream, text);
                stream
            });
            assert_eq!(connection.get("/x", Some("t"), LONG).expect_err("none").to_string(), said);
            drop(server.join().expect("it did its part"));
        }
    }

    #[test]
    fn an_address_that_cannot_be_asked_is_refused() {
        for (text, said) in [
            ("https://x", "must begin with http://"),
            ("ws://127.0.0.1:8080", "must begin with http://"),
            ("http://127.0.0.1:8080/v1", "must be http://HOST:PORT and nothing else"),
            ("http://", "must be http://HOST:PORT and nothing else"),
        ] {
            let error = Url::parse(text).expect_err("no address");
            assert!(error.contains(said) && error.contains(text), "{error}");
        }
        assert_eq!(Url::parse("http://127.0.0.1").expect("an address").authority, "127.0.0.1:80");
        assert_eq!(Url::parse("http://[::1]:8080/").expect("an address").authority, "[::1]:8080");
    }
}
