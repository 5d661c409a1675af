//! `throng db`: looking through the database and copying it, beside a server and without one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use model::{ClientId, ConversationId};
use protocol::{Command, Encoding};

use crate::client::{Client, Heard, payload};
use crate::run::{Place, fails};
use crate::server::{Start, token};
use crate::traffic::{Traffic, agree, chat, pairs};

const CHECK: [&str; 4] = ["db", "check", "--data", "data"];

/// Sends messages that say these numbers, and waits until all are answered.
fn send(client: &mut Client, conversation: ConversationId, numbers: std::ops::Range<u8>) {
    for number in numbers.clone() {
        let payload = vec![number].into();
        let ask = Command::Send { conversation, client_id: ClientId([number; 16]), payload };
        client.ask(ask).expect("open");
    }
    let mut left = numbers.len();
    client.await_heard(|heard| {
        left -= usize::from(matches!(heard, Heard::Sent(..)));
        (left == 0).then_some(())
    });
}

/// The messages that wait for a device.
fn pending(client: &mut Client) -> Vec<u8> {
    let mut found = Vec::new();
    client.await_heard(|heard| match heard {
        Heard::Message(_, entry) => {
            found.extend(payload(&entry).map(|payload| payload[0]));
            None
        }
        Heard::CaughtUp => Some(()),
        _ => None,
    });
    found
}

#[test]
fn a_sound_database_is_summed_up() {
    let place = Place::new();
    let server = Start::new(&place).start();
    let conversation = server.direct(&token("alice", 1), "bob");
    let mut alice = Client::open(server.address, &token("alice", 1), Encoding::Json).expect("let in");
    send(&mut alice, conversation, 0..10);
    // The entry that tells of the conversation, and ten messages that bob has not got.
    let sum = "the database is sound: 1 conversations, 11 entries kept, 1 devices, 10 client ids, 0 users with a phone number\n";
    assert_eq!(place.prints(&CHECK), sum, "beside the server");
    server.stop();
    assert_eq!(place.prints(&CHECK), sum);
    assert_eq!(place.prints(&["db", "check", "data/throng.db"]), sum);
    assert_eq!(place.prints(&["db", "check", "--config", "throng.toml"]), sum);
}

#[test]
fn a_backup_made_in_traffic_is_a_database_of_its_own() {
    let place = Place::new();
    let server = Start::new(&place)
        .with("THRONG_COMMANDS_PER_SECOND", 1_000_000)
        .with("THRONG_COMMANDS_BURST", 1_000_000)
        .start();
    let conversation = server.direct(&token("alice", 1), "bob");
    let mut alice = Client::open(server.address, &token("alice", 1), Encoding::Cbor).expect("let in");
    send(&mut alice, conversation, 0..50);
    let traffic = Traffic::new(server.address);
    let (people, said) = chat(&traffic, pairs(&server, 2), || {
        traffic.await_answers(200);
        let said = place.prints(&["db", "backup", "copy.db", "--data", "data"]);
        traffic.await_answers(50);
        traffic.stop_sending();
        said
    });
    agree(&people);
    send(&mut alice, conversation, 50..60);
    server.stop();

    assert!(said.starts_with("wrote copy.db, ") && said.ends_with("iB\n"), "{said:?}");
    assert!(place.prints(&["db", "check", "copy.db"]).starts_with("the database is sound: 3 conversations"));
    let left: Vec<String> = names(&place.path("")).into_iter().filter(|name| name.contains("copy")).collect();
    assert_eq!(left, ["copy.db"], "nothing is left beside it");
    let mode = fs::metadata(place.path("copy.db")).expect("the copy").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it is for its owner only");

    // Restored as the page for operators says: into an empty folder, under the name that the server looks for.
    let elsewhere = Place::new();
    let start = Start::new(&elsewhere);
    fs::create_dir(elsewhere.path("data")).expect("a folder");
    fs::copy(place.path("copy.db"), elsewhere.path("data/throng.db")).expect("a copy");
    let restored = start.start();
    let mut bob = Client::open(restored.address, &token("bob", 1), Encoding::Cbor).expect("let in");
    let all: Vec<u8> = (0..50).collect();
    assert_eq!(pending(&mut bob), all, "what was acknowledged before it began, and nothing later");
    restored.stop();
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_backup_replaces_nothing() {
    let place = Place::new();
    Start::new(&place).start().stop();
    place.write("mine.db", "precious");
    fails(
        &place.run(&["db", "backup", "mine.db", "--data", "data"]),
        1,
        &["mine.db is there already; choose another name for the backup"],
    );
    assert_eq!(fs::read_to_string(place.path("mine.db")).expect("the file"), "precious");
    fails(
        &place.run(&["db", "backup", "no/such/folder/copy.db", "--data", "data"]),
        1,
        &["the backup no/such/folder/copy.db cannot be written: No such file or directory (os error 2)"],
    );
}

#[test]
fn a_database_that_is_not_there_is_named() {
    let place = Place::new();
    fs::create_dir(place.path("data")).expect("a folder");
    let missing = "there is no database at data/throng.db";
    fails(&place.run(&CHECK), 1, &[missing]);
    fails(&place.run(&["db", "backup", "copy.db", "--data", "data"]), 1, &[missing]);
    fails(&place.run(&["db", "check", "--data", "elsewhere"]), 1, &["there is no database at elsewhere"]);
    assert!(names(&place.path("data")).is_empty() && !place.path("copy.db").exists(), "nothing is made");
    place.write("data/throng.db", "Dear diary,\n".repeat(1000));
    fails(
        &place.run(&CHECK),
        1,
        &["data/throng.db was not made by throng; move it away or choose another data directory"],
    );
}

/// Bytes 16 and 17 of a database (<https://sqlite.org/fileformat.html>, section 1.3).
pub fn page_bytes(database: &[u8]) -> usize {
    usize::from(u16::from_be_bytes([database[16], database[17]]))
}

#[test]
fn s2_damage_is_found_and_not_copied() {
    let place = Place::new();
    let server = Start::new(&place).start();
    let conversation = server.direct(&token("alice", 1), "bob");
    let mut alice = Client::open(server.address, &token("alice", 1), Encoding::Json).expect("let in");
    send(&mut alice, conversation, 0..100);
    server.stop();
    let file = place.path("data/throng.db");
    let good = fs::read(&file).expect("the database");
    let page_bytes = page_bytes(&good);
    for page in 1..good.len() / page_bytes {
        let mut bytes = good.clone();
        bytes[page * page_bytes + 234] ^= 1;
        fs::write(&file, &bytes).expect("the database");
        let outcome = place.run(&CHECK);
        let lines: Vec<&str> = outcome.err.lines().collect();
        assert_eq!((outcome.code, outcome.out.as_str()), (1, ""), "page {page}: {lines:?}");
        assert!(
            lines
                .last()
                .is_some_and(|line| line.contains("the database is damaged") || line.contains("is damaged;")),
            "page {page}: {lines:?}"
        );
        assert!(lines.iter().all(|line| line.starts_with("throng: ") && !line.contains(char::is_control)));
        let copied = place.run(&["db", "backup", "copy.db", "--data", "data"]);
        assert_eq!((copied.code, copied.err.lines().count()), (1, 1), "page {page}: {}", copied.err);
        assert!(
            copied.err.contains("damaged") && !place.path("copy.db").exists(),
            "page {page}: {}",
            copied.err
        );
        assert!(bytes == fs::read(&file).expect("the database"), "page {page}: it is left as it was");
    }
}
