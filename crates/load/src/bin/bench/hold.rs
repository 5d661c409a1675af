//! So many authenticated connections, held while 100 pairs chat, with nothing lost and nobody dropped.

use std::time::{Duration, Instant};

use load::{Fleet, FleetOptions, Server, ServerOptions};

use crate::chat::Chat;
use crate::idle::Held;

/// Pairs that chat meanwhile.
const PAIRS: usize = 100;

pub fn run(arguments: &[String]) -> Result<(), String> {
    let count: usize =
        arguments.first().and_then(|count| count.parse().ok()).ok_or("hold: how many connections?")?;
    let shards: u16 = super::option(arguments, "--shards", default_shards(count))?;
    let seconds: u64 = super::option(arguments, "--seconds", 30)?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let settings = vec![("THRONG_CONNECTIONS_UNAUTHENTICATED_PER_ADDRESS_MAX", "8192".to_owned())];
    let server = Server::start(&ServerOptions { shards, data: folder.path().to_owned(), settings })?;
    let before = server.resident_bytes()?;
    let began = Instant::now();
    let held = Held::connect(&server, count, protocol::Encoding::Json)?;
    let opened = began.elapsed().as_secs_f64();
    let after = server.resident_bytes()?;
    println!(
        "{count} connections on {shards} shards in {opened:.1} s ({:.0} a second, every device new), {:.0} B of user space each",
        count as f64 / opened,
        (after as f64 - before as f64) / count as f64
    );

    let user = |pair: usize, side: usize| count + 2 * pair + side;
    let conversations =
        (0..PAIRS).map(|pair| server.direct(user(pair, 0), user(pair, 1))).collect::<Result<Vec<_>, _>>()?;
    let tokens = (0..2 * PAIRS).map(|client| server.token(count + client)).collect();
    let options =
        FleetOptions { connecting_max: 64, first_source: 40_000, ..FleetOptions::new(server.address) };
    let mut fleet = Fleet::with_tokens(options, tokens).map_err(|error| error.to_string())?;
    let mut chat = Chat::new(&conversations, 1);
    fleet
        .run(&mut chat, Duration::from_secs(60), |fleet, _| fleet.open() == 2 * PAIRS || fleet.failures() > 0)
        .map_err(|error| error.to_string())?;
    if fleet.open() != 2 * PAIRS {
        return Err(format!("the pairs did not connect: {:?}", fleet.failure()));
    }
    let cpu = server.cpu()?;
    let began = Instant::now();
    chat.begin(&mut fleet);
    fleet
        .run(&mut chat, Duration::from_secs(seconds), |fleet, _| fleet.failures() > 0)
        .map_err(|error| error.to_string())?;
    let time = began.elapsed().as_secs_f64();
    let mut done = std::mem::take(&mut chat.done);
    chat.finish(&mut fleet)?;
    println!(
        "{PAIRS} pairs chatted for {time:.0} s: {} messages, {:.0} a second, p50 {:.1} ms, p99 {:.1} ms, server {:.0} % of one CPU",
        done.count(),
        done.count() as f64 / time,
        done.quantile(0.5).as_secs_f64() * 1e3,
        done.quantile(0.99).as_secs_f64() * 1e3,
        (server.cpu()? - cpu).as_secs_f64() / time * 100.0
    );
    if let Some(violation) = chat.violations.first() {
        return Err(format!("{} violations, the first: {violation}", chat.violations.len()));
    }
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
fn default_shards(count: usize) -> u16 {
    (1..)
        .find(|shards| {
            let mean = count as f64 / f64::from(*shards);
            mean + 4.0 * mean.sqrt() < 19_800.0
        })
        .unwrap_or(1)
        .max(2)
}
