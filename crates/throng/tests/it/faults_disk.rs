//! A disk that fails: nothing is acknowledged that is not kept, what cannot be written is refused, and what is damaged is
//! named or does no harm (S1, S2, S4).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use model::{ClientId, ConversationId, Seq};
use protocol::{Command, Encoding, ErrorCode};
use rustix::io::Errno;

use crate::chance::Chance;
use crate::client::{Client, Heard, PATIENCE, payload};
use crate::database::page_bytes;
use crate::faults::{Call, FOR_EVER, Faults, How, On, SmallDisk};
use crate::run::Place;
use crate::server::{Server, Start, token};

/// The exit code of a server whose store failed.
const STORE_FAILED: i32 = 74;
/// As many entries as one page of `sync` may have.
const PAGE: u32 = 256;

/// A small server that takes as many commands as come, and does not take leave for long.
fn small(place: &Place) -> Start<'_> {
    Start { shards: 1, ..Start::new(place) }.generous().with("THRONG_DRAIN", "0s")
}

/// What became of a message.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Kept(Seq),
    Refused(ErrorCode),
}

/// A message in a count of its own, which makes its client id and its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Number(u32);

impl Number {
    fn next(self) -> Number {
        Number(self.0 + 1)
    }

    fn bytes(self, length: usize) -> Vec<u8> {
        self.0.to_be_bytes().into_iter().cycle().take(length.max(4)).collect()
    }
}

/// Sends one message and waits for what becomes of it.
fn say(client: &mut Client, to: ConversationId, number: Number, length: usize) -> io::Result<Said> {
    let client_id = ClientId(u128::from(number.0).to_be_bytes());
    let asked =
        client.ask(Command::Send { conversation: to, client_id, payload: number.bytes(length).into() })?;
    loop {
        match client.hear(PATIENCE)?.expect("an answer in time") {
            Heard::Sent(id, sent) if id == asked => return Ok(Said::Kept(sent.seq)),
            Heard::Refused(Some(id), code) if id == asked => return Ok(Said::Refused(code)),
            _ => {}
        }
    }
}

/// Everything a conversation holds, page by page; the first entry tells of its making and is no message.
fn read(client: &mut Client, conversation: ConversationId) -> io::Result<Vec<(Seq, Vec<u8>)>> {
    let (mut messages, mut after) = (Vec::new(), Seq::ZERO);
    loop {
        let asked = client.ask(Command::Sync { conversation, after, limit: PAGE })?;
        let (entries, head) = loop {
            match client.hear(PATIENCE)?.expect("an answer in time") {
                Heard::Page(id, entries, head) if id == asked => break (entries, head),
                Heard::Refused(Some(id), code) if id == asked => panic!("refused with {}", code.name()),
                _ => {}
            }
        };
        after = entries.last().map_or(head, |last| last.seq);
        messages.extend(entries.iter().filter_map(|entry| Some((entry.seq, payload(entry)?.to_vec()))));
        if after == head {
            return Ok(messages);
        }
    }
}

/// What a person was promised: the place and the number of each message, in order.
#[derive(Default)]
struct Promised(Vec<(Seq, Number)>);

impl Promised {
    fn next(&self) -> Number {
        self.0.last().map_or(Number(0), |(_, number)| number.next())
    }

    /// What is kept is what was promised. With `one_more`, the next one may have been kept without an answer.
    fn check(&self, kept: &[(Seq, Vec<u8>)], length: usize, one_more: bool) {
        let mut expected: Vec<(Seq, Vec<u8>)> =
            self.0.iter().map(|(seq, number)| (*seq, number.bytes(length))).collect();
        if one_more && kept.len() == expected.len() + 1 {
            let last = self.0.last().map_or(Seq(1), |(seq, _)| *seq);
            expected.push((last.next(), self.next().bytes(length)));
        }
        let places = |of: &[(Seq, Vec<u8>)]| of.iter().map(|(seq, _)| seq.0).collect::<Vec<u64>>();
        assert_eq!(places(kept), places(&expected));
        assert!(kept == expected, "the bytes are those that were sent");
    }

    /// Sends the next one, which must be kept.
    fn say_next(&mut self, client: &mut Client, to: ConversationId, length: usize) {
        match say(client, to, self.next(), length).expect("the connection stands") {
            Said::Kept(seq) => self.0.push((seq, self.next())),
            refused => panic!("{refused:?}"),
        }
    }
}

fn open(server: &Server, user: &str) -> Client {
    Client::open(server.address, &token(user, 1), Encoding::Cbor).expect("let in")
}

fn database_is_sound(place: &Place) {
    assert!(place.prints(&["db", "check", "--data", "data"]).starts_with("the database is sound: "));
}

#[test]
fn row_24_s1_after_a_sync_that_failed_nothing_is_acknowledged() {
    let place = Place::new();
    let Some(faults) = Faults::new(&place) else { return };
    let start = faults.beneath(small(&place));
    let mut server = start.start();
    let conversation = server.direct(&token("alice", 1), "bob");
    let mut promised = Promised::default();
    for nth in 1..=20 {
        let mut alice = open(&server, "alice");
        let before = promised.0.len() as u64;
        faults.arm(Call::Sync, &On::ALL, nth - 1, 1, How::Fails(Errno::IO));
        // One at a time, so that each answer follows a sync of its own.
        while let Ok(said) = say(&mut alice, conversation, promised.next(), 100) {
            let Said::Kept(seq) = said else { panic!("{said:?}") };
            promised.0.push((seq, promised.next()));
            assert!(promised.0.len() as u64 - before < nth, "an answer after sync {nth} failed");
        }
        let (status, _) = server.wait(PATIENCE);
        assert_eq!((status.code(), faults.met()), (Some(STORE_FAILED), 1), "sync {nth}");
        faults.heal();

        server = start.start();
        let mut alice = open(&server, "alice");
        // What failed may have reached the disk all the same; a repeat then finds it.
        promised.check(&read(&mut alice, conversation).expect("it stands"), 100, true);
        promised.say_next(&mut alice, conversation, 100);
        promised.check(&read(&mut alice, conversation).expect("it stands"), 100, false);
    }
    server.stop();
    database_is_sound(&place);
}

#[test]
fn row_24_s1_a_sync_that_fails_while_the_log_is_copied_ends_the_server_too() {
    const LENGTH: usize = 60_000;
    /// The log is copied when it has grown by 64 MiB.
    const ENOUGH: u32 = 2 * (64 << 20) / LENGTH as u32;
    let place = Place::new();
    let Some(faults) = Faults::new(&place) else { return };
    let start = faults.beneath(small(&place));
    let mut server = start.start();
    let conversation = server.direct(&token("alice", 1), "bob");
    let mut alice = open(&server, "alice");
    let mut promised = Promised::default();
    faults.arm(Call::Sync, &[On::Database], 0, 1, How::Fails(Errno::IO));
    while let Ok(Said::Kept(seq)) = say(&mut alice, conversation, promised.next(), LENGTH) {
        promised.0.push((seq, promised.next()));
        assert!(promised.next().0 < ENOUGH, "the log is never copied");
    }
    let (status, _) = server.wait(PATIENCE);
    assert_eq!((status.code(), faults.met()), (Some(STORE_FAILED), 1));
    faults.heal();
    let server = start.start();
    promised.check(&read(&mut open(&server, "alice"), conversation).expect("it stands"), LENGTH, true);
    server.stop();
    database_is_sound(&place);
}

#[test]
fn row_24_a_start_whose_disk_fails_says_so_and_the_next_one_succeeds() {
    for (call, files) in [(Call::Sync, &On::ALL[..]), (Call::Write, &On::ALL[..]), (Call::Open, &[On::Log])] {
        let place = Place::new();
        let Some(faults) = Faults::new(&place) else { return };
        let start = faults.beneath(small(&place));
        let mut refused = 0;
        let server = loop {
            faults.arm(call, files, refused, 1, How::Fails(Errno::IO));
            match start.try_start() {
                Ok(server) => break server,
                Err((status, said)) => {
                    assert!(matches!(status.code(), Some(1 | STORE_FAILED)), "{status}: {said}");
                    assert!(said.lines().last().is_some_and(|line| line.starts_with("throng: ")), "{said}");
                    assert!(!said.contains("panicked"), "{said}");
                }
            }
            refused += 1;
            assert!(refused < 200, "there is no end to it");
        };
        assert!(refused > 0, "{call:?} on {files:?} was never met");
        faults.heal();
        server.stop();
        start.start().stop();
        database_is_sound(&place);
    }
}

/// While a disk takes no writes: what stores is refused, what reads goes on, and whoever asks is told.
fn is_read_only(server: &Server, conversation: ConversationId, promised: &Promised, length: usize) {
    let mut alice = open(server, "alice");
    let refused = say(&mut alice, conversation, promised.next(), length).expect("the connection stands");
    assert_eq!(refused, Said::Refused(ErrorCode::ReadOnly));
    promised.check(&read(&mut alice, conversation).expect("it stands"), length, false);

    // What is there is pushed to whoever has not got it, in order, up to the window.
    let mut bob = open(server, "bob");
    let mut pushed = Vec::new();
    bob.await_heard(|heard| match heard {
        Heard::Message(_, entry) => {
            pushed.extend(payload(&entry).map(|payload| (entry.seq, payload.to_vec())));
            (entry.seq == promised.0[promised.0.len().min(5) - 1].0).then_some(())
        }
        _ => None,
    });
    let first = Promised(promised.0[..pushed.len()].to_vec());
    first.check(&pushed, length, false);
    let asked = bob.ask(Command::Recv { conversation, seq: Seq(2) }).expect("open");
    let code = bob.await_heard(|heard| match heard {
        Heard::Refused(Some(id), code) if id == asked => Some(Some(code)),
        Heard::Done(id) if id == asked => Some(None),
        _ => None,
    });
    assert_eq!(code, Some(ErrorCode::ReadOnly), "an acknowledgement is durable or refused");

    let token = token("alice", 1);
    let (status, list) = server.http("GET", "/v1/conversations", Some(&token), "");
    assert!(status == 200 && list.contains(&conversation.to_string()), "{status} {list}");
    let group = r#"{"kind":"group","members":[]}"#;
    let (status, problem) = server.http("POST", "/v1/conversations", Some(&token), group);
    assert!(status == 503 && problem.contains("read_only"), "{status} {problem}");
    let (status, ready) = server.http("GET", "/readyz", None, "");
    assert!(status == 503 && ready.contains(r#""store_writable":false"#), "{status} {ready}");
    assert_eq!(server.metric("throng_store_read_only"), 1);
}

/// Repeats what was refused until it is kept.
fn recovers(server: &Server, conversation: ConversationId, promised: &mut Promised, length: usize) {
    let (mut alice, began) = (open(server, "alice"), Instant::now());
    loop {
        match say(&mut alice, conversation, promised.next(), length).expect("the connection stands") {
            Said::Kept(seq) => break promised.0.push((seq, promised.next())),
            refused => assert_eq!(refused, Said::Refused(ErrorCode::ReadOnly)),
        }
        assert!(began.elapsed() < PATIENCE, "it does not go on when there is room");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(server.http("GET", "/readyz", None, "").0, 200);
    assert_eq!(server.metric("throng_store_read_only"), 0);
    promised.check(&read(&mut alice, conversation).expect("it stands"), length, false);
}

#[test]
fn row_24_s4_without_room_it_reads_and_refuses_and_goes_on_by_itself() {
    let place = Place::new();
    let Some(faults) = Faults::new(&place) else { return };
    let start = faults.beneath(small(&place));
    let mut server = start.start();
    let conversation = server.direct(&token("alice", 1), "bob");
    let mut promised = Promised::default();
    // A device that is known, and never acknowledges.
    open(&server, "bob").await_heard(|heard| (heard == Heard::CaughtUp).then_some(()));
    for (round, good) in [0, 1, 2, 3, 5, 8, 13].into_iter().enumerate() {
        let mut alice = open(&server, "alice");
        promised.say_next(&mut alice, conversation, 700);
        let errno = if round % 3 == 2 { Errno::DQUOT } else { Errno::NOSPC };
        faults.arm(Call::Write, &On::ALL, good, FOR_EVER, How::Fails(errno));
        loop {
            match say(&mut alice, conversation, promised.next(), 700).expect("the connection stands") {
                Said::Kept(seq) => promised.0.push((seq, promised.next())),
                refused => break assert_eq!(refused, Said::Refused(ErrorCode::ReadOnly)),
            }
            assert!(promised.0.len() < 1_000, "it was never refused");
        }
        is_read_only(&server, conversation, &promised, 700);
        if round % 2 == 1 {
            // Killed meanwhile, it has all that it promised.
            server.kill();
            faults.heal();
            server = start.start();
        }
        faults.heal();
        recovers(&server, conversation, &mut promised, 700);
    }
    server.kill();
    database_is_sound(&place);
    let server = start.start();
    promised.check(&read(&mut open(&server, "alice"), conversation).expect("it stands"), 700, false);
    server.stop();
    database_is_sound(&place);
}

#[test]
fn row_24_s4_a_small_disk_that_fills_up_is_served_from_and_goes_on_when_there_is_room() {
    const LENGTH: usize = 20_000;
    let place = Place::new();
    let Some(disk) = SmallDisk::mount(&place, "data", 16) else { return };
    let ballast = disk.path().join("ballast");
    fs::write(&ballast, vec![0x55; 9 << 20]).expect("room for the ballast");
    let start = small(&place);
    let server = start.start();
    let conversation = server.direct(&token("alice", 1), "bob");
    open(&server, "bob").await_heard(|heard| (heard == Heard::CaughtUp).then_some(()));
    let mut promised = Promised::default();
    let mut alice = open(&server, "alice");
    loop {
        match say(&mut alice, conversation, promised.next(), LENGTH).expect("the connection stands") {
            Said::Kept(seq) => promised.0.push((seq, promised.next())),
            refused => break assert_eq!(refused, Said::Refused(ErrorCode::ReadOnly)),
        }
        assert!(promised.0.len() * LENGTH < 16 << 20, "the disk never was full");
    }
    assert!(promised.0.len() > 100, "{}", promised.0.len());
    is_read_only(&server, conversation, &promised, LENGTH);
    // Started again with a full disk it has everything, and still refuses what it cannot keep.
    server.kill();
    let server = start.start();
    promised.check(&read(&mut open(&server, "alice"), conversation).expect("it stands"), LENGTH, false);
    is_read_only(&server, conversation, &promised, LENGTH);
    fs::remove_file(&ballast).expect("a file of ours");
    recovers(&server, conversation, &mut promised, LENGTH);
    let mut alice = open(&server, "alice");
    for _ in 0..20 {
        promised.say_next(&mut alice, conversation, LENGTH);
    }
    server.kill();
    database_is_sound(&place);
    let server = start.start();
    promised.check(&read(&mut open(&server, "alice"), conversation).expect("it stands"), LENGTH, false);
    server.stop();
    database_is_sound(&place);
}

#[test]
fn row_24_short_writes_and_interrupted_calls_are_gone_on_with() {
    let place = Place::new();
    let Some(faults) = Faults::new(&place) else { return };
    let start = faults.beneath(small(&place));
    let server = start.start();
    let conversation = server.direct(&token("alice", 1), "bob");
    server.stop();
    let mut promised = Promised::default();
    // A write of one byte cannot be halved, so that each ends after some halves.
    for (call, files, bad, how) in [
        (Call::Write, &On::ALL[..], FOR_EVER, How::Half),
        (Call::Write, &On::ALL, 60, How::Fails(Errno::INTR)),
        (Call::Sync, &[On::Mark], 20, How::Fails(Errno::INTR)),
        (Call::Sync, &[On::Log], 20, How::Fails(Errno::INTR)),
        (Call::Sync, &[On::Database], 20, How::Fails(Errno::INTR)),
    ] {
        // Met while it serves, or while it stops and copies the log.
        faults.arm(call, files, 0, bad, how);
        let server = start.start();
        let mut alice = open(&server, "alice");
        for _ in 0..20 {
            promised.say_next(&mut alice, conversation, 2_000);
        }
        server.stop();
        assert!(faults.met() >= 20, "{call:?} on {files:?} was met {} times", faults.met());
        faults.heal();
        database_is_sound(&place);
        let server = start.start();
        promised.check(&read(&mut open(&server, "alice"), conversation).expect("it stands"), 2_000, false);
        server.stop();
    }
}

/// Conversations of some size, and every answer a client could get about them.
#[derive(PartialEq)]
struct Answers {
    list: String,
    logs: BTreeMap<ConversationId, Vec<(Seq, Vec<u8>)>>,
}

/// A data directory with conversations, as a server left it, and what is in it.
struct Left {
    files: Vec<(&'static str, Vec<u8>)>,
    conversations: Vec<ConversationId>,
    answers: Answers,
}

/// Files of a data directory; the index of the log is made anew at each start.
const FILES: [&str; 3] = ["throng.db", "throng.db-wal", "throng.db-mark"];

impl Left {
    /// By a server that was stopped, or killed while its log held the last of it.
    fn by(place: &Place, killed: bool) -> Left {
        let start = small(place);
        let mut server = start.start();
        let conversations: Vec<ConversationId> =
            ["bob", "carol", "dave", "erin"].map(|other| server.direct(&token("alice", 1), other)).into();
        let mut alice = open(&server, "alice");
        let say_some = |alice: &mut Client, numbers: std::ops::Range<u32>| {
            for number in numbers {
                let to = conversations[number as usize % conversations.len()];
                // Short ones share pages, long ones take pages of their own.
                let length = if number % 7 == 0 { 9_000 } else { 200 };
                let said = say(alice, to, Number(number), length).expect("the connection stands");
                assert!(matches!(said, Said::Kept(_)), "{said:?}");
            }
        };
        say_some(&mut alice, 0..60);
        if killed {
            // Half of it is in the database file, the other half in the log alone.
            server.stop();
            server = start.start();
            alice = open(&server, "alice");
            say_some(&mut alice, 60..90);
        }
        let answers = Answers::of(&server, &conversations).expect("nothing is wrong");
        assert_eq!(answers.logs.values().map(Vec::len).sum::<usize>(), if killed { 90 } else { 60 });
        if killed {
            server.kill()
        } else {
            server.stop()
        };
        let files = FILES.map(|name| (name, fs::read(place.path("data").join(name)).unwrap_or_default()));
        Left { files: files.into(), conversations, answers }
    }

    fn file(&self, name: &str) -> &[u8] {
        self.files.iter().find(|(file, _)| *file == name).map(|(_, bytes)| &bytes[..]).expect("one of them")
    }

    /// Puts it all back, but for one byte.
    fn put_back(&self, data: &Path, name: &str, at: usize) {
        for (file, bytes) in &self.files {
            let mut bytes = bytes.clone();
            if *file == name {
                bytes[at] ^= 0x10;
            }
            fs::write(data.join(file), bytes).expect("a file of ours");
        }
        let _ = fs::remove_file(data.join("throng.db-shm"));
    }
}

impl Answers {
    /// What a server says, unless it ends before it has said it.
    fn of(server: &Server, conversations: &[ConversationId]) -> io::Result<Answers> {
        let mut alice = Client::open(server.address, &token("alice", 1), Encoding::Cbor)?;
        let mut logs = BTreeMap::new();
        for conversation in conversations {
            logs.insert(*conversation, read(&mut alice, *conversation)?);
        }
        let (status, list) = server.try_http("GET", "/v1/conversations", Some(&token("alice", 1)), "")?;
        if status != 200 {
            return Err(io::Error::other(list));
        }
        Ok(Answers { list, logs })
    }
}

/// What a flipped byte led to.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ended {
    /// The server did not start and said why.
    Refused,
    /// The server stopped when it met the damage, and said why.
    Stopped,
    /// All answers were right.
    Harmless,
}

/// Flips one byte, starts a server and asks it everything.
fn flip(place: &Place, left: &Left, name: &str, at: usize) -> Ended {
    let data = place.path("data");
    left.put_back(&data, name, at);
    // Four bytes of the file say that it is one of ours.
    let named = |said: &str| said.contains("is damaged") || said.contains("was not made by throng");
    let ended = match small(place).try_start() {
        Err((status, said)) => {
            assert!(status.code() == Some(1) && named(&said), "{name} at {at}: {status} {said}");
            Ended::Refused
        }
        Ok(mut server) => match Answers::of(&server, &left.conversations) {
            Ok(answers) => {
                assert!(answers == left.answers, "{name} at {at}: a wrong answer");
                server.kill();
                Ended::Harmless
            }
            Err(_) => {
                let (status, _) = server.wait(PATIENCE);
                let log = server.log();
                let last = log.lines().last().unwrap_or_default();
                assert!(
                    status.code() == Some(STORE_FAILED) && named(last),
                    "{name} at {at}: {status} {last}"
                );
                Ended::Stopped
            }
        },
    };
    if ended != Ended::Harmless {
        left.put_back(&data, name, at);
        let check = place.run(&["db", "check", "--data", "data"]);
        assert!(check.code == 1 && named(&check.err), "{name} at {at}: {ended:?}, and the check {check:?}");
    }
    ended
}

/// Flips a byte at each of the places; how many ended in which way.
fn flip_all(place: &Place, left: &Left, name: &str, places: &[usize]) -> BTreeMap<Ended, usize> {
    let mut ended = BTreeMap::new();
    for at in places {
        *ended.entry(flip(place, left, name, *at)).or_default() += 1;
    }
    eprintln!("{name}: {} places, {ended:?}", places.len());
    ended
}

#[test]
fn s2_a_byte_flipped_in_the_database_of_a_server_that_was_stopped_is_named_or_does_no_harm() {
    let (place, mut chance) = (Place::new(), Chance::new());
    let left = Left::by(&place, false);
    assert_eq!(left.file("throng.db-wal").len(), 0, "a server that was stopped leaves no log");
    let file = left.file("throng.db");
    let (page, length) = (page_bytes(file), file.len() as u64);
    // Every page once, by turns, and the rest anywhere.
    let pages = length / page as u64;
    let mut places = Vec::new();
    for n in 0..24 {
        places.push((n % pages * page as u64 + chance.between(0, page as u64 - 1)) as usize);
    }
    for _ in 0..4 {
        places.push(chance.between(0, length - 1) as usize);
    }
    let ended = flip_all(&place, &left, "throng.db", &places);
    let found = places.len() - ended.get(&Ended::Harmless).copied().unwrap_or(0);
    assert!(found > places.len() / 2, "most pages are read by somebody: {ended:?}");
}

#[test]
fn s2_a_byte_flipped_in_what_a_killed_server_left_is_named_or_does_no_harm() {
    let (place, mut chance) = (Place::new(), Chance::new());
    let left = Left::by(&place, true);
    let (file, log) = (left.file("throng.db"), left.file("throng.db-wal"));
    let anywhere = |chance: &mut Chance, length: usize| chance.between(0, length as u64 - 1) as usize;
    let in_file: Vec<usize> = (0..8).map(|_| anywhere(&mut chance, file.len())).collect();
    flip_all(&place, &left, "throng.db", &in_file);

    // The log is whole, and all of it was acknowledged: wherever it is damaged, something acknowledged would be missing.
    let frame = page_bytes(file) + 24;
    assert_eq!((log.len() - 32) % frame, 0, "only whole frames");
    let last = log.len() - frame;
    let mut in_log = vec![0, 9, 17, 25, last + 5, last + 9, last + 14, last + 20, log.len() - 1];
    in_log.extend((0..6).map(|_| last + anywhere(&mut chance, frame)));
    in_log.extend((0..6).map(|_| anywhere(&mut chance, log.len())));
    // The fields that say which format it is are not part of any promise, but a strange one is refused too.
    in_log.push(5);
    let ended = flip_all(&place, &left, "throng.db-wal", &in_log);
    assert_eq!(ended, BTreeMap::from([(Ended::Refused, in_log.len())]));

    // The mark only says more about the log than that says itself.
    let in_mark = [3, 12, 20, 30];
    let ended = flip_all(&place, &left, "throng.db-mark", &in_mark);
    assert_eq!(ended, BTreeMap::from([(Ended::Harmless, in_mark.len())]));
}
