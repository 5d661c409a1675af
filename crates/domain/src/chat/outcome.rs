//! What follows when the store has answered: the other half of each act.

use std::sync::Arc;

use model::{Body, Change, DeviceKey, Entry, PartitionId, Seq, UserId, Wall, partition_of_user};
use store::Reply;

use super::conversation::{Context, Conversation};
use super::in_flight::{Barrier, InFlight};
use super::member::{Device, Member};
use crate::effect::{Answer, Refusal};
use crate::fault;
use crate::input::{Input, MembershipEvent, Origin};
use crate::users::Users;

impl Conversation {
    /// The answer to the oldest request in flight.
    pub fn handle_stored(&mut self, context: &mut Context<'_>, reply: Reply) {
        let Some(asked) = self.in_flight.pop_front() else {
            debug_assert!(false, "an answer to nothing");
            return;
        };
        if self.in_flight.is_empty() {
            // The next one goes where this one was, which is still near.
            self.in_flight.clear();
        }
        self.answering = asked.origin();
        match asked {
            InFlight::Append { origin, from, client_id, ts, payload, marks } => match reply {
                Reply::Appended { seq } => {
                    let body = Body::Message { from, client_id, payload };
                    self.appended(context, origin, from, Entry { seq, ts, body }, marks);
                }
                reply => self.not_appended(context, origin, reply),
            },
            InFlight::Acknowledge { origin, device, seq } => {
                self.acknowledged(context, origin, device, seq, reply)
            }
            InFlight::Read { origin, device, seq } => self.marked_read(context, origin, device, seq, reply),
            InFlight::Page { origin, head } => page(context, origin, head, reply),
            InFlight::Add { origin, by, user, ts } => self.added(context, origin, by, user, ts, reply),
            InFlight::Remove { origin, by, user, ts } => self.removed(context, origin, by, user, ts, reply),
            InFlight::Survey => self.surveyed(context, reply),
            InFlight::Settle { trim, unmarked, stored } => {
                self.settled(context, trim, unmarked, stored, reply)
            }
        }
        self.answering = None;
        self.go_on(context);
    }

    /// Lets the line move when nothing is in flight any more.
    fn go_on(&mut self, context: &mut Context<'_>) {
        if self.barrier != Barrier::UntilAnswered || !self.in_flight.is_empty() {
            return;
        }
        self.barrier = Barrier::Open;
        self.go_through_line(context);
    }

    fn appended(
        &mut self,
        context: &mut Context<'_>,
        origin: Origin,
        from: DeviceKey,
        entry: Entry,
        marks: bool,
    ) {
        let (seq, ts) = (entry.seq, entry.ts);
        self.head = seq;
        // A device of which the news is still on its way here is pushed its own message, since nobody would pass over it.
        let passes = self.device(from).is_some_and(|device| device.pass_over(seq));
        // It brought marks for every device that was not known to have one.
        let marked = if marks { self.mark_all() } else { Vec::new() };
        fault::point();
        context.answer(origin, Answer::Sent { seq, ts, duplicate: false });
        self.deliver(context, Arc::new(entry), passes.then_some(from), marked);
    }

    fn not_appended(&mut self, context: &mut Context<'_>, origin: Origin, reply: Reply) {
        match reply {
            Reply::Duplicate { seq, ts } => context.answer(origin, Answer::Sent { seq, ts, duplicate: true }),
            Reply::ClientIdReused => context.refuse(origin, Refusal::ClientIdReused),
            reply => self.failed(context, origin, &reply),
        }
    }

    fn acknowledged(
        &mut self,
        context: &mut Context<'_>,
        origin: Origin,
        key: DeviceKey,
        seq: Seq,
        reply: Reply,
    ) {
        if reply != Reply::Done {
            return self.failed(context, origin, &reply);
        }
        let delivered = self.member(key.user).map(Member::delivered);
        if let Some(device) = self.device(key) {
            device.store(seq);
            device.advance(seq);
            let cursor = device.cursor;
            let input = Input::Acknowledged { device: key, conversation: context.id, cursor };
            context.mail(partition_of_user(context.hash_key, key.user), input);
        }
        if self.member(key.user).map(Member::delivered) > delivered {
            self.tell_receipt(context, key);
        }
        context.answer(origin, Answer::Received);
    }

    fn marked_read(
        &mut self,
        context: &mut Context<'_>,
        origin: Origin,
        key: DeviceKey,
        seq: Seq,
        reply: Reply,
    ) {
        if reply != Reply::Done {
            return self.failed(context, origin, &reply);
        }
        if let Some(member) = self.members.iter_mut().find(|member| member.user == key.user) {
            member.read = member.read.max(seq);
            self.tell_receipt(context, key);
        }
        context.answer(origin, Answer::Read);
    }

    fn added(
        &mut self,
        context: &mut Context<'_>,
        origin: Origin,
        by: UserId,
        user: UserId,
        ts: Wall,
        reply: Reply,
    ) {
        let Reply::MemberAdded { seq, devices } = reply else { return self.failed(context, origin, &reply) };
        self.head = seq;
        // The store marked every device of every member.
        let mut marked = self.mark_all();
        let start = seq.previous();
        marked.extend(devices.iter().map(|device| DeviceKey { user, device: *device }));
        let devices = devices.into_iter().map(|device| Device::new(device, start, true)).collect();
        self.members.push(Member { user, joined: seq, read: Seq::ZERO, devices });
        self.rebuild_routes(context.hash_key);
        self.tell(context, partition_of_user(context.hash_key, user), MembershipEvent::Added, user);
        self.tell_changed(context, MembershipEvent::Changed, Some(user));
        let body = Body::Change(Change::Added { by, user });
        self.deliver(context, Arc::new(Entry { seq, ts, body }), None, marked);
        context.answer(
            origin,
            Answer::Conversation { summary: Arc::new(self.summary(context.id)), fresh: true },
        );
    }

    fn removed(
        &mut self,
        context: &mut Context<'_>,
        origin: Origin,
        by: UserId,
        user: UserId,
        ts: Wall,
        reply: Reply,
    ) {
        let Reply::MemberRemoved { seq, unmarked } = reply else {
            return self.failed(context, origin, &reply);
        };
        self.head = seq;
        let position = self.members.iter().position(|member| member.user == user);
        let Some(position) = position else { return self.failed(context, origin, &Reply::Conflict) };
        self.members.remove(position);
        self.rebuild_routes(context.hash_key);
        let owner = partition_of_user(context.hash_key, user);
        let unmarked = unmarked.into_iter().map(|device| DeviceKey { user, device });
        context.mail(owner, Input::Unmarked { devices: unmarked.collect() });
        self.tell(context, owner, MembershipEvent::Removed, user);
        self.tell_changed(context, MembershipEvent::Changed, None);
        let marked = self.mark_all();
        let change = if by == user { Change::Left { user } } else { Change::Removed { by, user } };
        self.deliver(context, Arc::new(Entry { seq, ts, body: Body::Change(change) }), None, marked);
        context.answer(
            origin,
            Answer::Conversation { summary: Arc::new(self.summary(context.id)), fresh: true },
        );
    }

    /// Tells one user what a change means to them.
    fn tell(&self, context: &mut Context<'_>, owner: PartitionId, event: MembershipEvent, user: UserId) {
        let summary = Arc::new(self.summary(context.id));
        context.mail(owner, Input::Changed { summary, event, users: Users::One(user) });
    }

    /// Makes the acquaintance of devices that were registered meanwhile, and settles. Whatever device comes after this starts at the head.
    fn surveyed(&mut self, context: &mut Context<'_>, reply: Reply) {
        if let Reply::Conversation(Some(record)) = reply {
            for member in record.members {
                for device in member.devices {
                    let key = DeviceKey { user: member.user, device: device.device };
                    self.device_added(key, device.cursor);
                }
            }
        }
        if self.barrier == Barrier::Open {
            self.settle_now(context);
        }
    }

    fn settled(
        &mut self,
        context: &mut Context<'_>,
        trim: Seq,
        unmarked: Vec<DeviceKey>,
        stored: Vec<(DeviceKey, Seq)>,
        reply: Reply,
    ) {
        if reply != Reply::Done {
            // What was assumed did not happen, and later requests may rely on it. The marks are still there, so whoever sets them
            // again sets no new ones.
            for key in unmarked {
                if let Some(device) = self.device(key) {
                    device.marked = true;
                }
            }
            self.barrier = Barrier::UntilReloaded;
            return;
        }
        self.trimmed = trim;
        for (key, seq) in stored {
            if let Some(device) = self.device(key) {
                device.store(seq);
            }
        }
        let mut unmarked = unmarked;
        unmarked.sort_unstable_by_key(|key| partition_of_user(context.hash_key, key.user));
        for chunk in unmarked.chunk_by(|a, b| a.user == b.user) {
            let owner = partition_of_user(context.hash_key, chunk[0].user);
            context.mail(owner, Input::Unmarked { devices: chunk.to_vec() });
        }
    }

    /// A write was not done. What was assumed of it is dropped with the conversation, which is read anew.
    fn failed(&mut self, context: &mut Context<'_>, origin: Origin, reply: &Reply) {
        self.barrier = Barrier::UntilReloaded;
        let why = match reply {
            Reply::ReadOnly => Refusal::ReadOnly,
            Reply::Conflict => Refusal::Overloaded("the conversation changed meanwhile; try again"),
            _ => Refusal::Internal("the store gave an answer to another question"),
        };
        context.refuse(origin, why);
    }
}

fn page(context: &mut Context<'_>, origin: Origin, head: Seq, reply: Reply) {
    let Reply::Page(entries) = reply else {
        return context.refuse(origin, Refusal::Internal("the store gave an answer to another question"));
    };
    let last = entries.last().map_or(head, |entry| entry.seq);
    let more = last < head && !entries.is_empty();
    context.answer(origin, Answer::Page { conversation: context.id, entries, head, more });
}
