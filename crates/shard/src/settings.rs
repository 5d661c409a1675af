//! What an operator sets for every shard alike.

use std::sync::Arc;

use auth::{Keys, Rules};
use model::{HashKey, PartitionId, ShardId, Span, limits};

/// What a shard is told at its start.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How many shards the node has.
    pub shards: u16,
    /// The secret of the partition hash.
    pub hash_key: HashKey,
    /// For the rules.
    pub domain: domain::Settings,
    /// The keys that make a token one of ours.
    pub keys: Arc<Keys>,
    /// What else a token must say.
    pub rules: Rules,
    /// Exact origins that may connect; empty: the same host only.
    pub origins: Vec<String>,
    /// Most connections on this shard.
    pub connections_max: usize,
    /// Most connections on this shard that have not said who they are.
    pub unauthenticated_max: usize,
    /// The same, from one address.
    pub unauthenticated_per_address_max: usize,
    /// Upgrades a second on this shard, on average.
    pub admission_per_second: u32,
    /// Upgrades at once.
    pub admission_burst: u32,
    /// From accept to a valid `connect`.
    pub connect_deadline: Span,
    /// A connection quiet for this long is pinged.
    pub ping: Span,
    /// Longest payload, in bytes.
    pub payload_bytes_max: usize,
    /// Earliest and latest moment for a client to come back.
    pub reconnect: (Span, Span),
    /// Commands a second of one connection, on average.
    pub commands_per_second: u32,
    /// Commands at once.
    pub commands_burst: u32,
}

impl Settings {
    /// The defaults, with these keys and rules.
    pub fn new(shards: u16, hash_key: HashKey, keys: Arc<Keys>, rules: Rules) -> Self {
        Settings {
            shards,
            hash_key,
            domain: domain::Settings::default(),
            keys,
            rules,
            origins: Vec::new(),
            connections_max: usize::MAX,
            unauthenticated_max: limits::UNAUTHENTICATED_MAX,
            unauthenticated_per_address_max: limits::UNAUTHENTICATED_PER_ADDRESS_MAX,
            admission_per_second: limits::ADMISSION_PER_SECOND,
            admission_burst: limits::ADMISSION_BURST,
            connect_deadline: limits::CONNECT_DEADLINE,
            ping: limits::PING_INTERVAL,
            payload_bytes_max: limits::PAYLOAD_BYTES_MAX,
            reconnect: limits::RECONNECT_WINDOW,
            commands_per_second: limits::COMMANDS_PER_SECOND,
            commands_burst: limits::COMMANDS_BURST,
        }
    }
}

/// The shard that has a partition: they are dealt out in turn.
pub fn owner_of(partition: PartitionId, shards: u16) -> ShardId {
    ShardId(u16::from(partition.0) % shards)
}
