//! Chance, all of it from one seed. Owns the generator; deliberately knows nothing of what is drawn with it.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): one word of state, no weak seeds.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        // Neighbouring seeds begin far apart.
        random.0 = random.next() ^ seed.rotate_left(32);
        random
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// A number from `from` to `to`, both included.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below((to - from + 1) as usize) as u64
    }

    /// True so many times in a thousand.
    pub fn permille(&mut self, times: u32) -> bool {
        self.below(1_000) < times as usize
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        if all.is_empty() { None } else { Some(&all[self.below(all.len())]) }
    }

    /// How many of `len` waiting things have arrived by now: often all, often few, sometimes none.
    pub fn arrived(&mut self, len: usize) -> usize {
        match self.below(8) {
            0 | 1 => 0,
            2 => 1.min(len),
            3 | 4 => self.below(len + 1),
            _ => len,
        }
    }

    /// The bytes of an id.
    pub fn bytes16(&mut self) -> [u8; 16] {
        let (high, low) = (self.next(), self.next());
        (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
    }
}
