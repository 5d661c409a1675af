//! What travels between the threads of a node.

use domain::{Effect, Ticket};
use model::PartitionId;
use shard::Ask;
use store::Reply;

/// One item of the fabric.
#[derive(Debug)]
pub enum Parcel {
    /// A shard's partition wishes something on another shard.
    Effect(Effect),
    /// A shard's partition asks the store.
    Ask(Ask),
    /// The store answers.
    Stored {
        /// Who asked.
        partition: PartitionId,
        /// What for.
        ticket: Ticket,
        /// The answer.
        reply: Reply,
    },
}
