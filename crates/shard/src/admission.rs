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

/// The rate at which one connection may send commands: the same algorithm, kept in four bytes of each connection as the moment up to
/// which its commands are used up. A unit of that moment is as small a part of a millisecond as the burst leaves room for.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    units_per_milli: u32,
    /// Units that one command takes to come back.
    interval: u32,
    /// Units that may be used ahead.
    ahead_max: u32,
}

/// Why a command does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooFast {
    /// When the next one fits.
    pub wait: Span,
    /// More than a whole burst was sent after being told so.
    pub far: bool,
}

impl Pace {
    /// The finest unit, in which a million commands a second are paced within a few percent. Its moments come round after four minutes.
    const UNITS_PER_MILLI_MAX: u32 = 16_384;
    /// What lies at most three times this far ahead is told from what lies behind, since a sweep leaves nothing far behind.
    const AHEAD_MAX: u32 = u32::MAX / 8;

    /// So many a second on average, so many at once. Never more than that.
    pub fn new(per_second: u32, burst: u32) -> Self {
        let mut units_per_milli = Pace::UNITS_PER_MILLI_MAX;
        loop {
            let interval = (1_000 * units_per_milli).div_ceil(per_second.max(1));
            let ahead_max = u64::from(interval) * u64::from(burst.max(1));
            if ahead_max <= u64::from(Pace::AHEAD_MAX) || units_per_milli == 1 {
                let ahead_max = ahead_max.min(u64::from(Pace::AHEAD_MAX)) as u32;
                return Pace { units_per_milli, interval, ahead_max };
            }
            units_per_milli /= 2;
        }
    }

    /// What a connection begins with: nothing is used up.
    pub fn start(&self, now: Mono) -> u32 {
        self.units(now)
    }

    fn units(&self, now: Mono) -> u32 {
        now.0.wrapping_mul(u64::from(self.units_per_milli)) as u32
    }

    fn ahead(&self, used_until: u32, now: u32) -> u32 {
        match used_until.wrapping_sub(now) {
            ahead if ahead <= 3 * self.ahead_max => ahead,
            _ => 0,
        }
    }

    /// Counts a command, refused or not, that weighs as much as so many.
    pub fn take(&self, used_until: &mut u32, now: Mono, weight: u32) -> Result<(), TooFast> {
        let now = self.units(now);
        let cost = self.interval.saturating_mul(weight).min(self.ahead_max);
        let ahead = (self.ahead(*used_until, now) + cost).min(3 * self.ahead_max);
        *used_until = now.wrapping_add(ahead);
        if ahead <= self.ahead_max {
            return Ok(());
        }
        // The next one has to fit as well.
        let wait = (ahead + cost - self.ahead_max).div_ceil(self.units_per_milli);
        Err(TooFast { wait: Span(u64::from(wait)), far: ahead > 2 * self.ahead_max })
    }

    /// Nothing is used up any more: says so with the present moment, before the units of the past come round again.
    pub fn catch_up(&self, used_until: &mut u32, now: Mono) {
        let now = self.units(now);
        if self.ahead(*used_until, now) == 0 {
            *used_until = now;
        }
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
    fn a_pace_is_kept_whatever_it_is() {
        for (per_second, burst) in
            [(1, 1), (1, 100_000), (300, 10), (500, 2_000), (3_000, 7), (64_000, 64), (1_000_000, 2_000)]
        {
            let pace = Pace::new(per_second, burst);
            // Near the end of the four bytes, so that they come round.
            let began = u64::from(u32::MAX / 16_384) - 500;
            let (mut used_until, mut passed) = (pace.start(Mono(began)), 0_u64);
            for milli in 0..10_000 {
                // A refused command counts too, so each is only tried when it fits.
                while passed < u64::from(burst) + u64::from(per_second) * 11 {
                    let before = used_until;
                    if pace.take(&mut used_until, Mono(began + milli), 1).is_err() {
                        used_until = before;
                        break;
                    }
                    passed += 1;
                }
            }
            let allowed = u64::from(burst) + u64::from(per_second) * 9_999 / 1_000;
            assert!(
                passed <= allowed,
                "{per_second} a second, {burst} at once: {passed} passed, {allowed} allowed"
            );
            assert!(
                passed * 100 >= allowed * 95,
                "{per_second} a second, {burst} at once: {passed} of {allowed}"
            );
        }
    }

    #[test]
    fn who_goes_on_far_too_fast_is_told_apart() {
        let pace = Pace::new(10, 3);
        let mut used_until = pace.start(Mono(0));
        let outcomes: Vec<_> = (0..7).map(|_| pace.take(&mut used_until, Mono(0), 1)).collect();
        let refused = |wait, far| Err(TooFast { wait: Span(wait), far });
        let expected = [
            Ok(()),
            Ok(()),
            Ok(()),
            refused(200, false),
            refused(300, false),
            refused(400, false),
            refused(500, true),
        ];
        assert_eq!(outcomes, expected);
    }

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
