//! Who is let in: a token bucket for upgrades, and caps on connections that have not said who they are.

use std::net::IpAddr;

use hashbrown::HashMap;
use model::{HashKey, Mono, Span};

/// A token bucket, kept as the moment up to which its tokens are used (the generic cell rate algorithm, ITU-T I.371).
#[derive(Debug, Clone, Copy)]
pub struct Bucket {
    /// Microseconds of monotonic time.
    used_until: u64,
    /// Microseconds that one token takes to come back.
    interval: u64,
    /// Microseconds that may be used ahead.
    burst: u64,
}

impl Bucket {
    pub fn new(per_second: u32, burst: u32) -> Self {
        let interval = 1_000_000 / u64::from(per_second.max(1));
        Bucket { used_until: 0, interval, burst: interval * u64::from(burst.max(1)) }
    }

    /// Takes a token, or says how long there will be none.
    pub fn take(&mut self, now: Mono) -> Result<(), Span> {
        let now = now.0 * 1_000;
        let used_until = self.used_until.max(now) + self.interval;
        if used_until > now + self.burst {
            return Err(Span((used_until - now - self.burst).div_ceil(1_000)));
        }
        self.used_until = used_until;
        Ok(())
    }
}

/// Connections that have not said who they are, in all and by address.
pub struct Unauthenticated {
    all: usize,
    all_max: usize,
    by_address: HashMap<IpAddr, u32, HashKey>,
    per_address_max: usize,
}

impl Unauthenticated {
    pub fn new(hash_key: HashKey, all_max: usize, per_address_max: usize) -> Self {
        Unauthenticated { all: 0, all_max, by_address: HashMap::with_hasher(hash_key), per_address_max }
    }

    pub fn count(&self) -> usize {
        self.all
    }

    /// Whether one more fits; it is counted even if not, until [`Unauthenticated::leave`].
    pub fn enter(&mut self, address: IpAddr) -> bool {
        let count = self.by_address.entry(address).or_insert(0);
        *count += 1;
        self.all += 1;
        self.all <= self.all_max && *count as usize <= self.per_address_max
    }

    pub fn leave(&mut self, address: IpAddr) {
        self.all -= 1;
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
                if self.by_address.is_empty() {
                    self.by_address.shrink_to(64);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let mut bucket = Bucket::new(10, 3);
        let taken = |bucket: &mut Bucket, at| (0..10).take_while(|_| bucket.take(Mono(at)).is_ok()).count();
        assert_eq!(taken(&mut bucket, 0), 3);
        assert_eq!(bucket.take(Mono(0)), Err(Span(100)));
        assert_eq!(taken(&mut bucket, 99), 0);
        assert_eq!(taken(&mut bucket, 100), 1);
        assert_eq!(taken(&mut bucket, 1_000_000), 3);
    }
}
