//! The nouns every room shares: identifiers, times, limits and the payload.
//!
//! Owns what has one meaning everywhere. Deliberately knows no encoding and no storage: how an id looks on the
//! wire belongs to `protocol`, how it lies on disk to the store engines.

mod direct;
mod entry;
mod hash;
mod ids;
pub mod limits;
mod payload;
mod phone;
mod time;

pub use direct::direct_id;
pub use entry::{Body, Change, ConversationKind, ConversationListing, ConversationSummary, Entry, Receipt};
pub use hash::{HashKey, PARTITIONS, partition_of_conversation, partition_of_user};
pub use ids::{
    ClientId, ConnectionId, ConversationId, DeviceId, DeviceKey, ParseUuidError, PartitionId, Seq, ShardId,
    UserId,
};
pub use payload::Payload;
pub use phone::Phone;
pub use time::{Mono, Now, Span, Wall};
