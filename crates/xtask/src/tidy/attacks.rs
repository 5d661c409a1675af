//! The page of attacks: every test it names exists, and every guard stands in the rows it is for.

use std::collections::{BTreeMap, BTreeSet};

use crate::guards;
use crate::named_test::NamedTest;
use crate::repository::{Finding, TextFile};

/// The page. Its tables have the row or invariant in the first column and the names of guards in the last.
const PAGE: &str = "docs/attacks.md";

/// Compares the page with the code and with the table of guards.
pub fn check(files: &[TextFile], findings: &mut Vec<Finding>) {
    let Some(page) = files.iter().find(|file| file.path == PAGE) else { return };
    let mut listed: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (index, line) in page.text.lines().enumerate() {
        for name in quoted(line).filter(|name| name.contains("::")) {
            if let Err(why) = NamedTest::find(name, files) {
                findings.push(Finding::new(PAGE, index + 1, why));
            }
        }
        let Some(cells) = line.strip_prefix('|').and_then(|line| line.trim_end().strip_suffix('|')) else {
            continue;
        };
        let cells: Vec<&str> = cells.split('|').map(str::trim).collect();
        if let [key, .., guards] = cells.as_slice() {
            listed.entry(key).or_default().extend(quoted(guards).map(str::to_owned));
        }
    }
    let mut expected: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, rows) in guards::rows(files) {
        for row in rows {
            expected.entry(row).or_default().insert(name.clone());
        }
    }
    let none = BTreeSet::new();
    let keys: BTreeSet<&str> = listed.keys().copied().chain(expected.keys().map(String::as_str)).collect();
    for key in keys {
        let (on_page, in_table) = (listed.get(key).unwrap_or(&none), expected.get(key).unwrap_or(&none));
        for name in in_table.difference(on_page) {
            findings.push(Finding::new(PAGE, 0, format!("row {key} does not name the guard `{name}`")));
        }
        for name in on_page.difference(in_table) {
            let what =
                format!("row {key} names the guard `{name}`, which crates/xtask/guards has not for it");
            findings.push(Finding::new(PAGE, 0, what));
        }
    }
}

fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::file;

    fn found(page: &str) -> Vec<String> {
        let files = [
            file(PAGE, page),
            file("crates/shard/Cargo.toml", ""),
            file("crates/shard/src/lib.rs", "//! All.\n"),
            file("crates/shard/tests/it/main.rs", "//! All.\n#[test]\nfn it_is_refused() {}\n"),
            file(
                "crates/xtask/guards/a.txt",
                "guard bound\nfor 6 X1\nfile a\n- a\n+ b\ntest shard::it_is_refused\n",
            ),
        ];
        let mut findings = Vec::new();
        check(&files, &mut findings);
        findings.into_iter().map(|finding| finding.to_string()).collect()
    }

    const GOOD: &str = "| row | duty | tests | guards |\n|---|---|---|---|\n\
                        | 6 | bounds | `shard::it_is_refused` | `bound` |\n| X1 | bounds | | `bound` |\n";

    #[test]
    fn a_page_that_names_what_there_is_is_well() {
        assert_eq!(found(GOOD), [""; 0]);
    }

    #[test]
    fn tests_and_guards_that_are_gone_or_unnamed_are_found() {
        assert!(found(&GOOD.replace("it_is_refused", "it_was_refused"))[0].contains("no such test"));
        let unnamed = found(&GOOD.replace("| X1 | bounds | | `bound` |\n", ""));
        assert_eq!(unnamed, ["docs/attacks.md: row X1 does not name the guard `bound`"]);
        assert!(
            found(&GOOD.replacen("`bound`", "`bound` `other`", 1))[0].contains("names the guard `other`")
        );
    }
}
