//! `throng report` as a person meets it: what it reads, what it replaces, and what it says of files that are something else.

use std::fs;

use crate::run::{Place, fails};

const RUN: &str = "\
# throng: 0.1.0
# command: throng load chat
# scenario: chat
# interval_ms: 1000
kind,time_ms,elapsed_s,step,phase,target,connections,connecting,due,ok,refused,failed,not_sent,delivered,violations,bytes_in,bytes_out,delivery_p50_ms,delivery_p95_ms,delivery_p99_ms,delivery_max_ms,ack_p50_ms,ack_p95_ms,ack_p99_ms,ack_max_ms,connect_p50_ms,connect_p95_ms,connect_p99_ms,connect_max_ms,late_p99_ms,cpu_pct,refusals,failures,thresholds
second,1796062501000,1.000,1,hold,10,2,0,10,9,1,0,0,9,0,100,200,1.500,2.000,3.000,4.000,1.000,2.000,3.000,4.000,,,,,0.050,1.0,not_member=1,,
";

#[test]
fn a_run_that_was_killed_becomes_a_page_that_is_replaced_by_the_next() {
    let place = Place::new();
    place.write("run.csv", format!("{RUN}second,17960625"));
    let told = place.prints(&["report", "run.csv"]);
    assert!(told.starts_with("No threshold was set"), "{told}");
    assert!(told.contains("\nwrote report.html, "), "{told}");
    let page = fs::read_to_string(place.path("report.html")).expect("a page");
    assert!(page.contains("The run did not end by itself") && page.contains("<code>not_member</code>"));
    place.write("run.csv", format!("{RUN}# ended: finished\n"));
    place.prints(&["report", "run.csv", "-o", "report.html"]);
    let page = fs::read_to_string(place.path("report.html")).expect("a page");
    assert!(page.contains("The run ended by itself."));
}

#[test]
fn what_is_no_report_is_not_replaced() {
    let place = Place::new();
    place.write("run.csv", RUN);
    let said = "run.csv: exists and is no report, so it is not replaced; name another file with -o";
    fails(&place.run(&["report", "run.csv", "-o", "run.csv"]), 1, &[said]);
    assert_eq!(fs::read_to_string(place.path("run.csv")).expect("it is there"), RUN);
}

#[test]
fn mistakes_name_file_line_and_column() {
    let place = Place::new();
    place.write("run.csv", RUN);
    place.write("empty.csv", "");
    place.write("wrong.csv", RUN.replace("0.050", "soon"));
    for (arguments, said) in [
        (&["gone.csv"][..], "gone.csv cannot be read: No such file or directory (os error 2)"),
        (&["empty.csv"], "empty.csv: the file is empty"),
        (&["wrong.csv"], "wrong.csv, line 6, column `late_p99_ms`: `soon` is no number"),
        (
            &["run.csv", "run.csv"],
            "run.csv: is what `throng load` has written; it comes first, and the file of `throng sample` second",
        ),
    ] {
        fails(&place.run(&[&["report"], arguments].concat()), 1, &[said]);
    }
    assert!(!place.path("report.html").exists());
}
