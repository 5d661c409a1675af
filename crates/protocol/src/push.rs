//! What the server says unasked.

use std::borrow::Cow;

use model::{ClientId, ConversationId, DeviceKey, Seq, UserId, Wall};

use crate::{CloseCode, Window};

/// One push; it has no id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Push<'a> {
    /// `message`: an entry of a log.
    Message(Message<'a>),
    /// `message` without a `seq`: sent as passing, never stored.
    Passing(Passing<'a>),
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

/// An entry of a conversation's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<'a> {
    /// Which log.
    pub conversation: ConversationId,
    /// Its place there.
    pub seq: Seq,
    /// When the server accepted it.
    pub ts: Wall,
    /// What it says.
    pub body: Body<'a>,
}

/// What an entry of a log holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body<'a> {
    /// Something a member sent.
    Sent {
        /// The sender.
        from: DeviceKey,
        /// What the sender calls it.
        client_id: ClientId,
        /// The opaque bytes.
        payload: Cow<'a, [u8]>,
    },
    /// A change of the membership; `system` on the wire.
    System(SystemEntry<'a>),
}

/// A change of a conversation's membership.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemEntry<'a> {
    /// What happened.
    pub event: MemberEvent,
    /// To whom: those added or removed, the one who left, or the first members.
    pub users: Cow<'a, [UserId]>,
    /// By whom.
    pub by: UserId,
}

/// What can happen to a conversation's membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemberEvent {
    /// The conversation began, with these members.
    Created,
    /// Somebody was made a member.
    Added,
    /// Somebody was put out.
    Removed,
    /// Somebody left.
    Left,
}

impl MemberEvent {
    /// Every event.
    pub const ALL: [MemberEvent; 4] =
        [MemberEvent::Created, MemberEvent::Added, MemberEvent::Removed, MemberEvent::Left];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            MemberEvent::Created => "created",
            MemberEvent::Added => "added",
            MemberEvent::Removed => "removed",
            MemberEvent::Left => "left",
        }
    }

    /// The event of that name.
    pub fn from_name(name: &str) -> Option<MemberEvent> {
        MemberEvent::ALL.into_iter().find(|event| event.name() == name)
    }
}

/// A message that is not part of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passing<'a> {
    /// Where it was sent to.
    pub conversation: ConversationId,
    /// The sender.
    pub from: DeviceKey,
    /// When the server took it.
    pub ts: Wall,
    /// The opaque bytes.
    pub payload: Cow<'a, [u8]>,
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
pub struct ConversationPush<'a> {
    /// Which conversation.
    pub conversation: ConversationId,
    /// What happened.
    pub change: ConversationChange<'a>,
}

/// What happened to a conversation, as seen by the user who is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationChange<'a> {
    /// This user is now a member.
    Added {
        /// Direct or group.
        kind: ConversationKind,
        /// Everybody in it, this user included.
        members: Cow<'a, [UserId]>,
        /// The log's last entry.
        head: Seq,
    },
    /// Others were added or removed, or left.
    Changed {
        /// Direct or group.
        kind: ConversationKind,
        /// Everybody in it, this user included.
        members: Cow<'a, [UserId]>,
        /// The log's last entry.
        head: Seq,
    },
    /// This user is no longer a member.
    Removed,
}

/// How a conversation came to be, and whether its membership may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConversationKind {
    /// Two users, for ever; the same one for the same pair.
    Direct,
    /// Any members, who may change.
    Group,
}

impl ConversationKind {
    /// Both kinds.
    pub const ALL: [ConversationKind; 2] = [ConversationKind::Direct, ConversationKind::Group];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            ConversationKind::Direct => "direct",
            ConversationKind::Group => "group",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<ConversationKind> {
        ConversationKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
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
