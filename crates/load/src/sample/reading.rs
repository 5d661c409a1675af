//! Two readings make a row: counters become differences, times become shares. A function of its arguments.

use std::time::Duration;

use super::columns::{Column, Value, Values};
use super::machine::CpuTimes;
use super::metrics::ServerMetrics;
use super::proc::{MachineReading, ProcessReading};

/// What the system counts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Units {
    /// Ticks a second in `/proc`.
    pub ticks_per_second: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
}

/// The answer of the interface, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiReading {
    /// It answered.
    Answered {
        /// The status.
        status: u16,
        /// How long it took.
        took: Duration,
    },
    /// It did not in the time that was waited.
    Timeout(Duration),
    /// There was no connection to be had.
    Unreachable,
}

/// All that was read at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// Since the sampler started.
    pub elapsed: Duration,
    /// The machine.
    pub machine: MachineReading,
    /// The server's process.
    pub process: Option<ProcessReading>,
    /// The server's own numbers.
    pub metrics: Option<ServerMetrics>,
    /// The interface; none when it is not asked.
    pub api: Option<ApiReading>,
}

/// The row that ends with `now` and began with `before`. A counter that has become smaller was begun anew: nothing is known of its interval.
pub fn row(before: &Reading, now: &Reading, units: Units) -> Values {
    let mut values = Values::missing();
    values.set(Column::Time, Some(Value::Whole(now.time_ms)));
    values.set(Column::Elapsed, Some(Value::Thousandths(now.elapsed.as_secs_f64())));
    let seconds = (now.elapsed - before.elapsed).as_secs_f64();
    set_machine(&mut values, &before.machine, &now.machine, seconds, units);
    if let Some(process) = &now.process {
        set_process(&mut values, before.process.as_ref(), process, seconds, units);
    }
    if let Some(metrics) = &now.metrics {
        set_metrics(&mut values, before.metrics.as_ref(), metrics);
    }
    if let Some(api) = &now.api {
        set_api(&mut values, api);
    }
    values
}

fn set_machine(
    values: &mut Values,
    before: &MachineReading,
    now: &MachineReading,
    seconds: f64,
    units: Units,
) {
    if let (Some(before), Some(now)) = (before.cpu, now.cpu) {
        let part = |of: fn(CpuTimes) -> u64| {
            let (part, all) = (of(now).checked_sub(of(before))?, now.total.checked_sub(before.total)?);
            (all > 0).then(|| Value::Percent(100.0 * part as f64 / all as f64))
        };
        values.set(Column::CpuBusy, part(|times| times.busy));
        values.set(Column::CpuSteal, part(|times| times.steal));
        values.set(Column::CpuIowait, part(|times| times.iowait));
    }
    let columns = [Column::PressureCpu, Column::PressureMemory, Column::PressureIo];
    for (at, column) in columns.into_iter().enumerate() {
        let micros = difference(before.pressure[at], now.pressure[at]);
        values.set(column, micros.map(|micros| Value::Percent(micros as f64 / (seconds * 10_000.0))));
    }
    let whole = |number: Option<u64>| number.map(Value::Whole);
    values.set(Column::MemoryAvailable, whole(now.memory_available));
    values.set(Column::MemoryTotal, whole(now.memory_total));
    values.set(Column::TcpInUse, whole(now.tcp_in_use));
    values.set(Column::TcpOrphans, whole(now.tcp_orphans));
    values.set(Column::TcpTimeWait, whole(now.tcp_time_wait));
    values.set(Column::TcpMemory, whole(now.tcp_pages.map(|pages| pages * units.page_bytes)));
    values.set(Column::ListenOverflows, whole(difference(before.listen_overflows, now.listen_overflows)));
    values.set(Column::ListenDrops, whole(difference(before.listen_drops, now.listen_drops)));
}

fn set_process(
    values: &mut Values,
    before: Option<&ProcessReading>,
    now: &ProcessReading,
    seconds: f64,
    units: Units,
) {
    let whole = |number: Option<u64>| number.map(Value::Whole);
    values.set(Column::ServerResident, whole(now.resident));
    values.set(Column::ServerDescriptors, whole(now.descriptors));
    values.set(Column::ServerThreads, whole(now.threads));
    values.set(Column::DatabaseConnections, whole(now.database_connections));
    let Some(before) = before.filter(|before| before.pid == now.pid) else { return };
    let percent =
        |ticks: u64| Value::Percent(100.0 * ticks as f64 / (units.ticks_per_second as f64 * seconds));
    let ticks = |used: &Option<super::machine::Used>| used.as_ref().map(|used| used.ticks);
    values.set(Column::ServerCpu, difference(ticks(&before.used), ticks(&now.used)).map(percent));
    // A thread that has come since has used all of its time in the interval.
    let ticks_before = |thread: u32| {
        before.thread_used.iter().find(|(known, _)| *known == thread).map_or(0, |(_, used)| used.ticks)
    };
    let busiest = now
        .thread_used
        .iter()
        .map(|(thread, used)| (used.ticks.saturating_sub(ticks_before(*thread)), &used.name))
        .max_by_key(|(ticks, _)| *ticks);
    if let Some((ticks, name)) = busiest {
        values.set(Column::BusiestThread, Some(Value::Word(name.clone())));
        values.set(Column::BusiestThreadCpu, Some(percent(ticks)));
    }
}

fn set_metrics(values: &mut Values, before: Option<&ServerMetrics>, now: &ServerMetrics) {
    let whole = |number: f64| Value::Whole(number as u64);
    values.set(Column::StoreQueue, now.store_queue.map(whole));
    values.set(Column::Connections, now.connections.map(whole));
    let Some(before) = before else { return };
    let grown =
        |of: fn(&ServerMetrics) -> Option<f64>| Some(of(now)? - of(before)?).filter(|grown| *grown >= 0.0);
    let commits = grown(|metrics| metrics.store_commits);
    values.set(Column::StoreCommits, commits.map(whole));
    values.set(Column::StoreRequests, grown(|metrics| metrics.store_requests).map(whole));
    let mean = || {
        let commits = commits.filter(|commits| *commits > 0.0)?;
        Some(Value::Thousandths(1_000.0 * grown(|metrics| metrics.store_commit_seconds)? / commits))
    };
    values.set(Column::StoreCommitMean, mean());
}

fn set_api(values: &mut Values, api: &ApiReading) {
    let (took, said) = match api {
        ApiReading::Answered { status, took } => (Some(took), status.to_string()),
        ApiReading::Timeout(waited) => (Some(waited), "timeout".to_owned()),
        ApiReading::Unreachable => (None, "unreachable".to_owned()),
    };
    values.set(Column::Api, took.map(|took| Value::Thousandths(took.as_secs_f64() * 1_000.0)));
    values.set(Column::ApiStatus, Some(Value::Word(said)));
}

fn difference(before: Option<u64>, now: Option<u64>) -> Option<u64> {
    now?.checked_sub(before?)
}

#[cfg(test)]
mod tests {
    use super::super::machine::Used;
    use super::*;

    const UNITS: Units = Units { ticks_per_second: 100, page_bytes: 4_096 };

    fn used(name: &str, ticks: u64) -> Used {
        Used { name: name.into(), ticks }
    }

    fn reading(seconds: u64) -> Reading {
        Reading {
            time_ms: 1_000_000 + 1_000 * seconds,
            elapsed: Duration::from_secs(seconds),
            machine: MachineReading::default(),
            process: None,
            metrics: None,
            api: None,
        }
    }

    fn process(pid: u32, all: u64, threads: [u64; 2]) -> ProcessReading {
        ProcessReading {
            pid,
            resident: Some(4_096),
            threads: Some(2),
            used: Some(used("throng", all)),
            thread_used: vec![(pid, used("throng", threads[0])), (pid + 1, used("shard-0", threads[1]))],
            descriptors: None,
            database_connections: Some(3),
        }
    }

    #[test]
    fn shares_are_of_the_interval() {
        let (mut before, mut now) = (reading(10), reading(12));
        before.machine.cpu = Some(CpuTimes { busy: 1_000, steal: 10, iowait: 20, total: 5_000 });
        now.machine.cpu = Some(CpuTimes { busy: 1_300, steal: 30, iowait: 24, total: 5_400 });
        before.machine.pressure = [Some(1_000_000), None, Some(5)];
        now.machine.pressure = [Some(1_500_000), Some(7), Some(5)];
        now.machine.tcp_pages = Some(3);
        let row = row(&before, &now, UNITS);
        assert_eq!(row.number(Column::CpuBusy), Some(75.0));
        assert_eq!(row.number(Column::CpuSteal), Some(5.0));
        assert_eq!(row.number(Column::CpuIowait), Some(1.0));
        // Half a second of two.
        assert_eq!(row.number(Column::PressureCpu), Some(25.0));
        assert_eq!(row.number(Column::PressureMemory), None);
        assert_eq!(row.number(Column::PressureIo), Some(0.0));
        assert_eq!(row.number(Column::TcpMemory), Some(12_288.0));
        assert_eq!((row.number(Column::Time), row.number(Column::Elapsed)), (Some(1_012_000.0), Some(12.0)));
    }

    #[test]
    fn the_busiest_thread_is_that_of_the_interval() {
        let (mut before, mut now) = (reading(0), reading(2));
        before.process = Some(process(7, 1_000, [900, 100]));
        now.process = Some(process(7, 1_170, [920, 250]));
        let found = row(&before, &now, UNITS);
        // 170 ticks of 200; 150 of them by the shard.
        assert_eq!(found.number(Column::ServerCpu), Some(85.0));
        assert_eq!(found.get(Column::BusiestThread), Some(&Value::Word("shard-0".into())));
        assert_eq!(found.number(Column::BusiestThreadCpu), Some(75.0));
        assert_eq!(found.number(Column::ServerDescriptors), None);
        // Another process: nothing is known of its interval, but of its present.
        now.process = Some(process(8, 20, [10, 10]));
        let found = row(&before, &now, UNITS);
        assert_eq!(
            (found.number(Column::ServerCpu), found.number(Column::ServerResident)),
            (None, Some(4_096.0))
        );
    }

    #[test]
    fn counters_that_began_anew_are_missing_and_not_negative() {
        let metrics = |commits: f64, seconds: f64| ServerMetrics {
            store_queue: Some(4.0),
            store_commits: Some(commits),
            store_commit_seconds: Some(seconds),
            store_requests: None,
            connections: Some(9.0),
        };
        let (mut before, mut now) = (reading(0), reading(2));
        before.machine.listen_overflows = Some(50);
        now.machine.listen_overflows = Some(2);
        before.machine.listen_drops = Some(50);
        now.machine.listen_drops = Some(57);
        before.metrics = Some(metrics(100.0, 1.0));
        now.metrics = Some(metrics(108.0, 1.5));
        let found = row(&before, &now, UNITS);
        assert_eq!(
            (found.number(Column::ListenOverflows), found.number(Column::ListenDrops)),
            (None, Some(7.0))
        );
        // Eight batches in half a second.
        assert_eq!(found.number(Column::StoreCommits), Some(8.0));
        assert_eq!(found.number(Column::StoreCommitMean), Some(62.5));
        assert_eq!(
            (found.number(Column::StoreQueue), found.number(Column::StoreRequests)),
            (Some(4.0), None)
        );
        let restarted = Reading { elapsed: Duration::from_secs(4), ..before };
        let found = row(&now, &restarted, UNITS);
        assert_eq!((found.number(Column::StoreCommits), found.number(Column::StoreCommitMean)), (None, None));
        let quiet = row(&now, &Reading { elapsed: Duration::from_secs(4), ..now.clone() }, UNITS);
        assert_eq!(quiet.number(Column::StoreCommits), Some(0.0));
        assert_eq!(quiet.number(Column::StoreCommitMean), None, "there was no batch, so none took any time");
    }

    #[test]
    fn an_interface_that_does_not_answer_is_no_fast_one() {
        let mut now = reading(2);
        for (api, took, said) in [
            (ApiReading::Answered { status: 200, took: Duration::from_micros(1_500) }, Some(1.5), "200"),
            (ApiReading::Timeout(Duration::from_secs(1)), Some(1_000.0), "timeout"),
            (ApiReading::Unreachable, None, "unreachable"),
        ] {
            now.api = Some(api);
            let found = row(&reading(0), &now, UNITS);
            assert_eq!(found.number(Column::Api), took);
            assert_eq!(found.get(Column::ApiStatus), Some(&Value::Word(said.into())));
        }
    }
}
