//! The owner of users: their devices, their live sessions, and what was pushed to each.
//!
//! A session that is quiet is one small entry in a table. Only while something is on its way to the device does it have a
//! [`Flight`], from a pool, that knows for each conversation how far was pushed. The cursor itself belongs to the owner of the
//! conversation; a flight ends when that owner has said that the device acknowledged everything.

mod flight;
mod table;

use std::sync::Arc;

use model::{
    ConnectionId, ConversationId, DeviceKey, Entry, HashKey, Seq, UserId, Wall, partition_of_conversation,
};
use store::{PendingRecord, Request};

use crate::devices::DeviceSet;
use crate::effect::{Answer, CloseCause, Effect, Effects, Push, Refusal, Ticket};
use crate::fault;
use crate::input::{Act, Delivery, Input, MembershipEvent, Origin};
use flight::{Flight, Flights, Phase};
use table::{Session, SessionTable};

/// The size of a session's entry in its owner, in bytes; at most 96 is the promise.
pub const SESSION_BYTES: usize = size_of::<Session>();
const _: () = assert!(SESSION_BYTES <= 96);

/// Marks counted for a device of which it is not known how many it has: more than a count can hold.
const COUNT_LOST: i32 = 1 << 16;

/// All users of one partition.
pub struct Sessions {
    hash_key: HashKey,
    devices: DeviceSet,
    /// Marks set (and taken away) of devices whose registration is committed but not answered yet: the news of these may be
    /// faster, and the answer does not count them.
    early: Vec<(u64, i32)>,
    table: SessionTable,
    flights: Flights,
}

impl Sessions {
    pub fn new(hash_key: HashKey) -> Self {
        Sessions {
            hash_key,
            devices: DeviceSet::new(),
            early: Vec::new(),
            table: SessionTable::new(hash_key),
            flights: Flights::new(),
        }
    }

    /// Learns of a device that did not connect: at start, or when it was imported. Marks of an imported one may have been counted
    /// already.
    pub fn know(&mut self, device: DeviceKey, pending: u32) {
        let fingerprint = self.hash_key.device(device);
        let marks = i64::from(pending) + i64::from(self.take_early(fingerprint));
        self.devices.insert(fingerprint, marks.max(0) as u32);
    }

    pub fn live(&self) -> usize {
        self.table.len()
    }

    pub fn known(&self) -> usize {
        self.devices.len()
    }

    pub fn in_flight(&self) -> usize {
        self.flights.live()
    }

    pub fn connect(
        &mut self,
        origin: Origin,
        connection: ConnectionId,
        device: DeviceKey,
        wall: Wall,
        out: &mut Effects,
    ) {
        self.replace(connection, device, out);
        self.table.insert(Session::new(device, connection));
        fault::point();
        match self.devices.pending(self.hash_key.device(device)) {
            Some(pending) => {
                out.push(Effect::Answer { origin, answer: Ok(Answer::Connected) });
                self.begin(connection, device, pending > 0, out);
            }
            None => {
                self.flight_of(device, Phase::Awaiting);
                let ticket = Ticket::Register { origin, connection, device };
                out.push(Effect::Ask { ticket, request: Request::RegisterDevice { device, ts: wall } });
                fault::point();
            }
        }
    }

    /// The older session of the device, if there is one, gives way.
    fn replace(&mut self, connection: ConnectionId, device: DeviceKey, out: &mut Effects) {
        if let Some(old) = self.table.remove(device) {
            self.flights.release(old.flight);
            if old.connection() != connection {
                out.push(Effect::Close { connection: old.connection(), cause: CloseCause::Replaced });
            }
        }
    }

    /// A known device's session starts: what is pending is asked for only when something may be.
    fn begin(&mut self, connection: ConnectionId, device: DeviceKey, pending: bool, out: &mut Effects) {
        if pending {
            self.flight_of(device, Phase::Awaiting);
            let ticket = Ticket::Pending { connection, device };
            out.push(Effect::Ask { ticket, request: Request::ListPending { device } });
        } else {
            out.push(Effect::Push { connection, push: Push::CaughtUp });
        }
    }

    /// Begins anew after the rules have failed: nobody has a session, and whether anything is pending for a device only the store
    /// knows.
    pub fn reload(&mut self) {
        self.devices.lose_counts();
        self.early.clear();
        self.table = SessionTable::new(self.hash_key);
        self.flights = Flights::new();
    }

    /// Ends the sessions of some users, because they may have missed something, and forgets for which devices nothing is pending.
    pub fn interrupted(&mut self, users: &[UserId], marked: &[DeviceKey], out: &mut Effects) {
        for device in marked {
            let fingerprint = self.hash_key.device(*device);
            if !self.devices.lose_count(fingerprint) {
                *self.early(fingerprint) += COUNT_LOST;
            }
        }
        for user in users {
            let mut devices = Vec::new();
            self.table.each_of(*user, |session| devices.push(session.key()));
            for device in devices {
                let Some(session) = self.table.remove(device) else { continue };
                self.flights.release(session.flight);
                let why = Refusal::Internal("a conversation was reloaded after a fault; connect again");
                let cause = CloseCause::Refused(why);
                out.push(Effect::Close { connection: session.connection(), cause });
            }
        }
    }

    pub fn disconnect(&mut self, connection: ConnectionId, device: DeviceKey) {
        if self.session(device, connection).is_some()
            && let Some(old) = self.table.remove(device)
        {
            self.flights.release(old.flight);
        }
    }

    pub fn handle_registered(
        &mut self,
        origin: Origin,
        connection: ConnectionId,
        device: DeviceKey,
        conversations: Vec<PendingRecord>,
        out: &mut Effects,
    ) {
        let fingerprint = self.hash_key.device(device);
        let marks = conversations.len() as i64 + i64::from(self.take_early(fingerprint));
        fault::point();
        self.devices.insert(fingerprint, marks.max(0) as u32);
        for record in &conversations {
            let act = Act::DeviceAdded { device, cursor: record.cursor };
            out.push(Effect::Mail {
                to: partition_of_conversation(&self.hash_key, record.conversation),
                input: Input::Chat { conversation: record.conversation, act },
            });
        }
        if self.session(device, connection).is_none() {
            return;
        }
        out.push(Effect::Answer { origin, answer: Ok(Answer::Connected) });
        self.list_pending(connection, device, conversations, true, out);
    }

    /// The store could not make the device known, so there is no session.
    pub fn handle_not_registered(
        &mut self,
        origin: Origin,
        connection: ConnectionId,
        device: DeviceKey,
        why: Refusal,
        out: &mut Effects,
    ) {
        if self.session(device, connection).is_some() {
            self.disconnect(connection, device);
            out.push(Effect::Answer { origin, answer: Err(why) });
            out.push(Effect::Close { connection, cause: CloseCause::Refused(why) });
        }
    }

    pub fn handle_pending(
        &mut self,
        connection: ConnectionId,
        device: DeviceKey,
        records: Vec<PendingRecord>,
        out: &mut Effects,
    ) {
        self.list_pending(connection, device, records, false, out);
    }

    fn list_pending(
        &mut self,
        connection: ConnectionId,
        device: DeviceKey,
        records: Vec<PendingRecord>,
        just_known: bool,
        out: &mut Effects,
    ) {
        let Some(index) = self.session(device, connection) else { return };
        self.flights.at(index).handle_pending(&records, just_known);
        fault::point();
        self.pump(connection, device, index, out);
    }

    pub fn handle_page(
        &mut self,
        connection: ConnectionId,
        device: DeviceKey,
        page: (ConversationId, Seq),
        entries: Vec<Entry>,
        out: &mut Effects,
    ) {
        let Some(index) = self.session(device, connection) else { return };
        if index == flight::NONE {
            return;
        }
        let conversation = page.0;
        self.flights.at(index).handle_page(page, entries, |entry| {
            out.push(Effect::Push { connection, push: Push::Entry { conversation, entry: Arc::new(entry) } });
        });
        self.pump(connection, device, index, out);
    }

    /// Counts the marks, and tells the live sessions of every user named.
    pub fn deliver(&mut self, delivery: &Delivery, out: &mut Effects) {
        for device in &delivery.marked {
            let fingerprint = self.hash_key.device(*device);
            if !self.devices.mark(fingerprint) {
                *self.early(fingerprint) += 1;
            }
        }
        let Delivery { conversation, entry, except, .. } = delivery;
        let flights = &mut self.flights;
        for user in delivery.users.iter() {
            self.table.each_of(*user, |session| {
                let own = *except == Some(session.key());
                if session.flight == flight::NONE {
                    if own {
                        // It has the entry, and its cursor passes over it in the owner of the conversation.
                        return;
                    }
                    session.flight = flights.take(Phase::Live);
                }
                fault::point();
                if flights.at(session.flight).deliver(*conversation, entry, own) {
                    let push = Push::Entry { conversation: *conversation, entry: Arc::clone(entry) };
                    out.push(Effect::Push { connection: session.connection(), push });
                }
                fetch(flights, session.connection(), session.key(), session.flight, out);
            });
        }
    }

    pub fn acknowledged(
        &mut self,
        device: DeviceKey,
        conversation: ConversationId,
        cursor: Seq,
        out: &mut Effects,
    ) {
        let Some(session) = self.table.get(device) else { return };
        let (connection, index) = (session.connection(), session.flight);
        if index != flight::NONE {
            if let Some(seq) = self.flights.at(index).acknowledged(conversation, cursor) {
                // The owner of the conversation has forgotten who sent that if it left memory meanwhile.
                out.push(Effect::Mail {
                    to: partition_of_conversation(&self.hash_key, conversation),
                    input: Input::Chat { conversation, act: Act::Passed { device, seq } },
                });
            }
            fault::point();
            self.pump(connection, device, index, out);
        }
    }

    pub fn unmarked(&mut self, devices: &[DeviceKey]) {
        for device in devices {
            let fingerprint = self.hash_key.device(*device);
            if !self.devices.unmark(fingerprint) {
                *self.early(fingerprint) -= 1;
            }
        }
    }

    fn early(&mut self, fingerprint: u64) -> &mut i32 {
        let position = self.early.iter().position(|(other, _)| *other == fingerprint).unwrap_or_else(|| {
            self.early.push((fingerprint, 0));
            self.early.len() - 1
        });
        &mut self.early[position].1
    }

    fn take_early(&mut self, fingerprint: u64) -> i32 {
        let position = self.early.iter().position(|(other, _)| *other == fingerprint);
        position.map_or(0, |position| self.early.swap_remove(position).1)
    }

    /// Pushes something to every live session of some users, except one device.
    pub fn push(&mut self, users: &[UserId], except: Option<DeviceKey>, push: &Push, out: &mut Effects) {
        for user in users {
            self.table.each_of(*user, |session| {
                if except != Some(session.key()) {
                    out.push(Effect::Push { connection: session.connection(), push: push.clone() });
                }
            });
        }
    }

    /// Tells live sessions of a changed conversation; who was removed gets nothing of it any more.
    pub fn changed(
        &mut self,
        users: &[UserId],
        summary: &Arc<model::ConversationSummary>,
        event: MembershipEvent,
        out: &mut Effects,
    ) {
        let push = Push::Conversation { summary: Arc::clone(summary), event };
        self.push(users, None, &push, out);
        if event != MembershipEvent::Removed {
            return;
        }
        for user in users {
            let mut sessions = Vec::new();
            self.table.each_of(*user, |session| {
                if session.flight != flight::NONE {
                    sessions.push((session.connection(), session.key(), session.flight));
                }
            });
            for (connection, device, index) in sessions {
                self.flights.at(index).forget(summary.id, summary.head);
                self.pump(connection, device, index, out);
            }
        }
    }

    /// Asks for the next page if there is room, says so when the device has caught up, and lets the flight go at its end.
    fn pump(&mut self, connection: ConnectionId, device: DeviceKey, index: u32, out: &mut Effects) {
        if index == flight::NONE {
            return;
        }
        fetch(&mut self.flights, connection, device, index, out);
        if self.flights.at(index).take_caught_up() {
            out.push(Effect::Push { connection, push: Push::CaughtUp });
        }
        if self.flights.at(index).is_over() {
            self.drop_flight(device);
        }
    }

    /// The flight index of a session, when the device's session is on this connection.
    fn session(&self, device: DeviceKey, connection: ConnectionId) -> Option<u32> {
        self.table
            .get(device)
            .filter(|session| session.connection() == connection)
            .map(|session| session.flight)
    }

    fn flight_of(&mut self, device: DeviceKey, phase: Phase) {
        let index = self.flights.take(phase);
        let session = self.table.get_mut(device).expect("the session was just made");
        session.flight = index;
    }

    fn drop_flight(&mut self, device: DeviceKey) {
        if let Some(session) = self.table.get_mut(device) {
            self.flights.release(session.flight);
            session.flight = flight::NONE;
        }
    }
}

/// Asks the store for the next page of a device that is behind, when its window has room and no page is on its way.
fn fetch(flights: &mut Flights, connection: ConnectionId, device: DeviceKey, index: u32, out: &mut Effects) {
    let flight: &mut Flight = flights.at(index);
    if let Some(page) = flight.next_page() {
        let ticket = Ticket::Page { connection, device, conversation: page.conversation, after: page.after };
        let request = Request::ReadLog {
            conversation: page.conversation,
            after: page.after,
            up_to: page.up_to,
            limit: page.limit,
            bytes_max: page.bytes_max,
        };
        out.push(Effect::Ask { ticket, request });
    }
}

#[cfg(test)]
mod tests {
    use model::{Body, Change, DeviceId};

    use super::*;
    use crate::users::Users;

    #[test]
    fn a_mark_that_is_faster_than_an_imported_device_is_counted_once() {
        let mut sessions = Sessions::new(HashKey([1; 16]));
        let device = DeviceKey { user: UserId([2; 16]), device: DeviceId(1) };
        let body = Body::Change(Change::Left { user: UserId([3; 16]) });
        let delivery = Delivery {
            conversation: ConversationId([4; 16]),
            entry: Arc::new(Entry { seq: Seq(2), ts: Wall(1), body }),
            users: Users::One(device.user),
            except: None,
            marked: vec![device],
        };
        sessions.deliver(&delivery, &mut Effects::new());
        sessions.know(device, 0);
        let pending = |sessions: &Sessions| sessions.devices.pending(sessions.hash_key.device(device));
        assert_eq!(pending(&sessions), Some(1));
        sessions.unmarked(&[device]);
        assert_eq!(pending(&sessions), Some(0));
        assert!(sessions.early.is_empty());
    }
}
