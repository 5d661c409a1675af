//! The reference engine: everything in ordered maps, each request in the most obvious way.
//!
//! Owns the meaning of the vocabulary: what this engine answers is right, and the others are compared with it. It forgets
//! nothing (trimmed entries are hidden, not deleted), so that whoever checks an invariant can see all of the past.
//! Deliberately knows no disk: a clone of it is a snapshot of what a disk would hold.

mod import;
mod inspect;

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Body, Change, ClientId, ConversationId, ConversationKind, ConversationListing, ConversationSummary,
    DeviceId, DeviceKey, Entry, Phone, Receipt, Seq, UserId, Wall,
};

use crate::{Engine, FORGET_MAX, Fatal, PendingRecord, Reply, Request, digest};

/// A store without a disk. Equal are two that answer everything alike, now and later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryStore {
    conversations: BTreeMap<ConversationId, Conversation>,
    /// Those with a phone number.
    users: BTreeMap<UserId, (Phone, Wall)>,
    /// The same users, by phone number.
    phones: BTreeMap<Phone, UserId>,
    devices: BTreeMap<DeviceKey, Wall>,
    /// The conversations each user is a member of.
    memberships: BTreeSet<(UserId, ConversationId)>,
    /// The pending index: exactly the cursors that are marked.
    pending: BTreeSet<(DeviceKey, ConversationId)>,
    client_ids: BTreeMap<(UserId, ClientId), Taken>,
    /// The same client ids, oldest first.
    client_ids_by_age: BTreeSet<(Wall, ClientId, UserId)>,
    full: bool,
}

/// Where a client id leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// The log that has the message.
    pub conversation: ConversationId,
    /// Its place there.
    pub seq: Seq,
    /// When it was taken.
    pub ts: Wall,
    /// What it was, as [`digest`] tells.
    pub digest: [u8; 16],
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Conversation {
    kind: ConversationKind,
    /// All entries there ever were, from seq 1 on.
    log: Vec<Entry>,
    trimmed: Seq,
    members: BTreeMap<UserId, Member>,
    cursors: BTreeMap<DeviceKey, Cursor>,
}

/// How far a device is in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cursor {
    seq: Seq,
    /// It has got there by acknowledging, not by beginning there.
    acknowledged: bool,
}

impl Cursor {
    fn beginning(seq: Seq) -> Self {
        Cursor { seq, acknowledged: false }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Member {
    joined: Seq,
    read: Seq,
}

impl Engine for MemoryStore {
    fn commit(&mut self, batch: &[Request], replies: &mut Vec<Reply>) -> Result<(), Fatal> {
        for request in batch {
            let reply = if self.full && request.writes() { Reply::ReadOnly } else { self.execute(request) };
            replies.push(reply);
        }
        Ok(())
    }

    fn devices(&mut self, each: &mut dyn FnMut(DeviceKey, u32)) -> Result<(), Fatal> {
        let conversations = &self.conversations;
        self.pending.retain(|(device, id)| {
            let conversation = &conversations[id];
            conversation.cursors[device].seq < conversation.head()
        });
        for device in self.devices.keys() {
            each(*device, self.marks(*device).count() as u32);
        }
        Ok(())
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on the disk takes no more, or does again.
    pub fn set_full(&mut self, full: bool) {
        self.full = full;
    }

    fn execute(&mut self, request: &Request) -> Reply {
        match request {
            Request::LoadConversation { conversation } => Reply::Conversation(self.record(*conversation)),
            Request::ReadLog { conversation, after, up_to, limit, bytes_max } => {
                Reply::Page(self.page(*conversation, *after, *up_to, *limit, *bytes_max))
            }
            Request::ListPending { device } => Reply::Pending(self.list_pending(*device)),
            Request::ListConversations { user, receipts_members_max } => {
                Reply::Conversations(self.list_conversations(*user, *receipts_members_max))
            }
            Request::RegisterDevice { device, ts } => self.register_device(*device, *ts),
            Request::CreateConversation { conversation, kind, by, members, ts } => {
                self.create_conversation(*conversation, *kind, *by, members, *ts)
            }
            Request::Append { conversation, from, client_id, ts, payload, mark } => {
                let body = Body::Message { from: *from, client_id: *client_id, payload: payload.clone() };
                self.append(*conversation, *from, *client_id, *ts, digest(*conversation, payload), body, mark)
            }
            Request::AddMember { conversation, user, by, ts } => {
                self.add_member(*conversation, *user, *by, *ts)
            }
            Request::RemoveMember { conversation, user, by, ts } => {
                self.remove_member(*conversation, *user, *by, *ts)
            }
            Request::Acknowledge { conversation, device, seq } => {
                self.settle(*conversation, &[(*device, *seq)], &[], Seq::ZERO)
            }
            Request::MarkRead { conversation, user, seq } => self.mark_read(*conversation, *user, *seq),
            Request::Settle { conversation, acknowledged, unmark, trim } => {
                self.settle(*conversation, acknowledged, unmark, *trim)
            }
            Request::ForgetClientIds { before } => self.forget_client_ids(*before),
            Request::Import { users, conversations, ts } => {
                Reply::Imported(self.import(users, conversations, *ts))
            }
            Request::Clean { phones } => Reply::Cleaned(self.clean(phones)),
        }
    }

    fn page(&self, id: ConversationId, after: Seq, up_to: Seq, limit: u32, bytes_max: usize) -> Vec<Entry> {
        let mut page = Vec::new();
        let mut bytes = 0;
        let Some(conversation) = self.conversations.get(&id) else { return page };
        // The entry of seq n is at index n - 1, so the first one wanted is at the index of the place before it.
        let start = after.max(conversation.trimmed).min(conversation.head()).0 as usize;
        for entry in conversation.log[start..].iter().take_while(|entry| entry.seq <= up_to) {
            let length = match &entry.body {
                Body::Message { payload, .. } => payload.len(),
                Body::Change(_) => 0,
            };
            let fits = page.is_empty() || bytes + length <= bytes_max;
            if page.len() == limit as usize || !fits {
                break;
            }
            bytes += length;
            page.push(entry.clone());
        }
        page
    }

    fn list_pending(&self, device: DeviceKey) -> Vec<PendingRecord> {
        let place = |id: ConversationId| self.conversations[&id].place_of(id, device);
        self.marks(device).map(place).collect()
    }

    fn list_conversations(&self, user: UserId, receipts_members_max: usize) -> Vec<ConversationListing> {
        let listing = |id: ConversationId| {
            let conversation = &self.conversations[&id];
            let summary = ConversationSummary {
                id,
                kind: conversation.kind,
                members: conversation.members_by_arrival().map(|(user, _)| user).collect(),
                head: conversation.head(),
            };
            let receipts = match conversation.members.len() <= receipts_members_max {
                true => conversation.receipts().collect(),
                false => Vec::new(),
            };
            ConversationListing { summary, receipts }
        };
        self.conversations_of(user).map(listing).collect()
    }

    fn register_device(&mut self, device: DeviceKey, ts: Wall) -> Reply {
        if self.devices.contains_key(&device) {
            return Reply::Registered { fresh: false, conversations: self.list_pending(device) };
        }
        let first = self.devices_of(device.user).next().is_none();
        self.devices.insert(device, ts);
        let ids: Vec<ConversationId> = self.conversations_of(device.user).collect();
        for id in ids {
            let conversation = self.conversations.get_mut(&id).expect("memberships name conversations");
            let joined = conversation.members[&device.user].joined;
            let start = if first { joined.previous() } else { conversation.head() };
            conversation.cursors.insert(device, Cursor::beginning(start));
            self.pending.insert((device, id));
        }
        Reply::Registered { fresh: true, conversations: self.list_pending(device) }
    }

    fn create_conversation(
        &mut self,
        id: ConversationId,
        kind: ConversationKind,
        by: UserId,
        members: &[UserId],
        ts: Wall,
    ) -> Reply {
        if let Some(record) = self.record(id) {
            return Reply::Created { fresh: false, record };
        }
        let mut conversation = Conversation {
            kind,
            log: Vec::new(),
            trimmed: Seq::ZERO,
            members: BTreeMap::new(),
            cursors: BTreeMap::new(),
        };
        let seq = conversation.push(ts, Body::Change(Change::Created { by, members: members.to_vec() }));
        self.conversations.insert(id, conversation);
        for user in members {
            self.join(id, *user, seq);
        }
        Reply::Created { fresh: true, record: self.record(id).expect("it was just made") }
    }

    #[expect(clippy::too_many_arguments, reason = "they are the fields of one request")]
    fn append(
        &mut self,
        id: ConversationId,
        from: DeviceKey,
        client_id: ClientId,
        ts: Wall,
        digest: [u8; 16],
        body: Body,
        mark: &[DeviceKey],
    ) -> Reply {
        let Some(conversation) = self.conversations.get_mut(&id) else { return Reply::Conflict };
        if let Some(taken) = self.client_ids.get(&(from.user, client_id)) {
            return if taken.digest == digest {
                Reply::Duplicate { seq: taken.seq, ts: taken.ts }
            } else {
                Reply::ClientIdReused
            };
        }
        let seq = conversation.push(ts, body);
        for device in mark {
            if conversation.cursors.contains_key(device) {
                self.pending.insert((*device, id));
            }
        }
        self.client_ids.insert((from.user, client_id), Taken { conversation: id, seq, ts, digest });
        self.client_ids_by_age.insert((ts, client_id, from.user));
        Reply::Appended { seq }
    }

    fn add_member(&mut self, id: ConversationId, user: UserId, by: UserId, ts: Wall) -> Reply {
        let Some(conversation) = self.conversations.get_mut(&id) else { return Reply::Conflict };
        if conversation.members.contains_key(&user) {
            return Reply::Conflict;
        }
        let seq = conversation.push(ts, Body::Change(Change::Added { by, user }));
        self.join(id, user, seq);
        self.mark_all(id);
        Reply::MemberAdded { seq, devices: self.devices_of(user).collect() }
    }

    fn remove_member(&mut self, id: ConversationId, user: UserId, by: UserId, ts: Wall) -> Reply {
        let Some(conversation) = self.conversations.get_mut(&id) else { return Reply::Conflict };
        if conversation.members.remove(&user).is_none() {
            return Reply::Conflict;
        }
        let change = if by == user { Change::Left { user } } else { Change::Removed { by, user } };
        let seq = conversation.push(ts, Body::Change(change));
        conversation.cursors.retain(|device, _| device.user != user);
        let gone = self.pending.extract_if(.., |(device, marked)| *marked == id && device.user == user);
        let unmarked = gone.map(|(device, _)| device.device).collect();
        self.memberships.remove(&(user, id));
        self.mark_all(id);
        Reply::MemberRemoved { seq, unmarked }
    }

    fn mark_read(&mut self, id: ConversationId, user: UserId, seq: Seq) -> Reply {
        let Some(conversation) = self.conversations.get_mut(&id) else { return Reply::Conflict };
        let head = conversation.head();
        if let Some(member) = conversation.members.get_mut(&user) {
            member.read = member.read.max(seq.min(head));
        }
        Reply::Done
    }

    fn settle(
        &mut self,
        id: ConversationId,
        acknowledged: &[(DeviceKey, Seq)],
        unmark: &[DeviceKey],
        trim: Seq,
    ) -> Reply {
        let Some(conversation) = self.conversations.get_mut(&id) else { return Reply::Conflict };
        let head = conversation.head();
        for (device, seq) in acknowledged {
            if let Some(cursor) = conversation.cursors.get_mut(device) {
                let seq = (*seq).min(head);
                if seq >= cursor.seq {
                    *cursor = Cursor { seq, acknowledged: true };
                }
            }
        }
        for device in unmark {
            self.pending.remove(&(*device, id));
        }
        conversation.trimmed = conversation.trimmed.max(trim.min(head));
        Reply::Done
    }

    fn forget_client_ids(&mut self, before: Wall) -> Reply {
        let old: Vec<_> = self
            .client_ids_by_age
            .iter()
            .take_while(|(ts, ..)| *ts < before)
            .take(FORGET_MAX as usize)
            .copied()
            .collect();
        for (ts, client_id, user) in &old {
            self.client_ids.remove(&(*user, *client_id));
            self.client_ids_by_age.remove(&(*ts, *client_id, *user));
        }
        Reply::Forgotten(old.len() as u32)
    }

    /// Makes `user` a member by the entry at `joined`, with a marked cursor before it for each device.
    fn join(&mut self, id: ConversationId, user: UserId, joined: Seq) {
        let devices: Vec<DeviceId> = self.devices_of(user).collect();
        let conversation = self.conversations.get_mut(&id).expect("the caller looked");
        conversation.members.insert(user, Member { joined, read: Seq::ZERO });
        self.memberships.insert((user, id));
        for device in devices {
            let device = DeviceKey { user, device };
            conversation.cursors.insert(device, Cursor::beginning(joined.previous()));
            self.pending.insert((device, id));
        }
    }

    fn mark_all(&mut self, id: ConversationId) {
        let devices = self.conversations[&id].cursors.keys();
        self.pending.extend(devices.map(|device| (*device, id)));
    }

    fn marks(&self, device: DeviceKey) -> impl Iterator<Item = ConversationId> {
        let (first, last) = ((device, ConversationId([0; 16])), (device, ConversationId([0xff; 16])));
        self.pending.range(first..=last).map(|(_, id)| *id)
    }
}

impl Conversation {
    fn head(&self) -> Seq {
        Seq(self.log.len() as u64)
    }

    fn push(&mut self, ts: Wall, body: Body) -> Seq {
        let seq = self.head().next();
        self.log.push(Entry { seq, ts, body });
        seq
    }

    fn place_of(&self, conversation: ConversationId, device: DeviceKey) -> PendingRecord {
        PendingRecord { conversation, cursor: self.cursors[&device].seq, head: self.head() }
    }

    fn cursors_of(&self, user: UserId) -> impl Iterator<Item = (DeviceKey, Cursor)> {
        let (first, last) =
            (DeviceKey { user, device: DeviceId(0) }, DeviceKey { user, device: DeviceId(u32::MAX) });
        self.cursors.range(first..=last).map(|(device, cursor)| (*device, *cursor))
    }

    fn members_by_arrival(&self) -> impl Iterator<Item = (UserId, Member)> {
        let mut members: Vec<_> = self.members.iter().map(|(user, member)| (*user, *member)).collect();
        members.sort_by_key(|(user, member)| (member.joined, *user));
        members.into_iter()
    }

    fn receipts(&self) -> impl Iterator<Item = Receipt> {
        self.members_by_arrival().map(|(user, member)| {
            let acknowledged = self.cursors_of(user).filter(|(_, cursor)| cursor.acknowledged);
            let delivered = acknowledged.map(|(_, cursor)| cursor.seq).max().unwrap_or(Seq::ZERO);
            Receipt::new(user, delivered, member.read)
        })
    }
}
