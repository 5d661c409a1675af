//! Many users and conversations at once, and their removal.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use model::{Body, ConversationId, DeviceId, DeviceKey, Phone, Seq, UserId, Wall};

use super::{Conversation, Cursor, MemoryStore};
use crate::{Cleaned, Imported, ImportedConversation, ImportedUser};

impl MemoryStore {
    pub(super) fn import(
        &mut self,
        users: &[ImportedUser],
        conversations: &[ImportedConversation],
        ts: Wall,
    ) -> Imported {
        let mut imported = Imported::default();
        for user in users {
            self.import_user(user, ts, &mut imported);
        }
        for conversation in conversations {
            self.import_conversation(conversation, ts, &mut imported);
        }
        imported
    }

    fn import_user(&mut self, wanted: &ImportedUser, ts: Wall, imported: &mut Imported) {
        let user = wanted.device.user;
        if self.users.contains_key(&user) {
            imported.users_there += 1;
        } else if self.phones.contains_key(&wanted.phone) {
            imported.phones_taken += 1;
        } else {
            self.users.insert(user, (wanted.phone, ts));
            self.phones.insert(wanted.phone, user);
            imported.users += 1;
            let is_new =
                self.devices_of(user).next().is_none() && self.conversations_of(user).next().is_none();
            if is_new {
                self.devices.insert(wanted.device, ts);
                imported.devices.push(wanted.device);
            }
        }
    }

    fn import_conversation(&mut self, wanted: &ImportedConversation, ts: Wall, imported: &mut Imported) {
        let ImportedConversation { conversation: id, kind, members } = wanted;
        if self.conversations.contains_key(id) {
            imported.conversations_there += 1;
            return;
        }
        self.create_conversation(*id, *kind, members[0], members, ts);
        let conversation = self.conversations.get_mut(id).expect("it was just made");
        for (device, cursor) in &mut conversation.cursors {
            *cursor = Cursor { seq: Seq(1), acknowledged: true };
            self.pending.remove(&(*device, *id));
        }
        imported.conversations += 1;
    }

    pub(super) fn clean(&mut self, phones: &RangeInclusive<Phone>) -> Cleaned {
        let chosen: BTreeSet<UserId> = match phones.is_empty() {
            true => BTreeSet::new(),
            false => self.phones.range(phones.clone()).map(|(_, user)| *user).collect(),
        };
        let theirs: BTreeSet<ConversationId> =
            chosen.iter().flat_map(|user| self.conversations_of(*user)).collect();
        let (gone, kept): (Vec<_>, Vec<_>) = theirs.into_iter().partition(|id| self.is_only_of(*id, &chosen));
        let stays = |user: &UserId| kept.iter().any(|id| self.conversations[id].members.contains_key(user));
        let (stay, go): (Vec<UserId>, Vec<UserId>) = chosen.into_iter().partition(stays);
        let mut cleaned = Cleaned {
            users_stayed: stay.len() as u64,
            conversations_stayed: kept.len() as u64,
            ..Cleaned::default()
        };
        for id in gone {
            self.remove_conversation(id, &mut cleaned);
        }
        for user in go {
            self.remove_user(user, &mut cleaned);
        }
        cleaned
    }

    /// Whether nobody but these users has to do with a conversation, as far as is kept.
    fn is_only_of(&self, id: ConversationId, users: &BTreeSet<UserId>) -> bool {
        let conversation = &self.conversations[&id];
        let kept = &conversation.log[conversation.trimmed.0 as usize..];
        conversation.members.keys().all(|user| users.contains(user))
            && kept.iter().all(|entry| users.contains(&author(&entry.body)))
            && self
                .client_ids
                .iter()
                .all(|((user, _), taken)| taken.conversation != id || users.contains(user))
    }

    fn remove_conversation(&mut self, id: ConversationId, cleaned: &mut Cleaned) {
        let conversation = self.conversations.remove(&id).expect("it was just looked at");
        cleaned.conversations += 1;
        cleaned.entries += conversation.head().0 - conversation.trimmed.0;
        cleaned.members += conversation.members.len() as u64;
        cleaned.cursors += conversation.cursors.len() as u64;
        self.forget_traces(id, &conversation);
        cleaned.client_ids += self.remove_client_ids(|_, conversation| conversation == id);
    }

    fn forget_traces(&mut self, id: ConversationId, conversation: &Conversation) {
        for user in conversation.members.keys() {
            self.memberships.remove(&(*user, id));
        }
        for device in conversation.cursors.keys() {
            self.pending.remove(&(*device, id));
        }
    }

    fn remove_user(&mut self, user: UserId, cleaned: &mut Cleaned) {
        let (phone, _) = self.users.remove(&user).expect("it was just found");
        self.phones.remove(&phone);
        cleaned.users += 1;
        let devices: Vec<DeviceId> = self.devices_of(user).collect();
        for device in devices {
            self.devices.remove(&DeviceKey { user, device });
            cleaned.devices += 1;
        }
        cleaned.client_ids += self.remove_client_ids(|owner, _| owner == user);
    }

    fn remove_client_ids(&mut self, which: impl Fn(UserId, ConversationId) -> bool) -> u64 {
        let gone = self.client_ids.extract_if(.., |(user, _), taken| which(*user, taken.conversation));
        let gone: Vec<_> = gone.map(|((user, client_id), taken)| (taken.ts, client_id, user)).collect();
        for named in &gone {
            self.client_ids_by_age.remove(named);
        }
        gone.len() as u64
    }
}

/// Who sent an entry, or asked for it.
fn author(body: &Body) -> UserId {
    use model::Change::{Added, Created, Left, Removed};
    match body {
        Body::Message { from, .. } => from.user,
        Body::Change(Created { by, .. } | Added { by, .. } | Removed { by, .. }) => *by,
        Body::Change(Left { user }) => *user,
    }
}
