//! `throng seed`: accounts for a load test, beside a server and without one, and their removal.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};

use model::{ClientId, ConversationId};
use protocol::{Command, Encoding};
use rusqlite::{Connection, OpenFlags};
use seeding::{Numbers, Plan, Seed};

use crate::client::{Client, Heard, payload};
use crate::run::{Place, fails};
use crate::server::{Server, Start, token};
use crate::traffic::{Traffic, agree, chat, pairs};

/// Twenty users, of whom pairs and groups are made.
const SEED: [&str; 15] = [
    "seed",
    "--users",
    "20",
    "--conversations",
    "8",
    "--groups",
    "3",
    "--group-size",
    "7",
    "--seed",
    "4",
    "--tokens",
    "tokens",
    "--config",
    "throng.toml",
];
const NUMBERS: Numbers = Numbers { users: 20, conversations: 8, groups: 3, group_size: 7, seed: 4 };
const CLEAN: [&str; 4] = ["seed", "--clean", "--config", "throng.toml"];

/// What the command prints when it succeeds.
#[track_caller]
fn prints(place: &Place, arguments: &[&str]) -> Vec<String> {
    let outcome = place.run(arguments);
    assert_eq!(outcome.code, 0, "{}", outcome.err);
    outcome.out.lines().map(str::to_owned).collect()
}

/// The line that says what was made, but for the time it took.
#[track_caller]
fn made_by(place: &Place, arguments: &[&str]) -> String {
    let line = prints(place, arguments).swap_remove(0);
    let (made, _) = line.rsplit_once(" in ").expect("it says how long it took");
    made.to_owned()
}

fn made(users: u64, users_there: u64, conversations: u64, conversations_there: u64) -> String {
    format!(
        "made {users} users ({users_there} were there already) and {conversations} conversations \
         ({conversations_there} were there already)"
    )
}

/// The saved tokens, in the order of the users.
fn tokens(place: &Place, seed: Seed, users: u64) -> Vec<String> {
    let text = fs::read_to_string(place.path("tokens")).expect("the tokens");
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(lines.len() as u64, users);
    let expected = |n: u64| [seed.user(n).to_string(), "1".to_owned()];
    for (n, line) in lines.iter().enumerate() {
        assert_eq!(line[..2], expected(n as u64), "line {n}");
        assert_eq!(line.len(), 3, "line {n}");
    }
    lines.into_iter().map(|line| line[2].to_owned()).collect()
}

fn caught_up(address: SocketAddr, token: &str) -> Client {
    let mut client = Client::open(address, token, Encoding::Json).expect("let in");
    let first = client.hear(crate::client::PATIENCE).expect("open");
    assert_eq!(first, Some(Heard::CaughtUp), "nothing is pending");
    client
}

/// The first sends; each of the others gets it.
fn talk(address: SocketAddr, tokens: &[&str], conversation: ConversationId) {
    let mut clients: Vec<Client> = tokens.iter().map(|token| caught_up(address, token)).collect();
    let payload_sent = b"hello from a seeded user";
    let send =
        Command::Send { conversation, client_id: ClientId([7; 16]), payload: payload_sent.to_vec().into() };
    let asked = clients[0].ask(send).expect("open");
    let sent = clients[0].await_heard(|heard| match heard {
        Heard::Sent(id, sent) => (id == asked).then_some(sent.seq),
        Heard::Refused(id, code) => panic!("{id:?} was refused: {code:?}"),
        _ => None,
    });
    assert_eq!(sent, model::Seq(2), "after the entry that made the conversation");
    for client in &mut clients[1..] {
        client.await_heard(|heard| match heard {
            Heard::Message(of, entry) if of == conversation => {
                assert_eq!((entry.seq, payload(&entry)), (sent, Some(&payload_sent[..])));
                Some(())
            }
            _ => None,
        });
    }
}

/// Everybody's tokens work, and what was made is used.
fn all_is_used(place: &Place, server: &Server) {
    let (plan, seed) = (Plan::new(NUMBERS).expect("numbers that fit together"), Seed(4));
    let tokens = tokens(place, seed, 20);
    for token in &tokens {
        caught_up(server.address, token);
    }
    talk(server.address, &[&tokens[4], &tokens[5]], seed.direct(2));
    let members: Vec<&str> = plan.group_members(2).map(|n| tokens[n as usize].as_str()).collect();
    assert_eq!(members.len(), 7);
    talk(server.address, &members, seed.group(2));
    let listed = server.conversations(&tokens[0]);
    let listed = listed["conversations"].as_array().expect("a list").len();
    // The pair, the first group, and the last one, which comes round to the first user.
    assert_eq!(listed, 3);
    // The server makes the same conversation of a pair.
    assert_eq!(server.direct(&tokens[6], &seed.user(7).to_string()), seed.direct(3));
}

#[test]
fn accounts_are_made_while_no_server_runs() {
    let place = Place::new();
    let start = Start::new(&place);
    assert_eq!(made_by(&place, &SEED), made(20, 0, 11, 0));
    let mode = fs::metadata(place.path("tokens")).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it is for its owner only");
    let before = tables(&place);
    assert_eq!(made_by(&place, &SEED), made(0, 20, 0, 11));
    assert_eq!(tables(&place), before, "a repetition changes nothing");
    let sound = "the database is sound: 11 conversations, 11 entries kept, 20 devices, 0 client ids, 20 users with a phone number\n";
    assert_eq!(place.prints(&["db", "check", "--data", "data"]), sound);
    place.prints(&["db", "backup", "copy.db", "--data", "data"]);
    assert_eq!(place.prints(&["db", "check", "copy.db"]), sound);

    let server = start.start();
    all_is_used(&place, &server);
    server.stop();
    assert!(place.prints(&["db", "check", "--data", "data"]).starts_with("the database is sound: 11 conv"));
}

#[test]
fn accounts_are_made_while_the_server_serves_others() {
    let place = Place::new();
    let server = Start::new(&place).generous().start();
    let socket = fs::metadata(place.path("data/throng.control")).expect("the socket");
    assert!(socket.file_type().is_socket());
    assert_eq!(socket.permissions().mode() & 0o777, 0o600, "it is for its owner only");
    let traffic = Traffic::new(server.address);
    let (people, said) = chat(&traffic, pairs(&server, 2), || {
        traffic.await_answers(50);
        let said = [made_by(&place, &SEED), made_by(&place, &SEED)];
        // More than one slice of the server.
        let more = made_by(&place, &["seed", "--users", "3000", "--seed", "4", "--config", "throng.toml"]);
        traffic.await_answers(50);
        traffic.stop_sending();
        (said, more)
    });
    agree(&people);
    assert_eq!(said.0, [made(20, 0, 11, 0), made(0, 20, 0, 11)]);
    assert_eq!(said.1, made(2_980, 20, 1_492, 8));
    all_is_used(&place, &server);
    server.stop();
    assert!(!place.path("data/throng.control").exists(), "the socket goes with the server");
    let sum = place.prints(&["db", "check", "--data", "data"]);
    assert!(sum.contains(" 3000 users with a phone number"), "{sum}");
}

#[test]
fn a_device_that_was_made_beside_the_server_is_known_to_it() {
    let place = Place::new();
    let server = Start::new(&place).start();
    made_by(&place, &SEED);
    let tokens = tokens(&place, Seed(4), 20);
    // A message to somebody who never was connected waits, and is counted once.
    let mut sender = caught_up(server.address, &tokens[0]);
    let conversation = Seed(4).direct(0);
    let send =
        Command::Send { conversation, client_id: ClientId([1; 16]), payload: b"later".to_vec().into() };
    sender.ask(send).expect("open");
    sender.await_heard(|heard| matches!(heard, Heard::Sent(..)).then_some(()));
    let mut receiver = Client::open(server.address, &tokens[1], Encoding::Json).expect("let in");
    let seq = receiver.await_heard(|heard| match heard {
        Heard::Message(_, entry) if payload(&entry) == Some(b"later") => Some(entry.seq),
        _ => None,
    });
    receiver.ask(Command::Recv { conversation, seq }).expect("open");
    receiver.await_heard(|heard| matches!(heard, Heard::CaughtUp).then_some(()));
    drop((sender, receiver));
    server.stop();
    assert!(place.prints(&["db", "check", "--data", "data"]).starts_with("the database is sound"));
}

/// Every row of every table, in the order in which they lie, without what SQLite says of itself.
fn tables(place: &Place) -> Vec<String> {
    let file = place.path("data/throng.db");
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("a database");
    let mut names =
        connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").expect("tables");
    let names: Vec<String> =
        names.query_map((), |row| row.get(0)).expect("tables").map(|name| name.expect("a name")).collect();
    assert!(names.contains(&"users".to_owned()) && names.len() >= 8, "{names:?}");
    let mut rows = Vec::new();
    for name in names {
        let mut statement = connection.prepare(&format!("SELECT * FROM {name}")).expect("a table");
        let columns = statement.column_count();
        let mut found = statement.query(()).expect("rows");
        while let Some(row) = found.next().expect("a row") {
            let values: Vec<_> = (0..columns).map(|at| row.get_ref(at).expect("a value")).collect();
            rows.push(format!("{name} {values:?}"));
        }
    }
    rows
}

/// Two people who were not seeded, and what they say to each other.
fn somebody_else(server: &Server, client_id: u8) {
    let conversation = server.direct(&token("alice", 1), "bob");
    let mut alice = Client::open(server.address, &token("alice", 1), Encoding::Json).expect("let in");
    let payload = b"mine".to_vec().into();
    alice.ask(Command::Send { conversation, client_id: ClientId([client_id; 16]), payload }).expect("open");
    alice.await_heard(|heard| matches!(heard, Heard::Sent(..)).then_some(()));
}

#[test]
fn after_clean_every_table_is_as_before() {
    let place = Place::new();
    let server = Start::new(&place).start();
    somebody_else(&server, 1);
    server.stop();
    let before = tables(&place);
    assert!(before.iter().any(|row| row.starts_with("client_ids")), "{before:?}");

    made_by(&place, &SEED);
    assert!(tables(&place).len() > before.len() + 100);
    let server = Start::new(&place).start();
    all_is_used(&place, &server);
    server.stop();
    let said = prints(&place, &CLEAN);
    // 20 users, devices; 11 conversations; 8 pairs and 3 groups of 7 are 37 memberships and cursors. Of the two logs that were
    // written to, the server has trimmed what everybody has acknowledged: nobody has.
    assert_eq!(said, ["removed 20 users and 11 conversations, 140 rows in all"]);
    assert_eq!(tables(&place), before);
    assert_eq!(prints(&place, &CLEAN), ["removed 0 users and 0 conversations, 0 rows in all"]);
    assert!(place.prints(&["db", "check", "--data", "data"]).starts_with("the database is sound: 1 conv"));
    // And all can be made again.
    assert_eq!(made_by(&place, &SEED), made(20, 0, 11, 0));
}

#[test]
fn clean_leaves_who_shares_a_conversation_with_somebody_else() {
    let place = Place::new();
    made_by_start(&place);
    let server = Start::new(&place).start();
    somebody_else(&server, 1);
    let seeded = Seed(4).user(0).to_string();
    let shared = server.direct(&token("alice", 1), &seeded);
    let before = server.conversations(&token("alice", 1));
    server.stop();
    assert_eq!(
        prints(&place, &CLEAN),
        [
            "removed 19 users and 11 conversations, 134 rows in all",
            "1 users stayed, and 1 conversations of theirs: somebody who was not seeded is in them, or has written there",
        ]
    );
    assert!(place.prints(&["db", "check", "--data", "data"]).starts_with("the database is sound: 2 conv"));
    let server = Start::new(&place).start();
    assert_eq!(server.conversations(&token("alice", 1)), before);
    let left = server.conversations(&tokens(&place, Seed(4), 20)[0]);
    assert_eq!(left["conversations"][0]["id"], shared.to_string());
    assert_eq!(left["conversations"].as_array().map(Vec::len), Some(1));
    server.stop();
}

fn made_by_start(place: &Place) {
    Start::new(place);
    assert_eq!(made_by(place, &SEED), made(20, 0, 11, 0));
}

#[test]
fn clean_beside_a_server_is_refused() {
    let place = Place::new();
    let server = Start::new(&place).start();
    made_by(&place, &SEED);
    let said = format!(
        "the data directory data is in use by process {}, which would remember what is removed; stop it, clean, and start it again",
        server.pid()
    );
    fails(&place.run(&CLEAN), 1, &[&said]);
    server.stop();
    assert!(prints(&place, &CLEAN)[0].starts_with("removed 20 users"));
}

#[test]
fn a_socket_that_a_killed_server_left_is_replaced() {
    let place = Place::new();
    Start::new(&place).start().kill();
    assert!(place.path("data/throng.control").exists());
    let server = Start::new(&place).start();
    assert_eq!(made_by(&place, &SEED), made(20, 0, 11, 0));
    server.kill();
    // Without a server the socket means nothing.
    assert_eq!(made_by(&place, &SEED), made(0, 20, 0, 11));
}

#[test]
fn without_its_socket_the_server_serves_and_says_what_does_not_work() {
    let place = Place::new();
    fs::create_dir(place.path("data")).expect("a folder");
    place.write("data/throng.control", "mine");
    let server = Start::new(&place).start();
    assert!(server.is_ready());
    let log = server.log();
    assert!(log.contains("there is no control socket: `throng seed` needs this server stopped"), "{log}");
    let outcome = place.run(&SEED);
    assert_eq!((outcome.code, outcome.out.as_str()), (1, ""));
    let said = "throng: the server that has the data folder does not answer at throng.control in it; stop it, or see its log: ";
    assert!(outcome.err.starts_with(said) && outcome.err.lines().count() == 1, "{}", outcome.err);
    server.stop();
    assert_eq!(fs::read_to_string(place.path("data/throng.control")).expect("the file"), "mine");
}

#[test]
fn a_data_folder_with_a_long_name_will_do() {
    let place = Place::new();
    // Longer than the path of a socket may be, with names as long as a file's may be.
    let data = format!("{}/{}", "d".repeat(200), "e".repeat(200));
    let server = Start::new(&place).with("THRONG_DATA", &data).start();
    assert!(place.path(&data).join("throng.control").exists());
    let mut arguments = SEED.to_vec();
    arguments.extend(["--data", &data]);
    assert_eq!(made_by(&place, &arguments), made(20, 0, 11, 0));
    all_is_used(&place, &server);
    server.stop();
    assert!(!place.path(&data).join("throng.control").exists());
}

#[test]
fn tokens_are_signed_with_the_key_that_the_server_checks_with() {
    let place = Place::new();
    let start = Start::new(&place);
    place.write("throng.toml", "data = \"data\"\n");
    assert_eq!(place.run(&["keys", "generate", "--data", "data"]).code, 0);
    place.write("tokens", "what was here before is replaced");
    fs::set_permissions(place.path("tokens"), fs::Permissions::from_mode(0o644)).expect("a mode");
    assert_eq!(made_by(&place, &SEED), made(20, 0, 11, 0));
    let mode = fs::metadata(place.path("tokens")).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let server = start.start();
    all_is_used(&place, &server);
    // Two to try are printed when none are saved.
    let outcome = place.run(&["seed", "--users", "20", "--seed", "4", "--config", "throng.toml"]);
    let lines: Vec<&str> = outcome.out.lines().collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert_eq!(lines[1], "user, device and token to try, valid for 1 d:", "as long as the server allows");
    for (n, line) in lines[2..].iter().enumerate() {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words[..2], [&Seed(4).user(n as u64).to_string(), "1"]);
        Client::open(server.address, words[2], Encoding::Json).expect("let in");
    }
    server.stop();
}

#[test]
fn what_cannot_be_is_said_and_nothing_is_made() {
    let place = Place::new();
    let seed = |arguments: &[&str]| place.run(&[&["seed", "--config", "throng.toml"], arguments].concat());
    place.write("throng.toml", "data = \"data\"\n");
    let key = "there is no key to check tokens with: run `throng keys generate --data data`, or name your issuer's key under \
               `auth.keys` in the configuration";
    fails(&seed(&["--tokens", "tokens"]), 2, &[key]);
    Start::new(&place);
    for (arguments, said) in [
        (
            &["--users", "9", "--conversations", "5"][..],
            "--conversations 5: each needs two users of its own, so 9 users have 4 at most",
        ),
        (&["--groups", "1", "--group-size", "1025"], "--group-size 1025: a group has 2 to 1024 members"),
        (&["--users", "9", "--groups", "1"], "--group-size 10: there are only 9 users to be in a group"),
        (&["--ttl", "soon"], "--ttl must be a length of time such as 90s, 10m, 1h or 7d"),
        (
            &["--clean", "--users", "9"],
            "the argument '--clean' cannot be used with '--users <N>' (`throng --help` explains)",
        ),
    ] {
        fails(&seed(arguments), 2, &[said]);
    }
    let too_long = seed(&["--ttl", "30d"]);
    assert_eq!((too_long.code, too_long.out.as_str()), (2, ""));
    assert!(too_long.err.starts_with("throng: the server would refuse these tokens: "), "{}", too_long.err);
    fails(&seed(&["--clean"]), 1, &["there is no data directory data"]);
    assert!(!place.path("data").exists(), "nothing is made");

    assert_eq!(made_by(&place, &SEED), made(20, 0, 11, 0));
    let other = "users of another seed are there and have the phone numbers; use their seed, or `throng seed --clean` first";
    fails(&seed(&["--users", "4", "--seed", "5"]), 1, &[other]);
    let server = Start::new(&place).start();
    fails(&seed(&["--users", "4", "--seed", "5"]), 1, &[other]);
    server.stop();
    fails(
        &seed(&["--users", "20", "--seed", "4", "--tokens", "no/such/folder"]),
        1,
        &["no/such/folder: the tokens cannot be written: No such file or directory (os error 2)"],
    );
}

#[test]
fn without_a_key_accounts_are_made_and_no_token() {
    let place = Place::new();
    let outcome = place.run(&["seed", "--users", "4", "--data", "data"]);
    assert_eq!(outcome.code, 0, "{}", outcome.err);
    assert!(
        outcome.out.ends_with("there is no key to sign tokens with, so there is none to try\n"),
        "{}",
        outcome.out
    );
    assert!(place.path("data/throng.db").exists());
}
