//! The table of guards: which text is taken away where, and which tests must notice.
//!
//! ```text
//! guard exact-origin                 a name; the entry goes on until the next one
//! for 1                              rows of the list of attacks, or invariants
//! file crates/shard/src/inbound.rs   may come several times, each with its own text
//! - allowed == origin                the text, line by line; it must stand there exactly once
//! + true                             what it becomes
//! test shard::upgrades::by_default   may come several times; each must fail
//! loom fabric::model::a_sleeper      the same, under loom
//! ```
//! `#` begins a remark.

use std::fmt;

use crate::named_test::NamedTest;
use crate::repository::{Finding, TextFile};

/// Something in the code that a test must miss.
#[derive(Debug)]
pub struct Guard {
    /// Its name.
    pub name: String,
    /// Rows of the list of attacks, or invariants.
    pub rows: Vec<String>,
    /// What becomes of the code without it.
    pub edits: Vec<Edit>,
    /// The tests that must fail.
    pub tests: Vec<Watch>,
    path: String,
    line: usize,
}

/// One text that is replaced.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// In this file.
    pub path: String,
    /// The text.
    pub find: String,
    /// What it becomes.
    pub replace: String,
}

/// A test that watches over a guard.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watch {
    /// Its name, as `NamedTest` finds it.
    pub name: String,
    /// Under loom.
    pub loom: bool,
}

/// Reads one file of the table.
pub fn read(file: &TextFile, findings: &mut Vec<Finding>) -> Vec<Guard> {
    let mut guards: Vec<Guard> = Vec::new();
    // Whether the last line belonged to the text that is replaced, or to its replacement.
    let mut in_text = ' ';
    for (index, line) in file.text.lines().enumerate() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let before = std::mem::replace(&mut in_text, ' ');
        if word.is_empty() || word.starts_with('#') {
            continue;
        }
        if word == "guard" {
            let (name, path) = (rest.to_owned(), file.path.clone());
            guards.push(Guard {
                name,
                rows: Vec::new(),
                edits: Vec::new(),
                tests: Vec::new(),
                path,
                line: index + 1,
            });
            continue;
        }
        let known = guards.last_mut().is_some_and(|guard| {
            match word {
                "for" => guard.rows = rest.split(' ').map(str::to_owned).collect(),
                "file" => guard.edits.push(Edit { path: rest.to_owned(), ..Edit::default() }),
                "test" | "loom" => guard.tests.push(Watch { name: rest.to_owned(), loom: word == "loom" }),
                "-" | "+" => {
                    let Some(edit) = guard.edits.last_mut() else { return false };
                    let text = if word == "-" { &mut edit.find } else { &mut edit.replace };
                    if before == line.as_bytes()[0].into() {
                        text.push('\n');
                    }
                    text.push_str(rest);
                    in_text = line.as_bytes()[0].into();
                }
                _ => return false,
            }
            true
        });
        if !known {
            let text =
                format!("`{word}` is not understood here; crates/xtask/src/guards/table.rs shows the form");
            findings.push(Finding::new(&file.path, index + 1, text));
        }
    }
    guards
}

impl Guard {
    /// Something wrong with this entry.
    pub fn finding(&self, what: impl fmt::Display) -> Finding {
        Finding::new(&self.path, self.line, format!("the guard `{}` {what}", self.name))
    }

    /// Whether its texts stand where it says, exactly once, and its tests exist.
    pub fn check(&self, files: &[TextFile], findings: &mut Vec<Finding>) {
        if self.rows.is_empty() || self.edits.is_empty() || self.tests.is_empty() {
            findings.push(self.finding("needs the lines `for`, `file` and `test` or `loom`"));
        }
        for edit in &self.edits {
            let Some(file) = files.iter().find(|file| file.path == edit.path) else {
                findings.push(self.finding(format_args!("is in {}, which does not exist", edit.path)));
                continue;
            };
            if edit.find.is_empty() || edit.find == edit.replace {
                findings.push(self.finding("replaces nothing, or a text by itself"));
                continue;
            }
            let times = file.text.matches(&edit.find).count();
            if times != 1 {
                let what = format!("has a text that stands {times} times in {}, and must once", edit.path);
                findings.push(self.finding(what));
            }
        }
        for watch in &self.tests {
            if let Err(why) = NamedTest::find(&watch.name, files) {
                findings.push(self.finding(format_args!("has a test that is not there: {why}")));
            }
        }
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (for {})", self.name, self.rows.join(", "))?;
        for edit in &self.edits {
            write!(f, "\n    {}", edit.path)?;
        }
        for watch in &self.tests {
            write!(f, "\n    {}{}", watch.name, if watch.loom { " (loom)" } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_keep_their_lines_and_their_indentation() {
        let text = "guard two-lines\nfor D7 10\nfile a.rs\n- if a {\n-     b();\n- }\n+ b();\n\
                    file b.rs\n- c\n+\ntest shard::x::y\nloom fabric::model::z\n";
        let file = TextFile { path: "t.txt".to_owned(), text: text.to_owned() };
        let mut findings = Vec::new();
        let guards = read(&file, &mut findings);
        assert_eq!(findings, []);
        let [guard] = guards.as_slice() else { panic!("{guards:?}") };
        assert_eq!(
            (guard.name.as_str(), guard.rows.as_slice()),
            ("two-lines", ["D7", "10"].map(str::to_owned).as_slice())
        );
        let edit = |path: &str, find: &str, replace: &str| Edit {
            path: path.to_owned(),
            find: find.to_owned(),
            replace: replace.to_owned(),
        };
        assert_eq!(guard.edits, [edit("a.rs", "if a {\n    b();\n}", "b();"), edit("b.rs", "c", "")]);
        let watch = |name: &str, loom| Watch { name: name.to_owned(), loom };
        assert_eq!(guard.tests, [watch("shard::x::y", false), watch("fabric::model::z", true)]);
    }
}
