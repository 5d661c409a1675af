//! Follows the store: what each commit may change.

use model::{Body, ClientId, ConversationId, DeviceKey, Payload, Seq, UserId};
use store::{MemoryStore, Reply, Request};

use super::{Oracle, Period};
use crate::names::Named;
use crate::violation::{Checked, broken};

impl Oracle {
    /// One request of a commit and its answer. The store is as after the whole batch.
    pub fn committed(&mut self, request: &Request, reply: &Reply, store: &MemoryStore) -> Checked {
        match (request, reply) {
            (Request::CreateConversation { conversation, .. }, Reply::Created { fresh: true, record }) => {
                for member in &record.members {
                    self.join(*conversation, member.user, member.joined);
                    for device in &member.devices {
                        let key = DeviceKey { user: member.user, device: device.device };
                        self.begin(*conversation, key, device.cursor);
                    }
                }
            }
            (Request::AddMember { conversation, user, .. }, Reply::MemberAdded { seq, devices }) => {
                self.join(*conversation, *user, *seq);
                for device in devices {
                    self.begin(*conversation, DeviceKey { user: *user, device: *device }, seq.previous());
                }
            }
            (Request::RemoveMember { conversation, user, .. }, Reply::MemberRemoved { seq, .. }) => {
                self.leave(*conversation, *user, *seq);
            }
            (Request::RegisterDevice { device, .. }, Reply::Registered { fresh: true, conversations }) => {
                for place in conversations {
                    self.begin(place.conversation, *device, place.cursor);
                }
            }
            (Request::Append { conversation, from, client_id, payload, .. }, Reply::Appended { seq }) => {
                self.appended(*conversation, *from, *client_id, payload, *seq, store)?;
            }
            (
                Request::Append { conversation, from, client_id, payload, .. },
                Reply::Duplicate { seq, .. },
            ) => {
                let name = Named(*client_id);
                if self.places.get(&(from.user, *client_id)) != Some(&(*conversation, *seq)) {
                    return broken("D3", format!("{name} is no duplicate of #{seq}"));
                }
                if !self.is_the_first(*conversation, *from, *client_id, payload, store) {
                    return broken("D3", format!("{name} was taken for a repeat and has other bytes"));
                }
            }
            (Request::Append { conversation, from, client_id, payload, .. }, Reply::ClientIdReused)
                if self.is_the_first(*conversation, *from, *client_id, payload, store) =>
            {
                let name = Named(*client_id);
                return broken("D3", format!("{name} was refused as reused and is the same message"));
            }
            (Request::Acknowledge { conversation, device, seq }, Reply::Done) => {
                self.moved(*conversation, *device, *seq, store)?;
            }
            (Request::MarkRead { conversation, user, seq }, Reply::Done) => {
                let read = self.read.entry((*conversation, *user)).or_default();
                *read = (*read).max(*seq);
            }
            (Request::Settle { conversation, acknowledged, .. }, Reply::Done) => {
                for (device, seq) in acknowledged {
                    self.moved(*conversation, *device, *seq, store)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn join(&mut self, conversation: ConversationId, user: UserId, seq: Seq) {
        let period = Period { start: seq.previous(), end: None };
        self.members.entry((conversation, user)).or_default().push(period);
    }

    fn begin(&mut self, conversation: ConversationId, device: DeviceKey, start: Seq) {
        let periods = self.devices.entry((conversation, device)).or_default();
        periods.push(Period { start, end: None });
    }

    fn leave(&mut self, conversation: ConversationId, user: UserId, seq: Seq) {
        let members =
            self.members.iter_mut().filter(|((id, other), _)| *id == conversation && *other == user);
        let devices =
            self.devices.iter_mut().filter(|((id, device), _)| *id == conversation && device.user == user);
        let all = members.map(|(_, periods)| periods).chain(devices.map(|(_, periods)| periods));
        for period in all.filter_map(|periods| periods.last_mut()).filter(|period| period.end.is_none()) {
            period.end = Some(seq);
        }
        self.cursors.retain(|(id, device), _| *id != conversation || device.user != user);
    }

    fn appended(
        &mut self,
        conversation: ConversationId,
        from: DeviceKey,
        id: ClientId,
        payload: &Payload,
        seq: Seq,
        store: &MemoryStore,
    ) -> Checked {
        let name = Named(id);
        if self.membership(conversation, from.user).is_none() {
            return broken("D2", format!("{name} was taken from {}, who is no member", Named(from)));
        }
        if let Some((log, first)) = self.places.insert((from.user, id), (conversation, seq)) {
            let taken = store.log(log).get(first.previous().0 as usize).map(|entry| entry.ts);
            if taken.is_none_or(|ts| ts >= self.forgotten_before) {
                return broken("D3", format!("{name} has the places {first} and {seq}"));
            }
            self.taken_again.insert((from.user, id));
        }
        match self.was_sent(from.user, id, conversation, payload) {
            true => Ok(()),
            false => broken("D2", format!("{name} was stored and never sent")),
        }
    }

    /// Whether a user has sent just this under a client id.
    pub(super) fn was_sent(
        &self,
        user: UserId,
        id: ClientId,
        conversation: ConversationId,
        payload: &Payload,
    ) -> bool {
        let all = self.sent.get(&(user, id)).map_or(&[][..], |all| all);
        all.iter().any(|sent| sent.conversation == conversation && sent.payload == *payload)
    }

    /// Whether a message is the one that its client id names in the log.
    fn is_the_first(
        &self,
        conversation: ConversationId,
        from: DeviceKey,
        id: ClientId,
        payload: &Payload,
        store: &MemoryStore,
    ) -> bool {
        let Some((log, seq)) = self.places.get(&(from.user, id)) else { return false };
        let body = store.log(*log).get(seq.previous().0 as usize).map(|entry| &entry.body);
        *log == conversation && matches!(body, Some(Body::Message { payload: first, .. }) if first == payload)
    }

    /// A cursor was told to move.
    fn moved(
        &mut self,
        conversation: ConversationId,
        device: DeviceKey,
        seq: Seq,
        store: &MemoryStore,
    ) -> Checked {
        let log = store.log(conversation);
        if seq.0 > log.len() as u64 {
            let (device, conversation) = (Named(device), Named(conversation));
            return broken("D7", format!("{device} moved to {seq} of {} in {conversation}", log.len()));
        }
        let Some(share) = self.share(conversation, device) else { return Ok(()) };
        let requested = self.requested.get(&(conversation, device)).copied().unwrap_or_default();
        let own = |entry: &model::Entry| matches!(entry.body, Body::Message { from, .. } if from == device);
        let first = requested.max(share.start).0.min(seq.0);
        if !log[first as usize..seq.0 as usize].iter().all(own) {
            let (device, conversation) = (Named(device), Named(conversation));
            return broken(
                "D7",
                format!("{device} was moved to {seq} in {conversation}, it had asked for {requested}"),
            );
        }
        let delivered = self.delivered.entry((conversation, device.user)).or_default();
        *delivered = (*delivered).max(seq);
        Ok(())
    }

    /// What must hold of a conversation after every commit that wrote to it.
    pub fn check_conversation(&mut self, conversation: ConversationId, store: &MemoryStore) -> Checked {
        let head = Seq(store.log(conversation).len() as u64);
        let trimmed = store.trimmed(conversation);
        let name = Named(conversation);
        for (device, cursor) in store.cursors(conversation) {
            let who = Named(device);
            if self.share(conversation, device).is_none() {
                return broken("D9", format!("{who} has a cursor in {name} and is no member's"));
            }
            if cursor > head {
                return broken("D7", format!("{who} is at {cursor} of {head} in {name}"));
            }
            if cursor < trimmed {
                return broken("D5", format!("{name} is trimmed up to {trimmed} and {who} is at {cursor}"));
            }
            if cursor < head && !store.is_pending(device, conversation) {
                return broken(
                    "D5",
                    format!("{who} is at {cursor} of {head} in {name} without a pending mark"),
                );
            }
            let before = self.cursors.insert((conversation, device), cursor).unwrap_or_default();
            if cursor < before {
                return broken("D7", format!("{who} went back from {before} to {cursor} in {name}"));
            }
        }
        Ok(())
    }
}
