//! `cargo xtask guards`: takes each guard of the code away and sees whether a test notices.
//!
//! Owns the verdict and the report. `table` reads which guards there are, `trial` takes one away in a copy of the
//! repository. The working tree itself is never changed.

mod table;
mod trial;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::options::Options;
use crate::repository::{Finding, Repository, TextFile};
use table::Guard;
use trial::{Copy, Verdict};

const HELP: &str = "\
Take each guard of the code away and see whether a test notices.

Usage: cargo xtask guards [OPTIONS]

Options:
  --only NAME   Try this guard; may be given several times
  --list        Name the guards, what they are for and which tests must notice

The guards are in crates/xtask/guards/*.txt: a file, the exact text to replace, the tests that must fail without it.
It works in a copy under target/guards, so it takes a while: every guard compiles what depends on it. The tests must
pass there first; a guard that does not compile without its text is a mistake in the table, not a success.
";

/// Where the table is.
const FOLDER: &str = "crates/xtask/guards/";

/// What is said of one guard.
struct Row<'g> {
    guard: &'g Guard,
    verdict: Verdict,
    took: Duration,
}

/// `cargo xtask guards`
pub fn main(repository: &Repository, arguments: Vec<String>) -> Result<ExitCode, String> {
    let mut options = Options::new(arguments);
    if options.help() {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    }
    let list = options.flag("--list");
    let only = options.values("--only")?;
    options.finish()?;
    let files = repository.text_files()?;
    let findings = check(&files);
    if !findings.is_empty() {
        return Ok(crate::verdict("guards", &findings));
    }
    let (guards, _) = read(&files);
    if let Some(unknown) = only.iter().find(|name| !guards.iter().any(|guard| guard.name == **name)) {
        return Err(format!("no guard is called `{unknown}`; `cargo xtask guards --list` names them"));
    }
    let wanted: Vec<&Guard> =
        guards.iter().filter(|guard| only.is_empty() || only.contains(&guard.name)).collect();
    if list {
        wanted.iter().for_each(|guard| println!("{guard}"));
        return Ok(ExitCode::SUCCESS);
    }
    let copy = Copy::make(repository, files)?;
    println!("the tests, with every guard in place");
    copy.check_tests(&wanted)?;
    let mut rows = Vec::new();
    for guard in wanted {
        let begun = Instant::now();
        let row = Row { guard, verdict: copy.without(guard)?, took: begun.elapsed() };
        println!("{}", line(&row));
        rows.push(row);
    }
    let (table, holds) = report(&rows);
    println!("\n{table}");
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is wrong with the table, without running anything: a text that does not stand exactly once, a test that does
/// not exist.
pub fn check(files: &[TextFile]) -> Vec<Finding> {
    let (guards, mut findings) = read(files);
    for (index, guard) in guards.iter().enumerate() {
        guard.check(files, &mut findings);
        if guards[..index].iter().any(|earlier| earlier.name == guard.name) {
            findings.push(guard.finding("has a name that is taken"));
        }
    }
    findings
}

/// The names of all guards, and the rows of the list of attacks or the invariants that each is for.
pub fn rows(files: &[TextFile]) -> Vec<(String, Vec<String>)> {
    read(files).0.into_iter().map(|guard| (guard.name, guard.rows)).collect()
}

fn read(files: &[TextFile]) -> (Vec<Guard>, Vec<Finding>) {
    let mut findings = Vec::new();
    let tables = files.iter().filter(|file| file.path.starts_with(FOLDER) && file.path.ends_with(".txt"));
    let guards = tables.flat_map(|file| table::read(file, &mut findings)).collect();
    (guards, findings)
}

fn line(row: &Row) -> String {
    let took = format!("{:.1} s", row.took.as_secs_f64());
    format!("{:<46} {:<10} {took:>8}  {}", row.guard.name, row.guard.rows.join(" "), row.verdict)
}

/// The table, and whether every guard was missed.
fn report(rows: &[Row]) -> (String, bool) {
    let mut table = format!("{:<46} {:<10} {:>8}  without it\n", "guard", "for", "time");
    for row in rows {
        table.push_str(&line(row));
        table.push('\n');
    }
    let noticed = rows.iter().filter(|row| row.verdict.is_noticed()).count();
    let not = rows.len() - noticed;
    table.push_str(&format!("\n{} guards: {noticed} missed by a test, {not} not\n", rows.len()));
    (table, not == 0 && !rows.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    fn found(table: &str) -> Vec<String> {
        let files = [
            file("crates/xtask/guards/a.txt", table),
            file("crates/shard/Cargo.toml", ""),
            file("crates/shard/src/lib.rs", "//! Owns it.\nif a > b { refuse() }\nlet c = 1;\nlet c = 1;\n"),
            file("crates/shard/tests/it/main.rs", "//! All.\n#[test]\nfn it_is_refused() {}\n"),
        ];
        check(&files).into_iter().map(|finding| finding.to_string()).collect()
    }

    const GOOD: &str = "guard bound\nfor 6 X1\nfile crates/shard/src/lib.rs\n- a > b\n+ false\n\
                        test shard::it_is_refused\n";

    #[test]
    fn a_text_that_stands_once_and_a_test_that_exists_are_well() {
        assert_eq!(found(GOOD), [""; 0]);
        assert_eq!(found(&format!("# A remark.\n\n{GOOD}\n{}", GOOD.replace("bound", "other"))), [""; 0]);
    }

    #[test]
    fn a_text_that_is_gone_or_stands_twice_is_found() {
        let gone = found(&GOOD.replace("a > b", "a >= b"));
        assert!(
            gone[0].starts_with("crates/xtask/guards/a.txt:1: ") && gone[0].contains("0 times"),
            "{gone:?}"
        );
        assert!(found(&GOOD.replace("a > b", "let c = 1;"))[0].contains("2 times"));
        assert!(found(&GOOD.replace("src/lib.rs", "src/gone.rs"))[0].contains("does not exist"));
    }

    #[test]
    fn a_test_that_is_gone_a_name_that_is_taken_and_a_change_that_changes_nothing_are_found() {
        assert!(found(&GOOD.replace("it_is_refused", "gone"))[0].contains("no such test"));
        assert!(found(&format!("{GOOD}\n{GOOD}"))[0].contains("taken"));
        assert!(found(&GOOD.replace("+ false", "+ a > b"))[0].contains("by itself"));
    }

    #[test]
    fn what_the_table_lacks_is_said() {
        for line in ["for 6 X1\n", "file crates/shard/src/lib.rs\n", "test shard::it_is_refused\n"] {
            assert!(!found(&GOOD.replace(line, "")).is_empty(), "{line}");
        }
        assert!(found(&GOOD.replace("for 6", "fro 6"))[0].contains("fro"));
    }

    #[test]
    fn one_guard_that_nobody_misses_is_a_failure() {
        let guards = table::read(&file("a.txt", GOOD), &mut Vec::new());
        let row = |verdict| Row { guard: &guards[0], verdict, took: Duration::from_millis(1_500) };
        let (table, holds) = report(&[row(Verdict::Noticed), row(Verdict::Hung("it".to_owned()))]);
        assert!(holds && table.ends_with("\n2 guards: 2 missed by a test, 0 not\n"), "{table}");
        let (table, holds) =
            report(&[row(Verdict::Noticed), row(Verdict::Unnoticed("shard::it_is_refused".to_owned()))]);
        assert!(!holds && table.ends_with("\n2 guards: 1 missed by a test, 1 not\n"), "{table}");
        assert!(!report(&[row(Verdict::DoesNotCompile("a.log".to_owned()))]).1);
        assert!(!report(&[]).1);
    }
}
