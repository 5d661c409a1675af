//! Chance that can be had again: a seed, printed, and numbers that follow from it.

use std::time::SystemTime;

/// The generator splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
pub struct Chance(u64);

/// The seed of `THRONG_SEED`, or else one from the clock; says which.
pub fn seed() -> u64 {
    let seed = match std::env::var("THRONG_SEED") {
        Ok(seed) => seed.parse().expect("THRONG_SEED is a number"),
        Err(_) => SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_micros() as u64,
    };
    eprintln!("again with THRONG_SEED={seed}");
    seed
}

impl Chance {
    /// From [`seed`].
    pub fn new() -> Chance {
        Chance::default()
    }

    /// The numbers that follow from a seed.
    pub fn from_seed(seed: u64) -> Chance {
        Chance(seed)
    }

    /// A number from `from` to `to`.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        from + (z ^ z >> 31) % (to - from + 1)
    }
}

impl Default for Chance {
    fn default() -> Chance {
        Chance::from_seed(seed())
    }
}
