//! The junction: all that one core owns, still pure. Events and a time go in, actions come out.
//!
//! Owns the table of connections, the way from bytes to inputs (`inbound`), the partitions of this shard and the way between them
//! (`shard`), the way from effects to frames (`outbound`), deadlines, admission and draining (`sweep`). Deliberately knows no socket, no
//! system call, no thread, no clock and no random source: whoever drives it performs the [`Actions`].

mod admission;
mod connection;
mod counters;
mod event;
mod fault;
mod inbound;
mod outbound;
mod settings;
mod shard;
mod sweep;

pub use connection::CONNECTION_BYTES;
pub use counters::{Counters, Metric};
pub use event::{Actions, Ask, Close, Event, Write};
pub use settings::{Settings, owner_of};
pub use shard::Shard;
