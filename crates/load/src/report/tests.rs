//! The report as a whole: files in, a page out, and what is said of files that are something else.

use std::fmt::Write;

use super::grid::{Grid, RUN_NUMBERS};
use super::verdict::{Knee, judge};
use super::{Input, MARK, Page, TableError, page};
use crate::sample::Column;

const NAMES: &str = "kind,time_ms,elapsed_s,step,phase,target,connections,connecting,due,ok,refused,failed,not_sent,\
                     delivered,violations,bytes_in,bytes_out,delivery_p50_ms,delivery_p95_ms,delivery_p99_ms,\
                     delivery_max_ms,ack_p50_ms,ack_p95_ms,ack_p99_ms,ack_max_ms,connect_p50_ms,connect_p95_ms,\
                     connect_p99_ms,connect_max_ms,late_p99_ms,cpu_pct,refusals,failures,thresholds";
const START_MS: u64 = 1_796_062_500_000;

/// A run written row by row.
struct Writer {
    text: String,
    second: u64,
}

/// What is out of the ordinary in a row.
#[derive(Clone, Copy)]
struct Row {
    p50: Option<f64>,
    refused: u64,
    late: f64,
    violations: u64,
}

const QUIET: Row = Row { p50: Some(2.0), refused: 0, late: 0.05, violations: 0 };

impl Writer {
    fn new(facts: &str) -> Writer {
        let head = "# throng: 0.1.0\n# command: throng load chat\n# scenario: chat\n# server: ws://127.0.0.1:8080\n\
                    # machine: 4 cpus, CPU, 24.0 GiB, Linux 6\n";
        Writer {
            text: format!("{head}# started: {START_MS}\n{facts}# interval_ms: 1000\n{NAMES}\n"),
            second: 0,
        }
    }

    fn row(&mut self, kind: &str, step: u64, target: u64, row: Row, thresholds: &str) {
        let (second, refused) = (self.second, row.refused);
        let latency = |factor: f64| row.p50.map(|p50| format!("{:.3}", p50 * factor)).unwrap_or_default();
        let times = [1.0, 2.0, 4.0, 8.0].map(latency).join(",");
        let ok = target - refused;
        let refusals = if refused > 0 { format!("rate_limited={refused}") } else { String::new() };
        let (time, late, violations) = (START_MS + 1_000 * second, row.late, row.violations);
        writeln!(
            self.text,
            "{kind},{time},{second}.000,{step},hold,{target},200,0,{target},{ok},{refused},0,0,{ok},{violations},1000,2000,\
             {times},{times},,,,,{late:.3},40.0,{refusals},,{thresholds}"
        )
        .expect("a string takes everything");
    }

    /// Seconds of a step, and its own row at the end.
    fn step(&mut self, step: u64, target: u64, seconds: u64, row: Row, thresholds: &str) {
        for _ in 0..seconds {
            self.second += 1;
            self.row("second", step, target, row, "");
        }
        self.row("step", step, target, row, thresholds);
    }

    fn ended(mut self, how: &str) -> String {
        self.text.push_str("# ended: ");
        self.text.push_str(how);
        self.text.push('\n');
        self.text
    }
}

/// Three steps, of which the last broke the first of two thresholds.
fn with_a_knee() -> Writer {
    let mut run = Writer::new("# threshold: delivery p95<50ms\n# threshold: errors<0.1%\n");
    run.step(1, 250, 10, QUIET, "held;held");
    run.step(2, 500, 10, Row { p50: Some(5.0), ..QUIET }, "held;held");
    run.step(3, 1_000, 10, Row { p50: Some(90.0), ..QUIET }, "broken;held");
    run
}

fn sample(rows: u64) -> String {
    let names: Vec<&str> = Column::ALL.iter().map(|column| column.name()).collect();
    let mut text =
        format!("# throng: 0.1.0\n# command: throng sample\n# interval_ms: 2000\n{}\n", names.join(","));
    for at in 0..rows {
        let time = START_MS + 2_000 * at;
        writeln!(
            text,
            "{time},{}.000,{}.50,1.00,0.00,,,,1000000,2000000,10,0,0,4096,0,0,3000000,50,9,20.00,shard-0,10.00,3,100,1.250,200,3,200,0.900,200",
            2 * at,
            at % 90
        )
        .expect("a string takes everything");
    }
    text + "# ended: finished\n"
}

fn made(run: &str, sample: Option<&str>) -> Result<Page, TableError> {
    let input = |file, text: &'static str| Input { file, bytes: text.as_bytes() };
    let leaked = |text: &str| -> &'static str { String::leak(text.to_owned()) };
    page(input("run.csv", leaked(run)), sample.map(|text| input("sample.csv", leaked(text))), "0.1.0")
}

/// The values of the points of a line, from the scale that the chart states.
fn drawn(html: &str, chart: &str, column: &str) -> Vec<Vec<f64>> {
    let figure =
        html.split(&format!("<figure id=\"{chart}\">")).nth(1).expect("the chart").split("</figure>").next();
    let figure = figure.expect("its end");
    let attribute = |name: &str| -> f64 {
        let value = figure.split(&format!("data-{name}=\"")).nth(1).expect(name).split('"').next();
        value.and_then(|value| value.parse().ok()).expect("a number")
    };
    assert!(figure.contains("data-log=\"false\""));
    let (top, bottom, high) = (attribute("top"), attribute("bottom"), attribute("high"));
    let path =
        figure.split(&format!("data-column=\"{column}\" d=\"")).nth(1).expect("the line").split('"').next();
    let strokes = path.expect("a path").split('M').filter(|stroke| !stroke.is_empty());
    let value = |point: &str| {
        let y: f64 = point.split(' ').nth(1).and_then(|y| y.trim_end_matches("h0").parse().ok()).expect("y");
        high * (bottom - y) / (bottom - top)
    };
    strokes.map(|stroke| stroke.split('L').map(value).collect()).collect()
}

#[test]
fn the_columns_are_those_of_the_writer() {
    let names: Vec<&str> = NAMES.split(',').collect();
    assert_eq!(names.len(), RUN_NUMBERS.len() + 5);
    assert!(RUN_NUMBERS.iter().all(|name| names.contains(name)));
}

#[test]
fn a_run_with_a_knee_says_so_first() {
    let page = made(&with_a_knee().ended("finished"), Some(&sample(20))).expect("a page");
    assert_eq!(page.verdict, "Knee at 500 messages a second (step 2): the last step before thresholds broke");
    assert!(page.html.starts_with(MARK));
    for said in [
        "delivery p95&lt;50ms: broken in 1 of 3 steps, first in step 3.",
        "errors&lt;0.1%: held in all 3 steps.",
        "The run ended by itself.",
        "No message was lost",
        "The generator kept up",
    ] {
        assert!(page.html.contains(said), "{said}");
    }
    // Thirty seconds and three steps at 2, 5 and 90 ms; twice that is the 95th percentile here.
    let run = with_a_knee().ended("finished");
    let grid = Grid::run("run.csv", run.as_bytes()).expect("good");
    let totals = judge(&grid).totals;
    assert_eq!((totals.due, totals.ok), (17_500.0, 17_500.0));
}

#[test]
fn a_run_that_was_killed_is_shown_as_far_as_it_came() {
    let whole = with_a_knee().text;
    // In the middle of the last line, which is the row of the third step.
    let cut = &whole[..whole.len() - 40];
    let page = made(cut, None).expect("a page");
    assert!(page.html.contains("The run did not end by itself"));
    assert!(page.html.contains("shown up to 0:30. Its file ends in the middle of a line"));
    assert!(page.html.contains("… unfinished"));
    assert_eq!(page.verdict, "All thresholds held up to 500 messages a second: the knee lies above");
    // Wherever it was killed after its first second, there is a page.
    let first = whole.match_indices('\n').nth(10).expect("eleven lines").0;
    for length in (first + 1..whole.len()).step_by(97) {
        assert!(made(&whole[..length], None).is_ok(), "{length}");
    }
}

#[test]
fn refusals_are_told_by_name_and_apart_from_failures() {
    let mut run = Writer::new("");
    run.step(1, 100, 3, Row { refused: 7, ..QUIET }, "");
    let page = made(&run.ended("finished"), None).expect("a page");
    assert!(page.html.contains("data-name=\"rate_limited\" data-value=\"21\""));
    assert!(page.html.contains("7.000 %"));
    assert_eq!(page.verdict, "No threshold was set, so there is no verdict and no knee");
    assert!(page.html.contains("There is no file of a sampler"));
}

#[test]
fn a_generator_that_measured_itself_is_told_first() {
    let mut run = Writer::new("# threshold: delivery p95<50ms\n");
    // The p99 is 8 ms, a tenth of which is 0.8.
    run.step(1, 100, 3, Row { late: 0.8, ..QUIET }, "held");
    let fine = made(&run.text, None).expect("a page");
    assert!(fine.html.contains("The generator kept up"));
    run.step(2, 100, 3, Row { late: 0.801, ..QUIET }, "held");
    let page = made(&run.text, None).expect("a page");
    assert!(page.verdict.starts_with("the generator was the bottleneck; "));
    assert!(page.html.contains("id=\"verdict\"><p>The generator was the bottleneck."));
    assert!(page.html.contains("in step 2 it began sends 0.801 ms late (p99)"));
}

#[test]
fn violations_are_no_small_matter() {
    let mut run = Writer::new("# threshold: delivery p95<50ms\n");
    run.step(1, 100, 2, Row { violations: 2, ..QUIET }, "held");
    let page = made(&run.text, None).expect("a page");
    assert!(page.html.contains("class=\"verdict bad\""));
    assert!(page.html.contains("4 violations: messages lost"));
}

#[test]
fn what_is_missing_is_a_gap_and_never_nothing() {
    let mut run = Writer::new("");
    for p50 in [Some(2.0), Some(3.0), None, Some(1.0), None, Some(4.0), Some(2.0)] {
        run.second += 1;
        run.row("second", 1, 10, Row { p50, ..QUIET }, "");
    }
    // And three seconds of which there is no row at all.
    run.second += 3;
    for _ in 0..2 {
        run.second += 1;
        run.row("second", 1, 10, QUIET, "");
    }
    let page = made(&run.text, None).expect("a page");
    let strokes = drawn(&page.html, "delivery", "delivery_p50_ms");
    let rounded: Vec<Vec<f64>> = strokes
        .iter()
        .map(|stroke| stroke.iter().map(|value| (value * 10.0).round() / 10.0).collect())
        .collect();
    assert_eq!(rounded, [vec![2.0, 3.0], vec![1.0], vec![4.0, 2.0], vec![2.0, 2.0]]);
    assert!(page.html.contains("Not measured in this run: Connecting."));
}

#[test]
fn nothing_in_a_file_becomes_markup() {
    let evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&";
    let run = with_a_knee().text.replace("throng load chat", evil).replace("ws://127.0.0.1:8080", evil);
    let run = run.replace("scenario: chat", &format!("scenario: {evil}"));
    let run = run.replace("errors<0.1%", evil);
    let sample = sample(3).replace("throng sample", evil).replace("shard-0", evil);
    let page = made(&run, Some(&sample)).expect("a page");
    assert!(!page.html.contains("<script>alert"));
    assert!(!page.html.contains("<img"));
    assert_eq!(page.html.matches("<script").count(), 2);
    assert_eq!(page.html.matches("</script").count(), 2);
    let data =
        page.html.split("id=\"data\">").nth(1).expect("data").split("</script>").next().expect("its end");
    let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
    assert_eq!(data["run"]["facts"][1][1], evil);
    assert_eq!(data["sample"]["rows"][0][20], evil);
}

#[test]
fn the_data_of_the_page_are_the_cells_of_the_files() {
    let (run, sample) = (with_a_knee().ended("finished"), sample(20));
    let page = made(&run, Some(&sample)).expect("a page");
    let data =
        page.html.split("id=\"data\">").nth(1).expect("data").split("</script>").next().expect("its end");
    // Digit by digit: as they stand in the files, in a line each.
    for (text, words) in [
        (&run, &["kind", "phase", "refusals", "failures", "thresholds"][..]),
        (&sample, &["busiest_thread", "api_status"]),
    ] {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let names: Vec<&str> = lines.next().expect("names").split(',').collect();
        for line in lines {
            let cell = |(cell, name): (&str, &&str)| match cell {
                "" => "null".to_owned(),
                cell if words.contains(name) => format!("\"{cell}\""),
                cell => cell.to_owned(),
            };
            let cells: Vec<String> = line.split(',').zip(&names).map(cell).collect();
            let wanted = format!("\n[{}]", cells.join(","));
            assert!(data.contains(&wanted), "{wanted}");
        }
    }
}

#[test]
fn three_hours_are_a_few_megabytes_and_no_extreme_is_lost() {
    let mut run = Writer::new("# threshold: delivery p95<50ms\n");
    for second in 1..=10_800_u64 {
        run.second += 1;
        let p50 = if second == 4_321 { 12.0 } else { 2.0 + (second % 10) as f64 / 10.0 };
        run.row("second", 1 + second / 3_600, 1_000, Row { p50: Some(p50), ..QUIET }, "");
    }
    let page = made(&run.ended("finished"), Some(&sample(5_400))).expect("a page");
    assert!(page.html.len() < 5 << 20, "{} bytes", page.html.len());
    let strokes = drawn(&page.html, "delivery", "delivery_p50_ms");
    let values: Vec<f64> = strokes.concat();
    assert!(values.len() <= 1_000, "{}", values.len());
    let most = values.iter().copied().fold(0.0, f64::max);
    assert!((most - 12.0).abs() < 0.2, "{most}");
}

#[test]
fn a_sampler_of_another_time_is_told() {
    let late = sample(3).replace(&START_MS.to_string()[..6], "180606");
    let page = made(&with_a_knee().text, Some(&late)).expect("a page");
    assert!(page.html.contains("of another time than the run"));
    let page = made(&with_a_knee().text, Some(&sample(40))).expect("a page");
    // The run is 30 s long: rows 0 to 15 are within.
    assert!(page.html.contains("24 of the sampler&#39;s 40 rows are from before or after the run"));
}

#[test]
fn errors_say_which_file_and_where() {
    let run = with_a_knee().text;
    let said = |run: &str, sample: Option<&str>| made(run, sample).expect_err("no page").to_string();
    let row = "second,1796062501000,1.000,1,hold,250";
    for (from, to, expected) in [
        (
            row,
            "minute,1796062501000,1.000,1,hold,250",
            "run.csv, line 11, column `kind`: must be `second` or `step`",
        ),
        (
            row,
            "second,1796062501000,1.000,1,rest,250",
            "run.csv, line 11, column `phase`: must be `ramp`, `hold` or `drain`",
        ),
        (row, "second,,1.000,1,hold,250", "run.csv, line 11, column `time_ms`: must not be empty"),
        (
            row,
            "second,1796062501000,1.000,1,hold,many",
            "run.csv, line 11, column `target`: `many` is no number",
        ),
        ("late_p99_ms", "late", "run.csv, column `late_p99_ms`: is missing"),
        (
            "held;held",
            "held",
            "run.csv, line 21, column `thresholds`: judges 1 thresholds, and the head names 2",
        ),
        (
            "held;held",
            "held;yes",
            "run.csv, line 21, column `thresholds`: must be `held` or `broken`, joined by `;`",
        ),
        (
            "40.0,,,\n",
            "40.0,oops,,\n",
            "run.csv, line 11, column `refusals`: must be `name=count` joined by `;`",
        ),
    ] {
        assert!(run.contains(from), "{from}");
        assert_eq!(said(&run.replacen(from, to, 1), None), expected);
    }
    assert_eq!(said("", None), "run.csv: the file is empty");
    assert!(said(&sample(3), None).starts_with("run.csv: is what `throng sample` has written"));
    assert!(said(&run, Some(&run)).starts_with("sample.csv: is what `throng load` has written"));
    assert_eq!(
        said(&run, Some(&sample(3).replacen("0.900", "fast", 1))),
        "sample.csv, line 5, column `api_ms`: `fast` is no number"
    );
    let head = run.split("second,").next().expect("a head");
    assert_eq!(said(head, None), "run.csv: has no row of a second: the run ended before its first one");
}

#[test]
fn a_run_without_a_finished_step_has_no_knee() {
    let mut run = Writer::new("# threshold: delivery p95<50ms\n");
    run.second += 1;
    run.row("second", 1, 10, QUIET, "");
    let grid = Grid::run("run.csv", run.text.as_bytes()).expect("good");
    assert_eq!(judge(&grid).knee, Knee::NoStep);
}
