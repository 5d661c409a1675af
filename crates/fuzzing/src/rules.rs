//! Any bytes as a list of operations on the rules: what clients would see is what a model of the rules says.

use simulator::rules::{ops_from_bytes, run, shrink};

/// See the module.
pub fn rules(data: &[u8]) {
    let ops = ops_from_bytes(data);
    if let Err(what) = run(&ops) {
        panic!("{what}; enough for it is {:#?}", shrink(&ops));
    }
}
