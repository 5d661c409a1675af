//! What may be asked of a store.

use std::ops::RangeInclusive;

use model::{ClientId, ConversationId, ConversationKind, DeviceKey, Payload, Phone, Seq, UserId, Wall};

/// One thing asked. Requests of one batch are carried out in order, in one transaction; each sees what those
/// before it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Everything the owner of a conversation keeps of it. → [`crate::Reply::Conversation`]
    LoadConversation {
        /// Which.
        conversation: ConversationId,
    },
    /// The entries `after < seq ≤ up_to` that are still kept, in order. → [`crate::Reply::Page`]
    ReadLog {
        /// Which log.
        conversation: ConversationId,
        /// The place before the first wanted one.
        after: Seq,
        /// The last wanted place.
        up_to: Seq,
        /// Most entries.
        limit: u32,
        /// Most payload bytes in all; the first entry always fits.
        bytes_max: usize,
    },
    /// The conversations in which a device may be behind. → [`crate::Reply::Pending`]
    ListPending {
        /// Whose.
        device: DeviceKey,
    },
    /// The conversations a user is a member of, ordered by id. → [`crate::Reply::Conversations`]
    ListConversations {
        /// Whose.
        user: UserId,
        /// Conversations with more members than this are listed without receipts.
        receipts_members_max: usize,
    },
    /// Makes a device known. A user's first device starts, in every conversation, just before the entry that made
    /// the user a member; a later one starts at the head. Every conversation of the user is marked pending for the
    /// device, whether or not it is behind. A known device changes nothing. → [`crate::Reply::Registered`]
    RegisterDevice {
        /// Which.
        device: DeviceKey,
        /// When.
        ts: Wall,
    },
    /// Makes a conversation, with [`model::Change::Created`] as its first entry (seq 1). Every device of every member
    /// gets a cursor at 0 and a pending mark. One that exists already is left as it is. → [`crate::Reply::Created`]
    CreateConversation {
        /// Its id.
        conversation: ConversationId,
        /// Its kind.
        kind: ConversationKind,
        /// Who asked.
        by: UserId,
        /// Everybody in it, `by` included; no duplicates.
        members: Vec<UserId>,
        /// When.
        ts: Wall,
    },
    /// Puts a message at the end of a log, once: the sender's user and the client id name it. A repeat with the same
    /// conversation and bytes changes nothing and answers with the first place; with others it is refused.
    /// → [`crate::Reply::Appended`], [`crate::Reply::Duplicate`] or [`crate::Reply::ClientIdReused`]
    Append {
        /// The log.
        conversation: ConversationId,
        /// The sending device.
        from: DeviceKey,
        /// The sender's name for the message.
        client_id: ClientId,
        /// When.
        ts: Wall,
        /// The ciphertext.
        payload: Payload,
        /// Devices to mark as pending in this conversation (those not yet marked). Not done for a repeat.
        mark: Vec<DeviceKey>,
    },
    /// Adds a member and the entry that says so; the member's devices start just before it. Marks every device of
    /// every member pending. → [`crate::Reply::MemberAdded`]
    AddMember {
        /// Where.
        conversation: ConversationId,
        /// Who comes; not a member yet.
        user: UserId,
        /// Who asked.
        by: UserId,
        /// When.
        ts: Wall,
    },
    /// Adds the entry that says that a member goes ([`model::Change::Left`] when `by` is the member), then removes the
    /// member with cursors and pending marks. Marks every device of the remaining members pending.
    /// → [`crate::Reply::MemberRemoved`]
    RemoveMember {
        /// Where.
        conversation: ConversationId,
        /// Who goes; a member.
        user: UserId,
        /// Who asked.
        by: UserId,
        /// When.
        ts: Wall,
    },
    /// Moves a device's cursor forward to `seq` (never back; nothing when the device has no cursor there).
    /// → [`crate::Reply::Done`]
    Acknowledge {
        /// Where.
        conversation: ConversationId,
        /// Whose cursor.
        device: DeviceKey,
        /// Up to here, inclusive.
        seq: Seq,
    },
    /// Moves a member's read mark forward to `seq` (never back; nothing for a user who is no member).
    /// → [`crate::Reply::Done`]
    MarkRead {
        /// Where.
        conversation: ConversationId,
        /// Whose.
        user: UserId,
        /// Up to here, inclusive.
        seq: Seq,
    },
    /// The owner's housekeeping for a conversation that has fallen quiet: moves cursors forward over what devices sent
    /// themselves, takes pending marks away, and deletes entries up to `trim`, which everybody has.
    /// → [`crate::Reply::Done`]
    Settle {
        /// Where.
        conversation: ConversationId,
        /// Cursors to move forward, as in `Acknowledge`.
        acknowledged: Vec<(DeviceKey, Seq)>,
        /// Devices whose pending mark goes.
        unmark: Vec<DeviceKey>,
        /// Entries up to here, inclusive, go.
        trim: Seq,
    },
    /// Forgets client ids of messages taken before a time. At most a few thousand in one go. → [`crate::Reply::Forgotten`]
    ForgetClientIds {
        /// Before this.
        before: Wall,
    },
    /// Makes many users and conversations at once, as if they had been there for a while: nothing is pending for anybody.
    /// What exists already is left as it is. → [`crate::Reply::Imported`]
    Import {
        /// Made before the conversations.
        users: Vec<ImportedUser>,
        /// May be of users that are not imported.
        conversations: Vec<ImportedConversation>,
        /// When.
        ts: Wall,
    },
    /// Removes the users with a phone number of a range, their devices and client ids, and the conversations that are only theirs: all members are
    /// such users, and nobody else has an entry that is kept or a client id there. Who is a member of another conversation stays, with it.
    /// A conversation that nobody is in any more stays too. → [`crate::Reply::Cleaned`]
    Clean {
        /// Which phone numbers.
        phones: RangeInclusive<Phone>,
    },
}

/// A user with a phone number and a device. The device becomes known only when the user has neither a device nor a conversation
/// yet: otherwise owners of conversations would have to hear of it, as they do when it connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportedUser {
    /// Whose, and which device.
    pub device: DeviceKey,
    /// The number; nobody else may have it.
    pub phone: Phone,
}

/// A conversation as [`Request::CreateConversation`] makes it, in which every device there is has acknowledged the first entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedConversation {
    /// Its id.
    pub conversation: ConversationId,
    /// Its kind.
    pub kind: ConversationKind,
    /// Everybody in it, the maker first; not empty, no duplicates.
    pub members: Vec<UserId>,
}

impl Request {
    /// Whether it changes anything, and so needs the commit before its answer.
    pub fn writes(&self) -> bool {
        !matches!(
            self,
            Request::LoadConversation { .. }
                | Request::ReadLog { .. }
                | Request::ListPending { .. }
                | Request::ListConversations { .. }
        )
    }
}
