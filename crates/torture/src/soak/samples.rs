//! What is measured of a server, and the rule by which it grows or does not.
//!
//! The rule looks at the second half of a soak, in which the server is not disturbed: the greatest value of its last quarter is
//! compared with the greatest of its second. Every number has an allowance for chance; only the database may grow with the messages
//! as well, since client ids are remembered for days.

use std::fs;
use std::time::{Duration, Instant};

use crate::run::Place;
use crate::server::Server;

const MIB: u64 = 1024 * 1024;
/// What a message that everybody has may leave behind in the database: its client id with digest, place and age, some 105 bytes in two
/// tables, whose pages need not be full.
const REMEMBERED_BYTES: u64 = 200;
/// What the write-ahead log may ever be.
const WAL_MAX: u64 = 160 * MIB;

/// A server at one moment.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// Since the soak began.
    at: Duration,
    /// Servers before this one.
    lives: u32,
    resident: u64,
    /// Of all threads, which may have tables of their own.
    descriptors: u64,
    threads: u64,
    database: u64,
    wal: u64,
    connections: u64,
    /// Devices with messages on their way to them.
    flights: u64,
    conversations: u64,
    /// Messages answered since the soak began.
    messages: u64,
}

/// All of them.
pub struct Samples<'a> {
    place: &'a Place,
    began: Instant,
    /// Servers before this one.
    pub lives: u32,
    taken: Vec<Sample>,
}

impl<'a> Samples<'a> {
    /// None yet.
    pub fn new(place: &'a Place) -> Samples<'a> {
        Samples { place, began: Instant::now(), lives: 0, taken: Vec::new() }
    }

    /// Takes one, and says it in a line.
    pub fn take(&mut self, server: &Server, messages: u64) -> String {
        let process = format!("/proc/{}", server.pid());
        let size = |name: &str| fs::metadata(self.place.path(name)).map_or(0, |file| file.len());
        let sample = Sample {
            at: self.began.elapsed(),
            lives: self.lives,
            resident: resident(&process),
            descriptors: of_tasks(&process, |task| {
                fs::read_dir(format!("{task}/fd")).map_or(0, Iterator::count)
            }),
            threads: of_tasks(&process, |_| 1),
            database: size("data/throng.db"),
            wal: size("data/throng.db-wal"),
            connections: server.metric("throng_connections"),
            flights: server.metric("throng_flights"),
            conversations: server.metric("throng_conversations_resident"),
            messages,
        };
        let line = sample.line();
        self.taken.push(sample);
        line
    }

    /// The last of them, in lines.
    pub fn last(&self, count: usize) -> impl Iterator<Item = String> {
        self.taken[self.taken.len().saturating_sub(count)..].iter().map(Sample::line)
    }

    /// Those from then on.
    pub fn from(&self, then: Duration) -> &[Sample] {
        &self.taken[self.taken.partition_point(|sample| sample.at < then)..]
    }
}

impl Sample {
    fn line(&self) -> String {
        let mib = |bytes: u64| bytes as f64 / MIB as f64;
        format!(
            "{:5.0} s: server {}, {:.1} MiB resident, {} descriptors, {} threads, database {:.1} MiB, log {:.1} MiB, {} connections, \
             {} with messages under way, {} conversations resident, {} messages",
            self.at.as_secs_f64(),
            self.lives + 1,
            mib(self.resident),
            self.descriptors,
            self.threads,
            mib(self.database),
            mib(self.wal),
            self.connections,
            self.flights,
            self.conversations,
            self.messages
        )
    }
}

/// What is in memory, from proc_pid_status(5).
fn resident(process: &str) -> u64 {
    let status = fs::read_to_string(format!("{process}/status")).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a process has memory");
    1024 * line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
}

fn of_tasks(process: &str, count: impl Fn(&str) -> usize) -> u64 {
    let tasks = fs::read_dir(format!("{process}/task")).expect("it lives").flatten();
    tasks.map(|task| count(&task.path().to_string_lossy()) as u64).sum()
}

/// One number, and whether it stayed within bounds.
pub struct Line {
    /// For people to read.
    pub text: String,
    /// Whether it did.
    pub holds: bool,
}

/// Applies the rule to the samples of an undisturbed server with so many devices.
pub fn growth(samples: &[Sample], devices: u64) -> Vec<Line> {
    assert!(samples.len() >= 16, "too few samples to judge: {}", samples.len());
    assert!(samples.iter().all(|sample| sample.lives == samples[0].lives), "the server was disturbed");
    let quarter = samples.len() / 4;
    let (second, last) = (&samples[quarter..2 * quarter], &samples[samples.len() - quarter..]);
    let most = |samples: &[Sample], of: fn(&Sample) -> u64| samples.iter().map(of).max().expect("not empty");
    let messages = most(last, |sample| sample.messages) - most(second, |sample| sample.messages);
    let line = |name: &str, of: fn(&Sample) -> u64, allowed: &dyn Fn(u64) -> u64| {
        let (before, after) = (most(second, of), most(last, of));
        let bound = allowed(before);
        let holds = after <= bound;
        let verdict = if holds { "holds" } else { "GROWS" };
        let text = format!(
            "{name}: {before} in the second quarter, {after} in the last, at most {bound}: {verdict}"
        );
        Line { text, holds }
    };
    vec![
        line("resident bytes", |sample| sample.resident, &|before| before + before / 20 + 4 * MIB),
        // Each device comes back many times in a quarter, so a descriptor left behind each time would be far more.
        line("descriptors", |sample| sample.descriptors, &|before| before + devices / 5),
        line("threads", |sample| sample.threads, &|before| before + 2),
        line("bytes of the write-ahead log", |sample| sample.wal, &|before| {
            (before + before / 4 + 8 * MIB).min(WAL_MAX)
        }),
        line("bytes of the database", |sample| sample.database, &|before| {
            before + messages * REMEMBERED_BYTES + 4 * MIB
        }),
        line("conversations resident", |sample| sample.conversations, &|before| before),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An hour of samples, ten seconds apart, that changes like this.
    fn hour(change: impl Fn(u64, &mut Sample)) -> Vec<Sample> {
        let sample = |n: u64| {
            let mut sample = Sample {
                resident: 30 * MIB,
                descriptors: 250,
                threads: 6,
                database: 50 * MIB,
                wal: 20 * MIB,
                messages: 2_500 * n,
                conversations: 60,
                ..Sample::default()
            };
            change(n, &mut sample);
            sample
        };
        (0..360).map(sample).collect()
    }

    fn grows(change: impl Fn(u64, &mut Sample)) -> Vec<String> {
        let lines = growth(&hour(change), 110);
        lines.into_iter().filter(|line| !line.holds).map(|line| line.text).collect()
    }

    #[test]
    fn what_stays_or_swings_holds() {
        assert_eq!(grows(|_, _| {}), [""; 0]);
        assert_eq!(grows(|n, sample| sample.resident += n % 7 * MIB), [""; 0]);
        assert_eq!(grows(|n, sample| sample.wal += n % 50 * MIB), [""; 0]);
        // 200 bytes for each of 2,500 messages are what is remembered.
        assert_eq!(grows(|n, sample| sample.database += n * 2_500 * 200), [""; 0]);
    }

    #[test]
    fn what_grows_is_named() {
        let named = |found: Vec<String>, name: &str| found.len() == 1 && found[0].starts_with(name);
        assert!(named(grows(|n, sample| sample.resident += n * 64 * 1024), "resident bytes: "));
        assert!(named(grows(|n, sample| sample.descriptors += n / 5), "descriptors: "));
        assert!(named(grows(|n, sample| sample.threads += n / 50), "threads: "));
        assert!(named(grows(|n, sample| sample.wal += n * MIB / 2), "bytes of the write-ahead log: "));
        assert!(named(grows(|n, sample| sample.database += n * 2_500 * 250), "bytes of the database: "));
        assert!(named(grows(|n, sample| sample.conversations += n / 200), "conversations resident: "));
    }

    #[test]
    #[should_panic(expected = "the server was disturbed")]
    fn a_restart_in_between_proves_nothing() {
        growth(&hour(|n, sample| sample.lives = (n / 200) as u32), 110);
    }
}
