//! Rules about files that no compiler checks.
//!
//! Owns which rules there are. `sources` looks at code, `documents` at Markdown, `attacks` at one page of it; all get text and
//! give findings.

mod attacks;
mod documents;
mod sources;

use std::process::ExitCode;

use crate::options::Options;
use crate::repository::{Finding, Repository, TextFile};
use crate::{guards, verdict};

const HELP: &str = "\
Check rules about files that no compiler checks.

Usage: cargo xtask tidy

Rust modules open with //! and say what they own; no file is called utils, helpers, common, types or misc; files stay
under 700 lines; nothing is left to do (no to-do macros, no ignored tests); one integration test binary per crate;
links and paths in Markdown resolve, and the names it mentions exist; the guards that `cargo xtask guards` takes away are
there, and docs/attacks.md names them and tests that exist; no machine's paths and no registry's hosts; no
trailing blanks; the licences are there.
";

/// `cargo xtask tidy`
pub fn main(repository: &Repository, arguments: Vec<String>) -> Result<ExitCode, String> {
    let mut options = Options::new(arguments);
    if options.help() {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    }
    options.finish()?;
    Ok(verdict("tidy", &check(repository)?))
}

/// Everything this check finds.
pub fn check(repository: &Repository) -> Result<Vec<Finding>, String> {
    Ok(check_files(&repository.text_files()?))
}

fn check_files(files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| !is_made(&file.path)) {
        check_text(file, &mut findings);
        sources::check(file, &mut findings);
    }
    sources::check_lengths(files, &mut findings);
    documents::check(files, &mut findings);
    attacks::check(files, &mut findings);
    findings.extend(guards::check(files));
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        if !files.iter().any(|file| file.path == licence) {
            findings.push(Finding::new(licence, 0, "is missing"));
        }
    }
    findings
}

/// Written by a tool, or by others: not ours to tidy.
fn is_made(path: &str) -> bool {
    const ENDINGS: [&str; 2] = [".lock", "package-lock.json"];
    const STARTS: [&str; 3] = ["LICENSE-", "fuzz/seeds/", "bench/results/"];
    ENDINGS.iter().any(|ending| path.ends_with(ending)) || STARTS.iter().any(|start| path.starts_with(start))
}

/// Words that are wrong in every file. In pieces, so that this file does not contain them.
const HOSTS: &[&str] = &[
    concat!("registry.", "npmjs.org"),
    concat!("pypi.", "org"),
    concat!("files.", "pythonhosted.org"),
    concat!("static.", "crates.io"),
    concat!("index.", "crates.io"),
    concat!("deb.", "debian.org"),
];

/// Folders that exist on one machine only.
const MACHINE_FOLDERS: &[&str] = &["root", "home", "work"];

fn check_text(file: &TextFile, findings: &mut Vec<Finding>) {
    let is_document = file.path.ends_with(".md");
    for (index, line) in file.text.lines().enumerate() {
        let mut found = |text: String| findings.push(Finding::new(&file.path, index + 1, text));
        if line.ends_with([' ', '\t', '\r']) {
            found("ends in blanks".to_owned());
        }
        if let Some(host) = HOSTS.iter().find(|host| line.contains(**host)) {
            found(format!("names the registry host {host}"));
        }
        for folder in MACHINE_FOLDERS {
            if names_folder(line, folder) {
                found(format!("names the machine path /{folder}"));
            }
        }
        if is_document && names_folder(line, "tmp") {
            found("names a path under /tmp; a document shows a path of the reader's".to_owned());
        }
    }
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        findings.push(Finding::new(&file.path, 0, "does not end in a line break"));
    }
}

/// Whether a line has `/folder/` or `/folder` at the start of a path, not inside one or inside an address.
fn names_folder(line: &str, folder: &str) -> bool {
    let needle = format!("/{folder}");
    line.match_indices(&needle).any(|(at, _)| {
        let inside =
            |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '}' | ')' | '*' | '<' | '~');
        let before = line[..at].chars().next_back();
        let after = line[at + needle.len()..].chars().next();
        !before.is_some_and(inside)
            && !after.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    fn texts(path: &str, text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        check_text(&file(path, text), &mut findings);
        findings.into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn blanks_and_missing_line_breaks_are_caught() {
        assert_eq!(
            texts("a.md", "one \ntwo\t\nthree"),
            ["ends in blanks", "ends in blanks", "does not end in a line break"]
        );
        assert_eq!(texts("a.md", "one\n\n  two\n"), [""; 0]);
    }

    #[test]
    fn machine_paths_are_caught_and_routes_are_not() {
        for folder in MACHINE_FOLDERS {
            assert_eq!(texts("a.rs", &format!("see /{folder}/x\n")).len(), 1, "{folder}");
            assert_eq!(texts("a.rs", &format!("\"/{folder}\"\n")).len(), 1, "{folder}");
        }
        assert_eq!(texts("a.md", concat!("in /", "tmp/x\n")).len(), 1);
        assert_eq!(texts("a.sh", "mktemp -d /tmp/x.1\n"), [""; 0]);
        for line in
            ["crates/work/src", "/workspace", "https://example.org/home", "a/root", "/homework", "$X/work"]
        {
            assert_eq!(texts("a.rs", &format!("{line}\n")), [""; 0], "{line}");
        }
    }

    #[test]
    fn registry_hosts_are_caught() {
        assert_eq!(texts("a.json", concat!("https://registry.", "npmjs.org/ws\n")).len(), 1);
        assert_eq!(texts("a.md", "published on crates.io\n"), [""; 0]);
    }

    #[test]
    fn missing_licences_are_caught() {
        let found = check_files(&[file("LICENSE-MIT", "MIT\n")]);
        assert_eq!(found, [Finding::new("LICENSE-APACHE", 0, "is missing")]);
    }
}
