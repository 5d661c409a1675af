//! Everybody comes back at once: a server is killed with all its clients, started again, and the time is taken until the last of them
//! is in. They come back as they were told to, spread over the window that `connect` answered, and the store is asked nothing.

use std::time::Duration;

use load::{Context, Fleet, FleetOptions, Said, Scenario, Server, ServerOptions};
use protocol::{Connected, Window};

/// What a client may wait beyond its window.
const BEYOND_WINDOW: Duration = Duration::from_secs(2);

/// Comes back whenever a connection is over.
struct Herd {
    window: Option<Window>,
    random: u64,
    /// Whether those who lose their connection come back.
    returning: bool,
    refused: usize,
}

impl Scenario for Herd {
    fn connected(&mut self, _: &mut Context<'_>, _: usize, connected: &Connected) {
        self.window = Some(connected.reconnect);
    }

    fn said(&mut self, context: &mut Context<'_>, client: usize, said: Said<'_>) {
        let (Said::Over(_), true, Some(window)) = (said, self.returning, self.window) else { return };
        self.refused += 1;
        // splitmix64 (Steele, Lea and Flood, 2014), the same in every run.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let wait = window.min.0 + (z ^ z >> 31) % (window.max.0 - window.min.0 + 1);
        context.come_back(client, context.now + Duration::from_millis(wait));
    }
}

pub fn run(arguments: &[String]) -> Result<(), String> {
    let told = |error: std::io::Error| error.to_string();
    let count: usize = super::option(arguments, "--connections", 15_000)?;
    let shards: u16 = super::option(arguments, "--shards", 2)?;
    let folder = tempfile::tempdir().map_err(told)?;
    let settings = vec![("THRONG_CONNECTIONS_UNAUTHENTICATED_PER_ADDRESS_MAX", "8192".to_owned())];
    let options = ServerOptions { shards, data: folder.path().to_owned(), settings };
    let server = Server::start(&options)?;
    let address = server.address;
    let tokens = (0..count).map(|user| server.token(user)).collect();
    let fleet_options = FleetOptions { connecting_max: 512, ..FleetOptions::new(address) };
    let mut fleet = Fleet::with_tokens(fleet_options, tokens).map_err(told)?;
    let mut herd = Herd { window: None, random: 12, returning: false, refused: 0 };
    let all = fleet
        .run(&mut herd, Duration::from_secs(180), |fleet, _| fleet.open() == count || fleet.failures() > 0);
    if !all.map_err(told)? || fleet.open() != count {
        return Err(format!("{} of {count} connected: {:?}", fleet.open(), fleet.failure()));
    }
    let window = herd.window.ok_or("nobody was told when to come back")?;
    println!(
        "{count} connected; killed, and told to come back after {} to {} ms",
        window.min.0, window.max.0
    );

    herd.returning = true;
    server.kill()?;
    let killed = fleet.elapsed();
    fleet.run(&mut herd, Duration::from_secs(20), |fleet, _| fleet.open() == 0).map_err(told)?;
    // Started in another thread, so that the clients knock meanwhile.
    let starting = std::thread::spawn(move || Server::start_at(&options, address));
    fleet.run(&mut herd, Duration::from_secs(60), |_, _| starting.is_finished()).map_err(told)?;
    let server = starting.join().map_err(|_| "the start panicked".to_owned())??;
    let (ready, asked, cpu) = (fleet.elapsed(), server.metric("throng_store_requests_total")?, server.cpu()?);
    let refused = herd.refused - count;
    println!(
        "serving again after {:.2} s; {refused} tries had failed by then, {} were in",
        (ready - killed).as_secs_f64(),
        fleet.open()
    );
    let limit = Duration::from_secs(60);
    let mut half = None;
    let back = fleet.run(&mut herd, limit, |fleet, _| {
        half = half.or((2 * fleet.open() >= count).then(|| fleet.elapsed()));
        fleet.open() == count
    });
    if !back.map_err(told)? {
        return Err(format!("{} of {count} were back after {limit:?}", fleet.open()));
    }
    let took = (fleet.elapsed() - ready).as_secs_f64();
    println!(
        "half were back after {:.2} s, all after {took:.2} s, {} tries refused; {:.2} s of the server's CPU",
        half.map_or(0.0, |half| half.saturating_sub(ready).as_secs_f64()),
        herd.refused - count - refused,
        (server.cpu()? - cpu).as_secs_f64()
    );
    let queries = server.metric("throng_store_requests_total")? - asked;
    if queries > 0.0 {
        return Err(format!("devices that were known cost {queries} requests to the store"));
    }
    let bar = Duration::from_millis(window.max.0) + BEYOND_WINDOW;
    super::verdict("herd", took, "s until all are back", true, bar.as_secs_f64());
    Ok(())
}
