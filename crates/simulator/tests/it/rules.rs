//! The rules do what the model of them does, whatever list of operations they are given.

use simulator::rules::{Op, ops_from_seed, run, shrink};

/// Lists that are tried.
const LISTS: u64 = 400;
/// Operations in one.
const OPS: usize = 400;

fn check(seed: u64) {
    let ops = ops_from_seed(seed, OPS);
    if let Err(what) = run(&ops) {
        let short = shrink(&ops);
        let why = run(&short).expect_err("it still fails");
        panic!(
            "THRONG_SEED={seed}: {what}\n{} of {OPS} operations are enough: {why}\n{short:#?}",
            short.len()
        );
    }
}

#[test]
fn any_list_of_operations_does_what_the_model_says() {
    match std::env::var("THRONG_SEED").ok().and_then(|text| text.parse().ok()) {
        Some(seed) => check(seed),
        None => (1..=LISTS).for_each(check),
    }
}

#[test]
fn a_list_is_made_of_any_bytes_and_of_all_operations() {
    let ops = ops_from_seed(1, 20_000);
    let names = |op: &Op| format!("{op:?}").split([' ', '{']).next().unwrap_or_default().to_owned();
    let kinds: std::collections::BTreeSet<String> = ops.iter().map(names).collect();
    assert_eq!(kinds.len(), 19, "{kinds:?}");
    assert_eq!(ops_from_seed(1, 20_000), ops);
}
