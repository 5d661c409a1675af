//! The benchmarks, each a command: `cargo xtask bench NAME`.
//!
//! Each prints its parts as it goes, and ends with one line `NAME: VALUE UNIT (bar ≤|≥ BAR): holds|falls short`.

mod chat;
mod echo;
mod growth;
mod handshake;
mod held;
mod hold;
mod idle;
mod machine;
mod neighbours;
mod numbers;
mod peers;
mod seed;
mod storm;

use std::process::ExitCode;

/// Every benchmark with its arguments, and what it measures.
const BENCHMARKS: &[(&str, &str)] = &[
    (
        "idle [--peers]",
        "user-space bytes of an idle authenticated connection (15,000 on 2 shards), and of a bare one of other servers",
    ),
    ("hold N", "N authenticated connections held while 100 pairs chat; nothing may be lost"),
    ("chat", "durable messages a second beside a bare epoll echo in the same run"),
    ("handshake", "authenticated connects a second beside bare connects with two echoes in the same run"),
    (
        "storm",
        "seconds until 100,000 clients of a server that was killed are back; nothing acknowledged may be lost",
    ),
    ("growth", "CPU of a message beside 1,000,000 idle connections, against beside 1,000 in the same run"),
    ("neighbours", "p99 of good clients while others misbehave, beside that of a quiet time in the same run"),
    ("seed", "seconds to seed 5,000 users and 2,500 conversations; `--users N --conversations M` for others"),
];

fn list() -> String {
    let mut list = String::new();
    for (name, what) in BENCHMARKS {
        list += &format!("{name:<16}  {what}\n");
    }
    list + "numbers           no benchmark: writes docs/numbers.md from the records\n"
}

fn main() -> ExitCode {
    reactor::raise_descriptor_limit();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some("idle") => idle::run(&arguments[1..]),
        Some("hold") => hold::run(&arguments[1..]),
        Some("chat") => chat::run(&arguments[1..]),
        Some("handshake") => handshake::run(&arguments[1..]),
        Some("storm") => storm::run(&arguments[1..]),
        Some("growth") => growth::run(&arguments[1..]),
        Some("neighbours") => neighbours::run(&arguments[1..]),
        Some("seed") => seed::run(&arguments[1..]),
        Some("--list") => {
            print!("{}", list());
            return ExitCode::SUCCESS;
        }
        Some("numbers") => numbers::run(&arguments[1..]),
        _ => Err(format!("which benchmark?\n{}", list())),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The closing line. A benchmark that falls short has still succeeded in measuring.
fn verdict(name: &str, value: f64, unit: &str, at_most: bool, bar: f64) {
    let (sign, holds) = if at_most { ("≤", value <= bar) } else { ("≥", value >= bar) };
    let digits = if value >= 10.0 { 0 } else { 3 };
    println!(
        "{name}: {value:.digits$} {unit} (bar {sign} {bar}): {}",
        if holds { "holds" } else { "falls short" }
    );
}

/// One number of which the result is made; it goes into the record too.
fn part(name: &str, value: f64, unit: &str) {
    println!("· {name}: {value:.3} {unit}");
}

/// The middle of some numbers.
fn middle(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// The value of `--name VALUE`, or a default.
fn option<T: std::str::FromStr>(arguments: &[String], name: &str, default: T) -> Result<T, String> {
    match arguments.iter().position(|argument| argument == name) {
        None => Ok(default),
        Some(at) => arguments
            .get(at + 1)
            .and_then(|value| value.parse().ok())
            .ok_or_else(|| format!("{name} needs a value of the right kind")),
    }
}

/// The encoding named by `--encoding json|cbor`.
fn encoding(arguments: &[String], default: &str) -> Result<protocol::Encoding, String> {
    match option(arguments, "--encoding", default.to_owned())?.as_str() {
        "json" => Ok(protocol::Encoding::Json),
        "cbor" => Ok(protocol::Encoding::Cbor),
        other => Err(format!("--encoding {other}: there is json and cbor")),
    }
}
