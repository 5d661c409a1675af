//! The store thread and its disk: what shards ask gathers, goes into batches, is written, synced and answered.
//!
//! Requests of one shard stay in order, those of different shards mix as chance will. One batch is written at a time, and nothing of it
//! takes effect before its sync. The queues do not survive a crash; what does is decided by the [`Device`].

use std::collections::{BTreeMap, VecDeque};

use domain::Ticket;
use model::limits::IN_FLIGHT_MAX;
use model::{ConversationId, PartitionId, ShardId};
use shard::Ask;
use store::{Engine, MemoryStore, Reply, Request};

use crate::device::{Device, Reading, carry_out};
use crate::random::Random;
use crate::violation::{Checked, broken};
use crate::words::Said;

/// What a conversation asks beside what it is asked: to be settled, once nothing else is in flight.
const OWN_REQUESTS_MAX: usize = 1;

/// A reply on its way to a shard.
#[derive(Debug)]
pub struct Answered {
    /// The partition that asked.
    pub partition: PartitionId,
    /// What for.
    pub ticket: Ticket,
    /// What it is told.
    pub reply: Reply,
    /// A sync had failed before it was answered.
    pub after_failure: bool,
}

/// What one commit did.
#[derive(Debug, Default)]
pub struct Batch {
    /// Who asked, request by request. The store's own housekeeping, which nobody asked for, comes last.
    pub from: Vec<(ShardId, PartitionId, Ticket)>,
    /// What.
    pub requests: Vec<Request>,
    /// What came of it.
    pub replies: Vec<Reply>,
}

/// What a restart found.
#[derive(Debug)]
pub struct Found {
    /// Requests of a batch that was written and survived, though nobody was told so.
    pub survivor: Vec<(Request, Reply)>,
    /// A part of a batch survived, and counts for nothing.
    pub torn: bool,
    /// Recovery was interrupted by another crash.
    pub interrupted: bool,
}

/// The store of one run.
#[derive(Debug)]
pub struct Disk {
    /// What is durable, and what the process has read of it.
    pub store: MemoryStore,
    device: Device,
    /// Written and not synced.
    pub writing: Option<Batch>,
    /// Batches that were to be written so far, and syncs, over the whole run.
    pub writes: u64,
    /// See `writes`.
    pub syncs: u64,
    /// The disk takes no more.
    pub full: bool,
    /// A sync has failed in this process.
    pub failed: bool,
    asked: Vec<VecDeque<Ask>>,
    answered: Vec<VecDeque<Answered>>,
    /// Requests of each conversation that are not answered, in each life of its partition.
    in_flight: BTreeMap<(ConversationId, u16), usize>,
}

impl Disk {
    /// An empty disk with a queue for each of so many shards.
    pub fn new(queues: u16) -> Self {
        Disk {
            store: MemoryStore::new(),
            device: Device::default(),
            writing: None,
            writes: 0,
            syncs: 0,
            full: false,
            failed: false,
            asked: (0..queues).map(|_| VecDeque::new()).collect(),
            answered: (0..queues).map(|_| VecDeque::new()).collect(),
            in_flight: BTreeMap::new(),
        }
    }

    /// A shard asks. X1: what one conversation has in flight is bounded.
    pub fn ask(&mut self, shard: ShardId, ask: Ask) -> Checked {
        let mut checked = Ok(());
        if let Ticket::Conversation { conversation, life } = &ask.ticket {
            let in_flight = self.in_flight.entry((*conversation, *life)).or_default();
            *in_flight += 1;
            if *in_flight > IN_FLIGHT_MAX + OWN_REQUESTS_MAX {
                checked = broken("X1", format!("{in_flight} requests of one conversation are in flight"));
            }
        }
        self.asked[usize::from(shard.0)].push_back(ask);
        checked
    }

    /// Requests that no batch has yet.
    pub fn asked(&self) -> usize {
        self.asked.iter().map(VecDeque::len).sum()
    }

    /// Requests that were asked, written or answered for a ticket, and not heard of yet.
    fn outstanding(&self) -> impl Iterator<Item = &Ticket> {
        let asked = self.asked.iter().flatten().map(|ask| &ask.ticket);
        let writing = self.writing.iter().flat_map(|batch| &batch.from).map(|(_, _, ticket)| ticket);
        let answered = self.answered.iter().flatten().map(|answered| &answered.ticket);
        asked.chain(writing).chain(answered)
    }

    /// Whether the same device waits already for its registration or its list of what is pending.
    pub fn awaits(&self, ticket: &Ticket) -> bool {
        let device_of = |ticket: &Ticket| match ticket {
            Ticket::Register { device, .. } | Ticket::Pending { device, .. } => Some(*device),
            _ => None,
        };
        let Some(device) = device_of(ticket) else { return false };
        self.outstanding().any(|other| device_of(other) == Some(device))
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
        let answered = self.answered[usize::from(shard.0)].pop_front()?;
        if let Ticket::Conversation { conversation, life } = &answered.ticket
            && let Some(in_flight) = self.in_flight.get_mut(&(*conversation, *life))
        {
            *in_flight -= 1;
        }
        Some(answered)
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

    /// Writes a batch. Nothing of it has happened yet.
    pub fn write(&mut self, batch: Batch) {
        let writes: Vec<Request> =
            batch.requests.iter().filter(|request| request.writes()).cloned().collect();
        self.device.write(&writes);
        self.writing = Some(batch);
    }

    /// The sync of what is being written went well.
    pub fn sync(&mut self) {
        self.device.sync();
    }

    /// The sync of what is being written has failed: the process may promise nothing any more.
    pub fn fail_sync(&mut self, random: &mut Random) {
        self.failed = true;
        self.device.lose(random);
    }

    /// Carries a batch out; when the disk takes no more, it refuses what would write.
    pub fn carry_out(&mut self, batch: &mut Batch, full: bool) {
        self.store.set_full(full);
        batch.replies = carry_out(&mut self.store, &batch.requests);
        self.store.set_full(false);
    }

    /// Sends the replies of a batch.
    pub fn answer(&mut self, batch: Batch) {
        let after_failure = self.failed;
        for ((shard, partition, ticket), reply) in batch.from.into_iter().zip(batch.replies) {
            let answered = Answered { partition, ticket, reply, after_failure };
            self.answered[usize::from(shard.0)].push_back(answered);
        }
    }

    /// The process is gone: with it the queues, and what the device did not keep.
    pub fn crash(&mut self, random: &mut Random) {
        self.asked.iter_mut().for_each(VecDeque::clear);
        self.answered.iter_mut().for_each(VecDeque::clear);
        self.in_flight.clear();
        (self.writing, self.failed) = (None, false);
        self.device.lose(random);
    }

    /// Recovers what is durable, perhaps more than once. S3: whatever happens on the way, the same is found; `store`, which was
    /// there before, is part of it.
    pub fn recover(
        &mut self,
        reading: Reading,
        random: &mut Random,
    ) -> Result<Found, crate::violation::Violation> {
        let recovered = self.device.recover(reading);
        let mut expected = std::mem::take(&mut self.store);
        if let Some((requests, _)) = &recovered.survivor {
            carry_out(&mut expected, requests);
        }
        if recovered.store != expected {
            self.store = recovered.store;
            return broken("S3", "recovery has found something else than what was durable");
        }
        let mut interrupted = false;
        let mut again = |device: &Device, random: &mut Random, expected: &mut MemoryStore, when: &str| {
            if random.below(4) > 0 {
                return Ok(());
            }
            interrupted = true;
            let mut found = device.recover(reading).store;
            settle_marks(&mut found);
            settle_marks(expected);
            match found == *expected {
                true => Ok(()),
                false => broken("S3", format!("after a crash {when} recovery finds something else")),
            }
        };
        again(&self.device, random, &mut expected, "while the log was read")?;
        settle_marks(&mut expected);
        self.device.adopt(&expected);
        again(&self.device, random, &mut expected, "between the image and the end of the log")?;
        self.device.truncate();
        again(&self.device, random, &mut expected, "after the log was given up")?;
        self.store = expected;
        let survivor =
            recovered.survivor.map(|(requests, replies)| requests.into_iter().zip(replies).collect());
        Ok(Found { survivor: survivor.unwrap_or_default(), torn: recovered.torn, interrupted })
    }
}

/// What every start does first: marks of devices that are not behind go.
fn settle_marks(store: &mut MemoryStore) {
    store.devices(&mut |_, _| {}).expect("memory does not fail");
}
