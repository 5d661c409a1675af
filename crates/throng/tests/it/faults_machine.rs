//! A machine that does not behave: no descriptors left, a wall clock that jumps, and words that would like to be a line of the log.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use model::{ClientId, ConversationId, Seq, Span};
use protocol::{Command, Encoding, Sent};

use crate::client::{Client, Heard, payload, says_nothing};
use crate::faults::Faults;
use crate::run::Place;
use crate::server::{Server, Start, free_address, token, token_for};

#[test]
fn row_11_out_of_descriptors_those_inside_keep_working() {
    let place = Place::new();
    let start = Start { shards: 1, descriptors: Some(64), address: free_address(), ..Start::new(&place) };
    let server = start.start();
    let tokens = [token("alice", 1), token("bob", 1)];
    let conversation = server.direct(&tokens[0], "bob");
    let [mut alice, mut bob] =
        [0, 1].map(|who| Client::open(server.address, &tokens[who], Encoding::Json).expect("let in"));

    // The HTTP side has a table of open files of its own, which those fill who ask once and stay.
    let staying: Vec<TcpStream> = (0..60)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address).expect("the kernel takes it");
            let _ = stream.write_all(b"GET /livez HTTP/1.1\r\nHost: throng\r\n\r\n");
            stream
        })
        .collect();
    let crowd: Vec<TcpStream> =
        (0..200).map(|_| TcpStream::connect(server.address).expect("the kernel takes it")).collect();
    let (began, cpu) = (Instant::now(), server.cpu());
    let mut said = 0_u8;
    while began.elapsed() < Duration::from_secs(5) {
        let payload = vec![said].into();
        alice
            .ask(Command::Send { conversation, client_id: ClientId([said; 16]), payload })
            .expect("those inside keep working");
        let seq = bob.await_heard(|heard| match heard {
            Heard::Message(_, entry) if payload_is(&entry, said) => Some(entry.seq),
            _ => None,
        });
        bob.ask(Command::Recv { conversation, seq }).expect("those inside keep working");
        said += 1;
        std::thread::sleep(Duration::from_millis(100));
    }
    let used = server.cpu() - cpu;
    assert!(used < Duration::from_millis(500), "no spin: {used:?} in 5 s");
    drop((crowd, staying));

    let began = Instant::now();
    let late = token("late", 1);
    while Client::open(server.address, &late, Encoding::Json).is_err() {
        assert!(began.elapsed() < Duration::from_secs(10), "accepting resumes");
        std::thread::sleep(Duration::from_millis(100));
    }
    let turned_away = server.metric("throng_upgrades_refused_total");
    let rested = server.log().contains("accepting rests");
    assert!(turned_away > 100 || rested, "there was not room for everybody: {turned_away}");
    let lines = server.log().lines().count();
    assert!(lines < 20, "a crowd does not fill the log: {lines} lines");
    server.stop();
}

fn payload_is(entry: &model::Entry, said: u8) -> bool {
    payload(entry) == Some(&[said])
}

/// Sends one message from one to the other, and waits until both have heard of it.
fn pass(pair: &mut [Client; 2], conversation: ConversationId, number: u64) -> Sent {
    let client_id = ClientId(u128::from(number).to_be_bytes());
    let payload = number.to_be_bytes().to_vec().into();
    let asked = pair[0].ask(Command::Send { conversation, client_id, payload }).expect("open");
    let sent = pair[0].await_heard(|heard| match heard {
        Heard::Sent(id, sent) if id == asked => Some(sent),
        _ => None,
    });
    if !sent.duplicate {
        pair[1].await_heard(|heard| match heard {
            Heard::Message(_, entry) => (entry.seq == sent.seq).then_some(()),
            _ => None,
        });
        pair[1].ask(Command::Recv { conversation, seq: sent.seq }).expect("open");
    }
    sent
}

/// Whether the server has nothing to say to a connection and leaves it open.
fn is_left_alone(mut stream: &TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a socket of ours");
    let read = stream.read(&mut [0; 64]);
    matches!(read, Err(error) if says_nothing(&error))
}

#[test]
fn row_13_x6_a_wall_clock_that_jumps_orders_and_times_nothing() {
    const HOUR: i64 = 3_600;
    let place = Place::new();
    let Some(faults) = Faults::new(&place) else { return };
    let start = faults.beneath(Start { shards: 2, ..Start::new(&place) }).with("THRONG_DRAIN", "1s");
    let mut server = start.start();
    let day = |user: &str| token_for(user, 1, Span::seconds(24 * 3_600));
    let conversation = server.direct(&day("alice"), "bob");
    let open = |server: &Server, token: &str| {
        let mut client = Client::open(server.address, token, Encoding::Cbor).expect("let in");
        client.await_heard(|heard| (heard == Heard::CaughtUp).then_some(()));
        client
    };
    let mut pair = ["alice", "bob"].map(|user| open(&server, &day(user)));
    let quiet: Vec<Client> = (0..20).map(|n| open(&server, &day(&format!("quiet {n}")))).collect();
    let mut an_hour = open(&server, &token("an hour", 1));
    let first = pass(&mut pair, conversation, 0);

    let mut last = first;
    for (step, wrong) in [-HOUR, 0, HOUR - 120, -HOUR, HOUR - 120].into_iter().enumerate() {
        let silent = TcpStream::connect(server.address).expect("it listens");
        // Accepted before the clock jumps.
        let earlier = pass(&mut pair, conversation, 100 * step as u64 + 1);
        faults.set_clock_wrong_by(wrong);
        let sent = pass(&mut pair, conversation, 100 * step as u64 + 2);
        let jumped = sent.ts.0 as i64 - first.ts.0 as i64 - 1_000 * wrong;
        assert!((0..60_000).contains(&jumped), "the server believes the clock: {jumped}");
        // The order is that of the log, whatever the time.
        assert_eq!((earlier.seq, sent.seq), (last.seq.next(), last.seq.next().next()));
        // Deadlines and pings go by the clock that only goes on: two sweeps later nobody has been looked for.
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(800) {
            assert!(is_left_alone(&silent), "ten seconds to connect are ten seconds");
        }
        for client in &quiet {
            let mut stream = client.stream();
            stream.set_nonblocking(true).expect("a socket of ours");
            let heard = stream.read(&mut [0; 64]);
            assert!(heard.is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "no ping, no farewell");
            stream.set_nonblocking(false).expect("a socket of ours");
        }
        // What was said is remembered as long as ever.
        let again = pass(&mut pair, conversation, 0);
        assert_eq!((again.seq, again.ts, again.duplicate), (first.seq, first.ts, true));
        // Who is not told the time by a token comes back as ever.
        last = sent;
    }

    // A token says until when by the wall clock, so that is what ends its session.
    faults.set_clock_wrong_by(HOUR + 60);
    let (code, _) = an_hour.await_heard(|heard| match heard {
        Heard::Disconnect(code, window) => Some((code, window)),
        _ => None,
    });
    assert_eq!(code, 4401);

    // A drain takes its time and no more, even when the clock jumps meanwhile, either way.
    server.ask_to_stop();
    faults.set_clock_wrong_by(-HOUR);
    let (status, _) = server.wait(Duration::from_secs(30));
    assert!(status.success(), "{status}");

    // Started an hour early it has everything, and goes on behind it.
    let server = start.start();
    faults.set_clock_wrong_by(0);
    let mut pair = ["alice", "bob"].map(|user| open(&server, &day(user)));
    let sent = pass(&mut pair, conversation, 1_000);
    assert_eq!(sent.seq, last.seq.next());
    assert_eq!(pass(&mut pair, conversation, 0).seq, Seq(2));
    drop(pair);
    server.stop();
}

#[test]
fn row_27_nobody_writes_lines_into_the_log() {
    /// What a line of theirs would look like, with every line break and escape that some viewer obeys.
    const FORGED: &str = "x\r\nFORGED\nFORGED\u{b}FORGED\u{85}FORGED\u{2028}FORGED\u{1b}[31mFORGED";
    for (format, is_line) in [
        (
            "json",
            (|line| serde_json::from_str::<serde_json::Value>(line).is_ok_and(|line| line.is_object()))
                as fn(&str) -> bool,
        ),
        ("text", |line| line.as_bytes().first().is_some_and(u8::is_ascii_digit) && line.contains("Z ")),
    ] {
        let place = Place::new();
        let start = Start { shards: 1, ..Start::new(&place) }.with("THRONG_DRAIN", "0s");
        let server = start.with("THRONG_LOG_FORMAT", format).with("THRONG_LOG_LEVEL", "trace").start();
        // Each part of a request that could be told, with the forged line raw, in JSON's words, and in an address's.
        let escaped = serde_json::to_string(FORGED).expect("a text").trim_matches('"').to_owned();
        let percent: String = FORGED.bytes().map(|byte| format!("%{byte:02x}")).collect();
        for forged in [FORGED, &escaped, &percent] {
            for request in [
                format!("GET /{forged} HTTP/1.1\r\nHost: {}\r\n\r\n", server.address),
                format!("{forged} / HTTP/1.1\r\nHost: {}\r\n\r\n", server.address),
                format!(
                    "GET / HTTP/1.1\r\nHost: {forged}\r\nUser-Agent: {forged}\r\nOrigin: {forged}\r\n\r\n"
                ),
                format!(
                    "GET /v1/conversations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {forged}\r\n\r\n"
                ),
                format!(
                    "GET /v1/socket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\
                     Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: http://{forged}\r\n\r\n"
                ),
            ] {
                let mut stream = TcpStream::connect(server.address).expect("it listens");
                let _ = stream.write_all(request.as_bytes());
                stream.set_read_timeout(Some(Duration::from_millis(100))).expect("a socket of ours");
                let _ = stream.read(&mut [0; 512]);
            }
            let token = token(forged, 1);
            let _ =
                server.http("POST", "/v1/conversations", Some(&token), &format!(r#"{{"kind":"{forged}"}}"#));
            let client = Client::open(server.address, &token, Encoding::Json).expect("any name is a name");
            let command = format!(r#"{{"id":1,"{forged}":{{"conv":"{forged}"}}}}"#);
            let mut frame = Vec::new();
            websocket::encode_masked_frame(
                &mut frame,
                websocket::Opcode::Text,
                true,
                crate::client::MASK,
                command.as_bytes(),
            );
            client.stream().write_all(&frame).expect("open");
            is_left_alone(client.stream());
        }
        server.stop();
        let log = std::fs::read_to_string(place.path("log")).expect("the log is UTF-8");
        assert!(log.lines().count() > 10 && log.contains("answered"), "it logs what is asked: {log}");
        for line in log.lines() {
            assert!(is_line(line), "{format}: {line:?} is no line of ours");
            assert!(!line.contains(|c: char| c.is_control() || c == '\u{2028}'), "{format}: {line:?}");
        }
    }
}
