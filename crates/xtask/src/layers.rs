//! Which room may use which.
//!
//! Owns the table of rooms: their layers, and what each must never know. An edge goes to a smaller layer only, in
//! tests too; what lies below layer 5 is pure.

use std::process::ExitCode;

use crate::manifest::{self, Dependency, Kind};
use crate::options::Options;
use crate::repository::{Finding, Repository, TextFile};
use crate::{purity, verdict};

const HELP: &str = "\
Check which crate may use which.

Usage: cargo xtask layers

Every crate has a layer (the table is in crates/xtask/src/layers.rs). A crate may use only crates of smaller layers,
in its tests too. Below layer 5 nothing may depend on a runtime, on system calls or on a random source, directly or
through others, and no code may mention clocks, threads, sockets, files or locks; comments and tests may.
";

/// The first layer that may touch the outside.
const FIRST_IMPURE: u8 = 5;

/// One crate of the workspace.
struct Room {
    name: &'static str,
    layer: u8,
    /// Never used, whatever its layer.
    never: &'static [&'static str],
    /// When set, nothing else of the workspace is used.
    only: Option<&'static [&'static str]>,
}

const fn room(name: &'static str, layer: u8) -> Room {
    Room { name, layer, never: &[], only: None }
}

const fn blind(name: &'static str, layer: u8, never: &'static [&'static str]) -> Room {
    Room { name, layer, never, only: None }
}

const fn confined(name: &'static str, layer: u8, only: &'static [&'static str]) -> Room {
    Room { name, layer, never: &[], only: Some(only) }
}

/// The rooms, as in the design. A crate that is not here is refused: decide its layer first.
const ROOMS: &[Room] = &[
    room("model", 1),
    room("websocket", 2),
    room("protocol", 2),
    room("auth", 2),
    room("store", 2),
    // The rules speak the vocabulary of `store` and of nothing else outside.
    blind("domain", 3, &["protocol", "websocket", "auth"]),
    confined("fabric", 3, &[]),
    // Whoever drives a load derives the same accounts from it, and must not learn more than that.
    confined("seeding", 3, &["model", "store"]),
    room("shard", 4),
    blind("reactor", 5, &["protocol", "domain", "store", "auth", "shard"]),
    blind("store-sqlite", 5, &["domain", "protocol", "websocket", "auth", "shard"]),
    // A tool that drives the pure rooms by function calls.
    room("simulator", 5),
    room("node", 6),
    blind("api", 7, &["store-sqlite"]),
    // These measure the server from outside and must not know its insides.
    confined("load", 7, &["model", "websocket", "protocol", "auth", "reactor"]),
    // It breaks the real binary from outside.
    confined("torture", 8, &["model", "websocket", "protocol", "auth", "reactor", "load"]),
    confined("audit", 7, &["model"]),
    // What an operator writes; what the options do is the business of others.
    confined("configuration", 7, &["model", "auth"]),
    room("throng", 9),
    // A tool: what the fuzz targets do with their bytes.
    room("fuzzing", 8),
    // Compiled before everything else.
    confined("xtask", 0, &[]),
];

/// Packages that bring a runtime, system calls, a clock, threads or chance; a trailing `-` or `_` stands for a family.
const IMPURE_PACKAGES: &[&str] = &[
    "tokio",
    "tokio-",
    "async-",
    "mio",
    "polling",
    "socket2",
    "libc",
    "nix",
    "rustix",
    "linux-raw-sys",
    "io-uring",
    "rand",
    "rand_",
    "getrandom",
    "fastrand",
    "ahash",
    "chrono",
    "time",
    "jiff",
    "parking_lot",
    "parking_lot_",
    "crossbeam",
    "crossbeam-",
    "rayon",
    "rayon-",
    "tempfile",
    "hyper",
    "axum",
    "rusqlite",
];

/// What a pure room reaches all the same, with the reason. The list may only shrink.
const TOLERATED: &[(&str, &str)] = &[
    // The cryptographic library asks the system for entropy when it makes keys, which checking a token does not.
    ("auth", "aws-lc-rs"),
];

/// A crate as its manifest and sources describe it.
struct Crate {
    name: String,
    manifest: String,
    dependencies: Vec<Dependency>,
}

/// `cargo xtask layers`
pub fn main(repository: &Repository, arguments: Vec<String>) -> Result<ExitCode, String> {
    let mut options = Options::new(arguments);
    if options.help() {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    }
    options.finish()?;
    Ok(verdict("layers", &check(repository)?))
}

/// Everything this check finds.
pub fn check(repository: &Repository) -> Result<Vec<Finding>, String> {
    let files = repository.text_files()?;
    let crates = crates(&files);
    if crates.is_empty() {
        return Err("found no crates/*/Cargo.toml".to_owned());
    }
    let mut findings: Vec<Finding> = crates.iter().flat_map(check_edges).collect();
    for name in pure_rooms(&crates) {
        let start = format!("crates/{name}/src/");
        let sources: Vec<&TextFile> =
            files.iter().filter(|file| file.path.starts_with(&start) && file.path.ends_with(".rs")).collect();
        findings.extend(purity::check(&sources, name == "fabric"));
        findings.extend(check_reach(name, &dependency_tree(repository, name)?));
    }
    Ok(findings)
}

fn crates(files: &[TextFile]) -> Vec<Crate> {
    files
        .iter()
        .filter_map(|file| {
            let name = file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
            Some(Crate {
                name: name.to_owned(),
                manifest: file.path.clone(),
                dependencies: manifest::dependencies(&file.text),
            })
        })
        .collect()
}

fn find_room(name: &str) -> Option<&'static Room> {
    ROOMS.iter().find(|room| room.name == name)
}

fn is_pure(room: &Room) -> bool {
    room.layer > 0 && room.layer < FIRST_IMPURE
}

fn pure_rooms(crates: &[Crate]) -> impl Iterator<Item = &'static str> {
    crates
        .iter()
        .filter_map(|found| find_room(&found.name))
        .filter(|room| is_pure(room))
        .map(|room| room.name)
}

fn check_edges(from: &Crate) -> Vec<Finding> {
    let Some(room) = find_room(&from.name) else {
        let text = "has no layer: decide one, and add it to the table in crates/xtask/src/layers.rs";
        return vec![Finding::new(&from.manifest, 0, text)];
    };
    let objection = |dependency: &Dependency| match find_room(&dependency.package) {
        Some(to) => objection_to_room(room, to),
        // Tests of pure rooms may use what they like from outside the workspace.
        None if is_pure(room) && dependency.kind != Kind::Dev && is_impure(&dependency.package) => {
            let (name, layer) = (room.name, room.layer);
            Some(format!("`{name}` (layer {layer}) is pure and may not depend on `{}`", dependency.package))
        }
        None => None,
    };
    from.dependencies
        .iter()
        .filter_map(|dependency| Some(Finding::new(&from.manifest, dependency.line, objection(dependency)?)))
        .collect()
}

fn objection_to_room(from: &Room, to: &Room) -> Option<String> {
    if from.only.is_some_and(|only| !only.contains(&to.name)) || from.never.contains(&to.name) {
        return Some(format!("`{}` must never know `{}`", from.name, to.name));
    }
    (to.layer >= from.layer).then(|| {
        format!(
            "`{}` (layer {}) may not use `{}` (layer {}): an edge goes to a smaller layer only",
            from.name, from.layer, to.name, to.layer
        )
    })
}

fn is_impure(package: &str) -> bool {
    IMPURE_PACKAGES.iter().any(|listed| match listed.ends_with(['-', '_']) {
        true => package.starts_with(listed),
        false => package == *listed,
    })
}

/// What a crate's own code is linked with, one line each, its depth in front.
fn dependency_tree(repository: &Repository, name: &str) -> Result<String, String> {
    let output = repository
        .cargo()
        .args(["tree", "--edges", "normal", "--prefix", "depth", "--no-dedupe", "--package", name])
        .output()
        .map_err(|error| format!("cannot run cargo tree: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("cargo tree failed:\n{}", String::from_utf8_lossy(&output.stderr).trim_end())),
    }
}

/// Impure packages that a room reaches through others; those it names itself are found in its manifest.
fn check_reach(name: &str, tree: &str) -> Vec<Finding> {
    let mut way: Vec<&str> = Vec::new();
    let mut findings: Vec<Finding> = Vec::new();
    for line in tree.lines() {
        let digits = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len());
        let Ok(depth) = line[..digits].parse::<usize>() else { continue };
        let package = line[digits..].split_whitespace().next().unwrap_or("");
        // Macros run in the compiler, not in the room.
        let package = if line.contains("(proc-macro)") { "" } else { package };
        way.truncate(depth);
        way.push(package);
        let tolerated = way.iter().any(|step| {
            step.is_empty() || TOLERATED.iter().any(|(room, through)| *room == way[0] && through == step)
        });
        // What another room of the workspace reaches is reported there.
        let another_room = way[1..].iter().any(|step| find_room(step).is_some());
        if depth >= 2 && is_impure(package) && !tolerated && !another_room {
            let text = format!("is pure, and reaches `{package}` through {}", way[1..depth].join(" → "));
            findings.push(Finding::new(format!("crates/{name}/Cargo.toml"), 0, text));
        }
    }
    findings.dedup();
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(name: &str, manifest: &str) -> Vec<String> {
        let path = format!("crates/{name}/Cargo.toml");
        let file = TextFile { path, text: manifest.to_owned() };
        crates(&[file]).iter().flat_map(check_edges).map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn an_edge_to_a_smaller_layer_holds() {
        assert_eq!(
            edges("shard", "[dependencies]\nmodel.workspace = true\ndomain.workspace = true\n"),
            [""; 0]
        );
        assert_eq!(edges("throng", "[dependencies]\nnode.workspace = true\ntokio = \"1\"\n"), [""; 0]);
    }

    #[test]
    fn an_edge_to_the_same_or_a_greater_layer_is_caught_in_every_table() {
        for table in
            ["dependencies", "build-dependencies", "dev-dependencies", "target.'cfg(unix)'.dependencies"]
        {
            let found = edges("store", &format!("[{table}]\nprotocol.workspace = true\n"));
            assert_eq!(
                found,
                [
                    "crates/store/Cargo.toml:2: `store` (layer 2) may not use `protocol` (layer 2): an edge goes to \
                  a smaller layer only"
                ]
            );
        }
        assert_eq!(edges("model", "[dependencies]\nnode.workspace = true\n").len(), 1);
    }

    #[test]
    fn what_a_room_must_never_know_is_caught() {
        assert!(
            edges("reactor", "[dependencies]\nprotocol.workspace = true\n")[0].contains("must never know")
        );
        assert!(edges("load", "[dependencies]\nshard.workspace = true\n")[0].contains("must never know"));
        assert_eq!(
            edges("load", "[dependencies]\nreactor.workspace = true\nauth.workspace = true\n"),
            [""; 0]
        );
        assert!(edges("xtask", "[dependencies]\nmodel.workspace = true\n")[0].contains("must never know"));
    }

    #[test]
    fn a_crate_without_a_layer_is_caught() {
        assert!(edges("newcomer", "[dependencies]\n")[0].contains("has no layer"));
    }

    #[test]
    fn impure_packages_are_caught_in_pure_rooms_but_not_in_their_tests() {
        for package in ["tokio", "libc", "rustix", "rand", "getrandom", "tokio-util", "mio"] {
            let found = edges("fabric", &format!("[dependencies]\n{package} = \"1\"\n"));
            assert_eq!(found.len(), 1, "{package}");
        }
        assert_eq!(edges("fabric", "[dev-dependencies]\ntempfile = \"3\"\n"), [""; 0]);
        assert_eq!(edges("fabric", "[dependencies]\nhashbrown = \"0.17\"\ntimeless = \"1\"\n"), [""; 0]);
        assert_eq!(edges("reactor", "[dependencies]\nrustix = \"1\"\n"), [""; 0]);
    }

    #[test]
    fn what_is_reached_through_others_is_caught() {
        let tree = "0protocol v0.1.0 (/x)\n1model v0.1.0\n2siphasher v1.0.1\n1uuid v1.2.0\n2getrandom v0.4.0\n\
                    3libc v0.2.0\n1serde v1.0.0\n2serde_derive v1.0.0 (proc-macro)\n3rand v0.9.0\n";
        let found: Vec<String> =
            check_reach("protocol", tree).into_iter().map(|finding| finding.to_string()).collect();
        assert_eq!(
            found,
            [
                "crates/protocol/Cargo.toml: is pure, and reaches `getrandom` through uuid",
                "crates/protocol/Cargo.toml: is pure, and reaches `libc` through uuid → getrandom",
            ]
        );
    }

    #[test]
    fn what_is_tolerated_is_tolerated_in_one_room_only() {
        let tree = |name| format!("0{name} v0.1.0\n1aws-lc-rs v1.0.0\n2getrandom v0.2.0\n");
        assert_eq!(check_reach("auth", &tree("auth")), []);
        assert_eq!(check_reach("domain", &tree("domain")).len(), 1);
    }
}
