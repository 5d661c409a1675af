//! What moves the rules.

use std::num::NonZeroU64;
use std::sync::Arc;

use model::{
    ClientId, ConnectionId, ConversationId, ConversationKind, ConversationSummary, DeviceKey, Entry, HashKey,
    PartitionId, Payload, Seq, ShardId, UserId, partition_of_conversation, partition_of_user,
};
use store::Reply;

use crate::effect::Ticket;
use crate::users::Users;

/// Who is to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A command that came over a connection. Without an id only a refusal is told.
    Connection {
        /// The connection.
        connection: ConnectionId,
        /// The client's number for the command.
        id: Option<NonZeroU64>,
    },
    /// A request that entered at a shard from outside the sockets (REST).
    Outside {
        /// The shard it entered at.
        shard: ShardId,
        /// The number under which somebody waits there.
        ticket: u64,
    },
}

/// Anything that moves the rules. Whoever makes one has already checked the token.
#[derive(Debug, Clone)]
pub enum Input {
    /// A device wants a session on a connection; an older session of the same device gives way.
    Connect {
        /// Who is to be answered.
        origin: Origin,
        /// The connection.
        connection: ConnectionId,
        /// The device.
        device: DeviceKey,
    },
    /// A connection is gone.
    Disconnect {
        /// The connection.
        connection: ConnectionId,
        /// The device that had it.
        device: DeviceKey,
    },
    /// A user wants the list of their conversations.
    ListConversations {
        /// Who is to be answered.
        origin: Origin,
        /// Whose.
        user: UserId,
    },
    /// Something for the owner of a conversation.
    Chat {
        /// The conversation.
        conversation: ConversationId,
        /// What.
        act: Act,
    },
    /// The owner of a conversation has a new entry for some users.
    Deliver(Delivery),
    /// A device's cursor is durably here.
    Acknowledged {
        /// Whose.
        device: DeviceKey,
        /// Where.
        conversation: ConversationId,
        /// Up to here.
        cursor: Seq,
    },
    /// Devices that lost a pending mark.
    Unmarked {
        /// Which; all belong to users of the addressed partition.
        devices: Vec<DeviceKey>,
    },
    /// How far a member has got, for some users to see.
    Receipt {
        /// Where.
        conversation: ConversationId,
        /// Who has got so far.
        user: UserId,
        /// Up to where a device of theirs has acknowledged.
        delivered: Seq,
        /// Up to where they have read.
        read: Seq,
        /// Who is told.
        users: Users,
        /// The device that caused it need not be told.
        except: DeviceKey,
    },
    /// A passing message for the live sessions of some users.
    Pass {
        /// Where.
        conversation: ConversationId,
        /// Who sent it.
        from: DeviceKey,
        /// The ciphertext.
        payload: Payload,
        /// Who is told.
        users: Users,
    },
    /// A conversation was changed.
    Changed {
        /// What it is now.
        summary: Arc<ConversationSummary>,
        /// What that means for the users named.
        event: MembershipEvent,
        /// Who is told.
        users: Users,
    },
    /// Something of a conversation may have been committed without any news of it: the sessions of these users have to begin anew,
    /// from their cursors, and their devices may have got marks.
    Interrupted {
        /// Whose.
        users: Users,
        /// Devices of these users that may be marked pending; all belong to users of the addressed partition.
        devices: Vec<DeviceKey>,
    },
    /// The store has answered.
    Stored {
        /// What was asked.
        ticket: Ticket,
        /// The answer.
        reply: Reply,
    },
}

/// A new entry on its way to the owners of users.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Where.
    pub conversation: ConversationId,
    /// The entry.
    pub entry: Arc<Entry>,
    /// Users of the addressed partition.
    pub users: Users,
    /// The device it came from, which has it.
    pub except: Option<DeviceKey>,
    /// Devices of these users that were marked pending for it.
    pub marked: Vec<DeviceKey>,
}

/// What a change of a conversation means to a user who is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MembershipEvent {
    /// They are a member from now on.
    Added,
    /// They are no member any more.
    Removed,
    /// They are a member as before; others came or went.
    Changed,
}

/// What the owner of a conversation is asked.
#[derive(Debug, Clone)]
pub enum Act {
    /// Put a message into the log.
    Send {
        /// Who is to be answered.
        origin: Origin,
        /// The sending device.
        from: DeviceKey,
        /// The sender's name for it.
        client_id: ClientId,
        /// The ciphertext.
        payload: Payload,
    },
    /// Tell the members who are online, and nobody later.
    Pass {
        /// Who is to be answered.
        origin: Origin,
        /// The sending device.
        from: DeviceKey,
        /// The ciphertext.
        payload: Payload,
    },
    /// A device has everything up to here.
    Receive {
        /// Who is to be answered.
        origin: Origin,
        /// The device.
        device: DeviceKey,
        /// Up to here.
        seq: Seq,
    },
    /// A user has read up to here.
    Read {
        /// Who is to be answered.
        origin: Origin,
        /// The device on which it was read.
        device: DeviceKey,
        /// Up to here.
        seq: Seq,
    },
    /// A page of what is kept.
    Sync {
        /// Who is to be answered.
        origin: Origin,
        /// Who asks.
        user: UserId,
        /// The place before the first wanted one.
        after: Seq,
        /// Most entries.
        limit: u32,
    },
    /// Make the conversation.
    Create {
        /// Who is to be answered.
        origin: Origin,
        /// Who asks.
        by: UserId,
        /// What kind.
        kind: ConversationKind,
        /// The members, `by` included, without duplicates.
        members: Vec<UserId>,
    },
    /// Add a member.
    Add {
        /// Who is to be answered.
        origin: Origin,
        /// Who asks.
        by: UserId,
        /// Who is to come.
        user: UserId,
    },
    /// Remove a member, or leave.
    Remove {
        /// Who is to be answered.
        origin: Origin,
        /// Who asks.
        by: UserId,
        /// Who is to go.
        user: UserId,
    },
    /// A member has a new device, which starts at this cursor and is marked pending.
    DeviceAdded {
        /// The device.
        device: DeviceKey,
        /// Where it starts.
        cursor: Seq,
    },
    /// A device has everything up to here: what it acknowledged, and after that what it sent itself.
    Passed {
        /// The device.
        device: DeviceKey,
        /// Up to here, inclusive.
        seq: Seq,
    },
}

impl Act {
    /// Who is to be answered, when anybody is.
    pub fn origin(&self) -> Option<Origin> {
        match self {
            Act::Send { origin, .. }
            | Act::Pass { origin, .. }
            | Act::Receive { origin, .. }
            | Act::Read { origin, .. }
            | Act::Sync { origin, .. }
            | Act::Create { origin, .. }
            | Act::Add { origin, .. }
            | Act::Remove { origin, .. } => Some(*origin),
            Act::DeviceAdded { .. } | Act::Passed { .. } => None,
        }
    }
}

/// What an input is about, for when the rules have failed with it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Subject {
    /// Who is to be answered.
    pub origin: Option<Origin>,
    /// The conversation.
    pub conversation: Option<ConversationId>,
}

impl Input {
    /// What it is about.
    pub fn subject(&self) -> Subject {
        match self {
            Input::Connect { origin, .. } | Input::ListConversations { origin, .. } => {
                Subject { origin: Some(*origin), conversation: None }
            }
            Input::Chat { conversation, act } => {
                Subject { origin: act.origin(), conversation: Some(*conversation) }
            }
            Input::Stored { ticket: Ticket::Conversation { conversation, .. }, .. } => {
                Subject { origin: None, conversation: Some(*conversation) }
            }
            Input::Stored {
                ticket: Ticket::Register { origin, .. } | Ticket::Conversations(origin), ..
            } => Subject { origin: Some(*origin), conversation: None },
            _ => Subject::default(),
        }
    }

    /// The partition that owns what a request from outside touches. Mail between partitions and answers of the store carry
    /// their address with them and are not asked.
    pub fn owner(&self, key: &HashKey) -> Option<PartitionId> {
        match self {
            Input::Connect { device, .. } | Input::Disconnect { device, .. } => {
                Some(partition_of_user(key, device.user))
            }
            Input::ListConversations { user, .. } => Some(partition_of_user(key, *user)),
            Input::Chat { conversation, .. } => Some(partition_of_conversation(key, *conversation)),
            _ => None,
        }
    }
}
