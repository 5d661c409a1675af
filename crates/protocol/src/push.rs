//! What the server says unasked.

use std::borrow::Cow;

use model::{ConversationId, ConversationSummary, DeviceKey, Entry, Payload, Seq, UserId, Wall};

use crate::{CloseCode, Window};

/// One push; it has no id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Push<'a> {
    /// `message`: an entry of a log.
    Message {
        /// Which log.
        conversation: ConversationId,
        /// Its place there and what it says.
        entry: Cow<'a, Entry>,
    },
    /// `message` without a `seq`: sent as passing, never stored.
    Passing(Passing),
    /// `receipt`
    Receipt(Receipt),
    /// `conversation`
    Conversation(ConversationPush<'a>),
    /// `caught_up`: everything that was pending at `connect` has been pushed.
    CaughtUp,
    /// `token_expiring`
    TokenExpiring {
        /// When the session ends unless refreshed.
        expires_at: Wall,
    },
    /// `disconnect`: the last push before the server closes.
    Disconnect(Disconnect<'a>),
}

/// A message that is not part of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passing {
    /// Where it was sent to.
    pub conversation: ConversationId,
    /// The sender.
    pub from: DeviceKey,
    /// When the server took it.
    pub ts: Wall,
    /// The opaque bytes.
    pub payload: Payload,
}

/// How far one member's devices are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// Which log.
    pub conversation: ConversationId,
    /// Which member.
    pub user: UserId,
    /// The highest entry that some device of this member has acknowledged.
    pub delivered: Seq,
    /// The highest entry this member has read; never beyond `delivered`.
    pub read: Seq,
}

/// A conversation this user was added to, changed, or removed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationPush<'a> {
    /// This user is now a member.
    Added(Cow<'a, ConversationSummary>),
    /// This user is a member as before; others came or went.
    Changed(Cow<'a, ConversationSummary>),
    /// This user is no longer a member, and is told nothing else.
    Removed(ConversationId),
}

/// The last word before a close.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disconnect<'a> {
    /// The code the close frame will carry; whether to come back follows from it.
    pub code: CloseCode,
    /// For the client's log.
    pub reason: Cow<'a, str>,
    /// When to come back, if at all.
    pub after: Window,
}
