//! What keeps a server from starting is told in one line that says what to do, and nothing is harmed.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::database::page_bytes;
use crate::run::{Outcome, Place};
use crate::server::{Start, free_address};

/// Starts a server that must end by itself, with a log that only has errors. One that serves instead is ended.
fn refused(mut command: Command) -> Outcome {
    command.env("THRONG_LOG_LEVEL", "error").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    let end = Instant::now() + Duration::from_secs(30);
    while child.try_wait().expect("a child of ours").is_none() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    let output = child.wait_with_output().expect("a child of ours");
    Outcome {
        code: output.status.code().expect("it ends by itself, within half a minute"),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// The one line of a start that failed.
fn line(outcome: &Outcome, code: i32) -> &str {
    let lines: Vec<&str> = outcome.err.lines().collect();
    assert_eq!((outcome.code, outcome.out.as_str(), lines.len()), (code, "", 1), "{lines:?}");
    lines[0].strip_prefix("throng: ").expect("it says who speaks")
}

#[test]
fn a_second_server_on_the_same_data_is_refused() {
    let place = Place::new();
    let first = Start::new(&place).start();
    let second = Start::new(&place);
    assert_ne!(second.address, first.address);
    let outcome = refused(second.command());
    assert_eq!(
        line(&outcome, 1),
        format!(
            "the data directory data is in use by process {}; stop it or choose another directory",
            first.pid()
        )
    );
    // The first one is none the worse for it, and the second may start when it has gone.
    assert_eq!(first.http("GET", "/readyz", None, "").0, 200);
    first.stop();
    second.start().stop();
}

#[test]
fn a_taken_port_is_named() {
    let place = Place::new();
    let start = Start::new(&place);
    let _taken = TcpListener::bind(start.address).expect("a free port");
    let outcome = refused(start.command());
    assert_eq!(
        line(&outcome, 1),
        format!(
            "cannot listen on {} (choose another address with --listen): Address already in use (os error 98)",
            start.address
        )
    );
    // Another server of throng shares its port among its shards, but not with strangers.
    let other = Place::new();
    let neighbour = Start { address: free_address(), ..Start::new(&other) };
    let running = neighbour.start();
    let outcome = refused(Start { address: running.address, ..Start::new(&place) }.command());
    assert!(line(&outcome, 1).contains("Address already in use"), "{outcome:?}");
    running.stop();
}

#[test]
fn without_a_key_it_says_how_to_make_one() {
    let place = Place::new();
    let start = Start::new(&place);
    place.write("throng.toml", "data = \"data\"\n");
    let outcome = refused(start.command());
    assert_eq!(
        line(&outcome, 2),
        "there is no key to check tokens with: run `throng keys generate --data data`, or name your issuer's key \
         under `auth.keys` in the configuration"
    );
    // What it says is what helps.
    assert_eq!(place.run(&["keys", "generate", "--data", "data"]).code, 0);
    start.start().stop();
}

#[test]
fn a_data_directory_that_is_none_is_named() {
    let place = Place::new();
    let start = Start::new(&place);
    place.write("data", "not a folder");
    let outcome = refused(start.command());
    let said = line(&outcome, 1);
    assert!(said.starts_with("the data directory data cannot be used: "), "{said}");
    assert_eq!(fs::read_to_string(place.path("data")).expect("the file"), "not a folder");
}

#[test]
fn a_data_directory_that_may_not_be_written_is_named() {
    let place = Place::new();
    let start = Start::new(&place);
    fs::create_dir(place.path("data")).expect("a folder");
    let mode = |path: &str, mode| {
        fs::set_permissions(place.path(path), fs::Permissions::from_mode(mode)).expect("a folder of ours");
    };
    mode("data", 0o555);
    let mut command = start.command();
    if rustix::process::geteuid().is_root() {
        // Modes mean nothing to root, so nobody tries, with a copy of the binary that nobody can reach.
        mode("", 0o755);
        mode("secret", 0o644);
        let copy = place.path("throng");
        fs::copy(env!("CARGO_BIN_EXE_throng"), &copy).expect("room for a copy");
        let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        command = Command::new(copy);
        command.args(arguments).current_dir(place.path("")).env_clear().uid(65_534).gid(65_534);
    }
    let outcome = refused(command);
    assert_eq!(line(&outcome, 1), "the data directory data cannot be used: Permission denied (os error 13)");
    mode("data", 0o755);
}

#[test]
fn s2_a_damaged_database_is_refused() {
    let place = Place::new();
    let start = Start::new(&place);
    start.start().stop();
    let file = place.path("data/throng.db");
    let good = fs::read(&file).expect("the database");
    let page_bytes = page_bytes(&good);
    assert!(good.len() > 3 * page_bytes, "there is something to damage");

    let flipped = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 0x40;
        bytes
    };
    let damaged = "data/throng.db is damaged; keep a copy of its directory and restore a backup: ";
    let strange = "data/throng.db was not made by throng; move it away or choose another data directory";
    for (what, bytes, said) in [
        // Offsets of https://sqlite.org/fileformat.html, section 1.3.
        ("the magic string", flipped(3), damaged),
        ("the page size", flipped(16), damaged),
        ("the file change counter", flipped(27), damaged),
        ("the number of pages", flipped(31), damaged),
        ("the schema cookie", flipped(43), damaged),
        ("the application id", flipped(68), strange),
        ("the reserved bytes of a page", flipped(20), damaged),
        ("the schema", flipped(page_bytes - 100), damaged),
        ("cut after the first page", good[..page_bytes].to_vec(), damaged),
        ("cut in the middle of a page", good[..good.len() - 500].to_vec(), damaged),
        ("cut in the header", good[..50].to_vec(), strange),
        ("nothing", Vec::new(), strange),
        ("a text", b"Dear diary,\n".repeat(1000), strange),
    ] {
        eprintln!("damaged: {what}");
        fs::write(&file, &bytes).expect("the database");
        let outcome = refused(start.command());
        assert!(line(&outcome, 1).starts_with(said), "{what}: {}", outcome.err);
        assert!(bytes == fs::read(&file).expect("the database"), "{what}: it is left as it was");
    }
    fs::write(&file, &good).expect("the database");
    remove_if_there(&place.path("data/throng.db-wal"));
    remove_if_there(&place.path("data/throng.db-shm"));
    start.start().stop();
}

fn remove_if_there(path: &Path) {
    if path.exists() {
        fs::remove_file(path).expect("a file of ours");
    }
}
