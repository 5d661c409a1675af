//! Bytes of user space for an idle authenticated connection: resident set after minus before, divided.
//!
//! "Before" is a server with an empty database and nobody connected. Then every device connects once, so that it is known;
//! the server is started again, all come back, and "after" is that server: sessions, registry entries and all.

use std::time::Duration;

use load::{Server, ServerOptions};

use crate::held::Held;
use crate::peers;

pub fn run(arguments: &[String]) -> Result<(), String> {
    let count: usize = super::option(arguments, "--connections", 15_000)?;
    let shards: u16 = super::option(arguments, "--shards", 2)?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let settings = vec![("THRONG_CONNECTIONS_UNAUTHENTICATED_PER_ADDRESS_MAX", "8192".to_owned())];
    let options = ServerOptions { shards, data: folder.path().to_owned(), settings };

    let server = Server::start(&options)?;
    let before = server.resident_bytes()?;
    println!("empty server: {} KiB resident", before / 1024);
    let fleets = Held::connect(&server, count)?;
    let first = server.resident_bytes()?;
    println!(
        "{count} new devices connected: {:.1} B each (the database's cache included)",
        per(first, before, count)
    );
    drop(fleets);
    server.stop()?;

    let server = Server::start(&options)?;
    let known = server.resident_bytes()?;
    println!(
        "started again, {count} devices known: {} KiB resident, {:.1} B a device",
        known / 1024,
        per(known, before, count)
    );
    let fleets = Held::connect(&server, count)?;
    // Idle is when the deadline for `connect` has passed for all, so that nothing is kept of the opening.
    std::thread::sleep(Duration::from_secs(13));
    let after = server.resident_bytes()?;
    println!(
        "{count} known devices connected: {} KiB resident, {:.1} B above those that are known",
        after / 1024,
        per(after, known, count)
    );
    let open = server.metric("throng_sessions")?;
    if open as usize != count {
        return Err(format!("the server has {open} sessions, not {count}"));
    }
    drop(fleets);
    super::part("resident before", before as f64 / 1024.0, "KiB");
    super::part("resident with all connected", after as f64 / 1024.0, "KiB");
    super::part("of it for the known device", per(known, before, count), "B/connection");
    super::part("of it for the connection", per(after, known, count), "B/connection");
    if arguments.iter().any(|argument| argument == "--peers") {
        for peer in peers::PEERS {
            match peers::measure(peer, count.min(15_000)) {
                Ok(bytes) => super::part(&format!("peer {peer}, a bare WebSocket"), bytes, "B/connection"),
                Err(why) => eprintln!("bench: no number of {peer}: {why}"),
            }
        }
    }
    super::verdict("idle", per(after, before, count), "B/connection", true, 200.0);
    Ok(())
}

fn per(after: u64, before: u64, count: usize) -> f64 {
    (after as f64 - before as f64) / count as f64
}
