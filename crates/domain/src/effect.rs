//! What the rules wish.

use std::fmt;
use std::sync::Arc;

use model::{
    ConnectionId, ConversationId, ConversationListing, ConversationSummary, DeviceKey, Entry, PartitionId,
    Payload, Seq, ShardId, UserId, Wall,
};
use store::Request;

use crate::input::{Input, MembershipEvent, Origin};

/// One wish.
#[derive(Debug, Clone)]
pub enum Effect {
    /// Tell whoever asked.
    Answer {
        /// Who asked.
        origin: Origin,
        /// What they are told.
        answer: Result<Answer, Refusal>,
    },
    /// Tell a client something it did not ask for.
    Push {
        /// The connection of its session.
        connection: ConnectionId,
        /// What.
        push: Push,
    },
    /// Close a connection.
    Close {
        /// Which.
        connection: ConnectionId,
        /// Why.
        cause: CloseCause,
    },
    /// Ask the store. The answer comes back as [`Input::Stored`] to this partition, in the order of asking.
    Ask {
        /// What the answer is for.
        ticket: Ticket,
        /// What is asked.
        request: Request,
    },
    /// Tell another partition (or this one).
    Mail {
        /// Which.
        to: PartitionId,
        /// What.
        input: Input,
    },
    /// Close every connection of a user of this partition, which has lost its sessions. Wished by the shard that owns it, of all
    /// shards.
    Evict {
        /// Which partition.
        partition: PartitionId,
        /// By which shard.
        by: ShardId,
    },
}

/// The wishes of one or more inputs, in order.
pub type Effects = Vec<Effect>;

/// What an answer of the store is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ticket {
    /// The oldest request in flight of this conversation, or its loading.
    Conversation {
        /// Which.
        conversation: ConversationId,
        /// In which life of the partition's conversations it was asked: what an earlier one asked is of no use any more.
        life: u16,
    },
    /// Making a device known.
    Register {
        /// Who waits for it.
        origin: Origin,
        /// The connection of the session that waits.
        connection: ConnectionId,
        /// The device.
        device: DeviceKey,
    },
    /// What is pending for a session that just began.
    Pending {
        /// Its connection.
        connection: ConnectionId,
        /// Its device.
        device: DeviceKey,
    },
    /// A page for a session that is behind.
    Page {
        /// Its connection.
        connection: ConnectionId,
        /// Its device.
        device: DeviceKey,
        /// Of this log.
        conversation: ConversationId,
        /// The place before the first entry asked for.
        after: Seq,
    },
    /// A list of conversations.
    Conversations(Origin),
}

/// A request was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The session stands.
    Connected,
    /// The message is in the log, durably.
    Sent {
        /// Its place.
        seq: Seq,
        /// When it was taken.
        ts: Wall,
        /// Whether it was there before this request.
        duplicate: bool,
    },
    /// The passing message was handed on.
    Passed,
    /// The cursor is durably there (or was further already).
    Received,
    /// The read mark is durably there (or was further already).
    Read,
    /// A page of what is kept.
    Page {
        /// Of this log.
        conversation: ConversationId,
        /// Its entries, in order.
        entries: Vec<Entry>,
        /// The last place of the log.
        head: Seq,
        /// Whether more is kept after the last of these.
        more: bool,
    },
    /// The conversation as it now is.
    Conversation {
        /// What it is.
        summary: Arc<ConversationSummary>,
        /// Whether this request made or changed it.
        fresh: bool,
    },
    /// A user's conversations, and how far the members of the smaller ones have got.
    Conversations(Vec<ConversationListing>),
}

/// Why a request was not done. Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The request makes no sense here; says why.
    BadRequest(&'static str),
    /// The asker is not a member, or there is no such conversation: an outsider cannot tell which.
    NotMember,
    /// What the request names is not there.
    NotFound(&'static str),
    /// The client id names another message.
    ClientIdReused,
    /// The disk takes no more for now.
    ReadOnly,
    /// Too much is waiting here; says what.
    Overloaded(&'static str),
    /// Our own mistake.
    Internal(&'static str),
}

/// Something a client is told without asking.
#[derive(Debug, Clone)]
pub enum Push {
    /// An entry of a log.
    Entry {
        /// The log.
        conversation: ConversationId,
        /// The entry.
        entry: Arc<Entry>,
    },
    /// A passing message.
    Passing {
        /// The conversation.
        conversation: ConversationId,
        /// Who sent it.
        from: DeviceKey,
        /// The ciphertext.
        payload: Payload,
    },
    /// How far another member has got.
    Receipt {
        /// Where.
        conversation: ConversationId,
        /// Who.
        user: UserId,
        /// Up to where a device of theirs has acknowledged.
        delivered: Seq,
        /// Up to where they have read.
        read: Seq,
    },
    /// A conversation changed.
    Conversation {
        /// What it is now.
        summary: Arc<ConversationSummary>,
        /// What that means for this user.
        event: MembershipEvent,
    },
    /// Everything that was pending when the session began has been pushed.
    CaughtUp,
}

/// Why the rules close a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseCause {
    /// The same device has a newer connection.
    Replaced,
    /// The session could not be made, or cannot go on; says why.
    Refused(Refusal),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::BadRequest(why)
            | Refusal::NotFound(why)
            | Refusal::Overloaded(why)
            | Refusal::Internal(why) => f.write_str(why),
            Refusal::NotMember => f.write_str("you are not a member of this conversation"),
            Refusal::ClientIdReused => f.write_str("this client_id names another message of yours"),
            Refusal::ReadOnly => f.write_str("the server's disk takes no more for now"),
        }
    }
}
