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
