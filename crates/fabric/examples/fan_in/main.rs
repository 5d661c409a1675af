//! Fan-in: 200,000 connections each send one job to one of 32 partitions and wait for their own reply; over the
//! fabric, and the way it is usually written with tokio.
//!
//! `cargo run --release -p fabric --example fan_in [RUNS]` takes both sides in turn, each run in a process of its
//! own, so that each pays for its own memory, and prints medians and their ratio. Both do the same work, which is in
//! `work`: every connection has its own key, hashes it inside the clock, gets a reply that depends on its job and on
//! the partition's state, and checks it. After the clock, every reply of every partition is checked once more.
//!
//! Also: the same with 200 ns of work in a job, an open loop, and the memory of pairs that were never used.
#![allow(unexpected_cfgs, reason = "`--cfg loom` is set by hand when the memory orderings are checked")]

#[cfg(not(loom))]
mod by_fabric;
#[cfg(not(loom))]
mod by_tokio;
#[cfg(not(loom))]
mod measure;
#[cfg(not(loom))]
mod open_loop;
#[cfg(not(loom))]
mod report;
#[cfg(not(loom))]
mod work;

#[cfg(not(loom))]
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => report::all(7),
        ["child", kind, number] => report::child(kind, number.parse().expect("a number")),
        [runs] => report::all(runs.parse().expect("how many runs of each side")),
        _ => panic!("usage: fan_in [RUNS]"),
    }
}

#[cfg(loom)]
fn main() {}
