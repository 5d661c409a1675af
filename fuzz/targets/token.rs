//! The target `token`; what it does is in crate `fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::token(data));
