//! The long runs, each a command: `cargo xtask torture NAME`.
//!
//! Each prints its seed and its parts as it goes, and ends with one line `NAME: holds: …` or `NAME: VIOLATED: …`. It then exits 0 or 1.

use std::panic::catch_unwind;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use torture::chance::{self, Chance};
use torture::{kill, restart, soak};

/// What was wrong first. The others stop for that reason.
static FIRST: Mutex<Option<String>> = Mutex::new(None);

fn main() -> ExitCode {
    reactor::raise_descriptor_limit();
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = if arguments.is_empty() { String::new() } else { arguments.remove(0) };
    match prepare(&name, &arguments) {
        Ok(run) => judged(&name, run),
        Err(complaint) => {
            eprintln!("torture: {complaint}");
            ExitCode::from(2)
        }
    }
}

type Run = Box<dyn FnOnce(Chance) -> String + std::panic::UnwindSafe>;

/// Reads the command line: what is to be run, and its seed.
fn prepare(name: &str, arguments: &[String]) -> Result<(u64, Run), String> {
    let seed = match option(arguments, "--seed")? {
        Some(seed) => seed,
        None => chance::seed(),
    };
    let run: Run = match name {
        "kill" => {
            let rounds = option(arguments, "--rounds")?.unwrap_or(20);
            Box::new(move |chance| kill(rounds, chance))
        }
        "restart" => {
            let clients = option(arguments, "--clients")?.unwrap_or(5_000);
            Box::new(move |chance| restart(clients, chance))
        }
        "soak" => {
            let minutes: u64 = option(arguments, "--minutes")?.unwrap_or(60);
            Box::new(move |_| soak(minutes.max(1), seed))
        }
        _ => return Err("what to run? kill, soak or restart".to_owned()),
    };
    Ok((seed, run))
}

/// The value of `--name VALUE`.
fn option<T: std::str::FromStr>(arguments: &[String], name: &str) -> Result<Option<T>, String> {
    let Some(at) = arguments.iter().position(|argument| argument == name) else { return Ok(None) };
    let value = arguments.get(at + 1).and_then(|value| value.parse().ok());
    value.map(Some).ok_or_else(|| format!("{name} needs a value of the right kind"))
}

fn judged(name: &str, (seed, run): (u64, Run)) -> ExitCode {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let message = panic.payload_as_str().unwrap_or("no message").to_owned();
        FIRST.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(message);
        usual(panic);
    }));
    println!("{name}: seed {seed}");
    let began = Instant::now();
    let result = catch_unwind(move || run(Chance::from_seed(seed)));
    let took = began.elapsed().as_secs();
    match result {
        Ok(summary) => {
            println!("{name}: holds: {summary}; {took} s, seed {seed}");
            ExitCode::SUCCESS
        }
        Err(_) => {
            let first = FIRST.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
            println!("{name}: VIOLATED after {took} s: {} (seed {seed})", first.unwrap_or_default());
            ExitCode::FAILURE
        }
    }
}

fn kill(rounds: u32, mut chance: Chance) -> String {
    let plan = kill::Plan { rounds, size: 50, pause: Duration::from_millis(20) };
    let report = kill::run(&plan, &mut chance, |line| println!("{line}"));
    format!(
        "{} kills, {} of them before it was ready and {} while it stopped; {} messages to {} devices each once, in order, in every conversation; {} connections, \
         {} sends repeated, {} of them on disk already, {} receipts judged; every cursor right, `db check` clean after every kill",
        report.kills,
        report.early,
        report.stopping,
        report.messages,
        report.devices,
        report.connections,
        report.repeated,
        report.duplicates,
        report.receipts
    )
}

fn restart(clients: usize, chance: Chance) -> String {
    let plan = restart::Plan {
        clients,
        chat: Duration::from_secs(10),
        pause: Duration::from_secs(2),
        beyond_window: Duration::from_secs(2),
        settings: Vec::new(),
    };
    let report = restart::run(&plan, chance, |line| println!("{line}"));
    let waited = report.returns.iter().map(|one| one.back - one.lost).max().unwrap_or_default();
    let failed = report.returns.iter().filter(|one| one.failures > 0).count();
    format!(
        "{} clients sent away and back, the last after {:.1} s, {failed} of them not at the first attempt; stopped in {:.1} s, up again \
         in {:.1} s; {} messages each once and in order, {} sends repeated",
        report.returns.len(),
        waited.as_secs_f64(),
        report.stopped.as_secs_f64(),
        report.started.as_secs_f64(),
        report.messages,
        report.repeated
    )
}

fn soak(minutes: u64, seed: u64) -> String {
    let report = soak::run(Duration::from_secs(60 * minutes), seed, |line| println!("{line}"));
    format!(
        "{minutes} minutes, {} kills and {} restarts, {} messages each once and in order to every device, {} sessions; {}; nothing \
         grows beyond what is pending and remembered",
        report.kills, report.restarts, report.messages, report.connections, report.network
    )
}
