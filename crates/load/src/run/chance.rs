//! Chance that can be repeated: splitmix64 (Steele, Lea and Flood, 2014).
//!
//! Owns the generator and nothing of what is drawn with it. It is cheap and no secret depends on it.

/// A generator.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// From a seed.
    pub const fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A number below `end`, which is at least 1. The remainder's bias is below 2⁻³² for what is asked here.
    pub fn below(&mut self, end: u64) -> u64 {
        self.draw() % end.max(1)
    }
}

/// The mixing step alone: a hash of one number.
pub const fn mixed(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_published_generator() {
        // The first outputs for the seed 1234567, from the reference implementation at https://prng.di.unimi.it/splitmix64.c
        let mut chance = Chance::new(1_234_567);
        assert_eq!(chance.draw(), 6_457_827_717_110_365_317);
        assert_eq!(chance.draw(), 3_203_168_211_198_807_973);
    }
}
