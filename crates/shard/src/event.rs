//! What can happen to a shard, and what it asks of the outside.

use std::net::IpAddr;

use domain::{Answer, Effect, Input, Refusal, Ticket};
use model::{Mono, PartitionId, ShardId};
use store::{Reply, Request};

/// What wakes a shard. Slots are those of the reactor's table.
#[derive(Debug)]
pub enum Event<'a> {
    /// A connection was accepted.
    Accepted {
        /// Its slot, which is free here.
        slot: u32,
        /// Where it comes from.
        address: IpAddr,
    },
    /// Bytes came. They are taken apart in place.
    Received {
        /// On which connection.
        slot: u32,
        /// Which.
        bytes: &'a mut [u8],
    },
    /// So many bytes now wait for a socket that does not take them.
    Unsent {
        /// Of which connection.
        slot: u32,
        /// How many.
        bytes: usize,
    },
    /// The connection is over, for whatever reason: it broke, or it was closed as asked. The slot is free again.
    Gone {
        /// Which.
        slot: u32,
    },
    /// Another shard's partition wishes something here.
    Mail(Effect),
    /// The store has answered.
    Stored {
        /// The partition that asked.
        partition: PartitionId,
        /// What for.
        ticket: Ticket,
        /// The answer.
        reply: Reply,
    },
    /// A request that came from outside the sockets.
    Outside(Input),
    /// Time has passed.
    Tick,
    /// The node is being stopped: every connection is told to come back, spread until then.
    Drain {
        /// When all are to be closed.
        until: Mono,
    },
}

/// What a shard asks of whoever drives it, gathered over a turn.
#[derive(Debug, Default)]
pub struct Actions {
    /// Bytes for sockets; [`Write`]s name parts of it.
    pub output: Vec<u8>,
    /// What goes where, in order.
    pub writes: Vec<Write>,
    /// Connections to close, after their writes; [`Event::Gone`] is then told for each.
    pub closes: Vec<(u32, Close)>,
    /// Connections that are not ours, with the bytes read so far. The slot is free at once.
    pub handed_over: Vec<(u32, Vec<u8>)>,
    /// For the store, in order.
    pub asks: Vec<Ask>,
    /// For other shards, in order for each.
    pub mail: Vec<(ShardId, Effect)>,
    /// Answers for requests from outside the sockets.
    pub answers: Vec<(u64, Result<Answer, Refusal>)>,
}

impl Actions {
    /// Empties it for the next turn. Its memory stays, for a busy turn is followed by others like it.
    pub fn clear(&mut self) {
        self.output.clear();
        self.writes.clear();
        self.closes.clear();
        self.handed_over.clear();
        self.asks.clear();
        self.mail.clear();
        self.answers.clear();
    }
}

impl Actions {
    /// Gives back memory that a burst has left behind.
    pub fn rest(&mut self) {
        const KEPT: usize = 64;
        self.output.shrink_to(4 * 1024);
        self.writes.shrink_to(KEPT);
        self.closes.shrink_to(KEPT);
        self.handed_over.shrink_to(KEPT);
        self.asks.shrink_to(KEPT);
        self.mail.shrink_to(KEPT);
        self.answers.shrink_to(KEPT);
    }
}

/// Part of the output for one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    /// Which connection.
    pub slot: u32,
    /// From here.
    pub from: usize,
    /// To here, exclusive.
    pub to: usize,
}

/// How a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// When what waits has been sent.
    AfterFlush,
    /// At once.
    Now,
}

/// A request for the store, and where its answer goes.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The partition that asks.
    pub partition: PartitionId,
    /// What for.
    pub ticket: Ticket,
    /// What.
    pub request: Request,
}
