//! `GET /metrics`, in the text format of Prometheus, version 0.0.4.
//!
//! Owns the names of everything that no shard counts itself, and the one way of writing them: every name is a variant of
//! one enum, with its kind and its help, and is written once.

use std::fmt::{self, Display, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use node::{BATCH_SIZE_BOUNDS, COMMIT_MICROS_BOUNDS};

use crate::health::TURN_WITHIN;
use crate::state::Shared;

macro_rules! families {
    ($($name:ident = $text:literal, $kind:literal, $help:literal;)*) => {
        /// What is shown beside the counters of the shards.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum Family {
            $(#[doc = $help] $name,)*
        }

        impl Family {
            #[cfg(test)]
            const ALL: &'static [Family] = &[$(Family::$name,)*];

            const fn name(self) -> &'static str {
                match self { $(Family::$name => $text,)* }
            }

            const fn kind(self) -> &'static str {
                match self { $(Family::$name => $kind,)* }
            }

            const fn help(self) -> &'static str {
                match self { $(Family::$name => $help,)* }
            }
        }
    };
}

families! {
    ShardTurns = "throng_shard_turns_total", "counter", "Turns of the shard's loop.";
    StoreRequests = "throng_store_requests_total", "counter", "Requests carried out by the store, reads included.";
    StoreBatches = "throng_store_batches_total", "counter", "Batches committed or read by the store.";
    StoreQueue = "throng_store_queue_requests", "gauge", "Requests that the store has taken and not answered.";
    StoreReadOnly = "throng_store_read_only", "gauge", "1 while the disk takes no more.";
    StoreCommit = "throng_store_commit_seconds", "histogram", "Time from a batch's beginning to its end.";
    StoreBatchSize = "throng_store_batch_requests", "histogram", "Requests of a batch.";
    FabricBlocksSent = "throng_fabric_blocks_sent_total", "counter", "Blocks of mail put into rings by the port.";
    FabricItemsSent = "throng_fabric_items_sent_total", "counter", "Items in the blocks that the port sent.";
    FabricBlocksReceived = "throng_fabric_blocks_received_total", "counter", "Blocks of mail taken from rings by the port.";
    FabricItemsReceived = "throng_fabric_items_received_total", "counter", "Items in the blocks that the port received.";
    FabricWakes = "throng_fabric_wakes_sent_total", "counter", "Sleeping threads that the port has woken.";
    FabricRefused = "throng_fabric_sends_refused_total", "counter", "Blocks that a full ring gave back to the port; one that is refused again counts again.";
    FabricRings = "throng_fabric_rings", "gauge", "Rings that the port has made: ports it has ever sent to.";
    FabricWaiting = "throng_fabric_waiting_items", "gauge", "Items that the port could not send yet because a ring is full.";
    HttpConnections = "throng_http_connections", "gauge", "Open HTTP connections.";
    HttpConnectionsRefused = "throng_http_connections_refused_total", "counter", "HTTP connections refused because there were too many.";
    HttpRequests = "throng_http_requests_total", "counter", "HTTP requests answered, by the class of their status.";
    ResidentMemory = "process_resident_memory_bytes", "gauge", "Resident memory of the process.";
    StartTime = "process_start_time_seconds", "gauge", "When the server started, in seconds since 1970.";
    BuildInfo = "throng_build_info", "gauge", "Always 1; the labels say which build this is.";
}

/// What the HTTP side counts of itself.
#[derive(Debug, Default)]
pub struct Counters {
    pub connections: AtomicU64,
    pub connections_refused: AtomicU64,
    /// By the first digit of the status, from 1 to 5.
    answered: [AtomicU64; 5],
}

impl Counters {
    /// The counter of answers with this status.
    pub fn answered(&self, status: StatusCode) -> &AtomicU64 {
        &self.answered[usize::from(status.as_u16() / 100).clamp(1, 5) - 1]
    }
}

/// `GET /metrics`
pub async fn show(State(shared): State<Arc<Shared>>) -> Response {
    // Shards gather their numbers when asked. One that does not turn in time shows what it last said.
    shared.state.handle.shards_turn(TURN_WITHIN).await;
    let mut page = Page::default();
    write_shards(&mut page, &shared);
    write_store(&mut page, &shared);
    write_fabric(&mut page, &shared);
    write_http(&mut page, &shared);
    write_process(&mut page, &shared);
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page.text).into_response()
}

fn write_shards(page: &mut Page, shared: &Shared) {
    let shards = shared.state.handle.shards();
    for metric in shard::Metric::ALL {
        page.head(metric.name(), metric.kind(), metric.help());
        for (number, shard) in shards.iter().enumerate() {
            page.sample(metric.name(), &[("shard", &number)], &shard.get(*metric));
        }
    }
    page.family(Family::ShardTurns);
    for (number, shard) in shards.iter().enumerate() {
        page.sample(Family::ShardTurns.name(), &[("shard", &number)], &shard.turns());
    }
}

fn write_store(page: &mut Page, shared: &Shared) {
    let store = shared.state.handle.store();
    let plain = [
        (Family::StoreRequests, &store.requests),
        (Family::StoreBatches, &store.batches),
        (Family::StoreQueue, &store.queued),
        (Family::StoreReadOnly, &store.read_only),
    ];
    for (family, value) in plain {
        page.single(family, &value.load(Ordering::Relaxed));
    }
    let (counts, micros) = store.commit_micros.read();
    let bounds = COMMIT_MICROS_BOUNDS.map(|micros| micros as f64 / 1e6);
    page.histogram(Family::StoreCommit, &bounds, &counts, &(micros as f64 / 1e6));
    let (counts, requests) = store.batch_size.read();
    page.histogram(Family::StoreBatchSize, &BATCH_SIZE_BOUNDS, &counts, &requests);
}

fn write_fabric(page: &mut Page, shared: &Shared) {
    let ports: Vec<fabric::Counts> = shared.state.handle.fabric().iter().map(|port| port.read()).collect();
    type Reading = fn(&fabric::Counts) -> u64;
    let families: [(Family, Reading); 8] = [
        (Family::FabricBlocksSent, |port| port.blocks_sent),
        (Family::FabricItemsSent, |port| port.items_sent),
        (Family::FabricBlocksReceived, |port| port.blocks_received),
        (Family::FabricItemsReceived, |port| port.items_received),
        (Family::FabricWakes, |port| port.wakes_sent),
        (Family::FabricRefused, |port| port.sends_refused),
        (Family::FabricRings, |port| port.rings_made),
        (Family::FabricWaiting, |port| port.items_waiting),
    ];
    let shards = usize::from(shared.state.handle.shard_count());
    for (family, value) in families {
        page.family(family);
        for (number, port) in ports.iter().enumerate() {
            // The ports are those of the shards, then that of the store thread.
            let label: &dyn Display = if number < shards { &number } else { &"store" };
            page.sample(family.name(), &[("port", label)], &value(port));
        }
    }
}

fn write_http(page: &mut Page, shared: &Shared) {
    let counters = &shared.counters;
    page.single(Family::HttpConnections, &counters.connections.load(Ordering::Relaxed));
    page.single(Family::HttpConnectionsRefused, &counters.connections_refused.load(Ordering::Relaxed));
    page.family(Family::HttpRequests);
    for (class, count) in ["1xx", "2xx", "3xx", "4xx", "5xx"].iter().zip(&counters.answered) {
        page.sample(Family::HttpRequests.name(), &[("status", class)], &count.load(Ordering::Relaxed));
    }
}

fn write_process(page: &mut Page, shared: &Shared) {
    if let Some(bytes) = resident_bytes() {
        page.single(Family::ResidentMemory, &bytes);
    }
    page.single(Family::StartTime, &shared.started);
    page.family(Family::BuildInfo);
    page.sample(Family::BuildInfo.name(), &[("version", &shared.state.version)], &1);
}

/// What Linux says of this process; nothing elsewhere.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// The page as far as it is written.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {}", Escaped { text: help, quotes: false }));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    fn family(&mut self, family: Family) {
        self.head(family.name(), family.kind(), family.help());
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &dyn Display)], value: &dyn Display) {
        self.line(format_args!("{name}{} {value}", Labels(labels)));
    }

    fn single(&mut self, family: Family, value: &dyn Display) {
        self.family(family);
        self.sample(family.name(), &[], value);
    }

    /// `counts` are those of each bucket, the last of them without a bound; they are shown cumulated.
    fn histogram<B: Display>(
        &mut self,
        family: Family,
        bounds: &[B; 10],
        counts: &[u64; 11],
        sum: &dyn Display,
    ) {
        self.family(family);
        let (name, mut below) = (family.name(), 0);
        let bucket = format!("{name}_bucket");
        let bounds = bounds.iter().map(|bound| bound as &dyn Display).chain([&"+Inf" as &dyn Display]);
        for (bound, count) in bounds.zip(counts) {
            below += count;
            self.sample(&bucket, &[("le", bound)], &below);
        }
        self.line(format_args!("{name}_sum {sum}"));
        self.line(format_args!("{name}_count {below}"));
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        self.text.write_fmt(line).expect("a string takes everything");
        self.text.push('\n');
    }
}

struct Labels<'a>(&'a [(&'a str, &'a dyn Display)]);

impl Display for Labels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            write!(f, "{before}{name}=\"{}\"", Escaped { text: &value.to_string(), quotes: true })?;
        }
        if self.0.is_empty() { Ok(()) } else { f.write_char('}') }
    }
}

/// Backslashes and line ends, in the values of labels also quotes, are escaped.
struct Escaped<'a> {
    text: &'a str,
    quotes: bool,
}

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.text.chars() {
            match c {
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '"' if self.quotes => f.write_str("\\\"")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_used_twice() {
        let mut names: Vec<&str> = Family::ALL.iter().map(|family| family.name()).collect();
        names.extend(shard::Metric::ALL.iter().map(|metric| metric.name()));
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn names_end_as_the_conventions_of_prometheus_ask() {
        for family in Family::ALL {
            let total = family.name().ends_with("_total");
            assert_eq!(total, family.kind() == "counter", "{}", family.name());
            assert!(["counter", "gauge", "histogram"].contains(&family.kind()), "{}", family.name());
            assert!(family.help().ends_with('.'), "{}", family.name());
        }
    }

    #[test]
    fn a_histogram_is_cumulative_and_its_last_bucket_is_its_count() {
        let mut page = Page::default();
        let counts = [3, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1];
        page.histogram(Family::StoreBatchSize, &BATCH_SIZE_BOUNDS, &counts, &20_000);
        let name = "throng_store_batch_requests";
        for line in [
            format!("{name}_bucket{{le=\"1\"}} 3"),
            format!("{name}_bucket{{le=\"4\"}} 3"),
            format!("{name}_bucket{{le=\"16\"}} 5"),
            format!("{name}_bucket{{le=\"16384\"}} 5"),
            format!("{name}_bucket{{le=\"+Inf\"}} 6"),
            format!("{name}_sum 20000"),
            format!("{name}_count 6"),
        ] {
            assert!(page.text.lines().any(|written| written == line), "{line}\n{}", page.text);
        }
    }

    #[test]
    fn what_would_end_a_label_or_a_line_is_escaped() {
        let mut page = Page::default();
        page.head("a", "gauge", "one \\ \"two\"\nthree");
        page.sample("a", &[("b", &"x\"y\\z\n")], &1);
        assert_eq!(
            page.text,
            "# HELP a one \\\\ \"two\"\\nthree\n# TYPE a gauge\na{b=\"x\\\"y\\\\z\\n\"} 1\n"
        );
    }
}
