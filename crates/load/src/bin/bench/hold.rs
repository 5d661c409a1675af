//! So many authenticated connections, held while 100 pairs chat, with nothing lost and nobody dropped.
//!
//! A very large crowd gets a network of its own (as root), because the kernel's table of connections can only be made larger for a new
//! one. The server pings seldom then, so that everybody is pinged about once while the crowd is held.

use std::time::{Duration, Instant};

use load::{FleetOptions, Server, ServerOptions};

use crate::chat::Chat;
use crate::held::Held;
use crate::machine::{self, LARGE, Prepared};

/// Pairs that chat meanwhile.
const PAIRS: usize = 100;
const MIB: f64 = 1_048_576.0;

pub fn run(arguments: &[String]) -> Result<(), String> {
    let count: usize =
        arguments.first().and_then(|count| count.parse().ok()).ok_or("hold: how many connections?")?;
    let shards: u16 = super::option(arguments, "--shards", default_shards(count))?;
    let seconds: u64 = super::option(arguments, "--seconds", 30)?;
    // Without a pace each pair sends its next message when the last one has been acknowledged.
    let pace: u64 = super::option(arguments, "--pace-ms", 0)?;
    let _prepared = (count >= LARGE).then(|| Prepared::new(count + 2 * PAIRS)).transpose()?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut settings = vec![("THRONG_CONNECTIONS_UNAUTHENTICATED_PER_ADDRESS_MAX", "8192".to_owned())];
    if count >= LARGE {
        settings.push(("THRONG_CONNECTIONS_PING_INTERVAL", format!("{}s", seconds.max(60) * 4 / 5)));
    }
    let memory_before = machine::memory("MemAvailable")?;
    let server = Server::start(&ServerOptions { shards, data: folder.path().to_owned(), settings })?;
    let (before, kernel_before) = (server.resident_bytes()?, machine::memory("SUnreclaim")?);
    let began = Instant::now();
    let mut held = Held::nobody();
    let reached = held.grow(&server, count, Duration::from_secs(60 + count as u64 / 2_000));
    let opened = began.elapsed().as_secs_f64();
    if let Err(why) = reached {
        let (open, left) = (held.open(), machine::memory("MemAvailable")?);
        println!(
            "{open} connections were open after {opened:.1} s; {:.0} MiB of {:.0} MiB are left, {:.0} B a connection all in",
            left / MIB,
            memory_before / MIB,
            (memory_before - left) / open.max(1) as f64
        );
        return Err(why);
    }
    let after = server.resident_bytes()?;
    let own = load::resident_bytes(std::process::id())?;
    println!(
        "{count} connections on {shards} shards in {opened:.1} s ({:.0} a second, every device new), {:.0} B of user space each",
        count as f64 / opened,
        (after as f64 - before as f64) / count as f64
    );
    super::part("accepted and let in", count as f64 / opened, "a second");

    let options =
        FleetOptions { connecting_max: 64, first_source: 40_000, ..FleetOptions::new(server.address) };
    let (mut fleet, mut chat) = Chat::connect(&server, options, count, PAIRS, 1)?;
    let (cpu, (spent, idle)) = (server.cpu()?, machine::processors()?);
    let began = Instant::now();
    let mut done = if pace > 0 {
        chat.paced(&mut fleet, Duration::from_millis(pace), Duration::from_secs(seconds))?
    } else {
        chat.begin(&mut fleet);
        fleet
            .run(&mut chat, Duration::from_secs(seconds), |fleet, _| fleet.failures() > 0)
            .map_err(|error| error.to_string())?;
        std::mem::take(&mut chat.done)
    };
    let time = began.elapsed().as_secs_f64();
    let (spent_after, idle_after) = machine::processors()?;
    let (server_cpu, left) = (server.cpu()? - cpu, machine::memory("MemAvailable")?);
    chat.finish(&mut fleet)?;
    chat.verify()?;
    println!(
        "{PAIRS} pairs chatted for {time:.0} s: {} messages, {:.0} a second, p50 {:.1} ms, p99 {:.1} ms",
        done.count(),
        done.count() as f64 / time,
        done.quantile(0.5).as_secs_f64() * 1e3,
        done.quantile(0.99).as_secs_f64() * 1e3,
    );
    super::part("messages of 100 pairs meanwhile", done.count() as f64 / time, "a second");
    super::part("their p99", done.quantile(0.99).as_secs_f64() * 1e3, "ms");
    let share = (idle_after - idle) / (spent_after - spent).max(1.0);
    super::part("processors idle", share * 100.0, "%");
    super::part("server's CPU", server_cpu.as_secs_f64() / time * 100.0, "% of one");
    super::part("server's user space", (after as f64 - before as f64) / count as f64, "B/connection");
    super::part("server resident", after as f64 / MIB, "MiB");
    super::part("clients resident", own as f64 / MIB, "MiB");
    let kernel = machine::memory("SUnreclaim")? - kernel_before;
    super::part("kernel slabs, both ends", kernel / count as f64, "B/connection");
    for (name, bytes) in machine::slabs(6)? {
        super::part(&format!("slab {name}"), bytes / MIB, "MiB");
    }
    super::part("memory left", left / MIB, "MiB");
    super::part("memory all in", (memory_before - left) / count as f64, "B/connection");

    let sessions = server.metric("throng_sessions")? as usize;
    let open = held.release()?;
    println!(
        "{open} connections were still open at the end; the server had {sessions} sessions, {} of them chatting",
        2 * PAIRS
    );
    if open != count || sessions != count + 2 * PAIRS {
        return Err("connections were lost".into());
    }
    super::verdict("hold", open as f64, "connections", false, count as f64);
    Ok(())
}

/// Enough that the kernel's random spread fits descriptor tables of 20,000 with four standard deviations to spare.
pub fn default_shards(count: usize) -> u16 {
    (1..)
        .find(|shards| {
            let mean = count as f64 / f64::from(*shards);
            mean + 4.0 * mean.sqrt() < 19_800.0
        })
        .unwrap_or(1)
        .max(2)
}
