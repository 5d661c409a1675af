//! `cargo xtask bench`: runs a benchmark and keeps its result with what it was measured on.
//!
//! Owns the record; what is measured and how is the business of crate `load`.

use std::fs;
use std::io::Write;
use std::process::{Command, ExitCode};
use std::time::Duration;

use crate::options::Options;
use crate::process;
use crate::repository::Repository;

const HELP: &str = "\
Run a benchmark and keep its result.

Usage: cargo xtask bench NAME [ARGUMENTS...]
       cargo xtask bench --list

A benchmark ends with the line `NAME: VALUE UNIT (bar ≤|≥ BAR): holds|falls short`. That line, its parts (lines
`· NAME: VALUE UNIT`), the date, the commit and the machine are added to bench/results/NAME.jsonl, one JSON object a
line. Arguments after NAME go to the benchmark. `cargo xtask bench numbers` makes docs/numbers.md of all records.
";

/// No benchmark here takes longer.
const LIMIT: Duration = Duration::from_secs(3600);

/// `cargo xtask bench`
pub fn main(repository: &Repository, arguments: Vec<String>) -> Result<ExitCode, String> {
    let mut arguments = arguments.into_iter();
    let name = match arguments.next() {
        None => return Err("which benchmark? `cargo xtask bench --list` names them".to_owned()),
        Some(first) if first == "--list" => return crate::pass_through(command(repository, &["--list"])),
        Some(first) if Options::new(vec![first.clone()]).help() => {
            print!("{HELP}");
            return Ok(ExitCode::SUCCESS);
        }
        Some(first) => first,
    };
    let arguments: Vec<String> = arguments.collect();
    let mut measure = command(repository, &[&name]);
    measure.args(&arguments);
    let ended = process::run(measure, LIMIT);
    if let Some(result) = ended.lines.iter().rev().find_map(|line| Measured::read(line)) {
        let parts: Vec<Part> = ended.lines.iter().filter_map(|line| Part::read(line)).collect();
        keep(repository, &result, &arguments.join(" "), &parts)?;
        let made = command(repository, &["numbers"]).status();
        if !made.is_ok_and(|status| status.success()) {
            return Err("docs/numbers.md was not made".to_owned());
        }
    } else if ended.outcome.is_ok() && name != "numbers" {
        return Err(format!("the benchmark `{name}` ended without its line `NAME: VALUE UNIT (bar …): …`"));
    }
    ended.outcome.map(|()| ExitCode::SUCCESS).or_else(|complaint| {
        eprintln!("xtask: {complaint}");
        Ok(ExitCode::FAILURE)
    })
}

fn command(repository: &Repository, arguments: &[&str]) -> Command {
    let mut command = repository.cargo();
    // The benchmarks start the server themselves, so it must be of the same state.
    command
        .args(["run", "--quiet", "--release", "--package", "load", "--bin", "bench", "--"])
        .args(arguments);
    command
}

/// A number of which the result is made.
#[derive(Debug, PartialEq)]
struct Part {
    name: String,
    value: f64,
    unit: String,
}

impl Part {
    /// Reads `· NAME: VALUE UNIT`.
    fn read(line: &str) -> Option<Part> {
        let (name, measure) = line.trim().strip_prefix("· ")?.rsplit_once(": ")?;
        let (value, unit) = measure.split_once(' ').unwrap_or((measure, ""));
        Some(Part { name: name.to_owned(), value: plain(value)?, unit: unit.to_owned() })
    }

    fn json(&self) -> String {
        format!("{{\"name\":{},\"value\":{},\"unit\":{}}}", text(&self.name), self.value, text(&self.unit))
    }
}

/// A finite number, written with or without commas.
fn plain(number: &str) -> Option<f64> {
    number.replace(',', "").parse().ok().filter(|number: &f64| number.is_finite())
}

/// The closing line of a benchmark.
#[derive(Debug, PartialEq)]
struct Measured {
    name: String,
    value: f64,
    unit: String,
    at_most: bool,
    bar: f64,
    holds: bool,
}

impl Measured {
    /// Reads `NAME: VALUE UNIT (bar ≤|≥ BAR): holds|falls short`.
    fn read(line: &str) -> Option<Measured> {
        let (name, rest) = line.trim().split_once(": ")?;
        let (measure, rest) = rest.split_once(" (bar ")?;
        let (bar, verdict) = rest.split_once("): ")?;
        let (value, unit) = measure.split_once(' ').unwrap_or((measure, ""));
        let (sign, bar) = bar.split_once(' ')?;
        Some(Measured {
            name: name.to_owned(),
            value: plain(value)?,
            unit: unit.to_owned(),
            at_most: match sign {
                "≤" => true,
                "≥" => false,
                _ => return None,
            },
            bar: plain(bar.split(' ').next()?)?,
            holds: match verdict {
                "holds" => true,
                "falls short" => false,
                _ => return None,
            },
        })
    }

    fn json(&self, arguments: &str, parts: &[Part], on: &Circumstances) -> String {
        let parts: Vec<String> = parts.iter().map(Part::json).collect();
        format!(
            "{{\"name\":{},\"arguments\":{},\"value\":{},\"unit\":{},\"bar\":{{\"is\":{},\"value\":{}}},\"holds\":{},\"parts\":[{}],\
             \"date\":{},\"commit\":{},\"machine\":{{\"cpus\":{},\"cpu\":{},\"memory_kib\":{},\"kernel\":{},\"rustc\":{}}}}}",
            text(&self.name),
            text(arguments),
            self.value,
            text(&self.unit),
            text(if self.at_most { "at most" } else { "at least" }),
            self.bar,
            self.holds,
            parts.join(","),
            text(&on.date),
            text(&on.commit),
            on.cpus,
            text(&on.cpu),
            on.memory_kib,
            text(&on.kernel),
            text(&on.rustc),
        )
    }
}

/// A JSON string.
fn text(plain: &str) -> String {
    let mut out = String::from('"');
    for c in plain.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out + "\""
}

/// When, what and on which machine.
struct Circumstances {
    date: String,
    commit: String,
    cpus: usize,
    cpu: String,
    memory_kib: u64,
    kernel: String,
    rustc: String,
}

impl Circumstances {
    fn here(repository: &Repository) -> Circumstances {
        let said = |mut command: Command| {
            let output = command.output().ok().filter(|output| output.status.success());
            output
                .map_or_else(String::new, |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        let with = |program: &str, arguments: &[&str]| {
            let mut command = repository.command(program);
            command.args(arguments);
            said(command)
        };
        let line = |path: &str, key: &str| {
            let all = fs::read_to_string(path).unwrap_or_default();
            let found = all.lines().find(|line| line.starts_with(key)).and_then(|line| line.split_once(':'));
            found.map_or_else(String::new, |(_, value)| value.trim().to_owned())
        };
        let changed = !with("git", &["status", "--porcelain", "--untracked-files=no"]).is_empty();
        Circumstances {
            date: with("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]),
            commit: with("git", &["rev-parse", "HEAD"]) + if changed { " with changes" } else { "" },
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            cpu: line("/proc/cpuinfo", "model name"),
            memory_kib: line("/proc/meminfo", "MemTotal").trim_end_matches(" kB").parse().unwrap_or(0),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
            rustc: with("rustc", &["--version"]),
        }
    }
}

fn keep(repository: &Repository, result: &Measured, arguments: &str, parts: &[Part]) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name: String = result.name.chars().map(|c| if plain(c) { c } else { '-' }).collect();
    let path = format!("bench/results/{name}.jsonl");
    let record = result.json(arguments, parts, &Circumstances::here(repository)) + "\n";
    let write = || {
        fs::create_dir_all(repository.root.join("bench/results"))?;
        let file = fs::OpenOptions::new().create(true).append(true).open(repository.root.join(&path));
        file?.write_all(record.as_bytes())
    };
    write().map_err(|error| format!("cannot add to {path}: {error}"))?;
    println!("kept in {path}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_is_read() {
        assert_eq!(
            Measured::read("idle: 187.4 B/connection (bar ≤ 200): holds"),
            Some(Measured {
                name: "idle".to_owned(),
                value: 187.4,
                unit: "B/connection".to_owned(),
                at_most: true,
                bar: 200.0,
                holds: true
            })
        );
        let chat = Measured::read("chat ratio: 0.28 of the bare echo (bar ≥ 0.33): falls short")
            .expect("well formed");
        assert_eq!((chat.name.as_str(), chat.unit.as_str()), ("chat ratio", "of the bare echo"));
        assert_eq!((chat.at_most, chat.bar, chat.holds), (false, 0.33, false));
        assert_eq!(
            Measured::read("hold: 100,000 connections (bar ≥ 100,000): holds").map(|m| m.value),
            Some(1e5)
        );
    }

    #[test]
    fn other_lines_are_not_taken_for_it() {
        for line in [
            "",
            "idle: 187.4 B",
            "idle: many B (bar ≤ 200): holds",
            "idle: 1 B (bar < 200): holds",
            "idle: 1 B (bar ≤ 200): perhaps",
            "idle: NaN B (bar ≤ 200): holds",
        ] {
            assert_eq!(Measured::read(line), None, "{line}");
        }
    }

    #[test]
    fn the_record_is_one_line_of_json() {
        let on = Circumstances {
            date: "2026-01-02T03:04:05Z".to_owned(),
            commit: "abc".to_owned(),
            cpus: 2,
            cpu: "A \"quoted\" one\t".to_owned(),
            memory_kib: 1024,
            kernel: "6.18".to_owned(),
            rustc: "rustc 1.95.0".to_owned(),
        };
        let measured = Measured::read("idle: 187 B (bar ≤ 200): holds").expect("well formed");
        let parts = [
            Part::read("· resident before: 12,345 KiB").expect("well formed"),
            Part::read("  · p99: half: 1.5 ms").expect("well formed"),
        ];
        assert_eq!(
            measured.json("15000 --shards 2", &parts, &on),
            "{\"name\":\"idle\",\"arguments\":\"15000 --shards 2\",\"value\":187,\"unit\":\"B\",\"bar\":{\"is\":\"at most\",\"value\":200},\
             \"holds\":true,\"parts\":[{\"name\":\"resident before\",\"value\":12345,\"unit\":\"KiB\"},\
             {\"name\":\"p99: half\",\"value\":1.5,\"unit\":\"ms\"}],\
             \"date\":\"2026-01-02T03:04:05Z\",\"commit\":\"abc\",\"machine\":{\"cpus\":2,\
             \"cpu\":\"A \\\"quoted\\\" one\\u0009\",\"memory_kib\":1024,\"kernel\":\"6.18\",\
             \"rustc\":\"rustc 1.95.0\"}}"
        );
    }
}
