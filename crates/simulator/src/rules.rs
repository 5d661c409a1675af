//! The rules of `domain` against a model of them: lists of operations on a few partitions, compared through what clients would see.
//!
//! [`run`] carries a list out and says what is wrong, if something is. [`ops_from_bytes`] makes a list of any bytes, so that a fuzzer can
//! feed it as well as a generator of random numbers, and [`shrink`] makes a failing list short. Everything is determined by the list.
//!
//! `model` says what a conversation is to those in it, and was written from the protocol alone; `party` is who connects and what they have
//! got; `stage` has the partitions, the mail between them and the store, all of which are as slow as the operations let them be.

mod asking;
mod model;
mod party;
mod stage;

use crate::random::Random;
use stage::Stage;

/// Users, numbered from 0.
const USERS: u8 = 4;
/// Devices of each user, numbered from 0.
const DEVICES: u8 = 2;
/// Conversations, numbered from 0; the first is between two.
const CONVERSATIONS: u8 = 4;

/// One thing that is done or happens. Numbers stand for whatever they leave as a remainder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// A device connects, whether it is connected or not.
    Connect {
        /// The device.
        device: u8,
    },
    /// A device's connection ends.
    Disconnect {
        /// The device.
        device: u8,
    },
    /// A device sends the message of a number; `other` gives it other bytes than that number has normally.
    Send {
        /// The device.
        device: u8,
        /// Where.
        conversation: u8,
        /// Which message of this user and conversation.
        number: u8,
        /// With other bytes.
        other: bool,
    },
    /// A device sends so many new messages at once.
    Burst {
        /// The device.
        device: u8,
        /// Where.
        conversation: u8,
        /// How many.
        count: u8,
    },
    /// A device sends a message that is not kept.
    Pass {
        /// The device.
        device: u8,
        /// Where.
        conversation: u8,
    },
    /// A device acknowledges what it has, or so much more than that or less.
    Receive {
        /// The device.
        device: u8,
        /// Where.
        conversation: u8,
        /// So much further; less, when negative.
        more: i8,
    },
    /// A user has read what a device of theirs has acknowledged, or so much more or less.
    Read {
        /// The device.
        device: u8,
        /// Where.
        conversation: u8,
        /// So much further; less, when negative.
        more: i8,
    },
    /// A page of the log.
    Sync {
        /// The device.
        device: u8,
        /// Where.
        conversation: u8,
        /// The place before the first wanted entry.
        after: u8,
        /// At most so many entries, and one more.
        limit: u8,
    },
    /// A conversation is made of the users whose bits are set.
    Create {
        /// Who asks.
        by: u8,
        /// Where.
        conversation: u8,
        /// A bit for each user.
        members: u8,
    },
    /// A user is added.
    Add {
        /// Who asks.
        by: u8,
        /// Where.
        conversation: u8,
        /// Which user.
        user: u8,
    },
    /// A user is removed, or leaves.
    Remove {
        /// Who asks.
        by: u8,
        /// Where.
        conversation: u8,
        /// Which user.
        user: u8,
    },
    /// A user wants the list of their conversations.
    List {
        /// Which user.
        user: u8,
    },
    /// So many pieces of mail arrive, of those that wait in one of the queues.
    Mail {
        /// Which of those that are not empty.
        queue: u8,
        /// How many.
        count: u8,
    },
    /// The store carries out so many requests of one partition.
    Commit {
        /// Which partition.
        partition: u8,
        /// How many.
        count: u8,
    },
    /// So many answers of the store arrive at one partition.
    Stored {
        /// Which partition.
        partition: u8,
        /// How many.
        count: u8,
    },
    /// Everything that waits arrives and is done.
    Settle,
    /// Time passes.
    Wait {
        /// Tenths of a second.
        tenths: u8,
    },
    /// The disk is full from now on, or not any more.
    Full {
        /// Whether it is.
        full: bool,
    },
    /// The process ends and starts again.
    Restart,
}

/// Makes a list of any bytes: one byte says which operation, the next what it is about.
pub fn ops_from_bytes(bytes: &[u8]) -> Vec<Op> {
    let mut bytes = bytes.iter().copied();
    let mut ops = Vec::new();
    while let Some(which) = bytes.next() {
        let mut next = || bytes.next().unwrap_or_default();
        ops.push(match which {
            0..15 => Op::Connect { device: next() },
            15..20 => Op::Disconnect { device: next() },
            20..65 => Op::Send { device: next(), conversation: next(), number: next(), other: which == 20 },
            65..67 => Op::Burst { device: next(), conversation: next(), count: next() },
            67..72 => Op::Pass { device: next(), conversation: next() },
            72..105 => {
                // Either what it has, or far from that: who acknowledges a little more than it has gets none of it.
                let more = if which < 100 { 0 } else { next() as i8 };
                Op::Receive { device: next(), conversation: next(), more }
            }
            105..115 => {
                let more = if which < 110 { 0 } else { beside(next()) };
                Op::Read { device: next(), conversation: next(), more }
            }
            115..122 => {
                Op::Sync { device: next(), conversation: next(), after: next() % 64, limit: next() % 32 }
            }
            122..132 => Op::Create { by: next(), conversation: next(), members: next() },
            132..140 => Op::Add { by: next(), conversation: next(), user: next() },
            140..146 => Op::Remove { by: next(), conversation: next(), user: next() },
            146..149 => Op::List { user: next() },
            149..185 => Op::Mail { queue: next(), count: next() % 8 },
            185..210 => Op::Commit { partition: next(), count: next() % 8 },
            210..235 => Op::Stored { partition: next(), count: next() % 8 },
            235..241 => Op::Settle,
            241..250 => Op::Wait { tenths: next() % 32 },
            250..252 => Op::Full { full: true },
            252..255 => Op::Full { full: false },
            255 => Op::Restart,
        });
    }
    ops
}

/// A little more or less, mostly; now and then much.
fn beside(byte: u8) -> i8 {
    if byte < 192 { (byte % 16) as i8 - 8 } else { byte as i8 }
}

/// A list of so many operations, from a seed.
pub fn ops_from_seed(seed: u64, count: usize) -> Vec<Op> {
    let mut random = Random::new(seed);
    let bytes: Vec<u8> = (0..count * 4).map(|_| random.next() as u8).collect();
    let mut ops = ops_from_bytes(&bytes);
    ops.truncate(count);
    ops
}

/// Carries a list out, lets everything come to rest, and says what is wrong.
///
/// # Errors
/// What the rules did that the model would not have.
pub fn run(ops: &[Op]) -> Result<(), String> {
    let mut stage = Stage::new();
    for (index, op) in ops.iter().enumerate() {
        stage.perform(*op).map_err(|what| format!("operation {index}, {op:?}: {what}"))?;
    }
    stage.come_to_rest().map_err(|what| format!("at rest: {what}"))
}

/// Leaves out whatever a failing list does not need in order to fail.
pub fn shrink(ops: &[Op]) -> Vec<Op> {
    let mut ops = ops.to_vec();
    let mut chunk = ops.len().div_ceil(2);
    while chunk > 0 {
        let mut at = 0;
        while at < ops.len() {
            let end = (at + chunk).min(ops.len());
            let shorter: Vec<Op> = ops[..at].iter().chain(&ops[end..]).copied().collect();
            if run(&shorter).is_err() { ops = shorter } else { at = end }
        }
        chunk /= 2;
    }
    ops
}
