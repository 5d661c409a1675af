//! Rules about source files: heads, names, lengths, leftovers, one test binary a crate.

use crate::code;
use crate::repository::{Finding, TextFile};

/// Longest a source file may be.
const LINES_MAX: usize = 700;

/// Files that are longer all the same, and how long they are. This list may only shrink: shorten the file, then the
/// number; below [`LINES_MAX`] the entry goes.
const LONGER: &[(&str, usize)] = &[];

/// Endings of what people write by hand.
const SOURCES: &[&str] = &[".rs", ".js", ".mjs", ".css", ".html", ".py", ".sh"];

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["utils", "util", "helpers", "helper", "common", "types", "misc"];

/// What must not be left in code. In pieces, so that this file does not contain them.
const LEFT_IN_CODE: &[&str] = &[
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("db", "g!"),
    concat!("#[ig", "nore]"),
    concat!("#[ig", "nore="),
];

/// What must not be left anywhere, comments included.
const LEFT_IN_WORDS: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X"), concat!("TO", "DO")];

fn is_source(path: &str) -> bool {
    SOURCES.iter().any(|ending| path.ends_with(ending))
}

/// The rules that look at one file.
pub fn check(file: &TextFile, findings: &mut Vec<Finding>) {
    if !is_source(&file.path) {
        return;
    }
    check_name(file, findings);
    check_leftovers(file, findings);
    if file.path.ends_with(".rs") {
        check_head(file, findings);
        check_test_binary(file, findings);
    }
}

fn check_name(file: &TextFile, findings: &mut Vec<Finding>) {
    let empty = file.path.split('/').any(|part| EMPTY_NAMES.contains(&part.split('.').next().unwrap_or("")));
    if empty {
        findings.push(Finding::new(
            &file.path,
            0,
            "has a name that says nothing: name it after what it owns",
        ));
    }
}

fn check_head(file: &TextFile, findings: &mut Vec<Finding>) {
    let first = file.text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    if !first.starts_with("//! ") {
        findings.push(Finding::new(&file.path, 1, "does not open with `//!` saying what it owns"));
    }
}

/// Each file right under `tests/` is linked into a program of its own; one is enough.
fn check_test_binary(file: &TextFile, findings: &mut Vec<Finding>) {
    let parts: Vec<&str> = file.path.split('/').collect();
    if let ["crates", name, "tests", _] = parts[..] {
        let text = format!("is a test binary of its own: make it a module of crates/{name}/tests/it/main.rs");
        findings.push(Finding::new(&file.path, 0, text));
    }
}

fn check_leftovers(file: &TextFile, findings: &mut Vec<Finding>) {
    let is_rust = file.path.ends_with(".rs");
    let code = if is_rust { code::without_texts(&file.text) } else { String::new() };
    for (index, line) in code.lines().enumerate() {
        let line: String = line.chars().filter(|c| !c.is_whitespace()).collect();
        if let Some(left) = LEFT_IN_CODE.iter().find(|left| line.contains(**left)) {
            findings.push(Finding::new(&file.path, index + 1, format!("has a `{left}` left")));
        }
    }
    for (index, line) in file.text.lines().enumerate() {
        let words = line.split(|c: char| !c.is_alphanumeric());
        if let Some(left) = words.into_iter().find(|word| LEFT_IN_WORDS.contains(word)) {
            findings.push(Finding::new(
                &file.path,
                index + 1,
                format!("has a {left} left: do it, or file it"),
            ));
        }
    }
}

/// The rule about lengths, with its list.
pub fn check_lengths(files: &[TextFile], findings: &mut Vec<Finding>) {
    check_lengths_with(LONGER, files, findings);
}

fn check_lengths_with(longer: &[(&str, usize)], files: &[TextFile], findings: &mut Vec<Finding>) {
    let length = |file: &TextFile| file.text.lines().count();
    for file in files.iter().filter(|file| is_source(&file.path)) {
        let listed = longer.iter().find(|(path, _)| *path == file.path).map(|(_, lines)| *lines);
        let lines = length(file);
        if lines > listed.unwrap_or(LINES_MAX) {
            let text = format!("has {lines} lines: split it into files of one idea each");
            findings.push(Finding::new(&file.path, 0, text));
        }
    }
    for (path, listed) in longer {
        let lines = files.iter().find(|file| file.path == *path).map_or(0, length);
        let text = match lines {
            0..=LINES_MAX => {
                "is no longer too long: take it off the list in crates/xtask/src/tidy/sources.rs".to_owned()
            }
            _ if lines < *listed => {
                format!("is down to {lines} lines: say so in crates/xtask/src/tidy/sources.rs")
            }
            _ => continue,
        };
        findings.push(Finding::new(*path, 0, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::file;

    fn found(path: &str, text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        check(&file(path, text), &mut findings);
        findings.into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn a_module_without_a_head_is_caught() {
        assert_eq!(found("crates/x/src/a.rs", "//! Owns a.\n"), [""; 0]);
        assert_eq!(found("crates/x/src/a.rs", "\n//! Owns a.\n"), [""; 0]);
        for text in ["fn a() {}\n", "// Owns a.\n", "", "//!\n", "/// Owns a.\n"] {
            assert_eq!(found("crates/x/src/a.rs", text).len(), 1, "{text}");
        }
        assert_eq!(found("web/a.js", "let a;\n"), [""; 0]);
    }

    #[test]
    fn names_that_say_nothing_are_caught() {
        for path in
            ["crates/x/src/utils.rs", "web/helpers.js", "crates/x/src/common/a.rs", "crates/x/src/types.rs"]
        {
            assert_eq!(found(path, "//! Owns a.\n").len(), 1, "{path}");
        }
        assert_eq!(found("crates/x/src/typeset.rs", "//! Owns a.\n"), [""; 0]);
    }

    #[test]
    fn leftovers_are_caught_in_code_but_may_be_spoken_of() {
        for left in LEFT_IN_CODE {
            let text = format!("//! Owns a.\nfn a() {{ {left}\n");
            assert_eq!(found("crates/x/src/a.rs", &text).len(), 1, "{left}");
            assert_eq!(
                found("crates/x/src/a.rs", &format!("//! Has no {left} inside.\n")),
                [""; 0],
                "{left}"
            );
        }
        for left in LEFT_IN_WORDS {
            assert_eq!(found("web/a.js", &format!("// {left}: later\n")).len(), 1, "{left}");
        }
        assert_eq!(found("tests/run.sh", &format!("mktemp {}XX\n", LEFT_IN_WORDS[1])), [""; 0]);
    }

    #[test]
    fn a_second_test_binary_is_caught() {
        assert_eq!(found("crates/x/tests/it/main.rs", "//! All.\n"), [""; 0]);
        assert_eq!(found("crates/x/tests/chat.rs", "//! Chat.\n").len(), 1);
    }

    #[test]
    fn the_list_of_longer_files_only_shrinks() {
        let check = |longer: &[(&str, usize)], lines: usize| {
            let mut findings = Vec::new();
            check_lengths_with(longer, &[file("crates/x/src/a.rs", &"\n".repeat(lines))], &mut findings);
            findings.into_iter().map(|finding| finding.text).collect::<Vec<_>>()
        };
        assert_eq!(check(&[], LINES_MAX), [""; 0]);
        assert!(check(&[], LINES_MAX + 1)[0].contains("701 lines"));
        let listed = [("crates/x/src/a.rs", 900)];
        assert_eq!(check(&listed, 900), [""; 0]);
        assert!(check(&listed, 901)[0].contains("901 lines"));
        assert!(check(&listed, 899)[0].contains("down to 899"));
        assert!(check(&listed, LINES_MAX)[0].contains("off the list"));
    }
}
