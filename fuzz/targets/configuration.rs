//! The target `configuration`; what it does is in crate `fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::configuration(data));
