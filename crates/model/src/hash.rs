//! Which partition owns what.

use std::hash::{BuildHasher, Hasher};

use siphasher::sip::SipHasher13;

use crate::{ConversationId, DeviceKey, PartitionId, UserId};

/// How many partitions there are; a [`PartitionId`] is one byte because of it.
pub const PARTITIONS: usize = 256;

/// The secret key of the partition hash: ids are chosen by clients, so an unkeyed hash would let one of them
/// aim everything at one partition.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey(pub [u8; 16]);

impl HashKey {
    /// SipHash-1-3 (Aumasson and Bernstein, 2012) of the parts one after the other.
    fn hash(&self, tag: u8, bytes: &[u8], more: u32) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        hasher.write_u8(tag);
        hasher.write(bytes);
        hasher.write_u32(more);
        hasher.finish()
    }

    /// A user's place in a hash table.
    pub fn user(&self, user: UserId) -> u64 {
        self.hash(b'u', &user.0, 0)
    }

    /// A device's fingerprint: 64 bits, of which an owner keeps as many as it needs.
    pub fn device(&self, device: DeviceKey) -> u64 {
        self.hash(b'd', &device.user.0, device.device.0)
    }
}

impl std::fmt::Debug for HashKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HashKey(secret)")
    }
}

/// Hash maps under keys that clients choose use the same secret.
impl BuildHasher for HashKey {
    type Hasher = SipHasher13;
    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_key(&self.0)
    }
}

/// The partition that owns a user: their sessions and what is known of their devices.
pub fn partition_of_user(key: &HashKey, user: UserId) -> PartitionId {
    PartitionId((key.user(user) >> 56) as u8)
}

/// The partition that owns a conversation: members, cursors and the order of its log.
pub fn partition_of_conversation(key: &HashKey, conversation: ConversationId) -> PartitionId {
    PartitionId((key.hash(b'c', &conversation.0, 0) >> 56) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: HashKey = HashKey([1; 16]);
    const ANOTHER: HashKey = HashKey([2; 16]);

    fn user(number: u32) -> UserId {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        UserId(bytes)
    }

    /// How many of the ids that fall together under one key fall together under another, at most. `place` gives 256 places.
    fn together(place: impl Fn(&HashKey, u32) -> u8) -> usize {
        let chosen: Vec<u32> = (0..).filter(|number| place(&ONE, *number) == 7).take(512).collect();
        let mut counts = [0_usize; PARTITIONS];
        chosen.iter().for_each(|number| counts[usize::from(place(&ANOTHER, *number))] += 1);
        counts.into_iter().max().unwrap_or(0)
    }

    #[test]
    fn another_key_spreads_ids_another_way() {
        // Who has found ids for one place of one server has two for each place of the next: 512 over 256. More than 16 in
        // one of them come by chance once in 10^9 (Poisson with mean 2).
        let conversation = |number| ConversationId(user(number).0);
        assert!(together(|key, number| partition_of_user(key, user(number)).0) <= 16);
        assert!(together(|key, number| partition_of_conversation(key, conversation(number)).0) <= 16);
        assert!(together(|key, number| key.hash_one(user(number)) as u8) <= 16);
        let device = |number| DeviceKey { user: user(number), device: crate::DeviceId(1) };
        assert!(together(|key, number| key.device(device(number)) as u8) <= 16);
    }
}
