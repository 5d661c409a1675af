//! One process: shard threads, the store thread, and the fabric between them. The only place where the pure rooms meet
//! sockets, clocks and threads.
//!
//! Owns the turn of a core (`turn`, the file to read first), the group commit (`store_thread`), starting, draining and the
//! [`Handle`] through which REST enters by the same inputs as the sockets and accounts are imported. Deliberately knows no rule, no HTTP and no engine: the
//! engine comes as a [`store::Engine`], connections that are not WebSockets go out through a Unix socket.

mod clock;
mod gauges;
mod handle;
mod import;
mod inbox;
mod memory;
mod parcel;
mod start;
mod store_thread;
mod turn;

pub use clock::Clock;
pub use gauges::{BATCH_SIZE_BOUNDS, COMMIT_MICROS_BOUNDS, ShardGauges, StoreGauges};
pub use handle::Handle;
pub use import::ImportError;
pub use memory::{fix_thresholds, give_back};
pub use start::{Config, Node, StartError, Summary};
