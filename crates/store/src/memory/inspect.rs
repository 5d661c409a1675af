//! What those who check invariants ask of the reference; no part of the contract.

use model::{Body, ClientId, ConversationId, DeviceId, DeviceKey, Entry, Seq, UserId};

use super::{Conversation, Member, MemoryStore, Taken};
use crate::{ConversationRecord, DeviceRecord, MemberRecord, digest};

impl MemoryStore {
    /// All conversations, ordered by id.
    pub fn conversations(&self) -> impl Iterator<Item = ConversationId> {
        self.conversations.keys().copied()
    }

    /// Everything [`Request::LoadConversation`] would tell.
    pub fn record(&self, id: ConversationId) -> Option<ConversationRecord> {
        let conversation = self.conversations.get(&id)?;
        let member = |(user, member): (UserId, Member)| MemberRecord {
            user,
            joined: member.joined,
            read: member.read,
            devices: conversation
                .cursors_of(user)
                .map(|(device, cursor)| DeviceRecord {
                    device: device.device,
                    cursor: cursor.seq,
                    acknowledged: cursor.acknowledged,
                    marked: self.is_pending(device, id),
                })
                .collect(),
        };
        Some(ConversationRecord {
            kind: conversation.kind,
            head: conversation.head(),
            trimmed: conversation.trimmed,
            members: conversation.members_by_arrival().map(member).collect(),
        })
    }

    /// All entries a conversation ever had, the trimmed ones too: the entry of seq `n` is at index `n - 1`. Empty for
    /// a conversation that does not exist.
    pub fn log(&self, id: ConversationId) -> &[Entry] {
        self.conversations.get(&id).map_or(&[], |conversation| &conversation.log)
    }

    /// Up to where a conversation's entries are no longer kept.
    pub fn trimmed(&self, id: ConversationId) -> Seq {
        self.conversations.get(&id).map_or(Seq::ZERO, |conversation| conversation.trimmed)
    }

    /// The cursors of a conversation, ordered by device.
    pub fn cursors(&self, id: ConversationId) -> impl Iterator<Item = (DeviceKey, Seq)> {
        let cursors = self.conversations.get(&id).map(|conversation| conversation.cursors.iter());
        cursors.into_iter().flatten().map(|(device, cursor)| (*device, cursor.seq))
    }

    /// Whether a device is marked pending in a conversation.
    pub fn is_pending(&self, device: DeviceKey, id: ConversationId) -> bool {
        self.pending.contains(&(device, id))
    }

    /// The whole pending index, ordered.
    pub fn pending(&self) -> impl Iterator<Item = (DeviceKey, ConversationId)> {
        self.pending.iter().copied()
    }

    /// Where a client id leads, unless it was forgotten or never used.
    pub fn taken(&self, user: UserId, client_id: ClientId) -> Option<Taken> {
        self.client_ids.get(&(user, client_id)).copied()
    }

    /// A user's devices, ordered.
    pub fn devices_of(&self, user: UserId) -> impl Iterator<Item = DeviceId> {
        let (first, last) =
            (DeviceKey { user, device: DeviceId(0) }, DeviceKey { user, device: DeviceId(u32::MAX) });
        self.devices.range(first..=last).map(|(device, _)| device.device)
    }

    /// The conversations a user is a member of, ordered by id.
    pub fn conversations_of(&self, user: UserId) -> impl Iterator<Item = ConversationId> {
        let (first, last) = ((user, ConversationId([0; 16])), (user, ConversationId([0xff; 16])));
        self.memberships.range(first..=last).map(|(_, id)| *id)
    }

    /// Says which invariant does not hold, if one does not.
    pub fn check(&self) -> Result<(), String> {
        for (id, conversation) in &self.conversations {
            conversation.check().map_err(|what| format!("conversation {id}: {what}"))?;
            for (device, cursor) in &conversation.cursors {
                if cursor.seq < conversation.head() && !self.is_pending(*device, *id) {
                    return Err(format!(
                        "conversation {id}: device {device} is at {} of {} and not marked pending",
                        cursor.seq,
                        conversation.head()
                    ));
                }
            }
            for user in conversation.members.keys() {
                if !self.memberships.contains(&(*user, *id)) {
                    return Err(format!("conversation {id} is missing in the list of its member {user}"));
                }
                let devices: Vec<DeviceId> = self.devices_of(*user).collect();
                let cursors: Vec<DeviceId> =
                    conversation.cursors_of(*user).map(|(device, _)| device.device).collect();
                if devices != cursors {
                    return Err(format!(
                        "conversation {id}: {user} has the devices {devices:?} and cursors of {cursors:?}"
                    ));
                }
            }
        }
        for (user, id) in &self.memberships {
            if !self.conversations.get(id).is_some_and(|found| found.members.contains_key(user)) {
                return Err(format!("{user} lists the conversation {id} and is no member"));
            }
        }
        for (device, id) in &self.pending {
            if !self.conversations.get(id).is_some_and(|found| found.cursors.contains_key(device)) {
                return Err(format!("device {device} is marked pending in {id} and has no cursor there"));
            }
        }
        for ((user, client_id), taken) in &self.client_ids {
            self.check_taken(*user, *client_id, taken)
                .map_err(|what| format!("client id {client_id} of {user}: {what}"))?;
        }
        if self.client_ids.len() != self.client_ids_by_age.len() {
            return Err("the client ids and their order by age do not agree".to_owned());
        }
        let numbered = self.users.iter().filter(|(user, (phone, _))| self.phones.get(phone) == Some(user));
        if numbered.count() != self.phones.len() || self.users.len() != self.phones.len() {
            return Err("the users and their phone numbers do not agree".to_owned());
        }
        Ok(())
    }

    fn check_taken(&self, user: UserId, client_id: ClientId, taken: &Taken) -> Result<(), String> {
        let place = (taken.seq.0 as usize).checked_sub(1);
        let Some(entry) = place.and_then(|place| self.log(taken.conversation).get(place)) else {
            return Err(format!("leads to {} of {}, where nothing is", taken.seq, taken.conversation));
        };
        match &entry.body {
            Body::Message { from, client_id: named, payload }
                if from.user == user
                    && *named == client_id
                    && entry.ts == taken.ts
                    && digest(taken.conversation, payload) == taken.digest =>
            {
                Ok(())
            }
            _ => Err(format!("leads to {} of {}, which is something else", taken.seq, taken.conversation)),
        }
    }
}

impl Conversation {
    fn check(&self) -> Result<(), String> {
        for (index, entry) in self.log.iter().enumerate() {
            if entry.seq != Seq(index as u64 + 1) {
                return Err(format!("place {} of the log says it is {}", index + 1, entry.seq));
            }
        }
        let head = self.head();
        if self.trimmed > head {
            return Err(format!("trimmed up to {} and only {head} long", self.trimmed));
        }
        for (user, member) in &self.members {
            if member.joined == Seq::ZERO || member.joined > head || member.read > head {
                return Err(format!(
                    "member {user} joined at {}, read {} of {head}",
                    member.joined, member.read
                ));
            }
            let has_devices = self.cursors_of(*user).next().is_some();
            if !has_devices && self.trimmed >= member.joined {
                return Err(format!(
                    "trimmed up to {} while the first device of {user} would start at {}",
                    self.trimmed,
                    member.joined.previous()
                ));
            }
        }
        for (device, cursor) in &self.cursors {
            if !self.members.contains_key(&device.user) {
                return Err(format!("device {device} has a cursor and is no member's"));
            }
            if cursor.seq > head || cursor.seq < self.trimmed {
                return Err(format!(
                    "device {device} is at {}, the log keeps {}..={head}",
                    cursor.seq,
                    self.trimmed.next()
                ));
            }
        }
        Ok(())
    }
}
