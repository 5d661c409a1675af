//! Rules about Markdown: links lead somewhere, paths exist, and the names in backticks are names of the code.

use std::collections::{BTreeMap, BTreeSet};

use crate::code;
use crate::repository::{Finding, TextFile};

/// Folders of the repository; what is in backticks and starts with one of them is a path.
const FOLDERS: &[&str] = &["crates/", "docs/", "tests/", "web/", "bench/", "fuzz/", ".ci/", ".cargo/"];

/// Names of the language and its libraries that documents may mention.
const FOREIGN: &[&str] =
    &["std", "core", "alloc", "tokio", "axum", "serde", "libc", "rustix", "crate", "self", "super"];

/// All Markdown files, with the whole repository to look things up in.
pub fn check(files: &[TextFile], findings: &mut Vec<Finding>) {
    let documents: Vec<&TextFile> = files.iter().filter(|file| file.path.ends_with(".md")).collect();
    let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let names = names_in_code(files);
    let anchors: BTreeMap<&str, BTreeSet<String>> =
        documents.iter().map(|file| (file.path.as_str(), anchors(&file.text))).collect();
    for file in &documents {
        for (line, text) in prose(&file.text) {
            for target in links(text) {
                if let Some(why) = broken_link(&file.path, target, &paths, &anchors) {
                    findings.push(Finding::new(&file.path, line, why));
                }
            }
            for quoted in backticked(text) {
                if let Some(why) = unknown_path(quoted, &paths).or_else(|| unknown_name(quoted, &names)) {
                    findings.push(Finding::new(&file.path, line, why));
                }
            }
        }
    }
}

/// The lines outside of fenced blocks, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((index + 1, line))
    })
}

/// Targets of `[text](target)`.
fn links(line: &str) -> Vec<&str> {
    line.match_indices("](")
        .filter_map(|(at, _)| line[at + 2..].split(')').next())
        .map(|target| target.split_whitespace().next().unwrap_or(""))
        .collect()
}

fn backticked(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The anchors that headings make: lower case, blanks to hyphens, punctuation away.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut all = BTreeSet::new();
    for (_, line) in prose(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let anchor: String = heading
            .trim()
            .to_lowercase()
            .chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                '-' | '_' => Some(c),
                _ => c.is_alphanumeric().then_some(c),
            })
            .collect();
        let count = seen.entry(anchor.clone()).or_default();
        all.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    all
}

fn broken_link(
    from: &str,
    target: &str,
    paths: &BTreeSet<&str>,
    anchors: &BTreeMap<&str, BTreeSet<String>>,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let resolved = if path.is_empty() { from.to_owned() } else { resolve(from, path) };
    if !exists(&resolved, paths) {
        return Some(format!("links to {target}, which does not exist"));
    }
    let known = anchors.get(resolved.as_str());
    let missing = anchor.is_some_and(|anchor| known.is_some_and(|known| !known.contains(anchor)));
    missing.then(|| format!("links to {target}, and no heading makes that anchor"))
}

fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// A file, or a folder that holds one.
fn exists(path: &str, paths: &BTreeSet<&str>) -> bool {
    let folder = format!("{}/", path.trim_end_matches('/'));
    path.is_empty()
        || paths.contains(path)
        || paths.range(folder.as_str()..).next().is_some_and(|next| next.starts_with(&folder))
}

/// `crates/x/src/y.rs`, also with a line; placeholders (capitals, stars, braces) are left alone.
fn unknown_path(quoted: &str, paths: &BTreeSet<&str>) -> Option<String> {
    if !FOLDERS.iter().any(|folder| quoted.starts_with(folder)) {
        return None;
    }
    if quoted.contains(['*', '{', '<', '$', '…', ' ']) || quoted.contains("NAME") {
        return None;
    }
    let path = quoted.split([':', '#']).next().unwrap_or(quoted).trim_end_matches('/');
    (!exists(path, paths)).then(|| format!("mentions `{quoted}`, which does not exist"))
}

/// `Partition::handle`, `limits::FRAGMENTS_MAX`, `handle()`: every part must be a word of the code.
fn unknown_name(quoted: &str, names: &BTreeSet<String>) -> Option<String> {
    let name = quoted.strip_suffix("()").unwrap_or(quoted);
    let is_path = name.contains("::") || quoted.ends_with("()");
    let is_word = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
            && !part.starts_with(|c: char| c.is_ascii_digit())
    };
    let parts: Vec<&str> = name.split("::").collect();
    if !is_path || !parts.iter().all(|part| is_word(part)) || FOREIGN.contains(&parts[0]) {
        return None;
    }
    let unknown = parts.iter().find(|part| !names.contains(**part))?;
    Some(format!("mentions `{quoted}`, and nothing in the code is called `{unknown}`"))
}

/// Every word of the Rust and JavaScript sources, and the names of files and folders (modules).
fn names_in_code(files: &[TextFile]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in files {
        let text = match file.path.rsplit('.').next() {
            Some("rs") => code::without_texts(&file.text),
            Some("js" | "mjs") => file.text.clone(),
            _ => continue,
        };
        names.extend(text.split(|c: char| c != '_' && !c.is_alphanumeric()).map(str::to_owned));
        names.extend(file.path.trim_end_matches(".rs").split('/').map(|part| part.replace('-', "_")));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::file;

    fn found(document: &str) -> Vec<String> {
        let files = [
            file("README.md", document),
            file("docs/operating.md", "# Operating it\n\n## What to do, when?\n"),
            file(
                "crates/node/src/turn.rs",
                "//! The turn.\npub struct Turn; impl Turn { fn handle_mail() {} }\n",
            ),
        ];
        let mut findings = Vec::new();
        check(&files, &mut findings);
        findings.into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn links_that_lead_nowhere_are_caught() {
        assert_eq!(
            found(
                "[a](docs/operating.md) [b](docs) [c](https://example.org/x) [d](./docs/operating.md#what-to-do-when)\n"
            ),
            [""; 0]
        );
        assert_eq!(
            found("x\n\n[a](docs/gone.md)\n"),
            ["README.md:3: links to docs/gone.md, which does not exist"]
        );
        assert!(found("[a](docs/operating.md#what-else)\n")[0].contains("no heading"));
        assert_eq!(found("# Here\n[a](#here)\n"), [""; 0]);
        assert_eq!(found("# Here\n[a](#there)\n").len(), 1);
    }

    #[test]
    fn what_stands_in_a_fenced_block_is_not_looked_at() {
        assert_eq!(found("```\n[a](docs/gone.md) `crates/gone`\n```\n"), [""; 0]);
    }

    #[test]
    fn paths_that_do_not_exist_are_caught() {
        assert_eq!(
            found("`crates/node/src/turn.rs` `crates/node` `crates/*/src` `bench/results/NAME.jsonl`\n"),
            [""; 0]
        );
        assert_eq!(found("`crates/node/src/gone.rs`\n").len(), 1);
        assert_eq!(found("`crates/node/src/turn.rs:12`\n"), [""; 0]);
    }

    #[test]
    fn names_that_do_not_exist_are_caught() {
        assert_eq!(
            found("`turn::Turn` `Turn::handle_mail` `handle_mail()` `std::fs` `a: b` `GET /x`\n"),
            [""; 0]
        );
        assert_eq!(
            found("`Turn::handle_post`\n"),
            ["README.md:1: mentions `Turn::handle_post`, and nothing in the code is called `handle_post`"]
        );
        assert_eq!(found("`handle_post()`\n").len(), 1);
    }

    #[test]
    fn anchors_are_made_as_readers_expect() {
        let made = anchors("# One: `two` & three\n## One: two & three\n# Same\n# Same\n");
        let expected = ["one-two--three", "one-two--three-1", "same", "same-1"];
        assert_eq!(made, expected.map(str::to_owned).into());
    }
}
