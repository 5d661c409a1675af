//! One conversation in memory: who is in it, where each device stands, and what is asked of the store for it.

use std::collections::VecDeque;
use std::sync::Arc;

use model::limits::{
    GROUP_MEMBERS_MAX, IN_FLIGHT_MAX, PAGE_BYTES_MAX, SETTLE_AFTER, SYNC_LIMIT_MAX, TRIM_EVERY,
};
use model::{
    ConversationId, ConversationKind, ConversationSummary, DeviceKey, Entry, HashKey, Mono, Now, PartitionId,
    Payload, Receipt, Seq, UserId, partition_of_user,
};
use store::{ConversationRecord, Request};

use super::in_flight::{Barrier, InFlight};
use super::member::{Device, Member, Sender};
use crate::effect::{Answer, Effect, Effects, Refusal, Ticket};
use crate::input::{Act, Delivery, Input, MembershipEvent, Origin};
use crate::users::Users;

/// What a rule needs beside the conversation itself.
pub struct Context<'a> {
    pub hash_key: &'a HashKey,
    pub receipts_members_max: usize,
    /// Of the partition's conversations, for what is asked of the store.
    pub life: u16,
    pub now: Now,
    pub id: ConversationId,
    pub out: &'a mut Effects,
}

impl<'a> Context<'a> {
    pub fn new(
        hash_key: &'a HashKey,
        receipts_members_max: usize,
        life: u16,
        now: Now,
        id: ConversationId,
        out: &'a mut Effects,
    ) -> Self {
        Context { hash_key, receipts_members_max, life, now, id, out }
    }

    pub fn answer(&mut self, origin: Origin, answer: Answer) {
        self.out.push(Effect::Answer { origin, answer: Ok(answer) });
    }

    pub fn refuse(&mut self, origin: Origin, why: Refusal) {
        self.out.push(Effect::Answer { origin, answer: Err(why) });
    }

    pub fn mail(&mut self, to: PartitionId, input: Input) {
        self.out.push(Effect::Mail { to, input });
    }
}

/// Users of one partition, for whom one piece of mail is enough.
struct Route {
    partition: PartitionId,
    users: Users,
}

pub struct Conversation {
    pub kind: ConversationKind,
    pub head: Seq,
    pub trimmed: Seq,
    pub members: Vec<Member>,
    routes: Vec<Route>,
    pub in_flight: VecDeque<InFlight>,
    /// Who is being answered just now: taken from what is in flight or from the line, and in neither any more.
    pub answering: Option<Origin>,
    pub barrier: Barrier,
    pub line: VecDeque<Act>,
    last_used: Mono,
    in_settle_queue: bool,
    /// When its log was last looked at for what may be trimmed.
    surveyed: Mono,
    used_since: bool,
    /// It has been read anew for a device it did not know, and that device is still not there.
    pub reloaded: bool,
}

impl Conversation {
    pub fn new(hash_key: &HashKey, record: ConversationRecord) -> Self {
        let members = record.members.into_iter().map(|member| Member {
            user: member.user,
            joined: member.joined,
            read: member.read,
            devices: member
                .devices
                .into_iter()
                .map(|record| Device {
                    acknowledged: record.acknowledged,
                    ..Device::new(record.device, record.cursor, record.marked)
                })
                .collect(),
        });
        let mut conversation = Conversation {
            kind: record.kind,
            head: record.head,
            trimmed: record.trimmed,
            members: members.collect(),
            routes: Vec::new(),
            in_flight: VecDeque::new(),
            answering: None,
            barrier: Barrier::Open,
            line: VecDeque::new(),
            last_used: Mono(0),
            in_settle_queue: false,
            surveyed: Mono(0),
            used_since: true,
            reloaded: false,
        };
        conversation.rebuild_routes(hash_key);
        conversation
    }

    pub fn rebuild_routes(&mut self, hash_key: &HashKey) {
        let mut users: Vec<(PartitionId, UserId)> = self
            .members
            .iter()
            .map(|member| (partition_of_user(hash_key, member.user), member.user))
            .collect();
        users.sort_unstable();
        self.routes = users
            .chunk_by(|a, b| a.0 == b.0)
            .map(|chunk| Route {
                partition: chunk[0].0,
                users: chunk.iter().map(|(_, user)| *user).collect(),
            })
            .collect();
    }

    pub fn member(&self, user: UserId) -> Option<&Member> {
        self.members.iter().find(|member| member.user == user)
    }

    pub fn device(&mut self, key: DeviceKey) -> Option<&mut Device> {
        let member = self.members.iter_mut().find(|member| member.user == key.user)?;
        member.devices.iter_mut().find(|device| device.device == key.device)
    }

    pub fn users(&self) -> impl Iterator<Item = UserId> {
        self.members.iter().map(|member| member.user)
    }

    pub fn devices(&self) -> impl Iterator<Item = DeviceKey> {
        self.members.iter().flat_map(|member| {
            member.devices.iter().map(|device| DeviceKey { user: member.user, device: device.device })
        })
    }

    pub fn summary(&self, id: ConversationId) -> ConversationSummary {
        ConversationSummary { id, kind: self.kind, members: self.users().collect(), head: self.head }
    }

    /// One act, or its place in the line.
    pub fn handle(&mut self, context: &mut Context<'_>, act: Act) {
        self.last_used = context.now.mono;
        self.used_since = true;
        if self.barrier != Barrier::Open {
            return super::wait(&mut self.line, act, context.out);
        }
        if self.in_flight.len() >= IN_FLIGHT_MAX
            && let Some(origin) = act.origin()
        {
            return context
                .refuse(origin, Refusal::Overloaded("too much is in flight for this conversation"));
        }
        match act {
            Act::Send { origin, from, client_id, payload } => {
                self.send(context, origin, from, client_id, payload)
            }
            Act::Pass { origin, from, payload } => self.pass(context, origin, from, payload),
            Act::Receive { origin, device, seq } => self.receive(context, origin, device, seq),
            Act::Read { origin, device, seq } => self.read(context, origin, device, seq),
            Act::Sync { origin, user, after, limit } => self.sync(context, origin, user, after, limit),
            Act::Create { origin, by, .. } => self.handle_create_again(context, origin, by),
            Act::Add { origin, by, user } => self.add(context, origin, by, user),
            Act::Remove { origin, by, user } => self.remove(context, origin, by, user),
            Act::DeviceAdded { device, cursor } => {
                self.device_added(device, cursor);
                let cursor = self.device(device).map_or(cursor, |device| device.cursor);
                context.out.push(super::known(context.hash_key, context.id, device, cursor));
            }
            Act::Passed { device, seq } => self.passed(device, seq),
        }
    }

    fn send(
        &mut self,
        context: &mut Context<'_>,
        origin: Origin,
        from: DeviceKey,
        client_id: model::ClientId,
        payload: Payload,
    ) {
        if self.member(from.user).is_none() {
            return context.refuse(origin, Refusal::NotMember);
        }
        let ts = context.now.wall;
        let mark = self.unmarked();
        let marks = !mark.is_empty();
        let body = payload.clone();
        self.ask(
            context,
            Request::Append { conversation: context.id, from, client_id, ts, payload: body, mark },
        );
        self.in_flight.push_back(InFlight::Append { origin, from, client_id, ts, payload, marks });
    }

    /// The devices that the pending index may not have yet. An entry has to bring marks for all of them: another one in flight that
    /// brings them too may turn out to be a repeat, or not be stored at all.
    fn unmarked(&self) -> Vec<DeviceKey> {
        let devices = self.members.iter().flat_map(|member| {
            let unmarked = member.devices.iter().filter(|device| !device.marked);
            unmarked.map(|device| DeviceKey { user: member.user, device: device.device })
        });
        devices.collect()
    }

    /// An entry that marks every device was committed; names those for which that is new.
    pub fn mark_all(&mut self) -> Vec<DeviceKey> {
        let marked = self.unmarked();
        self.members
            .iter_mut()
            .flat_map(|member| &mut member.devices)
            .for_each(|device| device.marked = true);
        marked
    }

    fn pass(&mut self, context: &mut Context<'_>, origin: Origin, from: DeviceKey, payload: Payload) {
        if self.member(from.user).is_none() {
            return context.refuse(origin, Refusal::NotMember);
        }
        for route in &self.routes {
            let users = route.users.clone();
            context.mail(
                route.partition,
                Input::Pass { conversation: context.id, from, payload: payload.clone(), users },
            );
        }
        context.answer(origin, Answer::Passed);
    }

    fn receive(&mut self, context: &mut Context<'_>, origin: Origin, key: DeviceKey, seq: Seq) {
        if self.member(key.user).is_none() {
            return context.refuse(origin, Refusal::NotMember);
        }
        let head = self.head;
        let Some(device) = self.device(key) else {
            return self.unknown_device(context, Act::Receive { origin, device: key, seq });
        };
        // The first acknowledgement of where it began is news.
        if seq < device.stored || (seq == device.stored && device.acknowledged) {
            let cursor = device.cursor;
            let input = Input::Acknowledged { device: key, conversation: context.id, cursor };
            context.mail(partition_of_user(context.hash_key, key.user), input);
            return context.answer(origin, Answer::Received);
        }
        if seq > head {
            let act = Act::Receive { origin, device: key, seq };
            return self.beyond_head(context, act, "recv: seq is past the head of the conversation");
        }
        device.issued = device.issued.max(seq);
        self.ask(context, Request::Acknowledge { conversation: context.id, device: key, seq });
        self.in_flight.push_back(InFlight::Acknowledge { origin, device: key, seq });
    }

    fn read(&mut self, context: &mut Context<'_>, origin: Origin, key: DeviceKey, seq: Seq) {
        let Some(member) = self.member(key.user) else { return context.refuse(origin, Refusal::NotMember) };
        if seq <= member.read {
            return context.answer(origin, Answer::Read);
        }
        if seq > self.head {
            let act = Act::Read { origin, device: key, seq };
            return self.beyond_head(context, act, "read: seq is past the head of the conversation");
        }
        if seq > member.devices.iter().map(|device| device.issued).max().unwrap_or(Seq::ZERO) {
            return context.refuse(
                origin,
                Refusal::BadRequest("read: seq is past what your devices have acknowledged with recv"),
            );
        }
        self.ask(context, Request::MarkRead { conversation: context.id, user: key.user, seq });
        self.in_flight.push_back(InFlight::Read { origin, device: key, seq });
    }

    /// A client may know of an entry before this owner has heard that it was committed; without such an entry in flight it is a mistake.
    fn beyond_head(&mut self, context: &mut Context<'_>, act: Act, why: &'static str) {
        if self.in_flight.iter().any(|asked| matches!(asked, InFlight::Append { .. })) {
            self.barrier = Barrier::UntilAnswered;
            self.line.push_front(act);
        } else if let Some(origin) = act.origin() {
            context.refuse(origin, Refusal::BadRequest(why));
        }
    }

    /// The news of a device's registration may be overtaken by what the device does; the store knows.
    fn unknown_device(&mut self, context: &mut Context<'_>, act: Act) {
        if self.reloaded {
            if let Some(origin) = act.origin() {
                context.refuse(origin, Refusal::NotMember);
            }
            return;
        }
        self.barrier = Barrier::UntilReloaded;
        self.line.push_front(act);
    }

    fn sync(&mut self, context: &mut Context<'_>, origin: Origin, user: UserId, after: Seq, limit: u32) {
        let Some(member) = self.member(user) else { return context.refuse(origin, Refusal::NotMember) };
        let limit = limit.clamp(1, SYNC_LIMIT_MAX);
        let after = after.max(member.joined.previous());
        let request = Request::ReadLog {
            conversation: context.id,
            after,
            up_to: self.head,
            limit,
            bytes_max: PAGE_BYTES_MAX,
        };
        self.ask(context, request);
        self.in_flight.push_back(InFlight::Page { origin, head: self.head });
    }

    fn add(&mut self, context: &mut Context<'_>, origin: Origin, by: UserId, user: UserId) {
        if self.member(by).is_none() {
            return context.refuse(origin, Refusal::NotMember);
        }
        if self.is_direct() {
            return context
                .refuse(origin, Refusal::BadRequest("the members of a direct conversation do not change"));
        }
        if self.member(user).is_some() {
            let summary = Arc::new(self.summary(context.id));
            return context.answer(origin, Answer::Conversation { summary, fresh: false });
        }
        if self.members.len() >= GROUP_MEMBERS_MAX {
            return context
                .refuse(origin, Refusal::BadRequest("the group has as many members as a group may have"));
        }
        let ts = context.now.wall;
        self.ask(context, Request::AddMember { conversation: context.id, user, by, ts });
        self.in_flight.push_back(InFlight::Add { origin, by, user, ts });
        self.barrier = Barrier::UntilAnswered;
    }

    fn remove(&mut self, context: &mut Context<'_>, origin: Origin, by: UserId, user: UserId) {
        if self.member(by).is_none() {
            return context.refuse(origin, Refusal::NotMember);
        }
        if self.is_direct() {
            return context
                .refuse(origin, Refusal::BadRequest("the members of a direct conversation do not change"));
        }
        if self.member(user).is_none() {
            return context
                .refuse(origin, Refusal::NotFound("that user is not a member of this conversation"));
        }
        let ts = context.now.wall;
        self.ask(context, Request::RemoveMember { conversation: context.id, user, by, ts });
        self.in_flight.push_back(InFlight::Remove { origin, by, user, ts });
        self.barrier = Barrier::UntilAnswered;
    }

    pub fn device_added(&mut self, key: DeviceKey, cursor: Seq) {
        let Some(member) = self.members.iter_mut().find(|member| member.user == key.user) else { return };
        if member.devices.iter().all(|device| device.device != key.device) {
            member.devices.push(Device::new(key.device, cursor, true));
            member.devices.sort_unstable_by_key(|device| device.device);
        }
    }

    /// What a device has without having been pushed it. Settling writes it down.
    fn passed(&mut self, key: DeviceKey, seq: Seq) {
        let head = self.head;
        if let Some(device) = self.device(key)
            && seq <= head
        {
            device.advance(seq);
        }
    }

    pub fn ask(&mut self, context: &mut Context<'_>, request: Request) {
        let ticket = Ticket::Conversation { conversation: context.id, life: context.life };
        context.out.push(Effect::Ask { ticket, request });
    }

    /// Sends an entry to the owners of all members.
    pub fn deliver(
        &self,
        context: &mut Context<'_>,
        entry: Arc<Entry>,
        except: Option<DeviceKey>,
        marked: Vec<DeviceKey>,
    ) {
        for route in &self.routes {
            let marked = match marked.is_empty() {
                true => Vec::new(),
                false => marked.iter().filter(|device| route.users.contains(&device.user)).copied().collect(),
            };
            let delivery = Delivery {
                conversation: context.id,
                entry: Arc::clone(&entry),
                users: route.users.clone(),
                except,
                marked,
            };
            context.mail(route.partition, Input::Deliver(delivery));
        }
    }

    /// Tells all members (or all but one) what the conversation is now.
    pub fn tell_changed(&self, context: &mut Context<'_>, event: MembershipEvent, except: Option<UserId>) {
        let summary = Arc::new(self.summary(context.id));
        for route in &self.routes {
            let users = match except {
                Some(user) if route.users.contains(&user) => {
                    route.users.iter().copied().filter(|other| *other != user).collect()
                }
                _ => route.users.clone(),
            };
            let input = Input::Changed { summary: Arc::clone(&summary), event, users };
            context.mail(route.partition, input);
        }
    }

    /// Tells the other members how far this one has got, in conversations small enough for that.
    pub fn tell_receipt(&self, context: &mut Context<'_>, key: DeviceKey) {
        if self.members.len() > context.receipts_members_max {
            return;
        }
        let Some(member) = self.member(key.user) else { return };
        let Receipt { user, delivered, read } = Receipt::new(key.user, member.delivered(), member.read);
        for route in &self.routes {
            let (conversation, users) = (context.id, route.users.clone());
            let input = Input::Receipt { conversation, user, delivered, read, users, except: key };
            context.mail(route.partition, input);
        }
    }

    /// Everybody who waits for an answer.
    pub fn waiting(&self) -> impl Iterator<Item = Origin> {
        let in_flight = self.in_flight.iter().filter_map(InFlight::origin);
        // It may have been put back already.
        let last = self.in_flight.back().and_then(InFlight::origin);
        let first = self.line.front().and_then(Act::origin);
        let answering = self.answering.filter(|origin| ![last, first].contains(&Some(*origin)));
        in_flight.chain(self.line.iter().filter_map(Act::origin)).chain(answering)
    }

    /// Something may have been committed that nobody was told of: all members begin anew, and those who were members before.
    pub fn tell_interrupted(&self, context: &mut Context<'_>, before: Vec<UserId>) {
        let mut users: Vec<(PartitionId, UserId)> = self
            .users()
            .chain(before)
            .map(|user| (partition_of_user(context.hash_key, user), user))
            .collect();
        users.sort_unstable();
        users.dedup();
        for chunk in users.chunk_by(|a, b| a.0 == b.0) {
            let users: Users = chunk.iter().map(|(_, user)| *user).collect();
            let devices = self.devices().filter(|device| users.contains(&device.user)).collect();
            context.mail(chunk[0].0, Input::Interrupted { users, devices });
        }
    }

    /// Handles what waits in the line, as long as nothing bars it.
    pub fn go_through_line(&mut self, context: &mut Context<'_>) {
        while self.barrier == Barrier::Open
            && let Some(act) = self.line.pop_front()
        {
            self.answering = act.origin();
            self.handle(context, act);
            self.answering = None;
        }
    }

    /// The line, and what the store does not say, when the conversation has to be read anew and nothing is in flight.
    pub fn take_reload(&mut self) -> Option<(VecDeque<Act>, Vec<Sender>)> {
        if self.barrier != Barrier::UntilReloaded || !self.in_flight.is_empty() {
            return None;
        }
        let mut senders = Vec::new();
        for member in &mut self.members {
            let devices = member.devices.iter_mut();
            for device in devices.filter(|device| device.cursor > device.stored || !device.own.is_empty()) {
                let key = DeviceKey { user: member.user, device: device.device };
                senders.push(Sender { key, cursor: device.cursor, own: std::mem::take(&mut device.own) });
            }
        }
        Some((std::mem::take(&mut self.line), senders))
    }

    /// Devices still have what they sent themselves, though the conversation was read anew.
    pub fn remember(&mut self, senders: Vec<Sender>) {
        for Sender { key, cursor, own } in senders {
            if let Some(device) = self.device(key) {
                device.own = own;
                device.advance(cursor);
            }
        }
    }

    /// Whether it has to be put into the queue of those to be settled; true once until it was settled.
    pub fn wants_settling(&mut self, now: Mono) -> bool {
        if self.in_settle_queue || !(self.devices_unsettled() || self.trim_target() > self.trimmed) {
            return false;
        }
        self.last_used = now;
        self.in_settle_queue = true;
        true
    }

    fn devices_unsettled(&self) -> bool {
        let head = self.head;
        self.members
            .iter()
            .flat_map(|member| &member.devices)
            .any(|device| device.cursor > device.stored || (device.marked && device.cursor == head))
    }

    /// Everybody has everything up to here. A member without a device yet has nothing.
    fn trim_target(&self) -> Seq {
        let floors = self.members.iter().map(|member| {
            member.devices.iter().map(|device| device.cursor).min().unwrap_or(member.joined.previous())
        });
        floors.min().unwrap_or(self.head)
    }

    /// Settles; false when it is not quiet yet and has to wait once more. One that is never quiet is trimmed all the same.
    pub fn settle(&mut self, context: &mut Context<'_>) -> bool {
        if !self.in_settle_queue {
            return true;
        }
        let now = context.now.mono;
        let quiet = now.since(self.last_used) >= SETTLE_AFTER && self.in_flight.is_empty();
        let overdue = now.since(self.surveyed) >= TRIM_EVERY && self.barrier == Barrier::Open;
        if !quiet && !overdue {
            return false;
        }
        self.in_settle_queue = !quiet;
        let surveying = self.in_flight.iter().any(|asked| matches!(asked, InFlight::Survey));
        if self.trim_target() > self.trimmed && !surveying {
            // The news of a new device may still be on its way here, and it must not be trimmed past.
            self.surveyed = now;
            self.ask(context, Request::LoadConversation { conversation: context.id });
            self.in_flight.push_back(InFlight::Survey);
        } else if quiet {
            self.settle_now(context);
        }
        quiet
    }

    /// Settles what is known. While something is in flight no mark is taken away: an entry that is may need it.
    pub fn settle_now(&mut self, context: &mut Context<'_>) {
        let unmark = self.in_flight.is_empty();
        let (head, trim) = (self.head, self.trim_target().max(self.trimmed));
        let (mut unmarked, mut stored) = (Vec::new(), Vec::new());
        for member in &mut self.members {
            for device in &mut member.devices {
                let key = DeviceKey { user: member.user, device: device.device };
                if device.cursor > device.stored {
                    stored.push((key, device.cursor));
                }
                if unmark && device.marked && device.cursor == head {
                    device.marked = false;
                    unmarked.push(key);
                }
            }
        }
        if unmarked.is_empty() && stored.is_empty() && trim == self.trimmed {
            return;
        }
        let request = Request::Settle {
            conversation: context.id,
            acknowledged: stored.clone(),
            unmark: unmarked.clone(),
            trim,
        };
        self.ask(context, request);
        self.in_flight.push_back(InFlight::Settle { trim, unmarked, stored });
    }

    /// Whether it may leave memory. Asking counts as the clock's hand passing over it.
    pub fn may_go(&mut self) -> bool {
        let quiet = self.in_flight.is_empty()
            && self.line.is_empty()
            && self.barrier == Barrier::Open
            && !self.in_settle_queue;
        !std::mem::take(&mut self.used_since) && quiet
    }
}
