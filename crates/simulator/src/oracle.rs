//! The checkers: they know everything that was committed and everything that clients were told, and compare.
//!
//! Owns who was a member when, where each device begins, what was sent and what was confirmed. `commits` follows the store, `told`
//! judges what reaches clients. Deliberately knows nothing of shards: what it judges it sees from outside.

mod commits;
mod told;

pub use told::sent_by;

use std::collections::{BTreeMap, BTreeSet};

use model::{ClientId, ConversationId, DeviceKey, PartitionId, Payload, Seq, ShardId, UserId, Wall};
use store::MemoryStore;

use crate::names::Named;
use crate::violation::{Checked, broken};

/// A time during which somebody belonged to a log, in places of that log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// The place before the first entry.
    pub start: Seq,
    /// The first entry that is not part of it any more.
    pub end: Option<Seq>,
}

impl Period {
    /// Whether an entry is part of it.
    pub fn contains(&self, seq: Seq) -> bool {
        seq > self.start && self.end.is_none_or(|end| seq < end)
    }
}

/// A message a client has begun to send.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sent {
    conversation: ConversationId,
    payload: Payload,
}

/// Everything the checkers know.
#[derive(Debug, Default)]
pub struct Oracle {
    /// When each device was to get what is in a log.
    devices: BTreeMap<(ConversationId, DeviceKey), Vec<Period>>,
    /// When each user was a member.
    members: BTreeMap<(ConversationId, UserId), Vec<Period>>,
    /// What was ever sent under each client id.
    sent: BTreeMap<(UserId, ClientId), Vec<Sent>>,
    /// Where each message is; the last place of one whose client id was forgotten in between.
    places: BTreeMap<(UserId, ClientId), (ConversationId, Seq)>,
    /// Client ids of messages taken before this are forgotten.
    forgotten_before: Wall,
    /// Client ids that were taken again after they had been forgotten.
    taken_again: BTreeSet<(UserId, ClientId)>,
    /// Sends that were answered with a place.
    confirmed: BTreeMap<(UserId, ClientId), (ConversationId, Seq)>,
    /// How far each device has asked its cursor to move, and how far that was answered.
    requested: BTreeMap<(ConversationId, DeviceKey), Seq>,
    acknowledged: BTreeMap<(ConversationId, DeviceKey), Seq>,
    /// The cursors of the store when last looked at.
    cursors: BTreeMap<(ConversationId, DeviceKey), Seq>,
    /// The highest place that a device of the user has durably acknowledged, or has because it sent it.
    delivered: BTreeMap<(ConversationId, UserId), Seq>,
    /// The highest read mark that each member ever had.
    read: BTreeMap<(ConversationId, UserId), Seq>,
    /// The last entry of a conversation that every owner of users on a shard has heard of, because its owner is there too.
    heard_of: BTreeMap<(ShardId, ConversationId), Seq>,
    /// The last entry of a conversation that the owner of some users has heard of by mail.
    mailed: BTreeMap<(PartitionId, ConversationId), Seq>,
}

impl Oracle {
    /// A client begins to send a message.
    pub fn sending(&mut self, user: UserId, id: ClientId, conversation: ConversationId, payload: Payload) {
        let sent = Sent { conversation, payload };
        let all = self.sent.entry((user, id)).or_default();
        if !all.contains(&sent) {
            all.push(sent);
        }
    }

    /// Client ids of messages taken before a time may be forgotten from now on.
    pub fn forgetting(&mut self, before: Wall) {
        self.forgotten_before = self.forgotten_before.max(before);
    }

    /// Whether a client id was taken a second time, as it may be once it was forgotten.
    pub fn was_taken_again(&self, user: UserId, id: ClientId) -> bool {
        self.taken_again.contains(&(user, id))
    }

    /// A device asks its cursor to move.
    pub fn requesting(&mut self, conversation: ConversationId, device: DeviceKey, seq: Seq) {
        let requested = self.requested.entry((conversation, device)).or_default();
        *requested = (*requested).max(seq);
    }

    /// How far a device has ever asked its cursor to move.
    pub fn requested(&self, conversation: ConversationId, device: DeviceKey) -> Seq {
        self.requested.get(&(conversation, device)).copied().unwrap_or_default()
    }

    /// The user's current membership, if they are a member.
    pub fn membership(&self, conversation: ConversationId, user: UserId) -> Option<Period> {
        current(self.members.get(&(conversation, user)))
    }

    /// The device's current share of the log, if it has one.
    pub fn share(&self, conversation: ConversationId, device: DeviceKey) -> Option<Period> {
        current(self.devices.get(&(conversation, device)))
    }

    /// The conversations a device has a share of now.
    pub fn shares(&self, device: DeviceKey) -> impl Iterator<Item = (ConversationId, Period)> {
        let mine = self.devices.iter().filter(move |((_, other), _)| *other == device);
        mine.filter_map(|((conversation, _), periods)| Some((*conversation, current(Some(periods))?)))
    }

    /// All owners of users on a shard have heard of an entry.
    pub fn hears(&mut self, shard: ShardId, conversation: ConversationId, seq: Seq) {
        let heard = self.heard_of.entry((shard, conversation)).or_default();
        *heard = (*heard).max(seq);
    }

    /// The owner of some users has heard of an entry by mail, and perhaps before others on its shard.
    pub fn hears_by_mail(&mut self, owner: PartitionId, conversation: ConversationId, seq: Seq) {
        let heard = self.mailed.entry((owner, conversation)).or_default();
        *heard = (*heard).max(seq);
    }

    /// How far the owner of some users, which is on this shard, has heard of a conversation.
    pub fn heard(&self, shard: ShardId, owner: PartitionId, conversation: ConversationId) -> Seq {
        let both = [self.heard_of.get(&(shard, conversation)), self.mailed.get(&(owner, conversation))];
        both.into_iter().flatten().copied().max().unwrap_or_default()
    }

    /// After a restart everything that is stored is known.
    pub fn restarted(&mut self, shards: u16, store: &MemoryStore) {
        self.heard_of.clear();
        self.mailed.clear();
        for conversation in store.conversations() {
            let head = Seq(store.log(conversation).len() as u64);
            for shard in 0..shards {
                self.hears(ShardId(shard), conversation, head);
            }
        }
    }

    /// D1 and D7 after a crash: whatever was confirmed is still there, and what is there is sound.
    pub fn check_durable(&self, store: &MemoryStore) -> Checked {
        if let Err(what) = store.check() {
            return broken("store", what);
        }
        for ((user, id), (conversation, seq)) in &self.confirmed {
            self.check_placed(*user, *id, *conversation, *seq, store)?;
        }
        for ((conversation, device), seq) in &self.acknowledged {
            if self.share(*conversation, *device).is_none() {
                continue;
            }
            let cursor = store.cursors(*conversation).find(|(other, _)| other == device);
            if cursor.is_none_or(|(_, cursor)| cursor < *seq) {
                let (device, conversation) = (Named(*device), Named(*conversation));
                return broken(
                    "D7",
                    format!(
                        "{device} was told that {conversation} is acknowledged up to {seq}, the store has {cursor:?}"
                    ),
                );
            }
        }
        Ok(())
    }
}

fn current(periods: Option<&Vec<Period>>) -> Option<Period> {
    periods?.last().copied().filter(|period| period.end.is_none())
}
