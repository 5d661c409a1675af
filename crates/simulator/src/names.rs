//! Ids of a run, made so that their last bytes say which they are, and their short names in traces: `u1`, `u1/2`, `c3`, `m4.17`.

use std::fmt;

use model::{
    ClientId, ConversationId, DeviceId, DeviceKey, HashKey, UserId, partition_of_conversation,
    partition_of_user,
};

use crate::random::Random;

/// Makes ids that fall into the first few partitions.
#[derive(Debug, Clone, Copy)]
pub struct Registry {
    /// The key of the partition hash.
    pub hash_key: HashKey,
    /// The last partition that is used.
    pub last: u8,
}

impl Registry {
    /// The user of this number. The rest of the id is random.
    pub fn user(&self, random: &mut Random, number: u8) -> UserId {
        loop {
            let mut id = random.bytes16();
            id[15] = number;
            if partition_of_user(&self.hash_key, UserId(id)).0 <= self.last {
                return UserId(id);
            }
        }
    }

    /// The conversation of this number.
    pub fn conversation(&self, random: &mut Random, number: u16) -> ConversationId {
        loop {
            let mut id = random.bytes16();
            id[14..].copy_from_slice(&number.to_be_bytes());
            if partition_of_conversation(&self.hash_key, ConversationId(id)).0 <= self.last {
                return ConversationId(id);
            }
        }
    }
}

/// The `count`-th message of a client.
pub fn client_id(client: u16, count: u32) -> ClientId {
    let mut id = [0xc1; 16];
    id[10..12].copy_from_slice(&client.to_be_bytes());
    id[12..].copy_from_slice(&count.to_be_bytes());
    ClientId(id)
}

/// A short name for an id of a run.
pub struct Named<T>(pub T);

impl fmt::Display for Named<UserId> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "u{}", self.0.0[15])
    }
}

impl fmt::Display for Named<DeviceKey> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeviceKey { user, device: DeviceId(device) } = self.0;
        write!(f, "{}/{device}", Named(user))
    }
}

impl fmt::Display for Named<ConversationId> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", u16::from_be_bytes([self.0.0[14], self.0.0[15]]))
    }
}

impl fmt::Display for Named<ClientId> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [.., client_high, client_low, a, b, c, d] = self.0.0;
        let client = u16::from_be_bytes([client_high, client_low]);
        write!(f, "m{client}.{}", u32::from_be_bytes([a, b, c, d]))
    }
}
