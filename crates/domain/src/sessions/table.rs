//! The live sessions of a partition: small, dense, and found by user.
//!
//! Sessions lie side by side in small pieces that never move; an index of four bytes a place (open addressing, linear probing) finds those of a user, all
//! of which begin to be looked for at the same place. So a session costs its own size and about seven bytes.

use model::{ConnectionId, DeviceId, DeviceKey, HashKey, ShardId, UserId};

/// One live session.
pub struct Session {
    pub user: UserId,
    pub device: DeviceId,
    slot: u32,
    generation: u32,
    /// Where its flight lies in the pool, or [`super::flight::NONE`].
    pub flight: u32,
    shard: ShardId,
}

impl Session {
    pub fn new(device: DeviceKey, connection: ConnectionId) -> Self {
        Session {
            user: device.user,
            device: device.device,
            slot: connection.slot,
            generation: connection.generation,
            flight: super::flight::NONE,
            shard: connection.shard,
        }
    }

    pub fn key(&self) -> DeviceKey {
        DeviceKey { user: self.user, device: self.device }
    }

    pub fn connection(&self) -> ConnectionId {
        ConnectionId { shard: self.shard, slot: self.slot, generation: self.generation }
    }
}

const EMPTY: u32 = u32::MAX;

/// Sessions in one piece.
const PIECE: usize = 16;

pub struct SessionTable {
    hash_key: HashKey,
    /// All but the last are full.
    pieces: Vec<Vec<Session>>,
    len: usize,
    index: Vec<u32>,
}

impl SessionTable {
    pub fn new(hash_key: HashKey) -> Self {
        SessionTable { hash_key, pieces: Vec::new(), len: 0, index: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    fn at(&self, number: u32) -> &Session {
        &self.pieces[number as usize / PIECE][number as usize % PIECE]
    }

    fn at_mut(&mut self, number: u32) -> &mut Session {
        &mut self.pieces[number as usize / PIECE][number as usize % PIECE]
    }

    /// Adds a session of a device that has none.
    pub fn insert(&mut self, session: Session) {
        if (self.len + 1) * 4 > self.index.len() * 3 {
            self.grow();
        }
        if self.len == self.pieces.len() * PIECE {
            self.pieces.push(Vec::with_capacity(PIECE));
        }
        let at = self.vacancy(session.user);
        self.index[at] = self.len as u32;
        self.pieces[self.len / PIECE].push(session);
        self.len += 1;
    }

    pub fn get(&self, device: DeviceKey) -> Option<&Session> {
        self.find(device).map(|at| self.at(self.index[at]))
    }

    pub fn get_mut(&mut self, device: DeviceKey) -> Option<&mut Session> {
        let at = self.find(device)?;
        Some(self.at_mut(self.index[at]))
    }

    pub fn remove(&mut self, device: DeviceKey) -> Option<Session> {
        let at = self.find(device)?;
        let gone = self.index[at];
        self.vacate(at);
        let last = self.len as u32 - 1;
        if gone != last {
            let moved = self.find(self.at(last).key())?;
            self.index[moved] = gone;
        }
        self.len -= 1;
        let mut removed = self.pieces[self.len / PIECE].pop()?;
        if self.pieces[self.len / PIECE].is_empty() {
            self.pieces.pop();
        }
        if gone != last {
            std::mem::swap(self.at_mut(gone), &mut removed);
        }
        self.shrink();
        Some(removed)
    }

    /// Calls `each` for every session of a user.
    pub fn each_of(&mut self, user: UserId, mut each: impl FnMut(&mut Session)) {
        if self.index.is_empty() {
            return;
        }
        let mut at = self.home(user);
        while self.index[at] != EMPTY {
            let session = self.at_mut(self.index[at]);
            if session.user == user {
                each(session);
            }
            at = self.after(at);
        }
    }

    fn find(&self, device: DeviceKey) -> Option<usize> {
        if self.index.is_empty() {
            return None;
        }
        let mut at = self.home(device.user);
        while self.index[at] != EMPTY {
            let session = self.at(self.index[at]);
            if session.user == device.user && session.device == device.device {
                return Some(at);
            }
            at = self.after(at);
        }
        None
    }

    fn vacancy(&self, user: UserId) -> usize {
        let mut at = self.home(user);
        while self.index[at] != EMPTY {
            at = self.after(at);
        }
        at
    }

    /// Empties a place, and moves those behind it that would not be found any more (Knuth, volume 3, section 6.4, algorithm R).
    fn vacate(&mut self, mut hole: usize) {
        let mut at = hole;
        loop {
            self.index[hole] = EMPTY;
            loop {
                at = self.after(at);
                if self.index[at] == EMPTY {
                    return;
                }
                let home = self.home(self.at(self.index[at]).user);
                // It is still found when its home lies behind the hole, up to where it is.
                let found = if hole <= at { hole < home && home <= at } else { hole < home || home <= at };
                if !found {
                    break;
                }
            }
            self.index[hole] = self.index[at];
            hole = at;
        }
    }

    /// Maps the hash evenly onto the index (Lemire's multiply-shift). The partition was chosen by the top byte, which is therefore
    /// the same for all and left out.
    fn home(&self, user: UserId) -> usize {
        let hash = self.hash_key.user(user) << 8;
        ((u128::from(hash) * self.index.len() as u128) >> 64) as usize
    }

    fn after(&self, at: usize) -> usize {
        if at + 1 == self.index.len() { 0 } else { at + 1 }
    }

    fn grow(&mut self) {
        self.rebuild((self.index.len() + self.index.len() / 2).max(8));
    }

    /// After a mass disconnect the memory goes too, a little at a time.
    fn shrink(&mut self) {
        if self.index.len() > 64 && self.len * 8 < self.index.len() {
            self.rebuild(self.index.len() / 4);
            self.pieces.shrink_to(self.pieces.len() * 2);
        }
    }

    fn rebuild(&mut self, places: usize) {
        self.index = vec![EMPTY; places];
        for number in 0..self.len as u32 {
            let at = self.vacancy(self.at(number).user);
            self.index[at] = number;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn behaves_like_a_map_by_device() {
        let seed: u64 = std::env::var("THRONG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(11);
        println!("THRONG_SEED={seed}");
        let mut state = seed;
        let mut next = move || {
            // SplitMix64.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        let mut table = SessionTable::new(HashKey([7; 16]));
        let mut reference: BTreeMap<DeviceKey, u32> = BTreeMap::new();
        for step in 0..40_000u32 {
            // The number of live sessions swings, so that the table grows and shrinks.
            let wanted = if (step / 5_000) % 2 == 0 { 4 } else { 1 };
            let user = UserId((next() % 400).to_le_bytes().repeat(2).try_into().expect("16 bytes"));
            let device = DeviceKey { user, device: DeviceId((next() % 3) as u32) };
            if next() % 5 < wanted {
                if let std::collections::btree_map::Entry::Vacant(entry) = reference.entry(device) {
                    entry.insert(step);
                    let connection = ConnectionId { shard: ShardId(1), slot: step, generation: 9 };
                    table.insert(Session::new(device, connection));
                }
            } else {
                let removed = table.remove(device).map(|session| session.slot);
                assert_eq!(removed, reference.remove(&device));
            }
            assert_eq!(table.len(), reference.len());
            assert_eq!(table.get(device).map(|session| session.slot), reference.get(&device).copied());
            let mut seen = Vec::new();
            table.each_of(user, |session| seen.push((session.key(), session.slot)));
            seen.sort_unstable();
            let of_user = reference.iter().filter(|(key, _)| key.user == user);
            assert_eq!(seen, of_user.map(|(key, slot)| (*key, *slot)).collect::<Vec<_>>());
        }
    }
}
