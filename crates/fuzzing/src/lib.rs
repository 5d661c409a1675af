//! What every fuzz target does with its bytes.
//!
//! Owns the targets' bodies, so that the fuzzer (`fuzz/`, built with coverage) and an ordinary `cargo test`, which runs
//! every seed, do the same. Each takes any bytes and panics when something that must hold does not. Deliberately knows
//! nothing of the fuzzer.

mod command;
mod configuration;
mod frames;
mod rules;
mod token;
mod upgrade_head;

pub use command::{command_cbor, command_json};
pub use configuration::configuration;
pub use frames::frames;
pub use rules::rules;
pub use token::token;
pub use upgrade_head::upgrade_head;

/// A target's name and what it does.
pub type Target = (&'static str, fn(&[u8]));

/// All targets; each has a file in `fuzz/targets` and a folder in `fuzz/seeds`.
pub const TARGETS: [Target; 7] = [
    ("command_cbor", command_cbor),
    ("command_json", command_json),
    ("configuration", configuration),
    ("frames", frames),
    ("rules", rules),
    ("token", token),
    ("upgrade_head", upgrade_head),
];
