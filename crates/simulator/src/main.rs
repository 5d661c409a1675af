//! `simulator --seeds N [--start S] | --seed S [--trace]`

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use simulator::{Coverage, Mistake, Outcome, Seen, run};

const HELP: &str = "\
Runs whole servers by function calls, everything that happens drawn from one seed.

Usage: simulator --seeds N [--start S] [--keep-going]
       simulator --seed S [--trace]

  --seeds N   run N seeds, each twice, and compare the traces
  --start S   begin with this seed [default: 1]
  --keep-going  do not stop at the first seed that does not hold
  --seed S    run one seed again
  --trace     print what happens, one line an event
";

struct Options {
    seeds: Option<u64>,
    start: u64,
    seed: Option<u64>,
    trace: bool,
    keep_going: bool,
}

fn options() -> Result<Options, String> {
    let mut options = Options { seeds: None, start: 1, seed: None, trace: false, keep_going: false };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().ok_or(format!("{argument} wants a number"))?;
            value.parse::<u64>().map_err(|_| format!("{argument} wants a number, not {value}"))
        };
        match argument.as_str() {
            "--seeds" => options.seeds = Some(number()?),
            "--start" => options.start = number()?,
            "--seed" => options.seed = Some(number()?),
            "--trace" => options.trace = true,
            "--keep-going" => options.keep_going = true,
            "--help" | "-h" => return Err(HELP.to_owned()),
            other => return Err(format!("unknown option {other}\n\n{HELP}")),
        }
    }
    match (options.seeds, options.seed) {
        (None, None) => Err(HELP.to_owned()),
        (Some(_), Some(_)) => Err("--seeds and --seed exclude each other".to_owned()),
        _ => Ok(options),
    }
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(text) => {
            eprintln!("{text}");
            return ExitCode::from(2);
        }
    };
    match options.seed {
        Some(seed) => one(seed, options.trace),
        None => many(options.start, options.seeds.unwrap_or(0), options.keep_going),
    }
}

fn one(seed: u64, trace: bool) -> ExitCode {
    let listener = trace.then(|| -> simulator::Listener { Box::new(|line| println!("{line}")) });
    let outcome = run(seed, Mistake::None, listener);
    println!("{}", outcome.coverage);
    match outcome.violation {
        None => {
            println!("seed {seed} holds, {} lines, trace {:016x}", outcome.lines, outcome.hash);
            ExitCode::SUCCESS
        }
        Some(violation) => {
            println!("seed {seed} violates {violation}");
            ExitCode::FAILURE
        }
    }
}

fn many(start: u64, seeds: u64, keep_going: bool) -> ExitCode {
    let mut coverage = Coverage::default();
    let (mut lines, mut failed) = (0, 0);
    for seed in start..start + seeds {
        let outcome = match twice(seed) {
            Ok(outcome) => outcome,
            Err(what) => {
                println!("seed {seed}: {what}");
                println!("replay it with: cargo xtask sim --seed {seed} --trace");
                failed += 1;
                if keep_going {
                    continue;
                }
                return ExitCode::FAILURE;
            }
        };
        coverage.merge(&outcome.coverage);
        lines += outcome.lines;
        let done = seed - start + 1;
        if done.is_multiple_of(50) || done == seeds {
            println!("{done} of {seeds} seeds run, {lines} events");
        }
    }
    println!("\nWhat happened in them, each counted once:\n{coverage}");
    let never = Seen::ALL.iter().filter(|seen| coverage.get(**seen) == 0).map(|seen| seen.text());
    let never: Vec<&str> = never.collect();
    if !never.is_empty() {
        println!("What never happened: {}", never.join("; "));
    }
    if failed > 0 {
        println!("{failed} of {seeds} seeds do not hold");
        return ExitCode::FAILURE;
    }
    println!("all {seeds} seeds hold");
    ExitCode::SUCCESS
}

/// Runs a seed twice: it must hold, and be the same.
fn twice(seed: u64) -> Result<Outcome, String> {
    let run = || catch_unwind(AssertUnwindSafe(|| run(seed, Mistake::None, None)));
    let first = run().map_err(|_| "panicked".to_owned())?;
    if let Some(violation) = first.violation {
        return Err(format!("violates {violation}"));
    }
    let second = run().map_err(|_| "panicked the second time".to_owned())?;
    if first.hash != second.hash {
        return Err(format!("two runs differ: {:016x} and {:016x}", first.hash, second.hash));
    }
    Ok(first)
}
