//! Random choices that can be made again: the seed is printed, and `THRONG_SEED` replays it.

use std::hash::{BuildHasher, RandomState};

/// SplitMix64 (Steele, Lea and Flood, 2014).
pub struct Dice(u64);

impl Dice {
    /// The same choices for the same seed and `lane`.
    pub fn new(seed: u64, lane: usize) -> Self {
        Self(seed ^ (lane as u64).wrapping_mul(0xD1B5_4A32_D192_ED03))
    }

    /// One of the numbers below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % end as u64) as usize
    }
}

/// The seed of this run.
pub fn seed() -> u64 {
    let seed = match std::env::var("THRONG_SEED") {
        Ok(text) => text.parse().expect("THRONG_SEED is a number"),
        Err(_) => RandomState::new().hash_one(0),
    };
    println!("THRONG_SEED={seed}");
    seed
}
