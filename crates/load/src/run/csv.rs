//! `run.csv`: what a run was, a row a second, a row a step.
//!
//! Each row is written whole with one system call as its time ends, so a run that is killed leaves all that had happened by then.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use super::plan::Plan;
use super::schedule::Phase;
use super::tally::{Latencies, Tally};

/// The columns, in order.
const COLUMNS: &str = "kind,time_ms,elapsed_s,step,phase,target,connections,connecting,due,ok,refused,failed,not_sent,delivered,\
violations,bytes_in,bytes_out,delivery_p50_ms,delivery_p95_ms,delivery_p99_ms,delivery_max_ms,ack_p50_ms,ack_p95_ms,ack_p99_ms,ack_max_ms,\
connect_p50_ms,connect_p95_ms,connect_p99_ms,connect_max_ms,late_p99_ms,cpu_pct,refusals,failures,thresholds";

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself.
    Finished,
    /// Somebody asked it to.
    Interrupted,
    /// A threshold was broken, and that was to end it.
    Aborted,
}

impl Ended {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Ended::Finished => "finished",
            Ended::Interrupted => "interrupted",
            Ended::Aborted => "aborted",
        }
    }
}

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// A second, or what was left of it.
    Second,
    /// A step.
    Step,
}

/// Where a row stands.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// What it is about.
    pub kind: RowKind,
    /// The wall clock at its end, Unix ms.
    pub time_ms: u64,
    /// Since the run began.
    pub elapsed: Duration,
    /// The step, from 1.
    pub step: u32,
    /// The phase.
    pub phase: Phase,
    /// What the step asks for.
    pub target: f64,
    /// Connections at its end, and those under way.
    pub connections: (usize, usize),
    /// What came of things within it.
    pub tally: &'a Tally,
    /// CPU of the process, 100 is one core.
    pub cpu_pct: f64,
    /// Of a step, whether each threshold held.
    pub thresholds: &'a [bool],
}

/// The file.
#[derive(Debug)]
pub struct RunCsv(File);

impl RunCsv {
    /// Makes the file, or replaces it, and writes what the run is.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path, plan: &Plan, started_ms: u64, machine: &str) -> io::Result<RunCsv> {
        let mut file = File::create(path)?;
        file.write_all(head(plan, started_ms, machine).as_bytes())?;
        Ok(RunCsv(file))
    }

    /// Writes one row.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        self.0.write_all(line(row).as_bytes())
    }

    /// Writes how it ended.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end(&mut self, ended: Ended) -> io::Result<()> {
        self.0.write_all(format!("# ended: {}\n", ended.name()).as_bytes())
    }
}

fn head(plan: &Plan, started_ms: u64, machine: &str) -> String {
    let version = match option_env!("THRONG_COMMIT") {
        Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").to_owned(),
    };
    let mut text = String::new();
    let mut say = |key: &str, value: &str| {
        // A line break would begin another line of the file.
        let value = value.replace(['\n', '\r'], " ");
        let _ = writeln!(text, "# {key}: {value}");
    };
    say("throng", &version);
    say("command", &plan.command);
    say("scenario", plan.kind.name());
    say("server", &plan.address.url);
    say("machine", machine);
    say("started", &started_ms.to_string());
    for threshold in &plan.thresholds {
        say("threshold", &threshold.to_string());
    }
    say("interval_ms", "1000");
    text.push_str(COLUMNS);
    text.push('\n');
    text
}

fn line(row: &Row<'_>) -> String {
    let (tally, outcomes) = (row.tally, &row.tally.outcomes);
    let kind = match row.kind {
        RowKind::Second => "second",
        RowKind::Step => "step",
    };
    let ms = |latency: Option<Duration>| {
        latency.map_or(String::new(), |latency| format!("{:.3}", latency.as_secs_f64() * 1e3))
    };
    let of = |latencies: &Latencies| {
        [latencies.quantile(0.5), latencies.quantile(0.95), latencies.quantile(0.99), latencies.max()]
            .map(ms)
            .join(",")
    };
    let thresholds: Vec<&str> =
        row.thresholds.iter().map(|held| if *held { "held" } else { "broken" }).collect();
    format!(
        "{kind},{},{:.3},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{:.1},{},{},{}\n",
        row.time_ms,
        row.elapsed.as_secs_f64(),
        row.step,
        row.phase.name(),
        row.target,
        row.connections.0,
        row.connections.1,
        outcomes.due,
        outcomes.ok,
        outcomes.refused(),
        outcomes.failed(),
        outcomes.not_sent,
        tally.delivered,
        tally.violations,
        tally.bytes_in,
        tally.bytes_out,
        of(&tally.delivery),
        of(&tally.ack),
        of(&tally.connect),
        ms(tally.late.quantile(0.99)),
        row.cpu_pct,
        outcomes.refusals_text(),
        outcomes.failures_text(),
        thresholds.join(";"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tally::{Failure, Outcome};

    #[test]
    fn a_row_has_every_column_and_leaves_out_what_was_not_measured() {
        let mut tally = Tally { delivered: 7, ..Tally::default() };
        tally.outcomes.due = 10;
        for _ in 0..8 {
            tally.outcomes.note(Outcome::Ok);
        }
        tally.outcomes.note(Outcome::Failed(Failure::Reset));
        tally.ack.record(Duration::from_micros(1_500));
        let row = Row {
            kind: RowKind::Step,
            time_ms: 1_764_500_000_123,
            elapsed: Duration::from_millis(61_250),
            step: 2,
            phase: Phase::Hold,
            target: 250.0,
            connections: (200, 1),
            tally: &tally,
            cpu_pct: 12.34,
            thresholds: &[true, false],
        };
        let text = line(&row);
        assert_eq!(
            text,
            "step,1764500000123,61.250,2,hold,250,200,1,10,8,0,1,0,7,0,0,0,,,,,1.500,1.500,1.500,1.500,,,,,,12.3,,reset=1,held;broken\n"
        );
        assert_eq!(text.split(',').count(), COLUMNS.split(',').count());
        let second = line(&Row { kind: RowKind::Second, thresholds: &[], ..row });
        assert!(second.starts_with("second,") && second.ends_with(",reset=1,\n"), "{second}");
    }
}
