//! Housekeeping of conversations that have fallen quiet.
//!
//! A pending mark may stay when a device is not behind (it then costs one query at the next connect), but never the other way round.
//! So marks are set with the entry that needs them and taken away here, seconds after the last traffic: a busy conversation
//! writes no marks at all. One that is never quiet is only trimmed, now and then.

use std::collections::VecDeque;

use model::limits::SETTLE_AFTER;
use model::{ConversationId, Mono};

/// Conversations waiting to be settled, first-in first-out: all wait equally long.
#[derive(Default)]
pub struct SettleQueue {
    queue: VecDeque<(Mono, ConversationId)>,
}

impl SettleQueue {
    pub fn push(&mut self, now: Mono, id: ConversationId) {
        self.queue.push_back((now + SETTLE_AFTER, id));
    }

    pub fn next(&self) -> Option<Mono> {
        self.queue.front().map(|(due, _)| *due)
    }

    pub fn pop_due(&mut self, now: Mono) -> Option<ConversationId> {
        let (due, id) = *self.queue.front()?;
        if due > now {
            return None;
        }
        self.queue.pop_front();
        Some(id)
    }
}
