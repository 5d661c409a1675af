//! What a store answers.

use model::{
    ConversationId, ConversationKind, ConversationListing, DeviceId, DeviceKey, Entry, Seq, UserId, Wall,
};

/// The answer to one [`crate::Request`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The conversation, or that there is none.
    Conversation(Option<ConversationRecord>),
    /// A page of a log.
    Page(Vec<Entry>),
    /// Where a device may be behind, ordered by conversation. Also names conversations in which it is not behind but
    /// whose mark has not been taken away yet.
    Pending(Vec<PendingRecord>),
    /// A user's conversations, ordered by id.
    Conversations(Vec<ConversationListing>),
    /// The device is known; `fresh` when it was not before. The list is as in `Pending`, and names all the user's conversations
    /// when `fresh`.
    Registered {
        /// Whether this request made it known.
        fresh: bool,
        /// Where it starts.
        conversations: Vec<PendingRecord>,
    },
    /// The conversation as it now is.
    Created {
        /// Whether this request made it.
        fresh: bool,
        /// What it is.
        record: ConversationRecord,
    },
    /// The message has this place.
    Appended {
        /// Its place.
        seq: Seq,
    },
    /// The message was there already.
    Duplicate {
        /// Its place.
        seq: Seq,
        /// When it was taken.
        ts: Wall,
    },
    /// The client id names another message of the same user.
    ClientIdReused,
    /// The member is in.
    MemberAdded {
        /// The place of the entry that says so.
        seq: Seq,
        /// The member's devices, ordered; their cursors are at `seq - 1` and they are marked pending.
        devices: Vec<DeviceId>,
    },
    /// The member is out.
    MemberRemoved {
        /// The place of the entry that says so.
        seq: Seq,
        /// The member's devices that were marked pending, ordered. The owner may not know of all of them yet.
        unmarked: Vec<DeviceId>,
    },
    /// It is done.
    Done,
    /// So many client ids were forgotten.
    Forgotten(u32),
    /// What was made, and what was there.
    Imported(Imported),
    /// What was removed, and what stayed.
    Cleaned(Cleaned),
    /// The conversation named by a write does not exist, or the member to be removed is none, or the one to be added is
    /// one already: the asker's picture is out of date. Nothing was changed by this request.
    Conflict,
    /// Not done: the disk takes no more for now. Only writes are answered so.
    ReadOnly,
}

/// What became of a [`crate::Request::Import`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    /// Users that got their phone number.
    pub users: u64,
    /// Users that had a phone number already, whichever.
    pub users_there: u64,
    /// Users who got none, since it belongs to somebody else; nothing of them was made.
    pub phones_taken: u64,
    /// Devices that became known, in the order of asking. Nothing is pending for them.
    pub devices: Vec<DeviceKey>,
    /// Conversations made.
    pub conversations: u64,
    /// Conversations that existed already.
    pub conversations_there: u64,
}

/// What became of a [`crate::Request::Clean`]: what of each kind was removed, and what stayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cleaned {
    /// Users.
    pub users: u64,
    /// Devices of these.
    pub devices: u64,
    /// Client ids of these, and of the conversations.
    pub client_ids: u64,
    /// Conversations.
    pub conversations: u64,
    /// Entries that were kept of their logs.
    pub entries: u64,
    /// Memberships in them.
    pub members: u64,
    /// Cursors in them.
    pub cursors: u64,
    /// Users that stayed.
    pub users_stayed: u64,
    /// Conversations that these are members of.
    pub conversations_stayed: u64,
}

impl Cleaned {
    /// All that was removed.
    pub fn rows(&self) -> u64 {
        self.users
            + self.devices
            + self.client_ids
            + self.conversations
            + self.entries
            + self.members
            + self.cursors
    }
}

/// What the owner of a conversation keeps of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationRecord {
    /// How it came about.
    pub kind: ConversationKind,
    /// The last place of its log.
    pub head: Seq,
    /// Everything up to here is no longer kept.
    pub trimmed: Seq,
    /// Its members in the order in which they came (by `joined`, then by id).
    pub members: Vec<MemberRecord>,
}

/// A member of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberRecord {
    /// Who.
    pub user: UserId,
    /// The entry that made them a member.
    pub joined: Seq,
    /// Up to where they have read.
    pub read: Seq,
    /// Their devices, ordered by id.
    pub devices: Vec<DeviceRecord>,
}

/// A device of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceRecord {
    /// Which.
    pub device: DeviceId,
    /// Up to where it has acknowledged, or where it began.
    pub cursor: Seq,
    /// Whether it has acknowledged anything here: where it began counts for nothing in receipts.
    pub acknowledged: bool,
    /// Whether the pending index has it for this conversation. Whenever `cursor` is behind the head, it has.
    pub marked: bool,
}

/// A conversation in which a device may be behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingRecord {
    /// Where.
    pub conversation: ConversationId,
    /// Up to where the device has acknowledged.
    pub cursor: Seq,
    /// The last place of the log.
    pub head: Seq,
}
