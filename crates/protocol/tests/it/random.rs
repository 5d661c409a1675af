//! Seeded random values.

/// SplitMix64 (Steele, Lea and Flood, 2014).
pub struct Random(u64);

impl Random {
    /// From `THRONG_SEED`, or else from the clock. The seed is printed, so that a failure can be replayed.
    pub fn seeded(test: &str) -> Random {
        let seed = match std::env::var("THRONG_SEED") {
            Ok(seed) => seed.parse().expect("THRONG_SEED is a number"),
            Err(_) => std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_nanos() as u64,
        };
        println!("{test}: replay with THRONG_SEED={seed}");
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    pub fn uuid(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.next().to_be_bytes());
        bytes[8..].copy_from_slice(&self.next().to_be_bytes());
        bytes
    }

    /// An integer of the protocol; every length of it is equally likely.
    pub fn integer(&mut self) -> u64 {
        let bits = self.below(54);
        self.next() & ((1 << bits) - 1)
    }

    pub fn bytes(&mut self, len_end: u64) -> Vec<u8> {
        (0..self.below(len_end)).map(|_| self.next() as u8).collect()
    }

    /// Text with everything that needs care: quotes, control characters, other planes.
    pub fn text(&mut self, chars_end: u64) -> String {
        const CHARS: [char; 12] =
            ['a', 'Z', '"', '\\', '/', '\n', '\u{0}', '\u{1f}', 'é', '\u{2028}', '😀', '\u{7f}'];
        (0..self.below(chars_end)).map(|_| CHARS[self.below(12) as usize]).collect()
    }
}
