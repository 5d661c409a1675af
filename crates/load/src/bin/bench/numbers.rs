//! The page of numbers, made from the records of `bench/results/`.
//!
//! Owns how a record is read and how the page says it. Deliberately knows nothing of how anything is measured. A record is a line of
//! JSON; bench/README.md says what is in it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::BENCHMARKS;

/// Records of one benchmark that the page shows, the newest ones.
const SHOWN: usize = 8;

const HEAD: &str = "\
# Numbers

Measured with the commands named, each on an otherwise idle machine. Made from the records in `bench/results/` by
`cargo xtask bench numbers`; do not edit. Every benchmark ends with a bar that it holds or falls short of, and a number
that falls short stands here too. What is a ratio was taken against a baseline in the same run; other numbers only compare
with those of the same machine.
";

/// One run of a benchmark.
struct Record {
    /// What was asked for: the name, and what was given with it.
    command: String,
    name: String,
    value: f64,
    unit: String,
    sign: &'static str,
    bar: f64,
    holds: bool,
    date: String,
    commit: String,
    machine: String,
    parts: Vec<(String, f64, String)>,
}

impl Record {
    fn read(line: &str) -> Result<Record, String> {
        let record: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let text = |value: &Value, name: &str| {
            value[name].as_str().map(str::to_owned).ok_or_else(|| format!("`{name}` is missing or no text"))
        };
        let number = |value: &Value, name: &str| {
            value[name].as_f64().ok_or_else(|| format!("`{name}` is missing or no number"))
        };
        let machine = &record["machine"];
        let gib = number(machine, "memory_kib")? / 1024.0 / 1024.0;
        let parts = record["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
        let commit: String = text(&record, "commit")?;
        let changes = if commit.ends_with("with changes") { " with changes" } else { "" };
        let name = text(&record, "name")?;
        let arguments = record["arguments"].as_str().unwrap_or_default();
        Ok(Record {
            command: format!("{name} {arguments}").trim_end().to_owned(),
            name,
            value: number(&record, "value")?,
            unit: text(&record, "unit")?,
            sign: match text(&record["bar"], "is")?.as_str() {
                "at most" => "≤",
                "at least" => "≥",
                other => return Err(format!("a bar is at most or at least, not {other}")),
            },
            bar: number(&record["bar"], "value")?,
            holds: record["holds"].as_bool().ok_or("`holds` is missing or not true or false")?,
            date: text(&record, "date")?.chars().take(16).map(|c| if c == 'T' { ' ' } else { c }).collect(),
            commit: commit.chars().take(8).chain(changes.chars()).collect(),
            machine: format!(
                "{} × {}, {gib:.1} GiB, Linux {}, {}",
                machine["cpus"],
                text(machine, "cpu")?,
                text(machine, "kernel")?,
                text(machine, "rustc")?.split(" (").next().unwrap_or_default(),
            ),
            parts: parts
                .iter()
                .map(|part| Ok((text(part, "name")?, number(part, "value")?, text(part, "unit")?)))
                .collect::<Result<_, String>>()?,
        })
    }
}

/// All records of one benchmark, the oldest first.
fn read(file: &Path) -> Result<Vec<Record>, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let records = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    records
        .map(|(at, line)| {
            Record::read(line).map_err(|error| format!("{}:{}: {error}", file.display(), at + 1))
        })
        .collect()
}

/// The page, from a folder of records.
fn page(folder: &Path) -> Result<String, String> {
    let mut all = Vec::new();
    for (name, what) in BENCHMARKS {
        let name = name.split(' ').next().unwrap_or_default();
        let file = folder.join(format!("{name}.jsonl"));
        if file.exists() {
            all.push((*what, read(&file)?));
        }
    }
    all.retain(|(_, records)| !records.is_empty());
    let mut page = HEAD.to_owned();
    page += "\n| benchmark | newest | all runs | bar | |\n|---|---|---|---|---|\n";
    for (_, records) in &all {
        summarise(&mut page, records);
    }
    for (what, records) in &all {
        section(&mut page, what, records);
    }
    Ok(page)
}

/// A row for each way in which a benchmark was run.
fn summarise(page: &mut String, records: &[Record]) {
    let mut commands: Vec<&str> = records.iter().map(|record| record.command.as_str()).collect();
    commands.sort_unstable();
    commands.dedup();
    for command in commands {
        let like: Vec<&Record> = records.iter().filter(|record| record.command == command).collect();
        let Some(newest) = like.last() else { continue };
        let values = like.iter().filter(|record| record.unit == newest.unit).map(|record| record.value);
        let (low, high) =
            values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let range = match like.len() {
            1 => "one run".to_owned(),
            count => format!("{} to {} in {count}", figure(low), figure(high)),
        };
        let (value, bar) = (figure(newest.value), figure(newest.bar));
        let verdict = if newest.holds { "holds" } else { "**falls short**" };
        let _ = writeln!(
            page,
            "| [{command}](#{}) | {value} {} | {range} | {} {bar} | {verdict} |",
            newest.name, newest.unit, newest.sign
        );
    }
}

fn section(page: &mut String, what: &str, records: &[Record]) {
    let Some(newest) = records.last() else { return };
    let _ = writeln!(page, "\n## {}\n\n{what}.\n", newest.name);
    *page += "| when (UTC) | commit | `cargo xtask bench` | value | bar | |\n|---|---|---|---|---|---|\n";
    for record in records.iter().rev().take(SHOWN) {
        let (value, bar) = (figure(record.value), figure(record.bar));
        let verdict = if record.holds { "holds" } else { "falls short" };
        let _ = writeln!(
            page,
            "| {} | {} | `{}` | {value} {} | {} {bar} | {verdict} |",
            record.date, record.commit, record.command, record.unit, record.sign
        );
    }
    if !newest.parts.is_empty() {
        *page += "\nThe parts of the newest:\n\n| | |\n|---|---|\n";
        for (name, value, unit) in &newest.parts {
            let _ = writeln!(page, "| {name} | {} {unit} |", figure(*value));
        }
    }
    let _ = writeln!(page, "\nMachine of the newest: {}.", newest.machine);
}

/// A number as people write it: groups of three, and at most three digits behind the point.
fn figure(value: f64) -> String {
    let digits = if value.fract() == 0.0 || value.abs() >= 1_000.0 { 0 } else { 3 };
    let plain = format!("{value:.digits$}");
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        let left = whole.len() - at;
        if at > 0 && left % 3 == 0 && digit.is_ascii_digit() && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match fraction.trim_end_matches('0') {
        "" => grouped,
        fraction => format!("{grouped}.{fraction}"),
    }
}

fn repository() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).expect("this crate lies two folders below the root").to_owned()
}

/// Writes the page.
pub fn run(_: &[String]) -> Result<(), String> {
    let (root, file) = (repository(), "docs/numbers.md");
    let page = page(&root.join("bench/results"))?;
    fs::write(root.join(file), page).map_err(|error| format!("{file}: {error}"))?;
    println!("wrote {file}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_the_repository_is_the_one_that_the_records_make() {
        let root = repository();
        let made = page(&root.join("bench/results")).expect("the records are well formed");
        let kept = fs::read_to_string(root.join("docs/numbers.md")).unwrap_or_default();
        assert!(
            made == kept,
            "docs/numbers.md is not what the records make: run `cargo xtask bench numbers`"
        );
    }

    #[test]
    fn numbers_are_grouped_and_not_longer_than_they_need_to_be() {
        for (value, text) in [
            (0.0, "0"),
            (0.125, "0.125"),
            (1.2, "1.2"),
            (158.0, "158"),
            (999.94, "999.94"),
            (1_000.4, "1,000"),
            (100_000.0, "100,000"),
            (2_277_845.0, "2,277,845"),
            (-1_234.0, "-1,234"),
        ] {
            assert_eq!(figure(value), text);
        }
    }

    #[test]
    fn a_record_that_is_not_whole_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("idle.jsonl"), "\n{\"name\":\"idle\"}\n").expect("written");
        let error = page(folder.path()).expect_err("no value");
        assert!(error.contains("idle.jsonl:2: ") && error.contains("missing"), "{error}");
    }
}
