//! The store thread and its disk: what shards ask gathers, goes into batches, and takes effect as a whole.
//!
//! Requests of one shard stay in order, those of different shards mix as chance will. A crash loses what was not committed and the
//! replies that had not arrived.

use std::collections::VecDeque;

use domain::Ticket;
use model::{PartitionId, ShardId};
use shard::Ask;
use store::{Engine, MemoryStore, Reply, Request};

use crate::random::Random;
use crate::words::Said;

/// A reply on its way to a shard.
#[derive(Debug)]
pub struct Answered {
    /// The partition that asked.
    pub partition: PartitionId,
    /// What for.
    pub ticket: Ticket,
    /// What it is told.
    pub reply: Reply,
}

/// What one commit did.
#[derive(Debug, Default)]
pub struct Batch {
    /// Who asked, request by request.
    pub from: Vec<(ShardId, PartitionId, Ticket)>,
    /// What.
    pub requests: Vec<Request>,
    /// What came of it.
    pub replies: Vec<Reply>,
}

/// The store of one run. The [`MemoryStore`] survives crashes, the queues do not.
#[derive(Debug)]
pub struct Disk {
    /// What is durable.
    pub store: MemoryStore,
    asked: Vec<VecDeque<Ask>>,
    answered: Vec<VecDeque<Answered>>,
}

impl Disk {
    /// An empty disk.
    pub fn new(shards: u16) -> Self {
        let mut disk = Disk { store: MemoryStore::new(), asked: Vec::new(), answered: Vec::new() };
        disk.crash(shards);
        disk
    }

    /// Forgets everything that is not durable.
    pub fn crash(&mut self, shards: u16) {
        self.asked = (0..shards).map(|_| VecDeque::new()).collect();
        self.answered = (0..shards).map(|_| VecDeque::new()).collect();
    }

    /// A shard asks.
    pub fn ask(&mut self, shard: ShardId, ask: Ask) {
        self.asked[usize::from(shard.0)].push_back(ask);
    }

    /// Requests that no batch has yet.
    pub fn asked(&self) -> usize {
        self.asked.iter().map(VecDeque::len).sum()
    }

    /// Whether the same device waits already for its registration or its list of what is pending.
    pub fn awaits(&self, ticket: &Ticket) -> bool {
        let device_of = |ticket: &Ticket| match ticket {
            Ticket::Register { device, .. } | Ticket::Pending { device, .. } => Some(*device),
            _ => None,
        };
        let Some(device) = device_of(ticket) else { return false };
        let asked = self.asked.iter().flatten().map(|ask| &ask.ticket);
        let answered = self.answered.iter().flatten().map(|answered| &answered.ticket);
        asked.chain(answered).any(|other| device_of(other) == Some(device))
    }

    /// What was asked and is in no batch yet, for a report.
    pub fn describe(&self) -> String {
        let asks: Vec<String> =
            self.asked.iter().flatten().map(|ask| Said(&ask.request).to_string()).collect();
        asks.join("; ")
    }

    /// Replies a shard could receive now.
    pub fn answered(&self, shard: ShardId) -> usize {
        self.answered[usize::from(shard.0)].len()
    }

    /// Replies under way in all.
    pub fn under_way(&self) -> usize {
        self.answered.iter().map(VecDeque::len).sum()
    }

    /// A shard receives its next reply.
    pub fn pop(&mut self, shard: ShardId) -> Option<Answered> {
        self.answered[usize::from(shard.0)].pop_front()
    }

    /// Takes some of what was asked into a batch; everything, if told so.
    pub fn gather(&mut self, random: &mut Random, all: bool) -> Batch {
        let mut batch = Batch::default();
        let mut left: Vec<(usize, usize)> = Vec::new();
        for (shard, queue) in self.asked.iter().enumerate() {
            let count = if all { queue.len() } else { random.arrived(queue.len()) };
            if count > 0 {
                left.push((shard, count));
            }
        }
        while !left.is_empty() {
            let at = random.below(left.len());
            let (shard, count) = &mut left[at];
            let run = 1 + random.below(*count);
            for Ask { partition, ticket, request } in self.asked[*shard].drain(..run) {
                batch.from.push((ShardId(*shard as u16), partition, ticket));
                batch.requests.push(request);
            }
            *count -= run;
            if *count == 0 {
                left.swap_remove(at);
            }
        }
        batch
    }

    /// Carries a batch out and makes it durable.
    pub fn commit(&mut self, batch: &mut Batch) {
        batch.replies.clear();
        self.store.commit(&batch.requests, &mut batch.replies).expect("memory does not fail");
    }

    /// Sends the replies of a batch.
    pub fn answer(&mut self, batch: Batch) {
        for ((shard, partition, ticket), reply) in batch.from.into_iter().zip(batch.replies) {
            self.answered[usize::from(shard.0)].push_back(Answered { partition, ticket, reply });
        }
    }
}
