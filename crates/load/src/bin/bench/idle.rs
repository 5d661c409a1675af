//! Bytes of user space for an idle authenticated connection: resident set after minus before, divided.
//!
//! "Before" is a server with an empty database and nobody connected. Then every device connects once, so that it is known;
//! the server is started again, all come back, and "after" is that server: sessions, registry entries and all.

use std::time::Duration;

use load::{Context, Fleet, FleetOptions, Said, Scenario, Server, ServerOptions};
use protocol::Connected;

use crate::peers;

/// Holds still.
struct Hold;

impl Scenario for Hold {
    fn connected(&mut self, _: &mut Context<'_>, _: usize, _: &Connected) {}
    fn said(&mut self, _: &mut Context<'_>, _: usize, _: Said<'_>) {}
}

pub fn run(arguments: &[String]) -> Result<(), String> {
    let count: usize = super::option(arguments, "--connections", 15_000)?;
    let shards: u16 = super::option(arguments, "--shards", 2)?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let settings = vec![("THRONG_CONNECTIONS_UNAUTHENTICATED_PER_ADDRESS_MAX", "8192".to_owned())];
    let options = ServerOptions { shards, data: folder.path().to_owned(), settings };

    let server = Server::start(&options)?;
    let before = server.resident_bytes()?;
    println!("empty server: {} KiB resident", before / 1024);
    let fleets = connect(&server, count)?;
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
    let fleets = connect(&server, count)?;
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

/// Connects everybody from threads of their own, which hold until they are dropped.
fn connect(server: &Server, count: usize) -> Result<Held, String> {
    Held::connect(server, count, protocol::Encoding::Json)
}

/// Connections held by threads.
pub struct Held {
    stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
    threads: Vec<std::thread::JoinHandle<Result<usize, String>>>,
}

/// Connections of one thread: its descriptor table has room for these and a few more.
const PER_THREAD: usize = 15_000;

impl Held {
    /// Connects users 0 ..`count` and waits until all are in.
    pub fn connect(server: &Server, count: usize, encoding: protocol::Encoding) -> Result<Held, String> {
        use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let open = std::sync::Arc::new(AtomicUsize::new(0));
        let mut threads = Vec::new();
        for (number, from) in (0..count).step_by(PER_THREAD).enumerate() {
            let to = count.min(from + PER_THREAD);
            let tokens: Vec<String> = (from..to).map(|user| server.token(user)).collect();
            let options = FleetOptions {
                encoding,
                connecting_max: 512,
                first_source: number as u16,
                ..FleetOptions::new(server.address)
            };
            let (stop, open) = (stop.clone(), open.clone());
            threads.push(std::thread::spawn(move || {
                // SAFETY: the fleet's descriptors are made and used in this thread only.
                let _ = unsafe { reactor::unshare_files() };
                let wanted = tokens.len();
                let mut fleet = Fleet::with_tokens(options, tokens).map_err(|error| error.to_string())?;
                let all = fleet
                    .run(&mut Hold, Duration::from_secs(120), |fleet, _| {
                        fleet.open() == wanted || fleet.failures() > 0
                    })
                    .map_err(|error| error.to_string())?;
                if !all || fleet.open() < wanted {
                    let why = fleet.failure().map(str::to_owned).unwrap_or_else(|| "too slow".into());
                    open.fetch_add(usize::MAX / 2, Ordering::SeqCst);
                    return Err(format!("{} of {wanted} connected: {why}", fleet.open()));
                }
                open.fetch_add(wanted, Ordering::SeqCst);
                fleet
                    .run(&mut Hold, Duration::from_secs(3600), |_, _| stop.load(Ordering::Relaxed))
                    .map_err(|error| error.to_string())?;
                match fleet.failure() {
                    Some(why) => {
                        Err(format!("{} connections were lost while holding: {why}", fleet.failures()))
                    }
                    None => Ok(fleet.open()),
                }
            }));
        }
        while open.load(Ordering::SeqCst) < count {
            std::thread::sleep(Duration::from_millis(20));
        }
        let held = Held { stop, threads };
        if open.load(Ordering::SeqCst) != count {
            let counted = [
                "throng_accepts_total",
                "throng_upgrades_refused_total",
                "throng_closes_total",
                "throng_connections",
            ]
            .map(|name| format!("{name} {}", server.metric(name).unwrap_or(f64::NAN)));
            Err(format!(
                "{}; the server counts {}",
                held.release().err().unwrap_or_default(),
                counted.join(", ")
            ))
        } else {
            Ok(held)
        }
    }

    /// Ends them; an error names those that did not hold.
    pub fn release(mut self) -> Result<usize, String> {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let mut open = 0;
        for thread in self.threads.drain(..) {
            open += thread.join().map_err(|_| "a client thread panicked".to_owned())??;
        }
        Ok(open)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
