//! The load generator against a real server: what it finds, what it counts, and what it leaves behind however it ends.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::run::{Outcome, Place, fails, program};
use crate::server::{Server, Start, token};

/// Longest wait for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// User `n` of a test.
fn user(n: usize) -> String {
    format!("00000000-0000-4000-8000-{n:012x}")
}

/// So many users with tokens, in the file `tokens`.
pub fn write_tokens(place: &Place, count: usize) {
    let line = |n| format!("{} 1 {}\n", user(n), token(&user(n), 1));
    place.write("tokens", (0..count).map(line).collect::<String>());
}

/// Users of whom so many pairs have their conversation.
fn prepare(place: &Place, server: &Server, users: usize, pairs: usize) {
    write_tokens(place, users);
    for pair in 0..pairs {
        server.direct(&token(&user(2 * pair), 1), &user(2 * pair + 1));
    }
}

/// `throng load` with what every run of these tests has.
pub fn load(address: SocketAddr, words: &str) -> Vec<String> {
    let mut arguments = vec!["load".to_owned()];
    arguments.extend(words.split_whitespace().map(str::to_owned));
    arguments.extend(["--url".to_owned(), format!("ws://{address}"), "--tokens".into(), "tokens".into()]);
    arguments.extend(["--csv", "run.csv", "--summary", "run.json"].map(str::to_owned));
    arguments
}

fn with_thresholds(mut arguments: Vec<String>, thresholds: &[&str]) -> Vec<String> {
    for threshold in thresholds {
        arguments.extend(["--threshold".to_owned(), (*threshold).to_owned()]);
    }
    arguments
}

pub fn run(place: &Place, arguments: &[String]) -> Outcome {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    place.run(&arguments)
}

/// A run that goes on by itself, and ends with the test.
struct Running {
    child: Child,
    out: std::path::PathBuf,
}

impl Running {
    fn start(place: &Place, arguments: &[String]) -> Running {
        let out = place.path("out");
        let file = fs::File::create(&out).expect("a file");
        let said = fs::File::create(place.path("err")).expect("a file");
        let mut command = Command::new(program());
        command.args(arguments).current_dir(place.path("")).stdin(Stdio::null()).stdout(file).stderr(said);
        Running { child: command.spawn().expect("the binary runs"), out }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("a process of ours");
    }

    fn wait(&mut self) -> (ExitStatus, String) {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                return (status, fs::read_to_string(&self.out).expect("what it printed"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the run has not ended after {PATIENCE:?}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `run.csv`: what its lines say, by name.
#[derive(Debug)]
struct Csv {
    head: Vec<(String, String)>,
    rows: Vec<BTreeMap<String, String>>,
    ended: Option<String>,
}

impl Csv {
    fn read(place: &Place) -> Csv {
        Csv::of(&fs::read_to_string(place.path("run.csv")).unwrap_or_default())
    }

    fn of(text: &str) -> Csv {
        let mut csv = Csv { head: Vec::new(), rows: Vec::new(), ended: None };
        let mut columns: Vec<&str> = Vec::new();
        for line in text.split_inclusive('\n') {
            let Some(line) = line.strip_suffix('\n') else { break };
            match line.strip_prefix("# ") {
                Some(comment) => {
                    let (key, value) = comment.split_once(": ").expect("a key and a value");
                    match key {
                        "ended" => csv.ended = Some(value.to_owned()),
                        key => csv.head.push((key.to_owned(), value.to_owned())),
                    }
                }
                None if columns.is_empty() => columns = line.split(',').collect(),
                None => {
                    let cells: Vec<&str> = line.split(',').collect();
                    assert_eq!(cells.len(), columns.len(), "{line}");
                    let named =
                        columns.iter().zip(cells).map(|(name, cell)| ((*name).to_owned(), cell.to_owned()));
                    csv.rows.push(named.collect());
                }
            }
        }
        csv
    }

    fn of_kind(&self, kind: &str) -> Vec<&BTreeMap<String, String>> {
        self.rows.iter().filter(|row| row["kind"] == kind).collect()
    }

    /// The sum over all seconds of a column.
    fn sum(&self, column: &str) -> u64 {
        self.of_kind("second").iter().map(|row| row[column].parse::<u64>().expect("a number")).sum()
    }

    /// Whatever was due has one outcome.
    fn check_that_everything_has_an_outcome(&self) {
        let outcomes: u64 = ["ok", "refused", "failed", "not_sent"].iter().map(|name| self.sum(name)).sum();
        assert_eq!(self.sum("due"), outcomes, "{self:#?}");
        for row in &self.rows {
            for (count, names) in [("refused", "refusals"), ("failed", "failures")] {
                let named = row[names].split(';').filter(|part| !part.is_empty());
                let sum: u64 = named
                    .map(|part| part.split_once('=').expect("a count").1.parse::<u64>().expect("a number"))
                    .sum();
                assert_eq!(row[count], sum.to_string(), "{row:?}");
            }
        }
    }
}

fn summary(place: &Place) -> Value {
    serde_json::from_str(&fs::read_to_string(place.path("run.json")).expect("a summary")).expect("JSON")
}

/// Waits until the run has written so many seconds; the rows.
fn await_seconds(place: &Place, count: usize) -> Csv {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        let csv = Csv::read(place);
        if csv.of_kind("second").len() >= count {
            return csv;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("there are no {count} seconds: {}", fs::read_to_string(place.path("err")).unwrap_or_default());
}

#[test]
fn steps_are_judged_and_a_threshold_that_cannot_hold_ends_with_99() {
    let place = Place::new();
    let server = Start::new(&place).start();
    prepare(&place, &server, 8, 4);
    let arguments = load(server.address, "chat --steps 20,40 --hold 2s --ramp 1s --size 100..200");
    let arguments = with_thresholds(arguments, &["delivery p95<1us", "errors<=100%"]);
    let outcome = run(&place, &arguments);
    assert_eq!(outcome.code, 99, "{outcome:?}");
    let verdict = outcome.out.lines().find(|line| !line.starts_with("THE GENERATOR")).expect("a verdict");
    assert!(
        verdict.starts_with("broken  delivery p95<1us: ") && verdict.contains("in step 1 (20)"),
        "{verdict}"
    );
    for said in ["held    errors<=100%: ", "knee: below 20 messages a second", "violations: 0\n"] {
        assert!(outcome.out.contains(said), "{said} is not in {}", outcome.out);
    }

    let csv = Csv::read(&place);
    let keys: Vec<&str> = csv.head.iter().map(|(key, _)| key.as_str()).collect();
    let known = [
        "throng",
        "command",
        "scenario",
        "server",
        "machine",
        "started",
        "threshold",
        "threshold",
        "interval_ms",
    ];
    assert_eq!(keys, known);
    assert_eq!(csv.ended.as_deref(), Some("finished"));
    csv.check_that_everything_has_an_outcome();
    // Ramps from 0 to 20 and from 20 to 40 within 1 s, and 2 s of each: 10 + 40 + 30 + 80.
    assert_eq!(csv.sum("due"), 160);
    assert_eq!((csv.sum("delivered"), csv.sum("violations")), (csv.sum("ok"), 0));
    let steps = csv.of_kind("step");
    let told: Vec<[&str; 4]> = steps
        .iter()
        .map(|row| ["step", "phase", "target", "thresholds"].map(|name| row[name].as_str()))
        .collect();
    assert_eq!(told, [["1", "hold", "20", "broken;held"], ["2", "hold", "40", "broken;held"]]);
    for phase in ["ramp", "hold"] {
        assert!(csv.of_kind("second").iter().any(|row| row["phase"] == phase), "{csv:#?}");
    }

    let aborted = run(&place, &[arguments, vec!["--abort-on-fail".into()]].concat());
    assert_eq!(aborted.code, 99, "{aborted:?}");
    let csv = Csv::read(&place);
    assert_eq!((csv.of_kind("step").len(), csv.ended.as_deref()), (1, Some("aborted")));
    server.stop();
}

#[test]
fn thresholds_that_hold_end_well_and_the_knee_lies_beyond() {
    let place = Place::new();
    let server = Start::new(&place).start();
    prepare(&place, &server, 8, 4);
    let arguments =
        load(server.address, "chat --encoding cbor --steps 10,20 --hold 1s --ramp 0s --threads 2");
    let outcome = run(
        &place,
        &with_thresholds(arguments, &["delivery p99<50s", "ack max<50s", "connect max<50s", "errors<1"]),
    );
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.out.contains("knee: beyond 20 messages a second"), "{}", outcome.out);
    let told = summary(&place);
    assert_eq!(told["knee"], serde_json::json!({"is": "beyond_last", "target": 20.0}));
    assert_eq!(told["total"]["outcomes"]["due"], 30);
    assert_eq!(told["total"]["outcomes"]["open"], 0);
    assert_eq!(told["total"]["connecting"]["ok"], 8);
    server.stop();
}

#[test]
fn seeded_users_need_no_file_of_tokens() {
    let place = Place::new();
    let server = Start::new(&place).start();
    let seed = ["seed", "--users", "6", "--conversations", "3", "--seed", "9", "--config", "throng.toml"];
    let seeded = place.run(&seed);
    assert_eq!(seeded.code, 0, "{seeded:?}");
    let url = format!("ws://{}", server.address);
    let chat = [
        "load",
        "chat",
        "--users",
        "6",
        "--config",
        "throng.toml",
        "--rate",
        "20",
        "--hold",
        "1s",
        "--url",
        &url,
    ];
    let outcome = place.run(&[&chat[..], &["--seed", "9"]].concat());
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let said = "messages: due 20: ok 20, refused 0, failed 0, not sent 0, open 0\n";
    assert!(outcome.out.contains(said) && outcome.out.contains("delivered: 20\n"), "{}", outcome.out);
    let others = place.run(&[&chat[..], &["--seed", "10"]].concat());
    assert!(others.out.contains("refused 20 (not_member=20)"), "{others:?}");
    server.stop();
}

#[test]
fn a_generator_that_is_killed_leaves_whole_rows() {
    let place = Place::new();
    let server = Start::new(&place).start();
    prepare(&place, &server, 4, 2);
    let mut running = Running::start(&place, &load(server.address, "chat --rate 20 --hold 10m"));
    await_seconds(&place, 3);
    running.signal(Signal::KILL);
    running.wait();
    let text = fs::read_to_string(place.path("run.csv")).expect("the rows");
    assert!(text.ends_with('\n'), "each row is written whole");
    let csv = Csv::of(&text);
    assert!(csv.of_kind("second").len() >= 3 && csv.ended.is_none(), "{csv:#?}");
    // A second and what a busy machine adds to it is between rows, and none is missing.
    let at: Vec<f64> =
        csv.of_kind("second").iter().map(|row| row["elapsed_s"].parse().expect("seconds")).collect();
    assert!(at.is_sorted() && at[0] >= 1.0, "{at:?}");
    server.stop();
}

#[test]
fn a_server_that_is_killed_is_outlived_and_its_outcomes_have_names() {
    let place = Place::new();
    // Soon enough for a test.
    let start = Start::new(&place)
        .with("THRONG_CONNECTIONS_RECONNECT_MIN", "100ms")
        .with("THRONG_CONNECTIONS_RECONNECT_MAX", "1s");
    let server = start.start();
    prepare(&place, &server, 8, 4);
    let mut running = Running::start(&place, &load(server.address, "chat --rate 100 --hold 10s"));
    await_seconds(&place, 2);
    server.kill();
    std::thread::sleep(Duration::from_secs(1));
    let server = start.start();
    let (status, out) = running.wait();
    assert_eq!(status.code(), Some(0), "{out}");
    let (csv, told) = (Csv::read(&place), summary(&place));
    csv.check_that_everything_has_an_outcome();
    assert_eq!(csv.sum("due"), 1_000);
    let total = &told["total"];
    assert_eq!(total["lost"], serde_json::json!({"reset": 8}), "{out}");
    let failures = total["outcomes"]["failures"].as_object().expect("names");
    assert!(failures["connect"].as_u64().is_some_and(|count| count > 20), "some were due meanwhile: {out}");
    assert!(failures.keys().all(|name| ["connect", "reset", "timeout"].contains(&name.as_str())), "{out}");
    assert_eq!(
        (total["outcomes"]["refused"].as_u64(), total["violations"].as_u64()),
        (Some(0), Some(0)),
        "{out}"
    );
    let ok = total["outcomes"]["ok"].as_u64().expect("a number");
    assert!(ok > 0 && total["delivered"].as_u64() >= Some(ok), "whatever was answered has arrived: {out}");
    assert_eq!(
        csv.of_kind("second").iter().map(|row| row["connections"].as_str()).next_back(),
        Some("8"),
        "{csv:#?}"
    );
    server.stop();
}

#[test]
fn a_server_that_says_no_is_counted_as_such() {
    let place = Place::new();
    let server = Start::new(&place).start();
    // No conversations at all.
    prepare(&place, &server, 4, 0);
    let arguments = load(server.address, "chat --rate 20 --hold 1s");
    let outcome = run(&place, &with_thresholds(arguments.clone(), &["errors<0.1%"]));
    assert_eq!(outcome.code, 0, "nothing failed: {outcome:?}");
    assert!(
        outcome
            .out
            .contains("messages: due 20: ok 0, refused 20 (not_member=20), failed 0, not sent 0, open 0"),
        "{}",
        outcome.out
    );
    assert!(outcome.out.contains("hint, not_member: "), "{}", outcome.out);
    Csv::read(&place).check_that_everything_has_an_outcome();
    assert_eq!(run(&place, &with_thresholds(arguments, &["refused<1%"])).code, 99);
    server.stop();
}

#[test]
fn a_rate_limit_is_a_refusal_with_a_hint() {
    let place = Place::new();
    let server =
        Start::new(&place).with("THRONG_COMMANDS_PER_SECOND", 10).with("THRONG_COMMANDS_BURST", 10).start();
    prepare(&place, &server, 2, 1);
    let outcome = run(&place, &load(server.address, "chat --rate 40 --hold 3s"));
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let (csv, told) = (Csv::read(&place), summary(&place));
    csv.check_that_everything_has_an_outcome();
    let refused = told["total"]["outcomes"]["refusals"]["rate_limited"].as_u64();
    assert!(refused.is_some_and(|count| count > 0), "{}", outcome.out);
    assert!(outcome.out.contains("hint, rate_limited: "), "{}", outcome.out);
    assert_eq!(told["total"]["violations"], 0, "{}", outcome.out);
    server.stop();
}

#[test]
fn an_interrupted_run_drains_and_still_has_its_summary() {
    let place = Place::new();
    let server = Start::new(&place).start();
    prepare(&place, &server, 4, 2);
    let arguments = with_thresholds(load(server.address, "chat --rate 20 --hold 10m"), &["delivery p50<1us"]);
    let interrupt = |frozen: bool| {
        fs::remove_file(place.path("run.csv")).ok();
        let mut running = Running::start(&place, &arguments);
        await_seconds(&place, 2);
        let pid = Pid::from_raw(server.pid().cast_signed()).expect("a process");
        if frozen {
            // So that something is open which will stay so.
            kill_process(pid, Signal::STOP).expect("a process of ours");
            std::thread::sleep(Duration::from_millis(500));
        }
        let asked = Instant::now();
        running.signal(Signal::INT);
        let (status, out) = running.wait();
        let took = asked.elapsed();
        kill_process(pid, Signal::CONT).expect("a process of ours");
        assert_eq!(status.code(), Some(130), "{out}");
        assert!(out.contains("interrupted before its end") && out.contains("violations: 0"), "{out}");
        assert!(out.starts_with("open    delivery p50<1us: no step was held to its end"), "{out}");
        assert_eq!(Csv::read(&place).ended.as_deref(), Some("interrupted"));
        // Five seconds, and what a busy machine adds.
        assert!(took < Duration::from_secs(15), "{took:?}");
        summary(&place)["total"]["outcomes"]["open"].as_i64().expect("a number")
    };
    assert_eq!(interrupt(false), 0);
    assert!(interrupt(true) > 0);
    server.stop();
}

#[test]
fn hundreds_hold_still() {
    let place = Place::new();
    let server = Start::new(&place).start();
    write_tokens(&place, 300);
    let arguments = load(server.address, "idle --steps 100,300 --ramp 1s --hold 2s --threads 2");
    let outcome = run(&place, &with_thresholds(arguments, &["errors<=0%", "connect p99<50s"]));
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let csv = Csv::read(&place);
    csv.check_that_everything_has_an_outcome();
    let steps: Vec<[&str; 2]> =
        csv.of_kind("step").iter().map(|row| ["target", "ok"].map(|name| row[name].as_str())).collect();
    assert_eq!(steps, [["100", "100"], ["300", "200"]]);
    assert_eq!(csv.of_kind("second").last().expect("a row")["connections"], "300");
    assert!(outcome.out.contains("knee: beyond 300 connections"), "{}", outcome.out);
    assert!(outcome.out.contains("300 tries, 300 let in, 0 refused, 0 failed, 0 lost"), "{}", outcome.out);
    server.stop();
}

#[test]
fn a_storm_after_a_death_is_over_when_all_are_back() {
    let place = Place::new();
    let start = Start::new(&place);
    let server = start.start();
    write_tokens(&place, 60);
    let mut running = Running::start(&place, &load(server.address, "storm --after-death --hold 10m"));
    let end = Instant::now() + PATIENCE;
    while server.metric("throng_sessions") < 60 {
        assert!(Instant::now() < end, "not all are in");
        std::thread::sleep(Duration::from_millis(20));
    }
    // The generator looks every few milliseconds whether all are in.
    std::thread::sleep(Duration::from_secs(1));
    server.kill();
    let server = start.start();
    let (status, out) = running.wait();
    assert_eq!(status.code(), Some(0), "{out}");
    let told = summary(&place);
    assert_eq!(told["total"]["lost"], serde_json::json!({"reset": 60}), "{out}");
    assert!(told["storm"]["all_back_s"].as_f64() > told["storm"]["first_out_s"].as_f64(), "{told}");
    Csv::read(&place).check_that_everything_has_an_outcome();
    server.stop();
}

#[test]
fn a_mixed_crowd_chats_comes_and_goes() {
    let place = Place::new();
    let server = Start::new(&place).start();
    prepare(&place, &server, 24, 2);
    let outcome = run(&place, &load(server.address, "mixed --pairs 2 --rate 20 --hold 5s --churn 20%"));
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let total = &summary(&place)["total"];
    assert_eq!(
        (total["outcomes"]["due"].as_u64(), total["passing_sent"].as_u64()),
        (Some(100), Some(100)),
        "{total}"
    );
    assert!(total["passing_arrived"].as_u64() > Some(0), "{total}");
    // Twenty of the crowd, a fifth of whom goes each second; those who went in the first seconds are back.
    assert!(total["connecting"]["ok"].as_u64() > Some(24), "{total}");
    assert_eq!(total["lost"], serde_json::json!({}), "who goes by itself is not lost");
    Csv::read(&place).check_that_everything_has_an_outcome();
    server.stop();
}

#[test]
fn what_keeps_a_run_from_beginning_is_told_in_one_line() {
    let place = Place::new();
    let server = Start::new(&place).start();
    write_tokens(&place, 4);
    let url = format!("ws://{}", server.address);
    let with = |url: &str, words: &str| {
        let fixed = ["load", "chat", "--tokens", "tokens", "--url", url];
        let arguments: Vec<&str> = fixed.into_iter().chain(words.split_whitespace()).collect();
        place.run(&arguments)
    };
    let nowhere = format!("ws://{}", crate::server::free_address());
    let said = format!(
        "no server is reached at {nowhere}: start one, or correct --url: Connection refused (os error 111)"
    );
    fails(&with(&nowhere, ""), 1, &[&said]);
    let elsewhere = format!("{url}/v2/other");
    let said = format!(
        "the server at {elsewhere} has no socket at /v2/other: that of throng is at /v1/socket; correct --url"
    );
    fails(&with(&elsewhere, ""), 1, &[&said]);
    for (words, said) in [
        (
            "--pairs 3",
            "6 users are needed and there are 4: seed more, or ask for fewer with --pairs or --connections",
        ),
        ("--rate 0", "a rate or step must be more than 0"),
        ("--hold soon", "--hold soon: it must be a length of time such as 500ms, 60s or 5m"),
        (
            "--size 10",
            "--size 10: it must be `chat`, a number of bytes, or a range such as 100..500, from 24 to 65536",
        ),
        ("--after-death", "--after-death means nothing in `chat`"),
        (
            "--threshold speed<9",
            "--threshold 'speed<9': there is no metric `speed`; there are delivery, ack and connect, and errors, refused and not_sent",
        ),
        (
            "--rate 5 --steps 5",
            "the argument '--rate <R>' cannot be used with '--steps <A,B,…>' (`throng --help` explains)",
        ),
    ] {
        fails(&with(&url, words), 2, &[said]);
    }
    let storm = ["load", "storm", "--tokens", "tokens", "--url", &url, "--threshold", "ack p50<1s"];
    let said =
        "--threshold 'ack p50<1s': no message is sent in `storm`; there are connect, errors and refused";
    fails(&place.run(&storm), 2, &[said]);

    place.write("tokens", format!("{} 1 a.b.c\n{} 1 a.b.c\n", user(0), user(1)));
    let refused = with(&url, "");
    assert!(refused.err.contains("refuses the token of the first user") && refused.code == 1, "{refused:?}");
    place.write("tokens", format!("{} 1 a.b.c\nsomebody 1 a.b.c\n", user(0)));
    let said = "tokens, line 2: it does not begin with a UUID; a line is `USER-UUID DEVICE TOKEN`, as `throng seed --tokens` writes it";
    fails(&with(&url, ""), 1, &[said]);
    server.stop();
}

#[test]
fn a_limit_of_open_files_that_is_too_low_is_told_with_what_fits() {
    let place = Place::new();
    let server = Start::new(&place).start();
    write_tokens(&place, 200);
    let words = load(server.address, "idle --threads 1 --hold 1s").join(" ");
    let script = format!("ulimit -n 128 && exec \"$0\" {words}");
    let mut shell = Command::new("sh");
    let output =
        shell.args(["-c", &script]).arg(program()).current_dir(place.path("")).output().expect("a shell");
    let err = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(1), "{err}");
    // 128 without the 64 that are held back.
    assert!(
        err.contains("200 connections do not fit the limit of open files (128") && err.contains(": 64 fit; "),
        "{err}"
    );
    server.stop();
}
