//! `simulator --seeds N [--start S] [--jobs J] | --seed S [--trace]`

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use simulator::{Coverage, Mistake, Outcome, run};

const HELP: &str = "\
Runs whole servers by function calls, everything that happens drawn from one seed.

Usage: simulator --seeds N [--start S] [--jobs J] [--keep-going]
       simulator --seed S [--trace]

  --seeds N   run N seeds, each twice, and compare the traces
  --start S   begin with this seed [default: 1]
  --jobs J    run so many seeds at a time [default: as many as there are cores]
  --keep-going  do not stop at the first seed that does not hold
  --seed S    run one seed again
  --trace     print what happens, one line an event
";

/// From so many seeds on everything that is counted must have happened in one of them.
const SEEDS_FOR_ALL: u64 = 300;

struct Options {
    seeds: Option<u64>,
    start: u64,
    jobs: u64,
    seed: Option<u64>,
    trace: bool,
    keep_going: bool,
}

fn options() -> Result<Options, String> {
    let jobs = thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let mut options = Options { seeds: None, start: 1, jobs, seed: None, trace: false, keep_going: false };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().ok_or(format!("{argument} wants a number"))?;
            value.parse::<u64>().map_err(|_| format!("{argument} wants a number, not {value}"))
        };
        match argument.as_str() {
            "--seeds" => options.seeds = Some(number()?),
            "--start" => options.start = number()?,
            "--jobs" => options.jobs = number()?.max(1),
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
        None => many(&options),
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

/// What came of a seed that was run twice.
type Judged = (u64, Result<Outcome, String>);

/// Runs seeds on some threads. What is printed does not depend on how many, nor on which is faster.
fn many(options: &Options) -> ExitCode {
    let seeds = options.seeds.unwrap_or(0);
    let (next, stop) = (AtomicU64::new(options.start), AtomicBool::new(false));
    let end = options.start + seeds;
    thread::scope(|scope| {
        let (judge, judged) = channel();
        for _ in 0..options.jobs {
            let (judge, next, stop) = (judge.clone(), &next, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || judge.send((seed, twice(seed))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(judge);
        let code = report(options.start, seeds, options.keep_going, judged);
        stop.store(true, Ordering::Relaxed);
        code
    })
}

/// Tells what came of the seeds, in their order.
fn report(start: u64, seeds: u64, keep_going: bool, judged: Receiver<Judged>) -> ExitCode {
    let mut coverage = Coverage::default();
    let (mut lines, mut failed) = (0, 0);
    let mut early = BTreeMap::new();
    for seed in start..start + seeds {
        while !early.contains_key(&seed) {
            let (seed, outcome) = judged.recv().expect("every seed is judged");
            early.insert(seed, outcome);
        }
        match early.remove(&seed).expect("it was waited for") {
            Ok(outcome) => {
                coverage.merge(&outcome.coverage);
                lines += outcome.lines;
            }
            Err(what) => {
                println!("seed {seed}: {what}");
                println!("replay it with: cargo xtask sim --seed {seed} --trace");
                failed += 1;
                if !keep_going {
                    return ExitCode::FAILURE;
                }
            }
        }
        let done = seed - start + 1;
        if done.is_multiple_of(50) && seeds <= 1_000 || done.is_multiple_of(1_000) || done == seeds {
            println!("{done} of {seeds} seeds run, {lines} events");
        }
    }
    println!("\nWhat happened in them, each counted once:\n{coverage}");
    if failed > 0 {
        println!("{failed} of {seeds} seeds do not hold");
        return ExitCode::FAILURE;
    }
    let never = coverage.never();
    if !never.is_empty() {
        println!("What never happened: {}", never.join("; "));
        if seeds >= SEEDS_FOR_ALL {
            println!("{seeds} seeds are enough for all of it: make it likelier in `Plan::draw`");
            return ExitCode::FAILURE;
        }
        println!("In {SEEDS_FOR_ALL} seeds all of it must");
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
