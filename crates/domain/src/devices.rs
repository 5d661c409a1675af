//! Which devices exist and in how many conversations each is marked pending: at most 16 bytes a device, so that connecting
//! a known device that has nothing pending asks the store nothing.

/// An open-addressing table with linear probing. A slot is one `u64`: 56 bits of the device's fingerprint above 8 bits of
/// count. The partition itself was chosen by other bits of a keyed hash, so two devices are mistaken for each other with a probability
/// of about n² / 2⁶⁵ for n devices on the node.
pub struct DeviceSet {
    slots: Vec<u64>,
    len: usize,
    /// Some counts were lost, perhaps of devices that are not known yet.
    counts_lost: bool,
}

/// A count that got this high is no longer exact and stays: such a device asks the store at every connect until the next start.
const COUNT_MAX: u64 = 0xff;
const EMPTY: u64 = 0;

// The table grows by half when it is four fifths full, so it is between 8/15 and 12/15 full: 8 B / (8/15) = 15 B a device.

impl DeviceSet {
    /// Knows nobody.
    pub fn new() -> Self {
        DeviceSet { slots: Vec::new(), len: 0, counts_lost: false }
    }

    /// How many devices are known.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The number of conversations a device is marked pending in; `None` for a device that is not known.
    pub fn pending(&self, fingerprint: u64) -> Option<u8> {
        self.find(fingerprint).map(|slot| (self.slots[slot] & COUNT_MAX) as u8)
    }

    /// Makes a device known, marked in so many conversations; one that is known already keeps its count and `false` is returned.
    pub fn insert(&mut self, fingerprint: u64, pending: u32) -> bool {
        if self.find(fingerprint).is_some() {
            return false;
        }
        if (self.len + 1) * 5 > self.slots.len() * 4 {
            self.grow();
        }
        let count = if self.counts_lost { COUNT_MAX } else { u64::from(pending).min(COUNT_MAX) };
        self.place(tag(fingerprint) | count);
        self.len += 1;
        true
    }

    /// Counts one more conversation; false when the device is not known.
    pub fn mark(&mut self, fingerprint: u64) -> bool {
        let Some(slot) = self.find(fingerprint) else { return false };
        if self.slots[slot] & COUNT_MAX != COUNT_MAX {
            self.slots[slot] += 1;
        }
        true
    }

    /// Counts one conversation less; false when the device is not known.
    pub fn unmark(&mut self, fingerprint: u64) -> bool {
        let Some(slot) = self.find(fingerprint) else { return false };
        if !matches!(self.slots[slot] & COUNT_MAX, 0 | COUNT_MAX) {
            self.slots[slot] -= 1;
        }
        true
    }

    /// The count of this device is not to be trusted any more: it asks the store when it connects. False when it is not known.
    pub fn lose_count(&mut self, fingerprint: u64) -> bool {
        let found = self.find(fingerprint);
        found.inspect(|slot| self.slots[*slot] |= COUNT_MAX).is_some()
    }

    /// No count is to be trusted any more, of these devices and of those to come: each of them asks the store when it connects.
    pub fn lose_counts(&mut self) {
        self.counts_lost = true;
        self.slots.iter_mut().filter(|slot| **slot != EMPTY).for_each(|slot| *slot |= COUNT_MAX);
    }

    fn find(&self, fingerprint: u64) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let tag = tag(fingerprint);
        let mut slot = self.home(tag);
        loop {
            match self.slots[slot] {
                EMPTY => return None,
                held if held & !COUNT_MAX == tag => return Some(slot),
                _ => slot = if slot + 1 == self.slots.len() { 0 } else { slot + 1 },
            }
        }
    }

    /// Maps the upper bits evenly onto the table (Lemire's multiply-shift), which needs no power of two.
    fn home(&self, tag: u64) -> usize {
        ((u128::from(tag) * self.slots.len() as u128) >> 64) as usize
    }

    fn place(&mut self, held: u64) {
        let mut slot = self.home(held & !COUNT_MAX);
        while self.slots[slot] != EMPTY {
            slot = if slot + 1 == self.slots.len() { 0 } else { slot + 1 };
        }
        self.slots[slot] = held;
    }

    fn grow(&mut self) {
        let larger = (self.slots.len() + self.slots.len() / 2).max(16);
        let old = std::mem::replace(&mut self.slots, vec![EMPTY; larger]);
        for held in old.into_iter().filter(|held| *held != EMPTY) {
            self.place(held);
        }
    }
}

/// The 56 bits that are kept, in the upper part of the word; never all zero, which is the empty slot. The top byte of a fingerprint
/// is as good as any other, since partitions are chosen by the user's hash and not by this one.
fn tag(fingerprint: u64) -> u64 {
    match fingerprint & !COUNT_MAX {
        0 => 1 << 8,
        tag => tag,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// SplitMix64 (Steele, Lea and Flood, 2014), the seed of every run printed.
    fn numbers(mut state: u64) -> impl FnMut() -> u64 {
        move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }
    }

    #[test]
    fn behaves_like_a_map_of_counts() {
        let seed = std::env::var("THRONG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(7);
        println!("THRONG_SEED={seed}");
        let mut next = numbers(seed);
        let pool: Vec<u64> = (0..3_000).map(|_| next()).collect();
        let mut set = DeviceSet::new();
        let mut reference = BTreeMap::new();
        for _ in 0..60_000 {
            let device = pool[(next() % pool.len() as u64) as usize];
            match next() % 4 {
                0 => {
                    let pending = (next() % 4) as u32;
                    assert_eq!(set.insert(device, pending), !reference.contains_key(&device));
                    reference.entry(device).or_insert(pending);
                }
                1 | 2 => {
                    set.mark(device);
                    reference.entry(device).and_modify(|count| *count = (*count + 1).min(255));
                }
                _ => {
                    set.unmark(device);
                    reference.entry(device).and_modify(|count| {
                        if *count != 255 {
                            *count = count.saturating_sub(1)
                        }
                    });
                }
            }
            assert_eq!(set.pending(device).map(u32::from), reference.get(&device).copied());
        }
        assert_eq!(set.len(), reference.len());
        for device in pool {
            assert_eq!(set.pending(device).map(u32::from), reference.get(&device).copied());
        }
    }

    #[test]
    fn a_count_that_overflowed_stays() {
        let mut set = DeviceSet::new();
        set.insert(0, 1_000);
        set.unmark(0);
        assert_eq!(set.pending(0), Some(255));
    }

    #[test]
    fn lost_counts_make_every_device_ask() {
        let mut set = DeviceSet::new();
        set.insert(1 << 8, 0);
        assert!(set.lose_count(1 << 8) && !set.lose_count(2 << 8));
        assert_eq!(set.pending(1 << 8), Some(255));
        set.lose_counts();
        set.insert(2 << 8, 0);
        for device in [1 << 8, 2 << 8] {
            set.unmark(device);
            assert_eq!(set.pending(device), Some(255));
        }
        assert_eq!(set.pending(3 << 8), None, "an empty place is still empty");
        assert_eq!(set.len(), 2);
    }

    #[test]
    fn a_device_costs_at_most_16_bytes() {
        let mut next = numbers(1);
        let mut set = DeviceSet::new();
        for _ in 0..40_000 {
            set.insert(next(), 0);
            if set.len() > 100 {
                assert!(set.slots.len() * 8 <= set.len() * 16, "{} slots for {}", set.slots.len(), set.len());
            }
        }
    }
}
