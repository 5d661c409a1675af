//! The target `rules`; what it does is in crate `fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::rules(data));
