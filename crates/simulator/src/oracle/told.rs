//! Judges what reaches clients.

use model::{Body, ClientId, ConversationId, DeviceKey, Entry, Seq, UserId};
use store::MemoryStore;

use super::Oracle;
use crate::link::SyncPage;
use crate::names::Named;
use crate::violation::{Checked, broken};
use crate::words::Said;

impl Oracle {
    /// An entry was pushed to a device that has everything up to `cursor`; `last` is the last one on this connection.
    pub fn pushed(
        &self,
        device: DeviceKey,
        conversation: ConversationId,
        entry: &Entry,
        cursor: Seq,
        last: Option<Seq>,
        store: &MemoryStore,
    ) -> Checked {
        let (who, name, what) = (Named(device), Named(conversation), Said(entry));
        self.check_entry(device.user, conversation, entry, store)?;
        let periods = self.devices.get(&(conversation, device)).map_or(&[][..], |periods| periods);
        if last.is_some_and(|last| entry.seq <= last) {
            return broken(
                "order",
                format!("{who} was pushed {what} of {name} after {last:?} on one connection"),
            );
        }
        let Some(period) = periods.iter().find(|period| period.contains(entry.seq)) else {
            // The news of an entry may be slower than the registration of a device that begins after it, or not at all since its
            // user has gone meanwhile. The user may see it, which was checked.
            return Ok(());
        };
        // To a list of what is pending that was made after the removal, the news of the last entries before it may still come.
        if period.end.is_some() {
            return Ok(());
        }
        let from = cursor.max(last.unwrap_or_default()).max(period.start);
        let log = store.log(conversation);
        let between = (from.0 as usize).min(entry.seq.0 as usize - 1)..entry.seq.0 as usize - 1;
        if let Some(missing) = log[between].iter().find(|missing| !sent_by(missing, device)) {
            return broken(
                "order",
                format!("{who} has {name} up to {from} and was pushed {what}, but not {}", Said(missing)),
            );
        }
        Ok(())
    }

    /// An entry reached a user, one way or another: it is what the log has, and the user may see it.
    fn check_entry(
        &self,
        user: UserId,
        conversation: ConversationId,
        entry: &Entry,
        store: &MemoryStore,
    ) -> Checked {
        let (who, name, what) = (Named(user), Named(conversation), Said(entry));
        let log = store.log(conversation);
        let Some(place) = (entry.seq.0 as usize).checked_sub(1).and_then(|place| log.get(place)) else {
            return broken("D1", format!("{who} was told {what} of {name}, which is not committed"));
        };
        if place != entry {
            return broken("D4", format!("{who} was told {what} of {name}, the log has {}", Said(place)));
        }
        let members = self.members.get(&(conversation, user)).map_or(&[][..], |periods| periods);
        if !members.iter().any(|period| period.contains(entry.seq)) {
            return broken("D9", format!("{who} was told {what} of {name}, no member then: {members:?}"));
        }
        if let Body::Message { from, client_id, payload } = &entry.body
            && !self.was_sent(from.user, *client_id, conversation, payload)
        {
            return broken("D2", format!("{who} was told {what} of {name}, nobody sent that"));
        }
        Ok(())
    }

    /// A page came from `sync`.
    pub fn synced(
        &self,
        user: UserId,
        conversation: ConversationId,
        after: Seq,
        page: &SyncPage,
        store: &MemoryStore,
    ) -> Checked {
        let SyncPage { entries, head, more } = page;
        let name = Named(conversation);
        for entry in entries {
            self.check_entry(user, conversation, entry, store)?;
        }
        if entries.windows(2).any(|pair| pair[1].seq != pair[0].seq.next()) {
            return broken("D4", format!("a page of {name} has gaps"));
        }
        if entries.first().is_some_and(|first| first.seq <= after) {
            return broken("D4", format!("a page of {name} after {after} begins too early"));
        }
        if let Some(last) = entries.last()
            && *more != (last.seq < *head)
        {
            return broken("D4", format!("a page of {name} up to {} of {head} says more: {more}", last.seq));
        }
        Ok(())
    }

    /// A send was answered with a place.
    pub fn confirmed(
        &mut self,
        user: UserId,
        id: ClientId,
        conversation: ConversationId,
        seq: Seq,
        store: &MemoryStore,
    ) -> Checked {
        self.check_placed(user, id, conversation, seq, store)?;
        if let Some((_, first)) = self.confirmed.insert((user, id), (conversation, seq))
            && first != seq
            && !self.was_taken_again(user, id)
        {
            return broken("D3", format!("{} was told to be at {first} and at {seq}", Named(id)));
        }
        Ok(())
    }

    pub(super) fn check_placed(
        &self,
        user: UserId,
        id: ClientId,
        conversation: ConversationId,
        seq: Seq,
        store: &MemoryStore,
    ) -> Checked {
        let place = store.log(conversation).get(seq.0 as usize - 1).map(|entry| &entry.body);
        match place {
            Some(Body::Message { from, client_id, .. }) if from.user == user && *client_id == id => Ok(()),
            _ => {
                let (id, conversation) = (Named(id), Named(conversation));
                broken("D1", format!("{id} was confirmed at #{seq} of {conversation} and is not there"))
            }
        }
    }

    /// A `recv` was answered.
    pub fn received(
        &mut self,
        conversation: ConversationId,
        device: DeviceKey,
        seq: Seq,
        store: &MemoryStore,
    ) -> Checked {
        let Some(share) = self.share(conversation, device) else { return Ok(()) };
        if share.start >= seq {
            return Ok(());
        }
        let cursor = store.cursors(conversation).find(|(other, _)| *other == device);
        if cursor.is_none_or(|(_, cursor)| cursor < seq) {
            let (device, conversation) = (Named(device), Named(conversation));
            return broken(
                "D1",
                format!("recv of {device} up to {seq} in {conversation} was answered, {cursor:?}"),
            );
        }
        let acknowledged = self.acknowledged.entry((conversation, device)).or_default();
        *acknowledged = (*acknowledged).max(seq);
        Ok(())
    }

    /// News of a conversation that are no entries reached a user, who must be a member or have been one.
    pub fn changed(&self, conversation: ConversationId, user: UserId) -> Checked {
        match self.members.contains_key(&(conversation, user)) {
            true => Ok(()),
            false => broken("D9", format!("{} hears of {}", Named(user), Named(conversation))),
        }
    }

    /// A receipt reached somebody.
    pub fn receipt(&self, to: UserId, receipt: &protocol::Receipt) -> Checked {
        let protocol::Receipt { conversation, user, delivered, read } = *receipt;
        let (who, name) = (Named(user), Named(conversation));
        if !self.members.contains_key(&(conversation, to)) {
            return broken("D9", format!("{} was told how far {who} is in {name}", Named(to)));
        }
        if read > delivered {
            return broken("D8", format!("{who} has read {read} of {name} and only got {delivered}"));
        }
        let acknowledged = self.delivered.get(&(conversation, user)).copied().unwrap_or_default();
        if delivered > acknowledged {
            return broken(
                "D8",
                format!(
                    "{who} is said to have got {delivered} of {name}, no device has acknowledged beyond {acknowledged}"
                ),
            );
        }
        let stored = self.read.get(&(conversation, user)).copied().unwrap_or_default();
        if read > stored {
            return broken("D8", format!("{who} is said to have read {read} of {name}, {stored} is stored"));
        }
        Ok(())
    }
}

/// Whether a device sent an entry itself.
pub fn sent_by(entry: &Entry, device: DeviceKey) -> bool {
    matches!(entry.body, Body::Message { from, .. } if from == device)
}
