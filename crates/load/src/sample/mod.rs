//! The sampler: what the server's machine did while a load ran, one row an interval.
//!
//! Owns when something is read, the order of the file, and what is said to the person who watches. Where numbers lie, `proc` knows; what
//! texts mean, `machine` and `metrics`; how two readings make a row, `reading`. Nothing here knows who puts the load on.

mod alarms;
mod columns;
mod http;
pub mod machine;
mod metrics;
pub mod proc;
mod reading;
mod summary;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use alarms::Alarms;
use http::{AskError, Connection};
use metrics::ServerMetrics;
use reading::{ApiReading, Reading, Units};

pub use alarms::{BUSY_PERCENT_MAX, SUSTAINED};
pub use columns::Column;
pub use http::Url;
pub use proc::Proc;
pub use summary::Summary;

/// The user whose conversations are asked for.
pub const USER: &str = "sampler";
/// What is asked.
const API_PATH: &str = "/v1/conversations";
/// No answer is waited for longer, however long the interval.
const ANSWER_WITHIN_MAX: Duration = Duration::from_secs(5);
/// A token is used for so long, and then a new one is made. It must be valid for a while longer.
pub const TOKEN_USED_FOR: Duration = Duration::from_secs(300);

/// Which process is the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerProcess {
    /// This one.
    Number(u32),
    /// The one that this lock file names, also after a restart.
    HolderOf(PathBuf),
}

/// What is sampled, and how often.
pub struct Options<'a> {
    /// The time from row to row.
    pub interval: Duration,
    /// The end; without it, until told to stop.
    pub duration: Option<Duration>,
    /// Where the server is asked.
    pub url: Url,
    /// Its process.
    pub process: ServerProcess,
    /// Makes a token for [`USER`], or says why there is none.
    pub token: &'a mut dyn FnMut() -> Result<String, String>,
    /// Version and commit, and the exact command line, for the head of the file.
    pub throng: &'a str,
    /// The exact command line.
    pub command: &'a str,
}

/// Samples until the time is over or something comes from `stop`. `warn` is called with sentences for the person who watches.
///
/// # Errors
/// When a row cannot be written.
pub fn run(
    options: Options<'_>,
    output: &mut dyn Write,
    warn: &mut dyn FnMut(&str),
    stop: &Receiver<()>,
) -> io::Result<Summary> {
    let (interval, duration) = (options.interval, options.duration);
    let proc = Proc::of_this_machine();
    let head = head(&options, &proc.describe());
    let mut sources = Sources::new(options, proc);
    let units = Units {
        ticks_per_second: rustix::param::clock_ticks_per_second(),
        page_bytes: rustix::param::page_size() as u64,
    };
    write_whole(output, &head)?;
    let began = Instant::now();
    let mut before = sources.read(began);
    for missing in sources.missing(&before) {
        warn(&missing);
    }
    let (mut alarms, mut summary) = (Alarms::default(), Summary::default());
    let ending = loop {
        let due = next_due(before.elapsed, interval);
        if duration.is_some_and(|duration| due > duration) {
            break "finished";
        }
        match stop.recv_timeout(due.saturating_sub(began.elapsed())) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break "interrupted",
        }
        let now = sources.read(began);
        let row = reading::row(&before, &now, units);
        write_whole(output, &row.line())?;
        for warning in alarms.look(&row, before.elapsed, now.elapsed) {
            warn(&warning);
        }
        summary.add(&row);
        before = now;
    };
    write_whole(output, &format!("# ended: {ending}\n"))?;
    Ok(summary)
}

/// The next whole interval since the start. When a reading took longer than one, those in between are left out.
fn next_due(elapsed: Duration, interval: Duration) -> Duration {
    let past = elapsed.as_nanos() / interval.as_nanos().max(1);
    interval.saturating_mul(u32::try_from(past + 1).unwrap_or(u32::MAX))
}

fn head(options: &Options<'_>, machine: &str) -> String {
    let facts = [
        ("throng", options.throng.to_owned()),
        ("command", options.command.to_owned()),
        ("machine", machine.to_owned()),
        ("started", wall_ms().to_string()),
        ("interval_ms", options.interval.as_millis().to_string()),
    ];
    let lines: String = facts.iter().map(|(key, value)| format!("# {key}: {value}\n")).collect();
    lines + &columns::names()
}

/// So that a sampler which is killed leaves whole rows.
fn write_whole(output: &mut dyn Write, text: &str) -> io::Result<()> {
    output.write_all(text.as_bytes())?;
    output.flush()
}

fn wall_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Everything that is read.
struct Sources<'a> {
    proc: Proc,
    process: ServerProcess,
    /// The process that was found last, or why there is none.
    pid: Result<u32, String>,
    server: Connection,
    within: Duration,
    token: &'a mut dyn FnMut() -> Result<String, String>,
    current_token: Option<(Instant, Result<String, String>)>,
    /// Why the last questions had no answer.
    metrics_trouble: Option<String>,
    api_trouble: Option<String>,
}

impl<'a> Sources<'a> {
    fn new(options: Options<'a>, proc: Proc) -> Sources<'a> {
        Sources {
            proc,
            process: options.process,
            pid: Err("not looked for yet".into()),
            server: Connection::new(options.url),
            // Two questions a row; the second half is for the one whose time is told.
            within: (options.interval / 2).min(ANSWER_WITHIN_MAX),
            token: options.token,
            current_token: None,
            metrics_trouble: None,
            api_trouble: None,
        }
    }

    fn read(&mut self, began: Instant) -> Reading {
        let (time_ms, elapsed) = (wall_ms(), began.elapsed());
        let mut process = self.pid.as_ref().ok().and_then(|pid| self.proc.process(*pid));
        if process.is_none() {
            self.pid = match &self.process {
                ServerProcess::Number(pid) => Ok(*pid),
                ServerProcess::HolderOf(lock) => proc::holder_of(lock, Path::new("/proc")),
            };
            process = self.pid.as_ref().ok().and_then(|pid| self.proc.process(*pid));
        }
        let machine = self.proc.machine(process.as_ref().map(|process| process.pid));
        let metrics = self.metrics();
        let api = self.api();
        Reading { time_ms, elapsed, machine, process, metrics, api }
    }

    fn metrics(&mut self) -> Option<ServerMetrics> {
        let outcome = match self.server.get("/metrics", None, self.within) {
            Ok(answer) if answer.status == 200 => Ok(ServerMetrics::read(&answer.body)),
            Ok(answer) => Err(format!("/metrics was answered with {}", answer.status)),
            Err(error) => Err(error.to_string()),
        };
        self.metrics_trouble = outcome.as_ref().err().cloned();
        outcome.ok()
    }

    fn api(&mut self) -> Option<ApiReading> {
        let is_fresh = |made: &Instant| made.elapsed() < TOKEN_USED_FOR;
        if !self.current_token.as_ref().is_some_and(|(made, _)| is_fresh(made)) {
            self.current_token = Some((Instant::now(), (self.token)()));
        }
        let token = match &self.current_token {
            Some((_, Ok(token))) => token,
            Some((_, Err(why))) => {
                self.api_trouble = Some(why.clone());
                return None;
            }
            None => return None,
        };
        let answer = self.server.get(API_PATH, Some(token), self.within);
        self.api_trouble = match &answer {
            Ok(answer) if answer.status == 200 => None,
            Ok(answer) => Some(format!("{API_PATH} was answered with {}", answer.status)),
            Err(error) => Some(error.to_string()),
        };
        Some(match answer {
            Ok(answer) => ApiReading::Answered { status: answer.status, took: answer.took },
            Err(AskError::Timeout(waited)) => ApiReading::Timeout(waited),
            Err(AskError::Unreachable(_)) => ApiReading::Unreachable,
        })
    }

    /// One sentence for each source that gave nothing: its columns stay empty.
    fn missing(&self, reading: &Reading) -> Vec<String> {
        let (machine, process) = (&reading.machine, reading.process.as_ref());
        let no_process = match (&self.pid, process) {
            (Err(why), _) => Some(format!("{why} (name the process with --pid, or its folder with --data)")),
            (Ok(pid), None) => Some(format!("there is no process {pid}")),
            (Ok(_), Some(_)) => None,
        };
        let descriptors = process.filter(|process| process.descriptors.is_none()).map(|_| {
            "who shares a descriptor table is not told here; run as the server's user or as root, outside of a container".to_owned()
        });
        let absent = |is_absent: bool, file: &str| is_absent.then(|| format!("{file} says nothing"));
        let found = [
            ("cpu_*", absent(machine.cpu.is_none(), "/proc/stat")),
            ("psi_*", absent(machine.pressure.contains(&None), "/proc/pressure")),
            ("memory_*", absent(machine.memory_available.is_none(), "/proc/meminfo")),
            ("tcp_*", absent(machine.tcp_in_use.is_none(), "net/sockstat")),
            ("listen_*", absent(machine.listen_overflows.is_none(), "net/netstat")),
            ("server_*, busiest_*, database_connections", no_process),
            ("server_descriptors", descriptors),
            ("store_*, connections", self.metrics_trouble.clone()),
            ("api_*", self.api_trouble.clone()),
        ];
        found
            .into_iter()
            .filter_map(|(columns, why)| Some(format!("{columns} may stay empty: {}", why?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_that_took_too_long_leaves_intervals_out() {
        let ms = Duration::from_millis;
        assert_eq!(next_due(ms(0), ms(2_000)), ms(2_000));
        assert_eq!(next_due(ms(2_003), ms(2_000)), ms(4_000));
        assert_eq!(next_due(ms(7_999), ms(2_000)), ms(8_000));
        assert_eq!(next_due(ms(8_000), ms(2_000)), ms(10_000));
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let (_keep, stop) = std::sync::mpsc::channel();
        let (mut file, mut warnings) = (Vec::new(), Vec::new());
        let options = Options {
            interval: Duration::from_millis(50),
            duration: Some(Duration::from_millis(500)),
            // A port that nobody can listen on.
            url: Url::parse("http://127.0.0.1:0").expect("a url"),
            process: ServerProcess::Number(std::process::id()),
            token: &mut || Err("there is no key".into()),
            throng: "0.1.0",
            command: "throng sample",
        };
        let summary =
            run(options, &mut file, &mut |said| warnings.push(said.to_owned()), &stop).expect("written");
        let table = crate::table::Table::parse("s.csv", &file).expect("the shape of such files");
        assert_eq!(table.ended, Some("finished"));
        let names: Vec<&str> = Column::ALL.iter().map(|column| column.name()).collect();
        assert_eq!(table.columns, names);
        assert_eq!((table.fact("command"), table.fact("interval_ms")), (Some("throng sample"), Some("50")));
        assert!(!table.rows.is_empty());
        assert_eq!(table.rows.len() as u64, summary.rows());
        let cell = |name| table.rows[0].cells[table.column(name).expect("a column")];
        assert!(cell("server_resident_bytes").parse::<u64>().is_ok_and(|bytes| bytes > 0));
        assert_eq!((cell("store_queue"), cell("api_ms"), cell("api_status")), ("", "", ""));
        assert!(
            warnings.iter().any(|said| said.ends_with("api_* may stay empty: there is no key")),
            "{warnings:?}"
        );
        assert!(warnings.iter().any(|said| said.starts_with("store_*")), "{warnings:?}");
    }

    #[test]
    fn told_to_stop_it_ends_the_file() {
        let (tell, stop) = std::sync::mpsc::channel();
        tell.send(()).expect("it is there");
        let mut file = Vec::new();
        let options = Options {
            interval: Duration::from_secs(3_600),
            duration: None,
            url: Url::parse("http://127.0.0.1:0").expect("a url"),
            process: ServerProcess::HolderOf("gone/throng.lock".into()),
            token: &mut || Err("there is no key".into()),
            throng: "0.1.0",
            command: "throng sample",
        };
        run(options, &mut file, &mut |_| {}, &stop).expect("written");
        assert!(file.ends_with(b"\n# ended: interrupted\n"));
    }
}
