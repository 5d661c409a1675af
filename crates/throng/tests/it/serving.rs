//! A server at work: what `--dev` prints, what it writes into its log, what a client that comes back costs.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use model::ClientId;
use protocol::{Command as Ask, Encoding, ErrorCode};

use crate::client::{Client, Heard, PATIENCE, payload};
use crate::run::Place;
use crate::server::{Start, token};

/// Ends a process with the test, whatever happens.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn dev_prints_a_page_and_two_tokens_that_work() {
    let place = Place::new();
    // The port is free to choose, so what is printed must be the one that was chosen.
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    command.args(["serve", "--dev", "--listen", "127.0.0.1:0"]).current_dir(place.path("")).env_clear();
    command.stdout(Stdio::piped()).stderr(Stdio::null()).stdin(Stdio::null());
    let mut server = Ended(command.spawn().expect("the binary runs"));
    let printed = BufReader::new(server.0.stdout.take().expect("it is piped"));
    let lines = printed.lines().map(|line| line.expect("UTF-8"));
    let printed: Vec<String> = lines.take_while(|line| !line.contains("Ctrl-C stops")).collect();
    let after = |start: &str| {
        let found = printed.iter().find_map(|line| line.trim().strip_prefix(start));
        found.unwrap_or_else(|| panic!("{start} is not in {printed:?}")).to_owned()
    };

    let host = after("http://").trim_end_matches('/').to_owned();
    let address: SocketAddr = host.parse().expect("an address");
    let mut page = TcpStream::connect(address).expect("it listens");
    page.set_read_timeout(Some(PATIENCE)).expect("a socket of ours");
    write!(page, "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("it listens");
    let answer = std::io::read_to_string(page).expect("text");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("<html"), "{answer}");

    for user in ["alice: ", "bob: "] {
        let mut client = Client::open(address, &after(user), Encoding::Json).expect("let in");
        client.await_heard(|heard| (heard == Heard::CaughtUp).then_some(()));
    }
}

#[test]
fn without_dev_there_is_no_page() {
    let place = Place::new();
    let server = Start::new(&place).start();
    assert_eq!(server.http("GET", "/", None, "").0, 404);
    server.stop();
}

#[test]
fn row_5_x7_the_log_has_no_token_and_no_payload() {
    const WORDS: &str = "what only the two of us may read";
    /// The same in base64 (RFC 4648) and in hexadecimal digits, without what depends on its neighbours.
    const SPELLINGS: [&str; 3] =
        [WORDS, "d2hhdCBvbmx5IHRoZSB0d28gb2YgdXMgbWF5IHJlYW", "77686174206f6e6c792074686520"];
    let place = Place::new();
    let server = Start::new(&place).with("THRONG_LOG_LEVEL", "trace").start();
    let tokens = [token("alice", 1), token("bob", 1)];
    let conversation = server.direct(&tokens[0], "bob");

    let [mut alice, mut bob] = [(0, Encoding::Json), (1, Encoding::Cbor)]
        .map(|(who, encoding)| Client::open(server.address, &tokens[who], encoding).expect("let in"));
    let send = |client: &mut Client, client_id| {
        let payload = WORDS.as_bytes().to_vec().into();
        client.ask(Ask::Send { conversation, client_id: ClientId([client_id; 16]), payload }).expect("open")
    };
    send(&mut alice, 1);
    let seq = bob.await_heard(|heard| match heard {
        Heard::Message(_, entry) if payload(&entry) == Some(WORDS.as_bytes()) => Some(entry.seq),
        _ => None,
    });
    for command in [
        Ask::Recv { conversation, seq },
        Ask::Read { conversation, seq },
        Ask::Sync { conversation, after: model::Seq::ZERO, limit: 10 },
        Ask::SendPassing { conversation, payload: WORDS.as_bytes().to_vec().into() },
        Ask::Refresh { token: protocol::Token(tokens[1].as_str().into()) },
    ] {
        let asked = bob.ask(command).expect("open");
        bob.await_heard(|heard| match heard {
            Heard::Done(id) | Heard::Page(id, ..) => (id == asked).then_some(()),
            _ => None,
        });
    }
    // What is refused is what an eager programmer logs.
    let other = Ask::Send { conversation, client_id: ClientId([1; 16]), payload: b"other".to_vec().into() };
    alice.ask(other).expect("open");
    alice.await_heard(|heard| (heard_code(&heard) == Some(ErrorCode::ClientIdReused)).then_some(()));
    // The signature may end with any digit, so the last one is changed and not merely set.
    let (all_but_one, last) = tokens[0].split_at(tokens[0].len() - 1);
    let forged = format!("{all_but_one}{}", if last == "A" { "E" } else { "A" });
    assert!(Client::open(server.address, &forged, Encoding::Json).is_err());
    assert_eq!(server.http("GET", "/v1/conversations", Some(&forged), "").0, 401);
    assert_eq!(server.http("GET", "/v1/conversations", Some(&tokens[0]), "").0, 200);
    assert_eq!(server.http("POST", "/v1/conversations", Some(&tokens[0]), WORDS).0, 400);
    let in_address = format!("/v1/socket?token={}", tokens[0]);
    assert_eq!(server.http("GET", &in_address, None, "").0, 400);
    // Torn off in the middle of a request with a token, and in the middle of a command.
    let mut torn = TcpStream::connect(server.address).expect("it listens");
    write!(torn, "GET /v1/conversations HTTP/1.1\r\nAuthorization: Bearer {}\r\n", tokens[0]).expect("open");
    drop(torn);
    drop((alice, bob));

    let log = place.path("log");
    server.stop();
    let log = std::fs::read_to_string(log).expect("the log");
    assert!(log.contains("INFO") && log.contains("everything acknowledged is on disk"), "it logs: {log}");
    for token in tokens.iter().chain([&forged]) {
        for part in token.split('.').skip(1) {
            assert!(!log.contains(part), "a part of a token is in the log");
        }
    }
    for spelling in SPELLINGS {
        assert!(!log.contains(spelling), "a payload is in the log, as {spelling}");
    }
}

fn heard_code(heard: &Heard) -> Option<ErrorCode> {
    match heard {
        Heard::Refused(_, code) => Some(*code),
        _ => None,
    }
}

#[test]
fn a_known_device_with_nothing_pending_comes_back_without_a_query() {
    const REQUESTS: &str = "throng_store_requests_total";
    let place = Place::new();
    let server = Start::new(&place).start();
    let tokens = [token("alice", 1), token("bob", 1)];
    let conversation = server.direct(&tokens[0], "bob");
    let caught_up = |token: &str| {
        let mut client = Client::open(server.address, token, Encoding::Cbor).expect("let in");
        client.await_heard(|heard| (heard == Heard::CaughtUp).then_some(()));
        client
    };
    {
        // A message, delivered and acknowledged, and the entry before it, which both were told.
        let [mut alice, mut bob] = [0, 1].map(|who| caught_up(&tokens[who]));
        let payload = b"hello".to_vec().into();
        let send = Ask::Send { conversation, client_id: ClientId([7; 16]), payload };
        alice.ask(send).expect("open");
        for client in [&mut alice, &mut bob] {
            let last = client.await_heard(|heard| match heard {
                Heard::Message(_, entry) if payload_is_hello(&entry) => Some(entry.seq),
                Heard::Sent(_, sent) => Some(sent.seq),
                _ => None,
            });
            let asked = client.ask(Ask::Recv { conversation, seq: last }).expect("open");
            client.await_heard(|heard| (heard == Heard::Done(asked)).then_some(()));
        }
    }
    // What the server tidies up after two quiet seconds, or on the second look four, are queries too; they are over when five bring
    // no more.
    let (mut before, mut since) = (server.metric(REQUESTS), Instant::now());
    let began = since;
    while since.elapsed() < Duration::from_secs(5) {
        assert!(began.elapsed() < Duration::from_secs(30), "the store is never left alone");
        std::thread::sleep(Duration::from_millis(100));
        let now = server.metric(REQUESTS);
        if now != before {
            (before, since) = (now, Instant::now());
        }
    }
    for _ in 0..10 {
        // Closed, and taken over by the next connection of the same device.
        let first = caught_up(&tokens[0]);
        let _second = caught_up(&tokens[0]);
        drop(first);
        caught_up(&tokens[1]);
    }
    assert_eq!(server.metric(REQUESTS), before, "coming back asks the store nothing");
    assert_eq!(server.metric("throng_connects_total"), 32);
    server.stop();
}

fn payload_is_hello(entry: &model::Entry) -> bool {
    payload(entry) == Some(b"hello")
}
