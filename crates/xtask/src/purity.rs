//! What code of the pure rooms may not mention: clocks, threads, sockets, files, locks, chance.
//!
//! Owns the list and its reasons. Which rooms are pure is decided in `layers`.

use crate::code;
use crate::repository::{Finding, TextFile};

/// Names that no path in a pure room may contain, wherever they were imported from.
const NAMES: &[(&str, &str)] = &[
    ("Instant", "time comes in as an argument"),
    ("SystemTime", "time comes in as an argument"),
    ("UNIX_EPOCH", "time comes in as an argument"),
    ("RandomState", "randomness comes in as an argument, or no run can be repeated from its seed"),
    ("thread_local", "state belongs to one writer that is handed it"),
];

/// Names of locks. `fabric` carries mail between threads and is the one pure room that may know them.
const LOCKS: &[(&str, &str)] = &[
    ("Mutex", "pure rooms have one writer and need no lock"),
    ("RwLock", "pure rooms have one writer and need no lock"),
    ("Condvar", "pure rooms never wait"),
];

/// Parts of the standard library that reach outside.
const MODULES: &[(&str, &str)] = &[
    ("thread", "threads belong to `node`"),
    ("net", "sockets belong to `reactor`"),
    ("fs", "files belong to the engines"),
    ("process", "processes belong to the binary"),
    ("env", "the environment belongs to the binary"),
    ("os", "system calls belong to layer 5"),
];

/// What `std::net` has that is only a value.
const ADDRESSES: &[&str] = &["IpAddr", "Ipv4Addr", "Ipv6Addr", "SocketAddr", "SocketAddrV4", "SocketAddrV6"];

/// Tables of the standard library whose order changes from run to run unless a hasher is named.
const RANDOM_TABLES: &[&str] = &["HashMap", "HashSet"];

/// The sources of a pure crate, looked through; tests and comments may say anything.
pub fn check(files: &[&TextFile], locks_allowed: bool) -> Vec<Finding> {
    let parsed: Vec<(&TextFile, code::Code)> =
        files.iter().map(|file| (*file, code::without_tests(&file.text))).collect();
    let test_files: Vec<String> = parsed
        .iter()
        .flat_map(|(file, code)| code.test_modules.iter().map(|module| module_path(&file.path, module)))
        .collect();
    let mut findings = Vec::new();
    for (file, code) in &parsed {
        let only_tests = test_files.iter().any(|module| {
            file.path == format!("{module}.rs") || file.path.starts_with(&format!("{module}/"))
        });
        if only_tests {
            continue;
        }
        for mention in code::mentions(&code.text) {
            if let Some(reason) = objection(&mention.parts, locks_allowed) {
                let text = format!("mentions `{}`: {reason}", mention.parts.join("::"));
                findings.push(Finding::new(&file.path, mention.line, text));
            }
        }
    }
    findings
}

/// Where `mod name;` in a file looks for its own file, without the ending.
fn module_path(declared_in: &str, name: &str) -> String {
    let (folder, file) = declared_in.rsplit_once('/').unwrap_or(("", declared_in));
    match file {
        "lib.rs" | "main.rs" | "mod.rs" => format!("{folder}/{name}"),
        _ => format!("{}/{name}", declared_in.trim_end_matches(".rs")),
    }
}

fn objection(parts: &[String], locks_allowed: bool) -> Option<&'static str> {
    let reason_in = |list: &[(&str, &'static str)], part: &str| {
        list.iter().find(|(name, _)| *name == part).map(|(_, reason)| *reason)
    };
    for part in parts {
        if let Some(reason) = reason_in(NAMES, part) {
            return Some(reason);
        }
        if !locks_allowed && let Some(reason) = reason_in(LOCKS, part) {
            return Some(reason);
        }
    }
    if parts.first().is_none_or(|first| first != "std") {
        return None;
    }
    if parts.len() > 2 && parts[1] == "collections" && RANDOM_TABLES.contains(&parts[2].as_str()) {
        return Some("its order is random; use hashbrown with a keyed hash, or a BTreeMap");
    }
    if parts.len() > 2 && parts[1] == "net" && ADDRESSES.contains(&parts[2].as_str()) {
        return None;
    }
    parts.get(1).and_then(|module| reason_in(MODULES, module))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    fn lines(source: &str, locks_allowed: bool) -> Vec<usize> {
        let file = file("crates/sample/src/lib.rs", source);
        check(&[&file], locks_allowed).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn each_way_out_of_a_pure_room_is_caught() {
        for source in [
            "use std::time::Instant;",
            "use std::{collections::BTreeMap, time::{Duration, SystemTime}};",
            "fn f() { std::thread::sleep(x) }",
            "use std::net::TcpStream;",
            "use std::net;",
            "use std::net::{IpAddr, TcpListener};",
            "use std::fs;",
            "use std::sync::{Arc, Mutex};",
            "struct S(RwLock<u8>);",
            "use std::collections::HashMap;",
            "use std::collections::{BTreeSet, HashSet};",
            "use std::env;",
        ] {
            assert_eq!(lines(source, false), [1], "{source}");
        }
    }

    #[test]
    fn what_is_pure_passes() {
        for source in [
            "//! Knows no Instant and no Mutex.\nuse std::sync::Arc;\nuse std::time::Duration;",
            "/* std::fs */ const A: &str = \"std::thread\";",
            "use std::net::{IpAddr, SocketAddr};\nuse std::collections::BTreeMap;",
            "use hashbrown::HashMap;",
            "fn thread(net: u8, fs: u8) {}",
            "#[cfg(test)]\nmod tests {\n use std::time::Instant;\n}",
            "#[cfg(feature = \"faults\")]\nmod armed {\n use std::time::Instant;\n}",
        ] {
            assert_eq!(lines(source, false), [0usize; 0], "{source}");
        }
    }

    #[test]
    fn the_mail_between_cores_may_know_locks_but_no_clock() {
        assert_eq!(lines("use std::sync::Mutex;", true), [0usize; 0]);
        assert_eq!(lines("use std::time::Instant;", true), [1]);
    }

    #[test]
    fn a_test_module_in_its_own_file_is_test_code() {
        let lib = file("crates/sample/src/lib.rs", "mod chat;\n#[cfg(test)]\nmod script;");
        let chat = file("crates/sample/src/chat.rs", "#[cfg(test)]\nmod tests;");
        let script = file("crates/sample/src/script.rs", "use std::fs;");
        let tests = file("crates/sample/src/chat/tests.rs", "use std::fs;");
        assert_eq!(check(&[&lib, &chat, &script, &tests], false), []);
        let plain = file("crates/sample/src/plain.rs", "use std::fs;");
        assert_eq!(check(&[&lib, &plain], false).len(), 1);
    }
}
