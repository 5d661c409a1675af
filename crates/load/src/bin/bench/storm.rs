//! Everybody comes back at once: a server is killed with all its clients, started again, and the time is taken until the last of them
//! is in. They come back as they were told to, spread over the window that `connect` answered, and the store is asked nothing.
//!
//! Pairs chat until the server dies; what was acknowledged to them must be there afterwards.

use std::time::{Duration, Instant};

use load::{FleetOptions, Server, ServerOptions};

use crate::chat::Chat;
use crate::held::Held;
use crate::hold::default_shards;
use crate::machine;

const PAIRS: usize = 100;
/// Memory of the server may grow by so much while they come back: what a connection costs only while it is opened, 4 KiB for each of
/// those that are let in at a time.
const OPENING_BYTES: u64 = 4_096 * 8_192;
const MIB: f64 = 1_048_576.0;

pub fn run(arguments: &[String]) -> Result<(), String> {
    let count: usize = super::option(arguments, "--connections", 100_000)?;
    let shards: u16 = super::option(arguments, "--shards", default_shards(count))?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let settings = vec![
        ("THRONG_CONNECTIONS_UNAUTHENTICATED_PER_ADDRESS_MAX", "8192".to_owned()),
        ("THRONG_COMMANDS_PER_SECOND", "1000".to_owned()),
    ];
    let options = ServerOptions { shards, data: folder.path().to_owned(), settings };
    let server = Server::start(&options)?;
    let address = server.address;
    let mut held = Held::nobody();
    held.grow(&server, count, Duration::from_secs(180))?;
    let pairs_options =
        || FleetOptions { connecting_max: 64, first_source: 40_000, ..FleetOptions::new(address) };
    let (mut fleet, mut chat) = Chat::connect(&server, pairs_options(), count, PAIRS, 1)?;
    chat.begin(&mut fleet);
    fleet
        .run(&mut chat, Duration::from_secs(5), |fleet, _| fleet.failures() > 0)
        .map_err(|error| error.to_string())?;
    let (resident, overflows) = (server.resident_bytes()?, machine::listen_overflows()?);
    println!("{count} connected on {shards} shards, {:.1} MiB resident; killed", resident as f64 / MIB);

    held.let_return();
    server.kill()?;
    let killed = Instant::now();
    fleet
        .run(&mut chat, Duration::from_secs(20), |fleet, _| fleet.open() == 0)
        .map_err(|error| error.to_string())?;
    chat.verify()?;
    drop(fleet);
    while held.open() > 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let server = Server::start_at(&options, address)?;
    let (ready, asked, cpu) = (Instant::now(), server.metric("throng_store_requests_total")?, server.cpu()?);
    let (knocks, known) = (held.losses() - count, server.resident_bytes()?);
    println!(
        "serving again after {:.2} s; {knocks} tries had failed by then, {} were in",
        (ready - killed).as_secs_f64(),
        held.open()
    );
    let (mut half, mut peak) = (None, known);
    while held.open() < count {
        if ready.elapsed() > Duration::from_secs(120) {
            return Err(format!("{} of {count} were back after two minutes", held.open()));
        }
        if let Some(why) = held.trouble() {
            return Err(why);
        }
        half = half.or((2 * held.open() >= count).then(|| ready.elapsed()));
        peak = peak.max(server.resident_bytes()?);
        std::thread::sleep(Duration::from_millis(10));
    }
    let took = ready.elapsed().as_secs_f64();
    let refused = held.losses() - count - knocks;
    let queries = server.metric("throng_store_requests_total")? - asked;
    let overflowed = machine::listen_overflows()? - overflows;
    let cpu = server.cpu()? - cpu;
    super::part("half were back after", half.map_or(took, |half| half.as_secs_f64()), "s");
    super::part("tries that failed before it served", knocks as f64, "");
    super::part("tries that it refused, each told when to come back", refused as f64, "");
    super::part("connections that a full listener made try again", overflowed as f64, "");
    super::part("server's CPU for all of them", cpu.as_secs_f64(), "s");
    super::part("resident before", resident as f64 / MIB, "MiB");
    super::part("resident at the most while they came back", peak as f64 / MIB, "MiB");
    if queries > 0.0 {
        return Err(format!("devices that were known cost {queries} requests to the store"));
    }
    if peak > resident + OPENING_BYTES {
        return Err(format!("the server took {} bytes more than before", peak - resident));
    }
    let found = chat.look(&server, pairs_options(), count)?;
    println!("{found} messages had been acknowledged to the pairs, and all of them are there");
    held.release()?;
    super::verdict("storm", took, "s until all are back", true, 30.0);
    Ok(())
}
