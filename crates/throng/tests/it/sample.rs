//! `throng sample` beside a real server: what it writes, what it says, and what it does when the server goes.

use std::collections::HashMap;
use std::fs;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::run::{Place, fails, program};
use crate::server::{Server, Start};

const PATIENCE: Duration = Duration::from_secs(60);

/// The whole rows of a sampler's file, by column.
fn rows(place: &Place) -> Vec<HashMap<String, String>> {
    let text = fs::read_to_string(place.path("sample.csv")).unwrap_or_default();
    let whole = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
    let mut lines = whole.lines().filter(|line| !line.starts_with('#'));
    let Some(names) = lines.next() else { return Vec::new() };
    let names: Vec<&str> = names.split(',').collect();
    let row = |line: &str| -> HashMap<String, String> {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), names.len(), "{line}");
        names.iter().zip(cells).map(|(name, cell)| ((*name).to_owned(), cell.to_owned())).collect()
    };
    lines.map(row).collect()
}

/// Waits for a row after the first so many that is as it should be.
fn await_row(
    place: &Place,
    after: usize,
    wanted: impl Fn(&HashMap<String, String>) -> bool,
) -> HashMap<String, String> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(row) = rows(place).into_iter().skip(after).find(&wanted) {
            return row;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("no such row came: {:?}", rows(place).last());
}

/// A sampler that runs until it is stopped.
struct Sampler(Child);

impl Sampler {
    fn start(place: &Place, server: &Server) -> Sampler {
        let url = format!("http://{}", server.address);
        let arguments = [
            "sample",
            "--config",
            "throng.toml",
            "--interval",
            "200ms",
            "--csv",
            "sample.csv",
            "--url",
            &url,
        ];
        let mut command = Command::new(program());
        command.args(arguments).current_dir(place.path("")).env_clear();
        Sampler(command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary runs"))
    }

    /// As Ctrl-C does; what it said.
    fn interrupt(mut self) -> String {
        kill_process(Pid::from_child(&self.0), Signal::INT).expect("a process of ours");
        let status = self.0.wait().expect("a child of ours");
        assert!(status.success(), "{status}");
        let mut said = String::new();
        let stderr = self.0.stderr.as_mut().expect("it was asked for");
        std::io::Read::read_to_string(stderr, &mut said).expect("text");
        said
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

fn number(row: &HashMap<String, String>, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} has `{}`: {row:?}", row[column]))
}

#[test]
fn a_row_says_what_the_server_and_the_machine_do() {
    let place = Place::new();
    let server = Start::new(&place).start();
    let sampler = Sampler::start(&place, &server);
    let before = await_row(&place, 0, |row| row["api_status"] == "200" && row["connections"] == "0");
    let crowd: Vec<TcpStream> =
        (0..50).map(|_| TcpStream::connect(server.address).expect("a connection")).collect();
    let now = await_row(&place, 0, |row| row["connections"] == "50");
    // One descriptor each, in whichever shard's table.
    assert!(
        number(&now, "server_descriptors") >= number(&before, "server_descriptors") + 50.0,
        "{before:?} {now:?}"
    );
    assert!(number(&now, "tcp_in_use") >= 50.0);
    let (memory, threads) = (number(&now, "server_resident_bytes"), number(&now, "server_threads"));
    assert!(memory > 1e6 && threads >= 4.0, "{now:?}");
    assert!(number(&now, "database_connections") >= 1.0);
    assert!(number(&now, "api_ms") > 0.0);
    for column in ["cpu_busy_pct", "cpu_steal_pct", "cpu_iowait_pct"] {
        assert!((0.0..=100.0).contains(&number(&now, column)), "{now:?}");
    }
    assert!(!now["busiest_thread"].is_empty());
    drop(crowd);
    let said = sampler.interrupt();
    assert!(said.contains("server_resident_bytes (bytes)"), "{said}");
    assert!(!said.contains("server_descriptors may stay empty"), "{said}");
    let text = fs::read_to_string(place.path("sample.csv")).expect("the file");
    assert!(text.starts_with("# throng: ") && text.ends_with("\n# ended: interrupted\n"));
    assert!(text.contains(
        "\n# command: throng sample --config throng.toml --interval 200ms --csv sample.csv --url http://"
    ));
    server.stop();
}

#[test]
fn a_server_that_dies_leaves_empty_cells_and_its_successor_is_found() {
    let place = Place::new();
    let start = Start::new(&place);
    let server = start.start();
    let sampler = Sampler::start(&place, &server);
    await_row(&place, 0, |row| row["api_status"] == "200");
    server.kill();
    let without =
        await_row(&place, 0, |row| row["api_status"] == "unreachable" && row["server_threads"].is_empty());
    for column in
        ["server_resident_bytes", "server_cpu_pct", "store_queue", "store_commits", "connections", "api_ms"]
    {
        assert_eq!(without[column], "", "{column}");
    }
    assert!(!without["cpu_busy_pct"].is_empty());
    let so_far = rows(&place).len();
    let server = start.start();
    let again =
        await_row(&place, so_far, |row| row["api_status"] == "200" && !row["server_cpu_pct"].is_empty());
    assert!(number(&again, "server_resident_bytes") > 1e6);
    sampler.interrupt();
    server.stop();
}

#[test]
fn a_sampler_without_a_server_says_what_is_missing_and_goes_on() {
    let place = Place::new();
    let outcome = place.run(&[
        "sample",
        "--interval",
        "100ms",
        "--for",
        "300ms",
        "--url",
        "http://127.0.0.1:1",
        "--csv",
        "sample.csv",
    ]);
    assert_eq!((outcome.code, outcome.out.as_str()), (0, ""));
    for said in [
        "throng: warning: server_*, busiest_*, database_connections may stay empty: ./throng-data/throng.lock: ",
        "throng: warning: store_*, connections may stay empty: ",
        "throng: warning: api_* may stay empty: there is no key",
    ] {
        assert!(outcome.err.contains(said), "{said}\n{}", outcome.err);
    }
    let rows = rows(&place);
    assert!(!rows.is_empty());
    assert!(
        rows.iter()
            .all(|row| row["server_resident_bytes"].is_empty() && !row["memory_total_bytes"].is_empty())
    );
    let text = fs::read_to_string(place.path("sample.csv")).expect("the file");
    assert!(text.ends_with("\n# ended: finished\n"));
}

#[test]
fn mistakes_are_one_line() {
    let place = Place::new();
    place.write("kept.csv", "mine");
    for (arguments, code, said) in [
        (vec!["--interval", "1ms"], 2, "--interval must be at least 100ms"),
        (vec!["--interval", "soon"], 2, "--interval must be a length of time such as 500ms, 2s or 10m"),
        (vec!["--for", "1s"], 2, "--for must be at least as long as --interval"),
        (
            vec!["--url", "https://x"],
            2,
            "--url: `https://x` must begin with http://: the sampler asks the server itself, not a proxy before it",
        ),
        (
            vec!["--csv", "kept.csv"],
            1,
            "kept.csv: exists already and is not replaced; name another file or remove it first",
        ),
    ] {
        fails(&place.run(&[&["sample"], &arguments[..]].concat()), code, &[said]);
    }
    assert_eq!(fs::read(place.path("kept.csv")).expect("it is there"), b"mine");
}
