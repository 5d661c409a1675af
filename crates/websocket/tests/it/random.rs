//! Random numbers that can be had again: the seed is printed, and THRONG_SEED replays it.

use std::time::{SystemTime, UNIX_EPOCH};

/// SplitMix64 (Steele, Lea and Flood, 2014).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// Runs `case` with many seeds; a failure names the one it happened with. THRONG_SEED runs that one alone.
pub fn for_seeds(count: u64, case: impl Fn(&mut Random) + std::panic::RefUnwindSafe) {
    if let Ok(seed) = std::env::var("THRONG_SEED") {
        let seed = seed.parse().expect("THRONG_SEED is a number");
        return case(&mut Random::new(seed));
    }
    let first = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    for seed in (0..count).map(|index| first.wrapping_add(index)) {
        if let Err(panic) = std::panic::catch_unwind(|| case(&mut Random::new(seed))) {
            eprintln!("failed with THRONG_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
