//! `cargo xtask test`: everything that must hold, step by step, with one table at the end.
//!
//! Owns the order, the reporting and the verdict. What the steps are is in `steps`.

mod server;
mod steps;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::options::Options;
use crate::prerequisites;
use crate::process::Counts;
use crate::repository::Repository;
use steps::{STEPS, Step};

const HELP: &str = "\
Run everything that must hold.

Usage: cargo xtask test [OPTIONS]

Options:
  --only STEP   Run this step; may be given several times
  --list        Name the steps and what they check

On Debian as root, what a step needs (chromium, nodejs, npm, python3-venv) is installed. Elsewhere a step whose needs are
missing says what to install and is not run; with CI=true in the environment that is a failure.
";

/// How one step ended.
pub enum Outcome {
    /// What it checked holds.
    Passed(Counts),
    /// It does not, for this reason.
    Failed(Counts, String),
    /// It could not be run for want of something.
    NotRun(String),
}

/// What the table has of one step.
struct Row {
    name: &'static str,
    outcome: Outcome,
    took: Duration,
}

/// `cargo xtask test`
pub fn main(repository: &Repository, arguments: Vec<String>) -> Result<ExitCode, String> {
    let mut options = Options::new(arguments);
    if options.help() {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    }
    let list = options.flag("--list");
    let only = options.values("--only")?;
    options.finish()?;
    if list {
        STEPS.iter().for_each(|step| println!("{:<10} {}", step.name, step.about));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(unknown) = only.iter().find(|name| !STEPS.iter().any(|step| step.name == **name)) {
        return Err(format!("no step is called `{unknown}`; `cargo xtask test --list` names them"));
    }
    let begun = Instant::now();
    let wanted = STEPS.iter().filter(|step| only.is_empty() || only.iter().any(|name| name == step.name));
    let rows: Vec<Row> = wanted.map(|step| run(repository, step)).collect();
    let must_all_run = std::env::var("CI").is_ok_and(|value| value == "true");
    let (table, holds) = report(&rows, begun.elapsed(), must_all_run);
    println!("\n{table}");
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run(repository: &Repository, step: &Step) -> Row {
    println!("\n==== {}: {}", step.name, step.about);
    let begun = Instant::now();
    let outcome = match prerequisites::ensure(step.needs) {
        Ok(()) => step.run(repository),
        Err(missing) => Outcome::NotRun(missing),
    };
    let took = begun.elapsed();
    match &outcome {
        Outcome::Passed(_) => println!("==== {}: passed in {}", step.name, seconds(took)),
        Outcome::Failed(_, why) => println!("==== {}: FAILED after {}: {why}", step.name, seconds(took)),
        Outcome::NotRun(why) => println!("==== {}: NOT RUN: {why}", step.name),
    }
    Row { name: step.name, outcome, took }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// The table, and whether all is well. A step that counts no tests counts as one.
fn report(rows: &[Row], took: Duration, must_all_run: bool) -> (String, bool) {
    let mut table = format!("{:<10} {:>9}  result\n", "step", "time");
    let mut total = Counts::default();
    let mut not_run = 0;
    for row in rows {
        let result = match &row.outcome {
            Outcome::Passed(counts) => {
                total.passed += counts.passed.max(1);
                if counts.passed > 0 { format!("passed ({})", counts.passed) } else { "passed".to_owned() }
            }
            Outcome::Failed(counts, why) => {
                total.passed += counts.passed;
                total.failed += counts.failed.max(1);
                format!("FAILED: {why}")
            }
            Outcome::NotRun(why) => {
                not_run += 1;
                total.failed += u64::from(must_all_run);
                format!("NOT RUN: {why}")
            }
        };
        table.push_str(&format!("{:<10} {:>9}  {result}\n", row.name, seconds(row.took)));
    }
    table.push_str(&format!("{:<10} {:>9}\n", "all", seconds(took)));
    if not_run > 0 {
        let consequence =
            if must_all_run { "which is a failure in CI" } else { "so this says nothing about them" };
        table.push_str(&format!("\n{not_run} of {} steps were NOT RUN, {consequence}\n", rows.len()));
    }
    table.push_str(&format!("\n{} passed, {} failed\n", total.passed, total.failed));
    let ran_something = total.passed + total.failed > 0;
    (table, total.failed == 0 && ran_something)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, outcome: Outcome) -> Row {
        Row { name, outcome, took: Duration::from_millis(1500) }
    }

    fn counts(passed: u64, failed: u64) -> Counts {
        Counts { passed, failed }
    }

    #[test]
    fn tests_are_summed_and_a_step_without_any_counts_as_one() {
        let rows = [row("a", Outcome::Passed(counts(40, 0))), row("b", Outcome::Passed(counts(0, 0)))];
        let (table, holds) = report(&rows, Duration::from_secs(3), true);
        assert!(table.ends_with("\n41 passed, 0 failed\n"), "{table}");
        assert!(table.contains("a              1.5 s  passed (40)\n"), "{table}");
        assert!(holds);
    }

    #[test]
    fn one_failure_is_enough() {
        let failed = Outcome::Failed(counts(9, 2), "cargo: exit status: 101".to_owned());
        let (table, holds) =
            report(&[row("a", Outcome::Passed(counts(1, 0))), row("b", failed)], Duration::ZERO, false);
        assert!(table.ends_with("\n10 passed, 2 failed\n"), "{table}");
        assert!(!holds);
        let (table, holds) =
            report(&[row("a", Outcome::Failed(counts(0, 0), "timed out".to_owned()))], Duration::ZERO, false);
        assert!(table.ends_with("\n0 passed, 1 failed\n"), "{table}");
        assert!(!holds);
    }

    #[test]
    fn what_was_not_run_is_said_loudly_and_fails_in_ci() {
        let rows =
            || [row("a", Outcome::Passed(counts(5, 0))), row("b", Outcome::NotRun("no npm".to_owned()))];
        let (table, holds) = report(&rows(), Duration::ZERO, false);
        assert!(table.contains("1 of 2 steps were NOT RUN") && holds, "{table}");
        let (table, holds) = report(&rows(), Duration::ZERO, true);
        assert!(table.ends_with("\n5 passed, 1 failed\n") && !holds, "{table}");
    }

    #[test]
    fn nothing_run_is_nothing_proved() {
        let (_, holds) = report(&[row("a", Outcome::NotRun("no npm".to_owned()))], Duration::ZERO, false);
        assert!(!holds);
    }

    #[test]
    fn every_step_has_its_own_name() {
        for (index, step) in STEPS.iter().enumerate() {
            assert!(STEPS[..index].iter().all(|other| other.name != step.name), "{}", step.name);
        }
    }
}
