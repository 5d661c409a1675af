//! Every seed of every fuzz target, as the fuzzer would run it.

use std::fs;
use std::path::{Path, PathBuf};

use fuzzing::TARGETS;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(name)
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn every_seed_runs_through_its_target() {
    for (name, target) in TARGETS {
        let seeds = folder("seeds").join(name);
        let all = names(&seeds);
        assert!(!all.is_empty(), "{name} has no seeds");
        for seed in all {
            println!("{name}/{seed}");
            target(&fs::read(seeds.join(seed)).expect("a readable seed"));
        }
    }
}

#[test]
fn every_target_is_one_of_the_fuzzer_and_has_seeds() {
    let targets = TARGETS.map(|(name, _)| name.to_owned());
    let programs: Vec<String> =
        names(&folder("targets")).iter().map(|name| name.trim_end_matches(".rs").to_owned()).collect();
    assert_eq!(programs, targets);
    let mut seeds = names(&folder("seeds"));
    seeds.retain(|name| !name.ends_with(".dict"));
    assert_eq!(seeds, targets);
}
