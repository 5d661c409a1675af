//! Which charts there are, what they show and what to look for in them.

use crate::sample::{BUSY_PERCENT_MAX, Column};

use super::chart::{Across, Band, Chart, Limit, Line};
use super::grid::Grid;
use super::scale::{Measure, Point};
use super::verdict::{Knee, Verdict};

/// A heading with its charts.
pub struct Section {
    /// The heading.
    pub title: &'static str,
    /// The charts that have something to show.
    pub charts: Vec<Chart>,
    /// The titles of those that have not.
    pub without_values: Vec<&'static str>,
}

/// What a load is counted in.
pub fn load_unit(run: &Grid<'_>) -> &'static str {
    let scenario = run.table.fact("scenario").unwrap_or("");
    match scenario.split_whitespace().next() {
        Some("idle" | "storm") => "connections",
        _ => "messages a second",
    }
}

/// The steps as bands of the time axis.
pub fn bands(run: &Grid<'_>, verdict: &Verdict) -> Vec<Band> {
    let unit = load_unit(run);
    let steps = verdict.steps.iter().filter_map(|step| Some((step, step.held?)));
    steps
        .map(|(step, held)| {
            let target = step.target.map(|target| target.to_string()).unwrap_or_default();
            let (sign, words) = match step.holds() {
                Some(true) => (" ✓", "all thresholds held"),
                Some(false) => (" ✗", "a threshold was broken"),
                None if step.row.is_none() => (" …", "unfinished"),
                None => ("", "no threshold"),
            };
            Band {
                held,
                name: format!("{target}{sign}"),
                title: format!("step {}: {target} {unit}; {words}", step.number),
                holds: step.holds(),
            }
        })
        .collect()
}

/// Load against latency, of the first kind of latency that the steps have.
pub fn load_against_latency(run: &Grid<'_>, verdict: &Verdict) -> Chart {
    const KINDS: [(&str, &str, [&str; 3]); 3] = [
        (
            "delivery",
            "from when a message was due until the other device had it",
            ["delivery_p50_ms", "delivery_p95_ms", "delivery_p99_ms"],
        ),
        (
            "ack",
            "from when a message was due until the server had it on disk",
            ["ack_p50_ms", "ack_p95_ms", "ack_p99_ms"],
        ),
        (
            "connect",
            "from the beginning of a connection until it was authenticated",
            ["connect_p50_ms", "connect_p95_ms", "connect_p99_ms"],
        ),
    ];
    let rows: Vec<usize> = verdict.steps.iter().filter_map(|step| step.row).collect();
    let has_values = |columns: &[&str; 3]| {
        columns.iter().any(|column| rows.iter().any(|row| run.number(*row, column).is_some()))
    };
    let (kind, what, columns) =
        KINDS.into_iter().find(|(_, _, columns)| has_values(columns)).unwrap_or(KINDS[0]);
    let points = |column: &str| -> Vec<Point> {
        let mut points: Vec<Point> = rows
            .iter()
            .filter_map(|row| Some((run.number(*row, "target")?, run.number(*row, column))))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let labels = ["half are faster (p50)", "95 of 100 are faster (p95)", "99 of 100 are faster (p99)"];
    let line = |(column, label)| Line { source: "steps", column, label, points: points(column) };
    Chart {
        id: "load-latency",
        title: "Latency of each step",
        caption: format!(
            "Latency {what}, over each whole step. Look for the load at which the lines turn upward: that is the knee. \
             A server below it answers as fast as one that idles."
        ),
        measure: Measure::Latency,
        across: Across::Load(load_unit(run)),
        lines: columns.into_iter().zip(labels).map(line).collect(),
        limits: limits(run, kind),
        knee: match verdict.knee {
            Knee::At(_, target) => target,
            _ => None,
        },
    }
}

/// Thresholds about percentiles of this kind of latency, as lines.
fn limits(run: &Grid<'_>, kind: &str) -> Vec<Limit> {
    let value = |threshold: &str| {
        let (what, limit) = threshold.split_once('<')?;
        let mut words = what.split_whitespace();
        let is_ours = words.next()? == kind && words.next().is_some();
        let limit = limit.trim_start_matches('=').trim();
        let number = limit.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let factor = match limit[number.len()..].trim() {
            "ms" => 1.0,
            "s" => 1_000.0,
            "us" => 0.001,
            _ => return None,
        };
        is_ours.then_some(number.trim().parse::<f64>().ok()? * factor)
    };
    let thresholds = run.thresholds().into_iter();
    thresholds
        .filter_map(|threshold| Some(Limit { value: value(threshold)?, label: threshold.to_owned() }))
        .collect()
}

/// The charts over time of what the generator saw.
pub fn of_run(run: &Grid<'_>, sample: Option<&Grid<'_>>) -> Vec<Section> {
    let end = end(run);
    let line = |column, label| Line { source: "run", column, label, points: run_points(run, column) };
    let chart = |id, title, caption: &str, measure, lines| Chart {
        id,
        title,
        caption: caption.to_owned(),
        measure,
        across: Across::Time(end),
        lines,
        limits: Vec::new(),
        knee: None,
    };
    let latency = |id, title, caption, kind, columns: [&'static str; 4]| Chart {
        limits: limits(run, kind),
        ..chart(
            id,
            title,
            caption,
            Measure::Latency,
            columns
                .into_iter()
                .zip(["p50", "p95", "p99", "greatest"])
                .map(|(column, label)| line(column, label))
                .collect(),
        )
    };
    let mut connections = vec![line("connections", "open at the generator"), line("connecting", "under way")];
    connections
        .extend(sample.map(|sample| sample_line(run, sample, Column::Connections, "open at the server")));
    vec![
        section(
            "Latency over time",
            vec![
                latency(
                    "delivery",
                    "Delivery",
                    "From when a message was due until the other device had it. Points that stand out alone are pauses; a slope within a step is a queue that grows.",
                    "delivery",
                    ["delivery_p50_ms", "delivery_p95_ms", "delivery_p99_ms", "delivery_max_ms"],
                ),
                latency(
                    "ack",
                    "Acknowledgement",
                    "From when a message was due until the server answered that it is on disk. What delivery takes beyond this is the way to the other device.",
                    "ack",
                    ["ack_p50_ms", "ack_p95_ms", "ack_p99_ms", "ack_max_ms"],
                ),
                latency(
                    "connect",
                    "Connecting",
                    "From the beginning of a connection until it was authenticated. It rises when many come at once.",
                    "connect",
                    ["connect_p50_ms", "connect_p95_ms", "connect_p99_ms", "connect_max_ms"],
                ),
            ],
        ),
        section(
            "Outcomes and connections over time",
            vec![
                chart(
                    "rates",
                    "Messages a second",
                    "Where the lines part, the server does not keep up with what was due.",
                    Measure::Count("a second"),
                    vec![line("due", "due"), line("ok", "ok"), line("delivered", "delivered")],
                ),
                chart(
                    "trouble",
                    "What did not go well",
                    "Refused: the server said no. Failed: no answer, a reset, a wrong one. Not sent: the generator was late. On a scale of its own; look for when it begins.",
                    Measure::Count("a second"),
                    vec![
                        line("refused", "refused"),
                        line("failed", "failed"),
                        line("not_sent", "not sent"),
                        line("violations", "violations"),
                    ],
                ),
                chart(
                    "connections",
                    "Connections",
                    "Steps down are connections lost. Many under way for long is a server that does not keep up with accepting.",
                    Measure::Count("connections"),
                    connections,
                ),
                chart(
                    "traffic",
                    "Bytes on the wire",
                    "Seen from the generator, each second.",
                    Measure::Bytes,
                    vec![line("bytes_out", "sent"), line("bytes_in", "received")],
                ),
            ],
        ),
        section(
            "The generator itself",
            vec![
                chart(
                    "late",
                    "How late sends began",
                    "p99 of how long after it was due a send began. Above a tenth of the latency, the generator measures itself.",
                    Measure::Latency,
                    vec![line("late_p99_ms", "late (p99)")],
                ),
                chart(
                    "generator-cpu",
                    "CPU of the generator",
                    "Close to all cores, it has none left, and neither has a server on the same machine.",
                    Measure::Percent("one core"),
                    vec![line("cpu_pct", "generator")],
                ),
            ],
        ),
    ]
}

/// The charts over time of what the sampler saw, on the time axis of the run.
pub fn of_sample(run: &Grid<'_>, sample: &Grid<'_>) -> Vec<Section> {
    let end = end(run);
    let chart = |id, title, caption: &str, measure, lines: Vec<(Column, &'static str)>| Chart {
        id,
        title,
        caption: caption.to_owned(),
        measure,
        across: Across::Time(end),
        lines: lines.into_iter().map(|(column, label)| sample_line(run, sample, column, label)).collect(),
        limits: Vec::new(),
        knee: None,
    };
    let cpu = chart(
        "cpu",
        "CPU of the machine",
        "Busy and steal together above 70 % leave no room for a surge. Steal is what another machine took.",
        Measure::Percent("all cores"),
        vec![
            (Column::CpuBusy, "busy"),
            (Column::CpuSteal, "steal"),
            (Column::CpuIowait, "waiting for a disk"),
        ],
    );
    let cpu = Chart {
        limits: vec![Limit { value: BUSY_PERCENT_MAX, label: format!("{BUSY_PERCENT_MAX} %: no room left") }],
        ..cpu
    };
    vec![
        section(
            "The server's machine",
            vec![
                cpu,
                chart(
                    "pressure",
                    "Pressure",
                    "The share of time in which somebody waited for a core, for memory, for a disk. The highest line is what is short.",
                    Measure::Percent("the time"),
                    vec![
                        (Column::PressureCpu, "a core"),
                        (Column::PressureMemory, "memory"),
                        (Column::PressureIo, "a disk"),
                    ],
                ),
                chart(
                    "memory",
                    "Memory available",
                    "What the whole machine has left.",
                    Measure::Bytes,
                    vec![(Column::MemoryAvailable, "available")],
                ),
                chart(
                    "sockets",
                    "TCP sockets",
                    "Many that wait for their end are connections that came and went.",
                    Measure::Count("sockets"),
                    vec![
                        (Column::TcpInUse, "in use"),
                        (Column::TcpTimeWait, "waiting for their end"),
                        (Column::TcpOrphans, "orphans"),
                    ],
                ),
                chart(
                    "socket-memory",
                    "Memory of TCP",
                    "Buffers of all sockets. It grows when somebody does not read.",
                    Measure::Bytes,
                    vec![(Column::TcpMemory, "buffers")],
                ),
                chart(
                    "overflows",
                    "Connections dropped by the kernel",
                    "Anything but zero are clients that had to try again: the accept queue was full.",
                    Measure::Count("in an interval"),
                    vec![(Column::ListenOverflows, "overflows"), (Column::ListenDrops, "drops")],
                ),
            ],
        ),
        section(
            "The server",
            vec![
                chart(
                    "server-cpu",
                    "CPU of the server",
                    "When its busiest thread is at 100, that thread is the bottleneck, whatever the machine has left.",
                    Measure::Percent("one core"),
                    vec![(Column::ServerCpu, "all threads"), (Column::BusiestThreadCpu, "busiest thread")],
                ),
                chart(
                    "server-memory",
                    "Memory of the server",
                    "It should follow connections and load, and not grow without them.",
                    Measure::Bytes,
                    vec![(Column::ServerResident, "resident")],
                ),
                chart(
                    "descriptors",
                    "Descriptors of the server",
                    "One for each connection. It should come back when they go.",
                    Measure::Count("descriptors"),
                    vec![(Column::ServerDescriptors, "open")],
                ),
                chart(
                    "store-queue",
                    "Queue of the store",
                    "What waits for the disk. A queue that grows within a step is beyond the knee.",
                    Measure::Count("requests"),
                    vec![(Column::StoreQueue, "waiting")],
                ),
                chart(
                    "commit",
                    "Time of a commit",
                    "Mean over the interval. Every send waits for one.",
                    Measure::Latency,
                    vec![(Column::StoreCommitMean, "mean")],
                ),
                chart(
                    "store",
                    "Work of the store",
                    "In each interval. Fewer commits for as many requests are larger batches.",
                    Measure::Count("in an interval"),
                    vec![(Column::StoreRequests, "requests"), (Column::StoreCommits, "commits")],
                ),
                chart(
                    "api",
                    "A call to the API",
                    "Measured on the server's machine: what somebody else notices of the load.",
                    Measure::Latency,
                    vec![(Column::Api, "GET /v1/conversations")],
                ),
            ],
        ),
    ]
}

fn section(title: &'static str, charts: Vec<Chart>) -> Section {
    let (empty, charts): (Vec<Chart>, Vec<Chart>) = charts.into_iter().partition(Chart::is_empty);
    Section { title, charts, without_values: empty.into_iter().map(|chart| chart.title).collect() }
}

/// The end of the time axis: the last second of the run.
pub fn end(run: &Grid<'_>) -> f64 {
    let elapsed = run.rows_of("second").filter_map(|row| run.number(row, "elapsed_s"));
    elapsed.fold(0.001, f64::max)
}

fn run_points(run: &Grid<'_>, column: &str) -> Vec<Point> {
    let points = run
        .rows_of("second")
        .filter_map(|row| Some((run.number(row, "elapsed_s")?, run.number(row, column))));
    with_gaps(points, interval(run))
}

/// Only what was measured during the run.
fn sample_line(run: &Grid<'_>, sample: &Grid<'_>, column: Column, label: &'static str) -> Line {
    let (start, end) = (run.start_ms(), end(run));
    let times = sample.column(Column::Time.name()).iter();
    let values = sample.column(column.name()).iter();
    let points = times
        .zip(values)
        .filter_map(|(time, value)| Some((((*time)? - start) / 1_000.0, *value)))
        .filter(|(at, _)| (0.0..=end).contains(at));
    Line { source: "sample", column: column.name(), label, points: with_gaps(points, interval(sample)) }
}

/// The time from row to row, in seconds.
fn interval(file: &Grid<'_>) -> f64 {
    file.table.fact("interval_ms").and_then(|ms| ms.parse::<f64>().ok()).map_or(1.0, |ms| ms / 1_000.0)
}

/// Rows that are not there, as when a machine slept, are a gap and not a straight line.
fn with_gaps(points: impl Iterator<Item = Point>, interval: f64) -> Vec<Point> {
    let mut all: Vec<Point> = Vec::new();
    for point in points {
        if let Some((before, _)) = all.last().copied().filter(|(before, _)| point.0 - before > 2.5 * interval)
        {
            all.push(((before + point.0) / 2.0, None));
        }
        all.push(point);
    }
    all
}
