//! Bad clients beside good ones: what they cost the server has a cap, they hurt nobody but themselves, and whoever was only slow gets
//! everything once (X1 to X4). What the good ones notice is measured by `cargo xtask bench neighbours`.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use model::{ClientId, ConversationId, Seq};
use protocol::{Command, Encoding};
use websocket::{Opcode, encode_masked_frame};

use crate::client::{Client, Heard, MASK, PATIENCE, payload};
use crate::run::Place;
use crate::server::{Server, Start, token};

/// A server of one shard that does not take leave for long.
fn small(place: &Place) -> Start<'_> {
    Start { shards: 1, ..Start::new(place) }.with("THRONG_DRAIN", "0s")
}

fn open(server: &Server, user: &str) -> Client {
    Client::open(server.address, &token(user, 1), Encoding::Cbor).expect("let in")
}

fn send(client: &mut Client, conversation: ConversationId, number: u64, length: usize) -> u64 {
    let client_id = ClientId(u128::from(number).to_be_bytes());
    let payload = bytes(number, length).into();
    client.ask(Command::Send { conversation, client_id, payload }).expect("open")
}

fn bytes(number: u64, length: usize) -> Vec<u8> {
    number.to_be_bytes().into_iter().cycle().take(length).collect()
}

/// The server's memory and processor time so far, to see what something costs it.
struct Strain<'a> {
    server: &'a Server,
    memory: u64,
    cpu: Duration,
}

impl<'a> Strain<'a> {
    fn on(server: &'a Server) -> Strain<'a> {
        Strain { server, memory: server.memory(), cpu: server.cpu() }
    }

    /// It has cost no more than this until now.
    fn is_at_most(&self, mebibytes: u64, cpu: Duration) {
        let memory = self.server.memory().saturating_sub(self.memory);
        let used = self.server.cpu() - self.cpu;
        eprintln!("{} KiB of at most {mebibytes} MiB, {used:?} of at most {cpu:?}", memory / 1_024);
        assert!(memory <= mebibytes << 20, "{memory} bytes");
        assert!(used <= cpu, "{used:?} of processor time");
    }
}

/// Two who talk with each other until this is dropped; each word must be answered, stored and heard.
struct Talking<'a>(&'a AtomicBool);

impl Drop for Talking<'_> {
    fn drop(&mut self) {
        self.0.store(false, SeqCst);
    }
}

/// What happens while two others talk, who must not be held up for good.
fn beside<T>(server: &Server, meanwhile: impl FnOnce() -> T) -> T {
    let conversation = server.direct(&token("good", 1), "friend");
    let [mut good, mut friend] = ["good", "friend"].map(|user| open(server, user));
    let going_on = AtomicBool::new(true);
    let mut talk = || {
        let (mut said, mut longest) = (0, Duration::ZERO);
        // Whatever the others do takes a while; these have to have said something in it.
        while going_on.load(SeqCst) || said < 20 {
            said += 1;
            let began = Instant::now();
            let asked = send(&mut good, conversation, said, 100);
            let seq = friend.await_heard(|heard| match heard {
                Heard::Message(_, entry) if payload(&entry) == Some(&bytes(said, 100)) => Some(entry.seq),
                _ => None,
            });
            friend.ask(Command::Recv { conversation, seq }).expect("open");
            let answered = good.await_heard(|heard| match heard {
                Heard::Sent(id, sent) => (id == asked).then_some(sent.seq),
                _ => None,
            });
            assert_eq!(answered, seq);
            longest = longest.max(began.elapsed());
            std::thread::sleep(Duration::from_millis(10));
        }
        eprintln!("{said} words beside it, the slowest heard after {longest:?}");
    };
    std::thread::scope(|scope| {
        let talking = scope.spawn(&mut talk);
        let until = Talking(&going_on);
        let done = meanwhile();
        drop(until);
        talking.join().expect("the good ones are not hurt");
        done
    })
}

/// Reads until the server has closed a connection: all that it said.
fn last_words(mut stream: &TcpStream) -> Vec<u8> {
    let mut words = Vec::new();
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket of ours");
    match stream.read_to_end(&mut words) {
        Ok(_) => words,
        Err(error) if error.kind() == ErrorKind::ConnectionReset => words,
        Err(error) => panic!("it is not closed: {error}"),
    }
}

/// The code of the close frame, which must come.
fn closed(client: &mut Client) -> u16 {
    client.await_heard(|heard| match heard {
        Heard::Closed(code) => Some(code.expect("a code")),
        _ => None,
    })
}

#[test]
fn row_3_a_hundred_who_stall_are_gone_after_the_deadline_and_others_get_in() {
    const STALLED: usize = 100;
    let place = Place::new();
    let server = small(&place)
        .with("THRONG_CONNECTIONS_CONNECT_DEADLINE", "2s")
        .with("THRONG_CONNECTIONS_UNAUTHENTICATED_PER_ADDRESS_MAX", STALLED)
        .start();
    beside(&server, || {
        let strain = Strain::on(&server);
        let mut head = Vec::new();
        websocket::write_request(
            &mut head,
            &server.address.to_string(),
            "/v1/socket",
            &websocket::client_key([7; 16]),
            &[Encoding::Json.subprotocol()],
            &[],
        );
        let mut stalled: Vec<TcpStream> = (0..STALLED)
            .map(|n| {
                let mut stream = TcpStream::connect(server.address).expect("the kernel takes it");
                // A third says nothing, a third begins its head, a third never says who it is.
                let part = [&head[..0], &head[..head.len() / 2], &head][n % 3];
                stream.write_all(part).expect("open");
                stream
            })
            .collect();
        let began = Instant::now();
        let full = Client::open(server.address, &token("one too many", 1), Encoding::Json);
        // Those that began go on a byte at a time, which is no reason to wait for them.
        for byte in &head[head.len() / 2..head.len() - 4] {
            for stream in stalled.iter_mut().skip(1).step_by(3) {
                let _ = stream.write_all(&[*byte]);
            }
            std::thread::sleep(Duration::from_millis(40));
            if began.elapsed() > Duration::from_secs(3) {
                break;
            }
        }
        for stream in &stalled {
            last_words(stream);
        }
        assert!(full.is_err(), "an address has so many places");
        open(&server, "late");
        strain.is_at_most(8, Duration::from_secs(2));
    });
    server.stop();
}

#[test]
fn row_7_fragments_without_end_are_cut_off_and_cost_nothing() {
    let place = Place::new();
    let server = small(&place).start();
    beside(&server, || {
        let strain = Strain::on(&server);
        for round in 0..8 {
            let mut endless = open(&server, "endless");
            // Some by their number, some by their bytes.
            let (length, count, code) = if round % 2 == 0 { (1, 2_000, 1008) } else { (60_000, 50, 1009) };
            let mut opcode = Opcode::Text;
            for _ in 0..count {
                let mut frame = Vec::new();
                encode_masked_frame(&mut frame, opcode, false, MASK, &vec![b' '; length]);
                opcode = Opcode::Continuation;
                if endless.stream().write_all(&frame).is_err() {
                    break;
                }
            }
            // What is on its way when a connection ends may cost us the last word, but never the end.
            loop {
                match endless.hear(PATIENCE) {
                    Ok(Some(Heard::Closed(closed))) => break assert_eq!(closed, Some(code)),
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("it is not closed"),
                    Err(_) => break,
                }
            }
        }
        strain.is_at_most(4, Duration::from_secs(4));
    });
    server.stop();
}

#[test]
fn row_8_a_hundred_thousand_pings_without_reading_are_cut_off() {
    let place = Place::new();
    let server = small(&place).start();
    beside(&server, || {
        let strain = Strain::on(&server);
        let mut frame = Vec::new();
        encode_masked_frame(&mut frame, Opcode::Ping, true, MASK, b"anybody there?");
        let mut flood = open(&server, "flood");
        // The server may close before it has taken all of them.
        let _ = flood.stream().write_all(&frame.repeat(100_000));
        let mut said = Vec::new();
        while let Ok(Some(heard)) = flood.hear(PATIENCE) {
            said.push(heard);
        }
        let codes: Vec<u16> = said
            .iter()
            .filter_map(|heard| match heard {
                Heard::Closed(code) => *code,
                _ => None,
            })
            .collect();
        // A reset on the way back may take the last word along.
        eprintln!("the flood was told {codes:?}");
        assert!(codes.is_empty() || codes == [4429], "{said:?}");
        strain.is_at_most(4, Duration::from_secs(2));
        open(&server, "flood");
    });
    server.stop();
}

#[test]
fn row_10_who_never_reads_while_ten_thousand_messages_wait_gets_each_once_when_back() {
    const MESSAGES: u64 = 10_000;
    const LENGTH: usize = 2_000;
    let place = Place::new();
    // With little room for what was read and written, so that what waits for the sleeper would show.
    let server = small(&place).generous().with("THRONG_STORE_CACHE_BYTES", 1 << 20).start();
    let conversation = server.direct(&token("writer", 1), "sleeper");
    let mut writer = open(&server, "writer");
    let mut sleeper = open(&server, "sleeper");
    sleeper.await_heard(|heard| (heard == Heard::CaughtUp).then_some(()));
    beside(&server, || {
        let strain = Strain::on(&server);
        let mut unanswered = 0;
        let mut answered = 0;
        for number in 0..MESSAGES {
            send(&mut writer, conversation, number, LENGTH);
            unanswered += 1;
            while unanswered > if number + 1 == MESSAGES { 0 } else { 200 } {
                let seq = writer.await_heard(|heard| match heard {
                    Heard::Sent(_, sent) => Some(sent.seq),
                    Heard::Refused(_, code) => panic!("refused with {}", code.name()),
                    _ => None,
                });
                answered += 1;
                assert_eq!(seq, Seq(answered + 1), "behind the entry that tells of the conversation");
                unanswered -= 1;
            }
        }
        // Twenty megabytes wait. The sleeper's share of memory is its window, half a mebibyte.
        strain.is_at_most(12, Duration::from_secs(10));
    });
    // It wakes up on the same connection if that still stands, or comes back on another one.
    let (mut next, mut seen) = (0, Seq(1));
    let mut connections = 0;
    while next < MESSAGES {
        connections += 1;
        assert!(connections <= 3, "it does not get on");
        while let Ok(Some(heard)) = sleeper.hear(Duration::from_secs(10)) {
            let Heard::Message(_, entry) = heard else { continue };
            if entry.seq > seen {
                assert_eq!(entry.seq, seen.next(), "nothing is left out");
                seen = entry.seq;
                if let Some(payload) = payload(&entry) {
                    assert!(payload == bytes(next, LENGTH), "message {next}");
                    next += 1;
                }
            } else {
                assert!(connections > 1, "{} came twice on one connection", entry.seq);
            }
            if next.is_multiple_of(64) || next == MESSAGES {
                sleeper.ask(Command::Recv { conversation, seq: seen }).expect("open");
            }
            if next == MESSAGES {
                break;
            }
        }
        if next < MESSAGES {
            sleeper = open(&server, "sleeper");
        }
    }
    server.stop();
}

#[test]
fn a_thousand_half_messages_cost_what_was_sent_and_are_not_waited_for() {
    const CLIENTS: u32 = 1_000;
    const SENT: usize = 8_000;
    let place = Place::new();
    let server = small(&place).start();
    beside(&server, || {
        let tokens = (0..CLIENTS).map(|n| token("half", n));
        let mut clients: Vec<Client> = tokens
            .map(|token| Client::open(server.address, &token, Encoding::Json).expect("let in"))
            .collect();
        let strain = Strain::on(&server);
        let mut frame = Vec::new();
        encode_masked_frame(&mut frame, Opcode::Text, true, MASK, &[b' '; 60_000]);
        let began = Instant::now();
        for client in &mut clients {
            client.stream().write_all(&frame[..SENT]).expect("open");
        }
        // A partial message may have ten seconds, and a look at everybody takes two.
        let codes: Vec<u16> = clients.iter_mut().map(closed).collect();
        assert!(codes.iter().all(|code| *code == 1008), "{codes:?}");
        assert!(began.elapsed() > Duration::from_secs(8), "it has some time, {:?}", began.elapsed());
        // Not the 60 MB that were announced. Twice what was sent, as buffers grow by doubling, and as much again to be handed out.
        strain.is_at_most(32, Duration::from_secs(4));
    });
    server.stop();
}

#[test]
fn row_12_a_herd_is_let_in_at_the_rate_that_was_set_and_asks_the_store_nothing() {
    const HERD: u32 = 300;
    const PER_SECOND: u32 = 100;
    const BURST: u32 = 50;
    let place = Place::new();
    let everybody_comes = |server: &Server| {
        let began = Instant::now();
        let clients: Vec<Client> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..HERD)
                .map(|n| {
                    scope.spawn(move || {
                        let token = token("herd", n);
                        loop {
                            match Client::open(server.address, &token, Encoding::Cbor) {
                                Ok(client) => return client,
                                // Spread, as the protocol asks.
                                Err(_) => std::thread::sleep(Duration::from_millis(100 + u64::from(n))),
                            }
                            assert!(began.elapsed() < PATIENCE, "somebody is never let in");
                        }
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("everybody gets in")).collect()
        });
        (clients, began.elapsed())
    };
    let server = small(&place).start();
    let (clients, _) = everybody_comes(&server);
    server.kill();
    drop(clients);
    let limited = small(&place)
        .with("THRONG_ADMISSION_CONNECTS_PER_SECOND", PER_SECOND)
        .with("THRONG_ADMISSION_BURST", BURST);
    let server = limited.start();
    let asked = server.metric("throng_store_requests_total");
    let (clients, took) = everybody_comes(&server);
    // Fifty at once, the others at a hundred a second.
    let least = Duration::from_millis(1_000 * u64::from(HERD - BURST) / u64::from(PER_SECOND));
    assert!(took > least.mul_f64(0.9), "they came in {took:?}");
    assert_eq!(server.metric("throng_store_requests_total"), asked, "devices that are known cost no query");
    assert_eq!(server.metric("throng_sessions"), u64::from(HERD));
    drop(clients);
    server.stop();
}
