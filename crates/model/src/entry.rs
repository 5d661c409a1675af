//! What a conversation's log is made of.

use std::sync::Arc;

use crate::{ClientId, ConversationId, DeviceKey, Payload, Seq, UserId, Wall};

/// One place of a log. Everybody who may see it sees the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its place.
    pub seq: Seq,
    /// When the server took it, for people to read.
    pub ts: Wall,
    /// What it says.
    pub body: Body,
}

/// What an entry says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Somebody sent something.
    Message {
        /// The device it came from.
        from: DeviceKey,
        /// The sender's own name for it.
        client_id: ClientId,
        /// The ciphertext.
        payload: Payload,
    },
    /// The conversation itself changed.
    Change(Change),
}

/// A change of a conversation. It is an entry of the log, so everybody agrees who was a member of which message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The first entry of every log.
    Created {
        /// Who asked for it.
        by: UserId,
        /// Everybody who is in from the start.
        members: Vec<UserId>,
    },
    /// From this entry on `user` is a member.
    Added {
        /// Who asked for it.
        by: UserId,
        /// Who came.
        user: UserId,
    },
    /// After this entry `user` is no member.
    Removed {
        /// Who asked for it.
        by: UserId,
        /// Who went.
        user: UserId,
    },
    /// After this entry `user` is no member, by their own wish.
    Left {
        /// Who went.
        user: UserId,
    },
}

/// How a conversation came about and who may change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConversationKind {
    /// Two users, the same one whoever asks; its members never change.
    Direct,
    /// Any number of users up to the limit.
    Group,
}

/// A conversation as told to its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationSummary {
    /// Its id.
    pub id: ConversationId,
    /// How it came about.
    pub kind: ConversationKind,
    /// Everybody in it, in the order in which they came.
    pub members: Arc<[UserId]>,
    /// The last place of its log.
    pub head: Seq,
}

/// A conversation in the list of one of its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationListing {
    /// What it is.
    pub summary: ConversationSummary,
    /// How far each member has got, in the order of the members. Empty when there are too many of them.
    pub receipts: Vec<Receipt>,
}

/// How far a member of a conversation has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// Who.
    pub user: UserId,
    /// Up to where the furthest of their devices has acknowledged; [`Seq::ZERO`] without a device.
    pub delivered: Seq,
    /// Up to where they have read, never beyond `delivered`.
    pub read: Seq,
}

impl Receipt {
    /// A read mark may be stored though the acknowledgement before it met a full disk, or was for the user's own message; the receipt
    /// tells no more of it than was acknowledged.
    pub fn new(user: UserId, delivered: Seq, read: Seq) -> Self {
        Receipt { user, delivered, read: read.min(delivered) }
    }
}
