//! What a message costs while ever more connections are idle.
//!
//! At each size the server's CPU time is taken over a quiet time and over an equal one in which pairs chat at a fixed pace; the
//! difference is what the messages cost, apart from what the crowd itself costs. Both are reported.

use std::time::Duration;

use load::{FleetOptions, Server, ServerOptions};

use crate::chat::Chat;
use crate::held::Held;
use crate::hold::default_shards;
use crate::machine::{LARGE, Prepared};

const PAIRS: usize = 100;

pub fn run(arguments: &[String]) -> Result<(), String> {
    let most: usize = super::option(arguments, "--most", 1_000_000)?;
    let seconds: u64 = super::option(arguments, "--seconds", 8)?;
    let rounds: usize = super::option(arguments, "--rounds", 3)?;
    let rate: u32 = super::option(arguments, "--rate", 4_000)?;
    let _prepared = (most >= LARGE).then(|| Prepared::new(most + 2 * PAIRS)).transpose()?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let settings = vec![
        ("THRONG_CONNECTIONS_UNAUTHENTICATED_PER_ADDRESS_MAX", "8192".to_owned()),
        ("THRONG_COMMANDS_PER_SECOND", "1000".to_owned()),
        ("THRONG_CONNECTIONS_PING_INTERVAL", "10m".to_owned()),
    ];
    let shards: u16 = super::option(arguments, "--shards", default_shards(most))?;
    let server = Server::start(&ServerOptions { shards, data: folder.path().to_owned(), settings })?;
    let options =
        FleetOptions { connecting_max: 64, first_source: 40_000, ..FleetOptions::new(server.address) };
    let (mut fleet, mut chat) = Chat::connect(&server, options, most, PAIRS, 1)?;
    let (pace, time) = (Duration::from_secs(1) * PAIRS as u32 / rate, Duration::from_secs(seconds));
    // Once, so that caches and memory are as they will be.
    chat.paced(&mut fleet, pace, time)?;
    let mut held = Held::nobody();
    let mut costs = Vec::new();
    for size in [1_000, 10_000, 100_000, 1_000_000].into_iter().filter(|size| *size <= most) {
        held.grow(&server, size, Duration::from_secs(60 + size as u64 / 2_000))?;
        // The deadlines of the openings pass.
        std::thread::sleep(Duration::from_secs(13));
        let (mut messages_cost, mut quiet_cost) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let began = server.cpu()?;
            std::thread::sleep(time);
            let quiet = server.cpu()? - began;
            let began = server.cpu()?;
            let done = chat.paced(&mut fleet, pace, time)?;
            let busy = server.cpu()? - began;
            messages_cost.push(busy.saturating_sub(quiet).as_micros() as f64 / done.count().max(1) as f64);
            quiet_cost.push(quiet.as_secs_f64() / time.as_secs_f64() * 100.0);
        }
        let cost = super::middle(&mut messages_cost);
        super::part(&format!("a message beside {size} idle connections"), cost, "µs");
        super::part(
            &format!("{size} idle connections themselves"),
            super::middle(&mut quiet_cost),
            "% of one CPU",
        );
        costs.push(cost);
    }
    chat.verify()?;
    if let Some(why) = held.trouble() {
        return Err(why);
    }
    let (first, last) = (costs[0], costs.iter().copied().fold(0.0, f64::max));
    super::verdict("growth", last / first, "of the cost beside 1,000", true, 1.15);
    Ok(())
}
