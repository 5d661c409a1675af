//! The owner of conversations: the only writer of their logs and cursors.
//!
//! A rule never waits in the middle. What is asked of a conversation that is not in memory waits in its line until the store has
//! answered; so does what comes behind a change of membership, until that is committed. Everything else is checked against what is
//! in memory and sent to the store at once, and its effects happen when the store has answered, in the order of asking.

mod conversation;
mod in_flight;
mod member;
mod outcome;
mod settle;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hashbrown::HashMap;
use model::limits::WAITING_LINE_MAX;
use model::{
    Body, Change, ConversationId, ConversationKind, DeviceKey, Entry, HashKey, Mono, Now, Seq, UserId, Wall,
    partition_of_conversation, partition_of_user,
};
use store::{ConversationRecord, Reply, Request};

use crate::effect::{Answer, Effect, Effects, Refusal, Ticket};
use crate::fault;
use crate::input::{Act, Input, MembershipEvent, Origin};
use conversation::{Context, Conversation};
use member::Sender;
use settle::SettleQueue;

/// Conversations settled in one tick.
const SETTLED_AT_ONCE: usize = 64;
/// Residents that are looked at for one that may go, each time that one has come or become free.
const LOOKED_AT: usize = 8;

/// Where a conversation is.
enum Residence {
    /// The store has been asked for it.
    Loading { why: Loading, line: VecDeque<Act> },
    /// The store has been asked to make it.
    Creating { creation: Creation, line: VecDeque<Act> },
    /// It is in memory.
    Resident(Box<Conversation>),
}

/// Why the store has been asked for a conversation.
enum Loading {
    /// It is not in memory.
    Wanted,
    /// It was in memory, with what the store does not say.
    Again(Vec<Sender>),
    /// It was in memory when a rule failed; its members have to be told, those included that may be members no more.
    Interrupted { members: Vec<UserId> },
}

/// What follows when a resident was touched.
enum Follow {
    /// It has to be read anew; what waits, and what the store does not say.
    Reload { line: VecDeque<Act>, senders: Vec<Sender> },
    /// It will have to be settled.
    Settle,
}

/// What the store was asked to make, and for whom. The first entry is told exactly as it was asked for.
struct Creation {
    origin: Origin,
    by: UserId,
    members: Vec<UserId>,
    ts: Wall,
}

/// All conversations of one partition.
pub struct Chat {
    hash_key: HashKey,
    receipts_members_max: usize,
    residents_max: usize,
    /// How often everything here was dropped, after a fault.
    life: u16,
    /// The conversation that is just being taken into memory after a fault. If that fails too, it is not tried again.
    retried: Option<ConversationId>,
    /// Who waits for a conversation that has just arrived, while that is taken care of.
    arriving: Vec<Origin>,
    conversations: HashMap<ConversationId, Residence, HashKey>,
    /// Residents in the order in which they may have to make room (second chance: one that was used since is passed over).
    clock: VecDeque<ConversationId>,
    settle: SettleQueue,
}

impl Chat {
    pub fn new(hash_key: HashKey, residents_max: usize, receipts_members_max: usize) -> Self {
        Chat {
            hash_key,
            receipts_members_max,
            residents_max,
            life: 0,
            retried: None,
            arriving: Vec::new(),
            conversations: HashMap::with_hasher(hash_key),
            clock: VecDeque::new(),
            settle: SettleQueue::default(),
        }
    }

    pub fn resident(&self) -> usize {
        self.conversations.len()
    }

    pub fn next_deadline(&self) -> Option<Mono> {
        self.settle.next()
    }

    pub fn handle(&mut self, now: Now, id: ConversationId, act: Act, out: &mut Effects) {
        match self.conversations.get_mut(&id) {
            Some(Residence::Loading { line, .. } | Residence::Creating { line, .. }) => wait(line, act, out),
            Some(Residence::Resident(conversation)) => {
                let mut context =
                    Context::new(&self.hash_key, self.receipts_members_max, self.life, now, id, out);
                conversation.handle(&mut context, act);
                fault::point();
                if let Some(follow) = conversation.follow(now.mono) {
                    self.follow(now, id, follow, out);
                }
            }
            None => self.fetch(now, id, act, out),
        }
    }

    /// Nothing is known of the conversation yet.
    fn fetch(&mut self, now: Now, id: ConversationId, act: Act, out: &mut Effects) {
        match act {
            Act::Create { origin, by, kind, members } => {
                let creation = Creation { origin, by, members: members.clone(), ts: now.wall };
                let request =
                    Request::CreateConversation { conversation: id, kind, by, members, ts: now.wall };
                out.push(Effect::Ask { ticket: self.ticket(id), request });
                self.conversations.insert(id, Residence::Creating { creation, line: VecDeque::new() });
            }
            // It will be read when it is needed, and then names the device.
            Act::DeviceAdded { device, cursor } => out.push(known(&self.hash_key, id, device, cursor)),
            act => {
                self.load(id, Loading::Wanted, VecDeque::from([act]), out);
            }
        }
    }

    fn load(&mut self, id: ConversationId, why: Loading, line: VecDeque<Act>, out: &mut Effects) {
        let request = Request::LoadConversation { conversation: id };
        out.push(Effect::Ask { ticket: self.ticket(id), request });
        self.conversations.insert(id, Residence::Loading { why, line });
    }

    fn ticket(&self, conversation: ConversationId) -> Ticket {
        Ticket::Conversation { conversation, life: self.life }
    }

    /// Drops everything after a fault, and reads anew what was being worked on; the answer comes behind those to all that was asked
    /// before. `told` are users who were about to be told of the one that failed. Returns who waits for an answer.
    pub fn reload(
        &mut self,
        failed: Option<ConversationId>,
        told: Vec<UserId>,
        out: &mut Effects,
    ) -> Vec<Origin> {
        let mut waiting = Vec::new();
        // In the same order every time, whatever the table's.
        let mut interrupted: BTreeMap<ConversationId, Vec<UserId>> = BTreeMap::new();
        let mut again: Vec<(ConversationId, Act)> = Vec::new();
        for (id, residence) in self.conversations.drain() {
            let line = match &residence {
                Residence::Loading { line, .. } | Residence::Creating { line, .. } => line,
                Residence::Resident(conversation) => &conversation.line,
            };
            let news = line.iter().filter(|act| act.origin().is_none());
            again.extend(news.map(|act| (id, act.clone())));
            let members = match residence {
                Residence::Loading { why, line } => {
                    waiting.extend(line.iter().filter_map(Act::origin));
                    if let Loading::Interrupted { members } = why { Some(members) } else { None }
                }
                Residence::Creating { creation, line } => {
                    waiting.extend(line.iter().filter_map(Act::origin));
                    waiting.push(creation.origin);
                    Some(creation.members)
                }
                Residence::Resident(conversation) => {
                    waiting.extend(conversation.waiting());
                    let concerned = Some(id) == failed || !conversation.in_flight.is_empty();
                    concerned.then(|| conversation.users().collect())
                }
            };
            interrupted.extend(members.map(|members| (id, members)));
        }
        for origin in std::mem::take(&mut self.arriving) {
            if !waiting.contains(&origin) {
                waiting.push(origin);
            }
        }
        if let Some(id) = failed {
            interrupted.entry(id).or_default().extend(told);
        }
        let retried = self.retried;
        let life = self.life.wrapping_add(1);
        *self = Chat { life, ..Chat::new(self.hash_key, self.residents_max, self.receipts_members_max) };
        for (id, members) in interrupted.into_iter().filter(|(id, _)| Some(*id) != retried) {
            self.load(id, Loading::Interrupted { members }, VecDeque::new(), out);
        }
        // What the owners of users tell is never lost.
        again.sort_by_key(|(conversation, _)| *conversation);
        for (conversation, act) in again {
            let to = partition_of_conversation(&self.hash_key, conversation);
            out.push(Effect::Mail { to, input: Input::Chat { conversation, act } });
        }
        waiting
    }

    pub fn handle_stored(
        &mut self,
        now: Now,
        id: ConversationId,
        life: u16,
        reply: Reply,
        out: &mut Effects,
    ) {
        if life != self.life {
            return;
        }
        match self.conversations.get_mut(&id) {
            Some(Residence::Resident(conversation)) => {
                let mut context =
                    Context::new(&self.hash_key, self.receipts_members_max, self.life, now, id, out);
                conversation.handle_stored(&mut context, reply);
                fault::point();
                if let Some(follow) = conversation.follow(now.mono) {
                    self.follow(now, id, follow, out);
                }
                self.make_room(LOOKED_AT);
            }
            Some(_) => self.handle_arrived(now, id, reply, out),
            None => debug_assert!(false, "an answer for a conversation nobody asked for"),
        }
    }

    /// The answer to loading or making a conversation.
    fn handle_arrived(&mut self, now: Now, id: ConversationId, reply: Reply, out: &mut Effects) {
        let Some(residence) = self.conversations.remove(&id) else { return };
        let (line, why, creation) = match residence {
            Residence::Loading { why, line } => (line, why, None),
            Residence::Creating { creation, line } => (line, Loading::Wanted, Some(creation)),
            Residence::Resident(_) => return,
        };
        self.arriving.extend(creation.iter().map(|creation| creation.origin));
        self.arriving.extend(line.iter().filter_map(Act::origin));
        fault::point();
        match (reply, creation) {
            (Reply::Conversation(Some(record)), None) => {
                self.retried = matches!(why, Loading::Interrupted { .. }).then_some(id);
                self.admit(id, record, line);
                self.enter(now, id, out, |conversation, context| {
                    fault::point();
                    match why {
                        Loading::Wanted => {}
                        Loading::Again(senders) => {
                            conversation.reloaded = true;
                            conversation.remember(senders);
                        }
                        Loading::Interrupted { members } => conversation.tell_interrupted(context, members),
                    }
                    conversation.go_through_line(context);
                    conversation.reloaded = false;
                });
                self.retried = None;
            }
            (Reply::Conversation(None), None) => {
                for act in line {
                    match act {
                        Act::Create { .. } => self.handle(now, id, act, out),
                        act => match self.conversations.get_mut(&id) {
                            Some(Residence::Creating { line, .. }) => wait(line, act, out),
                            _ => drop_act(&self.hash_key, id, act, Refusal::NotMember, out),
                        },
                    }
                }
            }
            (Reply::Created { fresh, record }, Some(creation)) => {
                self.admit(id, record, line);
                self.enter(now, id, out, |conversation, context| {
                    fault::point();
                    match fresh {
                        true => conversation.handle_made(context, creation),
                        false => conversation.handle_create_again(context, creation.origin, creation.by),
                    }
                    conversation.go_through_line(context);
                });
            }
            (reply, creation) => {
                let why = if reply == Reply::ReadOnly {
                    Refusal::ReadOnly
                } else {
                    Refusal::Internal("the store gave an answer to another question")
                };
                refuse(creation.map(|creation| creation.origin), why, out);
                for act in line {
                    drop_act(&self.hash_key, id, act, why, out);
                }
            }
        }
        self.arriving.clear();
        // Only now: what has just come must not go before it was used.
        self.make_room(LOOKED_AT);
    }

    /// Takes it into memory, with what has waited for it.
    fn admit(&mut self, id: ConversationId, record: ConversationRecord, line: VecDeque<Act>) {
        let mut conversation = Conversation::new(&self.hash_key, record);
        conversation.line = line;
        self.conversations.insert(id, Residence::Resident(Box::new(conversation)));
        self.clock.push_back(id);
    }

    /// Does something with a resident, and what follows from it.
    fn enter(
        &mut self,
        now: Now,
        id: ConversationId,
        out: &mut Effects,
        act: impl FnOnce(&mut Conversation, &mut Context<'_>),
    ) {
        let Some(Residence::Resident(conversation)) = self.conversations.get_mut(&id) else { return };
        let mut context = Context::new(&self.hash_key, self.receipts_members_max, self.life, now, id, out);
        act(conversation, &mut context);
        if let Some(follow) = conversation.follow(now.mono) {
            self.follow(now, id, follow, out);
        }
    }

    fn follow(&mut self, now: Now, id: ConversationId, follow: Follow, out: &mut Effects) {
        match follow {
            Follow::Reload { line, senders } => {
                self.clock.retain(|other| *other != id);
                self.load(id, Loading::Again(senders), line, out);
            }
            Follow::Settle => self.settle.push(now.mono, id),
        }
    }

    /// Settles what has been quiet long enough. Work is bounded: the rest waits for the next turn.
    pub fn tick(&mut self, now: Now, out: &mut Effects) {
        for _ in 0..SETTLED_AT_ONCE {
            let Some(id) = self.settle.pop_due(now.mono) else { break };
            let Some(Residence::Resident(conversation)) = self.conversations.get_mut(&id) else { continue };
            let mut context =
                Context::new(&self.hash_key, self.receipts_members_max, self.life, now, id, out);
            if !conversation.settle(&mut context) {
                self.settle.push(now.mono, id);
            }
            fault::point();
        }
        // As many as may have become free here, passed over once and then let go.
        self.make_room(2 * SETTLED_AT_ONCE);
    }

    /// Lets residents go above the cap: those that nothing is in flight for, least recently used first as the clock sees it.
    fn make_room(&mut self, looked_at: usize) {
        for _ in 0..looked_at {
            if self.clock.len() <= self.residents_max {
                return;
            }
            let Some(id) = self.clock.pop_front() else { return };
            let may_go = match self.conversations.get_mut(&id) {
                Some(Residence::Resident(conversation)) => conversation.may_go(),
                _ => false,
            };
            if may_go {
                self.conversations.remove(&id);
            } else {
                self.clock.push_back(id);
            }
        }
    }
}

/// Puts an act at the end of a line, or refuses it when the line is full.
fn wait(line: &mut VecDeque<Act>, act: Act, out: &mut Effects) {
    // What the owners of users tell is never lost; it is bounded by the number of devices.
    if line.len() >= WAITING_LINE_MAX && act.origin().is_some() {
        refuse(act.origin(), Refusal::Overloaded("too much is waiting for this conversation"), out);
    } else {
        line.push_back(act);
    }
}

/// The owner of a device's user learns that the device is known here: whatever is delivered from now on came after it.
fn known(hash_key: &HashKey, conversation: ConversationId, device: DeviceKey, cursor: Seq) -> Effect {
    let input = Input::Acknowledged { device, conversation, cursor };
    Effect::Mail { to: partition_of_user(hash_key, device.user), input }
}

/// An act that comes to nothing.
fn drop_act(hash_key: &HashKey, id: ConversationId, act: Act, why: Refusal, out: &mut Effects) {
    match act {
        Act::DeviceAdded { device, cursor } => out.push(known(hash_key, id, device, cursor)),
        act => refuse(act.origin(), why, out),
    }
}

fn refuse(origin: Option<Origin>, why: Refusal, out: &mut Effects) {
    if let Some(origin) = origin {
        out.push(Effect::Answer { origin, answer: Err(why) });
    }
}

impl Conversation {
    fn follow(&mut self, now: Mono) -> Option<Follow> {
        if let Some((line, senders)) = self.take_reload() {
            return Some(Follow::Reload { line, senders });
        }
        self.wants_settling(now).then_some(Follow::Settle)
    }

    /// It was just made.
    fn handle_made(&mut self, context: &mut Context<'_>, creation: Creation) {
        let Creation { origin, by, members, ts } = creation;
        let body = Body::Change(Change::Created { by, members });
        let marked = self.devices().collect();
        self.tell_changed(context, MembershipEvent::Added, None);
        self.deliver(context, Arc::new(Entry { seq: Seq(1), ts, body }), None, marked);
        let summary = Arc::new(self.summary(context.id));
        context.answer(origin, Answer::Conversation { summary, fresh: true });
    }

    /// It was there already when somebody asked for it to be made.
    fn handle_create_again(&mut self, context: &mut Context<'_>, origin: Origin, by: UserId) {
        if self.member(by).is_none() {
            return context.refuse(origin, Refusal::NotMember);
        }
        let summary = Arc::new(self.summary(context.id));
        context.answer(origin, Answer::Conversation { summary, fresh: false });
    }

    fn is_direct(&self) -> bool {
        self.kind == ConversationKind::Direct
    }
}
