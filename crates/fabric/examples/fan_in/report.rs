//! Takes both sides in turn, each run in a process of its own, and prints medians.

use std::process::Command;
use std::time::{Duration, Instant};

use fabric::{Outbox, Waker, connect};

use crate::measure::{processors, resident};
use crate::work::{CONNECTIONS, PARTITIONS, key_of, partition_of, spin};
use crate::{by_fabric, by_tokio, open_loop};

/// The ratio that is wanted.
const BAR: f64 = 30.0;

/// What one run took.
pub struct Sample {
    /// From nothing to the last reply.
    pub total: Duration,
    /// From the moment when all connections exist to the last reply.
    pub steady: Duration,
    /// Processor time of all threads, the creation included.
    pub cpu: Duration,
    /// The peak of resident memory above what was there before, in bytes.
    pub memory: u64,
    /// Jobs that went from one thread to another.
    pub crossed: usize,
}

/// One run, told to the parent as one line. `number` is the steps of work in a job, or jobs a second.
pub fn child(kind: &str, number: u64) {
    let (_, threads) = processors();
    let salt = salt(threads);
    match kind {
        "fabric" => by_fabric::run(number, salt, threads).print(),
        "tokio" => by_tokio::run(number, salt, threads, false).print(),
        "tokio-gated" => by_tokio::run(number, salt, threads, true).print(),
        "open-fabric" => print_times(open_loop::by_fabric(number, salt, threads)),
        "open-tokio" => print_times(open_loop::by_tokio(number, salt, threads)),
        "pairs" => print_pairs(number as usize),
        _ => panic!("no such side: {kind}"),
    }
}

impl Sample {
    fn print(&self) {
        let Self { total, steady, cpu, memory, crossed } = self;
        println!("{} {} {} {memory} {crossed}", total.as_nanos(), steady.as_nanos(), cpu.as_nanos());
    }
}

fn print_times(mut times: Vec<u32>) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!("{} {} {}", at(0.5), at(0.99), at(1.0));
}

/// What a fabric of `count` ports takes before anything is sent, in bytes.
fn print_pairs(count: usize) {
    let before = resident();
    let ports = connect::<Vec<u64>>((0..count).map(|_| Box::new(|| ()) as Waker).collect(), 16);
    let rings = resident() - before;
    let outboxes: Vec<Outbox<Vec<u64>>> = ports.iter().map(|port| Outbox::new(port.ports(), 256)).collect();
    let all = resident() - before;
    println!("{rings} {}", all - rings);
    drop(outboxes);
}

/// A secret under which no fewer jobs cross threads than the rule demands, (threads - 1) / threads; by chance it is
/// one in two.
fn salt(threads: usize) -> u64 {
    let crossing = |salt: &u64| {
        let crosses = |index: &usize| partition_of(*salt, key_of(*index)) % threads != index % threads;
        (0..CONNECTIONS).filter(crosses).count() * threads >= CONNECTIONS * (threads - 1)
    };
    (1..).find(crossing).expect("some secret will do")
}

/// Steps of work that take `wanted` here, from the quickest of many short tries.
fn calibrate(wanted: Duration) -> u64 {
    const STEPS: u64 = 20_000;
    let time = |_| {
        let start = Instant::now();
        spin(STEPS);
        start.elapsed()
    };
    let quickest = (0..500).map(time).min().expect("a try");
    (wanted.as_secs_f64() / quickest.as_secs_f64() * STEPS as f64) as u64
}

/// The numbers of one run in a process of its own.
fn numbers(kind: &str, number: u64) -> Vec<u64> {
    let me = std::env::current_exe().expect("the path of this program");
    let output = Command::new(me).args(["child", kind, &number.to_string()]).output().expect("a child");
    assert!(output.status.success(), "{kind}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("a line of numbers");
    text.split_whitespace().map(|word| word.parse().expect("a number")).collect()
}

fn median(samples: &[Vec<u64>], index: usize) -> f64 {
    let mut values: Vec<u64> = samples.iter().map(|sample| sample[index]).collect();
    values.sort_unstable();
    values[values.len() / 2] as f64
}

/// Runs of all kinds, taken in turn.
fn interleaved<const N: usize>(kinds: [&str; N], number: u64, runs: usize) -> [Vec<Vec<u64>>; N] {
    let mut samples = [const { Vec::new() }; N];
    for _ in 0..runs {
        for (kind, samples) in kinds.iter().zip(&mut samples) {
            samples.push(numbers(kind, number));
        }
    }
    samples
}

/// Everything.
pub fn all(runs: usize) {
    let (list, threads) = processors();
    println!(
        "{CONNECTIONS} connections, {PARTITIONS} partitions, processors {list}, {threads} threads a side"
    );
    println!("medians of {runs} interleaved runs, each a process of its own");
    let ratio = closed("no work in a job", 0, runs);
    closed("200 ns of work in a job", calibrate(Duration::from_nanos(200)), runs);
    open(100_000, runs);
    open(250_000, runs);
    let ports = 512;
    let pairs = numbers("pairs", ports);
    let each = |bytes: u64| bytes as f64 / (ports * ports) as f64;
    println!("\nmemory of an unused pair, of {ports} ports (a port's own included)");
    println!(
        "  fabric {:.1} B resident (8 B once its page is touched), outbox {:.1} B",
        each(pairs[0]),
        each(pairs[1])
    );
    println!("fan_in: {ratio:.1} x (bar ≥ {BAR}): {}", if ratio >= BAR { "holds" } else { "falls short" });
}

/// All jobs at once.
fn closed(title: &str, steps: u64, runs: usize) -> f64 {
    let [fabric, tokio, gated] = interleaved(["fabric", "tokio", "tokio-gated"], steps, runs);
    println!("\n{title}");
    for (name, samples) in [("fabric", &fabric), ("tokio, all exist", &gated), ("tokio, at once", &tokio)] {
        let (all, existing) = (median(samples, 0) / 1e6, median(samples, 1) / 1e6);
        let (cpu, memory) = (median(samples, 2) / 1e9, median(samples, 3) / 1e6);
        println!(
            "  {name:16} {all:8.2} ms, {existing:8.2} ms of it sending, {cpu:.4} CPU s, {memory:6.1} MB"
        );
    }
    println!("  {} of {CONNECTIONS} jobs went to another thread and their replies back", median(&fabric, 4));
    let ratio = |samples: &[Vec<u64>], index| median(samples, index) / median(&fabric, index);
    let (all, existing, cpu) = (ratio(&gated, 0), ratio(&gated, 1), ratio(&gated, 2));
    println!("  ratio when all exist: {all:.1}, {existing:.1} without creation, {cpu:.1} in CPU seconds");
    let (all, cpu) = (ratio(&tokio, 0), ratio(&tokio, 2));
    println!("  ratio when none waits for the others: {all:.1}, {cpu:.1} in CPU seconds");
    all
}

/// Jobs at their own pace.
fn open(rate: u64, runs: usize) {
    let samples = interleaved(["open-fabric", "open-tokio"], rate, runs);
    println!("\nopen loop, {rate} jobs a second");
    for (name, samples) in ["fabric", "tokio"].into_iter().zip(&samples) {
        let [p50, p99, most] = [0, 1, 2].map(|index| median(samples, index) / 1e3);
        println!("  {name:7} p50 {p50:8.1} µs, p99 {p99:8.1} µs, most {most:8.1} µs");
    }
}
