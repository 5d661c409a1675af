//! A few partitions with the mail between them and the store beneath, each as slow as the operations let it be.
//!
//! Owns the order in which everything happens, who asked what, and the comparison with the model whenever something reaches a client.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use domain::{
    Act, Answer, CloseCause, Effect, Effects, Input, Origin, Partition, Push, Refusal, Settings, Ticket,
};
use model::limits::{IN_FLIGHT_MAX, WAITING_LINE_MAX};
use model::{
    ConnectionId, ConversationId, DeviceId, DeviceKey, HashKey, Mono, Now, PartitionId, Payload, Seq,
    ShardId, Span, UserId, Wall, partition_of_conversation, partition_of_user,
};
use store::{Engine, MemoryStore, Reply, Request};

use super::asking::{act, id_of, over};
use super::model::{Devices, Model, Wish};
use super::party::Party;
use super::{CONVERSATIONS, DEVICES, Op, USERS};
use crate::names::Registry;
use crate::random::Random;

/// The partitions that users and conversations fall into: 0 and this.
const LAST_PARTITION: u8 = 1;
/// Conversations that a partition keeps in memory, so that they come and go.
const RESIDENTS_MAX: usize = 1;
/// Receipts are told in smaller conversations than that of everybody.
const RECEIPTS_MEMBERS_MAX: usize = 3;
/// Rounds after which everything must have come to rest.
const ROUNDS_MAX: u32 = 400;

type Checked = Result<(), String>;

/// Where mail comes from: a partition, or a device with its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum From {
    Partition(PartitionId),
    Device(u8),
    Outside,
}

/// Something that was asked of a conversation and has arrived there.
#[derive(Debug)]
struct Asked {
    id: u64,
    wish: Wish,
    answer: Option<Result<Answer, Refusal>>,
}

/// Everything there is.
pub struct Stage {
    now: Now,
    key: HashKey,
    users: Vec<UserId>,
    ids: Vec<ConversationId>,
    parties: Vec<Party>,
    model: Model,
    store: MemoryStore,
    /// Devices that the store knows, with how long the logs were then.
    began: Devices,
    full: bool,
    partitions: BTreeMap<PartitionId, Partition>,
    mail: BTreeMap<(From, PartitionId), VecDeque<Input>>,
    asked: BTreeMap<PartitionId, VecDeque<(Ticket, Request)>>,
    replies: BTreeMap<PartitionId, VecDeque<(Ticket, Reply)>>,
    /// What is on its way to a conversation, and what has arrived there, in order.
    wishes: BTreeMap<u64, Wish>,
    lines: BTreeMap<u8, VecDeque<Asked>>,
    connecting: BTreeMap<u64, ConnectionId>,
    lists: BTreeMap<u64, UserId>,
    last_id: u64,
    last_number: u16,
    /// Inputs that were handed to partitions.
    inputs: u64,
    at_rest: bool,
}

impl Stage {
    pub fn new() -> Self {
        let mut random = Random::new(0);
        let key = HashKey([7; 16]);
        let registry = Registry { hash_key: key, last: LAST_PARTITION };
        let users: Vec<UserId> = (0..USERS).map(|number| registry.user(&mut random, number)).collect();
        let ids = (0..CONVERSATIONS).map(|number| registry.conversation(&mut random, u16::from(number)));
        let ids = ids.collect();
        let devices = users.iter().flat_map(|user| (1..=DEVICES).map(|device| (*user, device)));
        let parties = devices.enumerate().map(|(number, (user, device))| {
            Party::new(DeviceKey { user, device: DeviceId(u32::from(device)) }, number as u8)
        });
        let parties = parties.collect();
        let mut stage = Stage {
            now: Now { mono: Mono(1), wall: Wall(1_700_000_000_000) },
            key,
            users,
            ids,
            parties,
            model: Model::default(),
            store: MemoryStore::new(),
            began: Devices::new(),
            full: false,
            partitions: BTreeMap::new(),
            mail: BTreeMap::new(),
            asked: BTreeMap::new(),
            replies: BTreeMap::new(),
            wishes: BTreeMap::new(),
            lines: BTreeMap::new(),
            connecting: BTreeMap::new(),
            lists: BTreeMap::new(),
            last_id: 0,
            last_number: 1_000,
            inputs: 0,
            at_rest: false,
        };
        stage.start();
        stage
    }

    fn start(&mut self) {
        let settings = Settings { residents_max: RESIDENTS_MAX, receipts_members_max: RECEIPTS_MEMBERS_MAX };
        let partition = |number| (PartitionId(number), Partition::new(self.key, settings));
        self.partitions = (0..=LAST_PARTITION).map(partition).collect();
        let (partitions, key) = (&mut self.partitions, &self.key);
        let know = &mut |device: DeviceKey, pending| {
            if let Some(owner) = partitions.get_mut(&partition_of_user(key, device.user)) {
                owner.know(device, pending);
            }
        };
        self.store.devices(know).expect("memory does not fail");
    }

    pub fn perform(&mut self, op: Op) -> Checked {
        match op {
            Op::Connect { device } => self.connect(self.party(device)),
            Op::Disconnect { device } => self.disconnect(self.party(device)),
            Op::Send { device, conversation, number, other } => {
                self.send(device, conversation, u16::from(number), other)
            }
            Op::Burst { device, conversation, count } => {
                for _ in 0..count {
                    self.last_number += 1;
                    self.send(device, conversation, self.last_number, false);
                }
            }
            Op::Pass { device, conversation } => {
                self.over_a_connection(device, conversation, |party, _, _| {
                    Some(Wish::Pass { from: party.key })
                });
            }
            Op::Receive { device, conversation, more } => {
                self.over_a_connection(device, conversation, |party, number, _| {
                    let seq = shifted(party.cursor(number), more);
                    (party.connected && seq > Seq::ZERO).then_some(Wish::Receive { device: party.key, seq })
                });
            }
            Op::Read { device, conversation, more } => {
                self.over_a_connection(device, conversation, |party, number, model| {
                    let acknowledged = model.talks.get(&number)?.acknowledged.get(&party.key)?;
                    let seq = shifted(*acknowledged, more);
                    (seq > Seq::ZERO).then_some(Wish::Read { user: party.key.user, seq })
                });
            }
            Op::Sync { device, conversation, after, limit } => {
                let (after, limit) = (Seq(u64::from(after)), u32::from(limit) + 1);
                self.over_a_connection(device, conversation, |party, _, _| {
                    Some(Wish::Sync { user: party.key.user, after, limit, head: Seq::ZERO })
                });
            }
            Op::Create { by, conversation, members } => self.create(by, conversation, members),
            Op::Add { by, conversation, user } => {
                let wish = Wish::Add { by: self.user(by), user: self.user(user) };
                self.ask_outside(conversation, wish);
            }
            Op::Remove { by, conversation, user } => {
                let wish = Wish::Remove { by: self.user(by), user: self.user(user) };
                self.ask_outside(conversation, wish);
            }
            Op::List { user } => self.list(self.user(user)),
            Op::Mail { queue, count } => self.deliver(queue, count)?,
            Op::Commit { partition, count } => self.commit(part(partition), usize::from(count) + 1),
            Op::Stored { partition, count } => self.stored(part(partition), usize::from(count) + 1)?,
            Op::Settle => self.settle()?,
            Op::Wait { tenths } => self.wait(Span(100 * u64::from(tenths)))?,
            Op::Full { full } => self.full = full,
            Op::Restart => self.restart()?,
        }
        self.check_caps()
    }

    fn party(&self, device: u8) -> usize {
        usize::from(device) % self.parties.len()
    }

    fn user(&self, user: u8) -> UserId {
        self.users[usize::from(user) % self.users.len()]
    }

    fn number_of(&self, conversation: ConversationId) -> u8 {
        self.ids.iter().position(|id| *id == conversation).expect("only these are named") as u8
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn post(&mut self, from: From, to: PartitionId, input: Input) {
        self.mail.entry((from, to)).or_default().push_back(input);
    }

    fn connect(&mut self, index: usize) {
        let id = self.next_id();
        let device = self.parties[index].key;
        let connection = self.parties[index].connect();
        self.connecting.insert(id, connection);
        let input = Input::Connect { origin: over(connection, id), connection, device };
        self.post(From::Device(index as u8), partition_of_user(&self.key, device.user), input);
    }

    fn disconnect(&mut self, index: usize) {
        if let Some(connection) = self.parties[index].connection {
            self.parties[index].disconnect();
            self.gone(index, connection);
        }
    }

    /// The owner of the user is told that a connection is over.
    fn gone(&mut self, index: usize, connection: ConnectionId) {
        let device = self.parties[index].key;
        let input = Input::Disconnect { connection, device };
        self.post(From::Device(index as u8), partition_of_user(&self.key, device.user), input);
    }

    fn send(&mut self, device: u8, conversation: u8, number: u16, other: bool) {
        // A user's numbers are counted for each conversation.
        let number = number * u16::from(CONVERSATIONS) + u16::from(conversation % CONVERSATIONS);
        let mut bytes = number.to_be_bytes().to_vec();
        bytes.push(u8::from(other));
        self.over_a_connection(device, conversation, |party, _, _| {
            Some(Wish::Send { from: party.key, number, payload: Payload::from(bytes) })
        });
    }

    /// A device that has a connection asks something over it.
    fn over_a_connection(
        &mut self,
        device: u8,
        conversation: u8,
        wish: impl FnOnce(&Party, u8, &Model) -> Option<Wish>,
    ) {
        let (index, number) = (self.party(device), conversation % CONVERSATIONS);
        let party = &self.parties[index];
        let Some(connection) = party.connection else { return };
        let (device, wish) = (party.key, wish(party, number, &self.model));
        if let Some(wish) = wish {
            let id = self.next_id();
            let act = act(over(connection, id), &wish, device);
            self.ask(From::Device(index as u8), number, id, wish, act);
        }
    }

    fn create(&mut self, by: u8, conversation: u8, members: u8) {
        let (by, number) = (self.user(by), conversation % CONVERSATIONS);
        let direct = number == 0;
        let chosen =
            |(index, _): &(usize, &UserId)| if direct { *index < 2 } else { members >> index & 1 == 1 };
        let mut members: Vec<UserId> =
            self.users.iter().enumerate().filter(chosen).map(|(_, user)| *user).collect();
        if !members.contains(&by) {
            if direct {
                return;
            }
            members.push(by);
        }
        self.ask_outside(conversation, Wish::Create { by, direct, members });
    }

    fn ask_outside(&mut self, conversation: u8, wish: Wish) {
        let id = self.next_id();
        let origin = Origin::Outside { shard: ShardId(0), ticket: id };
        let nobody = DeviceKey { user: UserId([0; 16]), device: DeviceId(0) };
        let act = act(origin, &wish, nobody);
        self.ask(From::Outside, conversation % CONVERSATIONS, id, wish, act);
    }

    fn ask(&mut self, from: From, number: u8, id: u64, wish: Wish, act: Act) {
        let conversation = self.ids[usize::from(number)];
        self.wishes.insert(id, wish);
        self.post(
            from,
            partition_of_conversation(&self.key, conversation),
            Input::Chat { conversation, act },
        );
    }

    fn list(&mut self, user: UserId) {
        let id = self.next_id();
        self.lists.insert(id, user);
        let origin = Origin::Outside { shard: ShardId(0), ticket: id };
        let input = Input::ListConversations { origin, user };
        self.post(From::Outside, partition_of_user(&self.key, user), input);
    }

    /// Some pieces of one queue arrive.
    fn deliver(&mut self, queue: u8, count: u8) -> Checked {
        let waiting: Vec<_> =
            self.mail.iter().filter(|(_, queue)| !queue.is_empty()).map(|(key, _)| *key).collect();
        if waiting.is_empty() {
            return Ok(());
        }
        let key = waiting[usize::from(queue) % waiting.len()];
        (0..=count).try_for_each(|_| self.arrive(key))
    }

    fn arrive(&mut self, key: (From, PartitionId)) -> Checked {
        let Some(input) = self.mail.get_mut(&key).and_then(VecDeque::pop_front) else { return Ok(()) };
        if let Input::Chat { conversation, act } = &input
            && let Some(origin) = act.origin()
        {
            let (id, number) = (id_of(origin), self.number_of(*conversation));
            let mut wish = self.wishes.remove(&id).ok_or("a wish came twice")?;
            if let Wish::Sync { head, .. } = &mut wish {
                *head = self.model.talks.get(&number).map_or(Seq::ZERO, |talk| talk.head());
            }
            self.lines.entry(number).or_default().push_back(Asked { id, wish, answer: None });
        }
        self.hand(key.1, input)
    }

    /// A partition decides, and what it wishes happens.
    fn hand(&mut self, to: PartitionId, input: Input) -> Checked {
        self.inputs += 1;
        let mut effects = Effects::new();
        let now = self.now;
        self.owner(to).handle(now, input, &mut effects);
        self.take(to, effects)
    }

    fn owner(&mut self, partition: PartitionId) -> &mut Partition {
        self.partitions.get_mut(&partition).expect("everything falls into these partitions")
    }

    fn take(&mut self, from: PartitionId, effects: Effects) -> Checked {
        for effect in effects {
            match effect {
                Effect::Answer { origin, answer } => self.answered(id_of(origin), answer)?,
                Effect::Push { connection, push } => self.pushed(connection, &push)?,
                Effect::Close { connection, cause } => self.closed(connection, cause)?,
                Effect::Ask { ticket, request } => {
                    self.asked.entry(from).or_default().push_back((ticket, request));
                }
                Effect::Mail { to, input } => self.post(From::Partition(from), to, input),
                Effect::Evict { .. } => return Err("a partition says that it has begun anew".to_owned()),
            }
        }
        Ok(())
    }

    /// The store carries out some requests, in one batch.
    fn commit(&mut self, partition: PartitionId, count: usize) {
        let Some(queue) = self.asked.get_mut(&partition) else { return };
        let asked: Vec<(Ticket, Request)> = queue.drain(..count.min(queue.len())).collect();
        self.store.set_full(self.full);
        for (ticket, request) in asked {
            let began = self.began_with(&request);
            let mut replies = Vec::new();
            self.store.commit(&[request], &mut replies).expect("memory does not fail");
            let reply = replies.pop().expect("every request is answered");
            if let (Some((device, lengths)), false) = (began, reply == Reply::ReadOnly) {
                self.began.entry(device).or_insert(lengths);
            }
            self.replies.entry(partition).or_default().push_back((ticket, reply));
        }
    }

    /// A device that a request makes known, with how long the logs are before that. A user's first device has them from the beginning.
    fn began_with(&self, request: &Request) -> Option<(DeviceKey, BTreeMap<u8, Seq>)> {
        let Request::RegisterDevice { device, .. } = request else { return None };
        let first = !self.began.keys().any(|other| other.user == device.user);
        let lengths =
            (0..).zip(&self.ids).map(|(number, id)| (number, Seq(self.store.log(*id).len() as u64)));
        Some((*device, if first { BTreeMap::new() } else { lengths.collect() }))
    }

    /// Some answers of the store arrive.
    fn stored(&mut self, partition: PartitionId, count: usize) -> Checked {
        for _ in 0..count {
            let reply = self.replies.get_mut(&partition).and_then(VecDeque::pop_front);
            let Some((ticket, reply)) = reply else { break };
            self.hand(partition, Input::Stored { ticket, reply })?;
        }
        Ok(())
    }

    /// Everything that waits happens.
    fn settle(&mut self) -> Checked {
        loop {
            let before = self.inputs;
            let queues: Vec<_> = self.mail.keys().copied().collect();
            for queue in queues {
                while self.mail.get(&queue).is_some_and(|queue| !queue.is_empty()) {
                    self.arrive(queue)?;
                }
            }
            for number in 0..=LAST_PARTITION {
                self.commit(PartitionId(number), usize::MAX);
                self.stored(PartitionId(number), usize::MAX)?;
            }
            if self.inputs == before {
                return Ok(());
            }
        }
    }

    fn wait(&mut self, span: Span) -> Checked {
        self.now.mono.0 += span.0;
        self.now.wall.0 += span.0;
        for number in 0..=LAST_PARTITION {
            let (partition, now) = (PartitionId(number), self.now);
            let mut effects = Effects::new();
            self.owner(partition).tick(now, &mut effects);
            self.take(partition, effects)?;
        }
        Ok(())
    }

    /// Everything but the store is gone. What was not answered has happened as far as it is stored.
    fn restart(&mut self) -> Checked {
        self.mail.clear();
        self.asked.clear();
        self.replies.clear();
        self.wishes.clear();
        self.connecting.clear();
        self.lists.clear();
        self.parties.iter_mut().for_each(Party::disconnect);
        for (number, id) in (0..).zip(&self.ids) {
            let unanswered = self.lines.remove(&number).unwrap_or_default();
            let unanswered: Vec<Wish> = unanswered.into_iter().map(|asked| asked.wish).collect();
            self.model.adopt(number, self.store.log(*id), &unanswered)?;
        }
        for (device, began) in &self.began {
            self.model.registered(*device, began);
        }
        self.start();
        Ok(())
    }

    fn answered(&mut self, id: u64, answer: Result<Answer, Refusal>) -> Checked {
        if let Err(Refusal::Internal(why)) = &answer {
            return Err(format!("a mistake of the rules: {why}"));
        }
        if let Some(connection) = self.connecting.remove(&id) {
            return self.connected(connection, &answer);
        }
        if let Some(user) = self.lists.remove(&id) {
            return self.listed(user, &answer);
        }
        for (number, line) in &mut self.lines {
            let Some(asked) = line.iter_mut().find(|asked| asked.id == id) else { continue };
            if asked.answer.replace(answer).is_some() {
                return Err(format!("{:?} was answered twice", asked.wish));
            }
            while let Some(Asked { wish, answer: Some(answer), .. }) =
                line.pop_front_if(|first| first.answer.is_some())
            {
                self.model.apply(*number, &wish, &answer)?;
            }
            return self.parties.iter_mut().try_for_each(|party| party.judge(&self.model.talks));
        }
        Err(format!("an answer to nothing: {answer:?}"))
    }

    fn connected(&mut self, connection: ConnectionId, answer: &Result<Answer, Refusal>) -> Checked {
        let index = connection.slot as usize;
        let device = self.parties[index].key;
        let party = &mut self.parties[index];
        match answer {
            Ok(Answer::Connected) => {
                party.connected |= party.connection == Some(connection);
                self.model.registered(device, &self.began[&device]);
                Ok(())
            }
            Err(Refusal::ReadOnly) => Ok(()),
            answer => Err(format!("{} may not connect: {answer:?}", party.key)),
        }
    }

    /// A list names what its user is in; at rest, all of it.
    fn listed(&self, user: UserId, answer: &Result<Answer, Refusal>) -> Checked {
        let Ok(Answer::Conversations(list)) = answer else { return Err(format!("no list: {answer:?}")) };
        // Before everything has come to rest, a list may be older or newer than what else is known.
        if !self.at_rest {
            return Ok(());
        }
        let named: BTreeSet<u8> = list.iter().map(|listing| self.number_of(listing.summary.id)).collect();
        let mine = self.model.talks.iter().filter(|(_, talk)| talk.member(user).is_some());
        let mine: BTreeSet<u8> = mine.map(|(number, _)| *number).collect();
        match named == mine {
            true => Ok(()),
            false => Err(format!("the list of {user} has {named:?} and not {mine:?}")),
        }
    }

    fn pushed(&mut self, connection: ConnectionId, push: &Push) -> Checked {
        let party = &mut self.parties[connection.slot as usize];
        // Nobody is there any more to hear it.
        if party.connection != Some(connection) {
            return Ok(());
        }
        let user = party.key.user;
        let about =
            |id: &ConversationId| self.ids.iter().position(|other| other == id).unwrap_or_default() as u8;
        let known = |id: &ConversationId| {
            let number = about(id);
            let talk = self.model.talks.get(&number).filter(|talk| talk.knows(user));
            talk.map(|talk| (number, talk)).ok_or(format!("{user} hears of c{number}"))
        };
        match push {
            Push::CaughtUp => match std::mem::replace(&mut party.caught_up, true) {
                true => Err(format!("{} has caught up twice", party.key)),
                false => Ok(()),
            },
            Push::Passing { conversation, .. } => known(conversation).map(|_| ()),
            Push::Conversation { summary, .. } => known(&summary.id).map(|_| ()),
            Push::Entry { conversation, entry } => {
                let number = about(conversation);
                // Nothing is told that is not stored.
                let stored = self.store.log(*conversation).get(entry.seq.previous().0 as usize);
                match stored == Some(&**entry) {
                    true => party.push(number, entry, &self.model.talks),
                    false => Err(format!("{entry:?} of c{number} was pushed, {stored:?} is stored")),
                }
            }
            Push::Receipt { conversation, user: of, delivered, read } => {
                let (number, talk) = known(conversation)?;
                let reached = talk.reached(*of);
                match read <= delivered && *delivered <= reached {
                    true => Ok(()),
                    false => {
                        Err(format!("{of} got {delivered} of c{number}, read {read}, reached {reached}"))
                    }
                }
            }
        }
    }

    fn closed(&mut self, connection: ConnectionId, cause: CloseCause) -> Checked {
        let index = connection.slot as usize;
        let party = &mut self.parties[index];
        let newest = party.connection == Some(connection);
        match cause {
            CloseCause::Replaced if newest => return Err(format!("{} was replaced by nobody", party.key)),
            CloseCause::Replaced | CloseCause::Refused(Refusal::ReadOnly) => {}
            CloseCause::Refused(why) => return Err(format!("{} is closed: {why}", party.key)),
        }
        if newest {
            party.disconnect();
        }
        self.gone(index, connection);
        Ok(())
    }

    /// X1: what waits for one conversation is bounded, and so is what is under way to a device.
    fn check_caps(&self) -> Checked {
        for (number, line) in &self.lines {
            let unanswered = line.iter().filter(|asked| asked.answer.is_none()).count();
            if unanswered > IN_FLIGHT_MAX + WAITING_LINE_MAX {
                return Err(format!("{unanswered} acts wait for c{number}"));
            }
        }
        for party in &self.parties {
            party.check_window(&self.model.talks, |number| {
                let asked =
                    self.lines.get(&number).into_iter().flatten().filter_map(|asked| match asked.wish {
                        Wish::Receive { device, seq } if device == party.key => Some(seq),
                        _ => None,
                    });
                self.model.talks[&number].tried_by(party.key).max(asked.max().unwrap_or_default())
            })?;
        }
        Ok(())
    }

    /// Everybody comes back and acknowledges, until nothing happens any more; then all of it must be right.
    pub fn come_to_rest(&mut self) -> Checked {
        self.full = false;
        let (mut quiet, mut looked) = (0, false);
        for _ in 0..ROUNDS_MAX {
            self.settle()?;
            let before = self.inputs;
            for index in 0..self.parties.len() {
                if self.parties[index].known && self.parties[index].connection.is_none() {
                    self.connect(index);
                }
                for number in 0..CONVERSATIONS {
                    self.acknowledge_all(index, number);
                }
            }
            self.settle()?;
            self.check_caps()?;
            self.wait(Span(700))?;
            self.settle()?;
            quiet = if self.inputs == before { quiet + 1 } else { 0 };
            if quiet > 5 && !looked {
                // A new device of a conversation that is not in memory keeps its mark until somebody looks there.
                (quiet, looked) = (0, true);
                (0..CONVERSATIONS).for_each(|number| self.look_at(number));
            } else if quiet > 5 {
                self.at_rest = true;
                self.users.clone().into_iter().for_each(|user| self.list(user));
                self.settle()?;
                return self.check_all();
            }
        }
        Err("no rest".to_owned())
    }

    fn look_at(&mut self, number: u8) {
        let Some(talk) = self.model.talks.get(&number) else { return };
        let member = |party: &Party| party.connected && talk.member(party.key.user).is_some();
        if let Some(index) = self.parties.iter().position(member) {
            let after = talk.head();
            self.over_a_connection(index as u8, number, |party, _, _| {
                Some(Wish::Sync { user: party.key.user, after, limit: 1, head: Seq::ZERO })
            });
        }
    }

    fn acknowledge_all(&mut self, index: usize, number: u8) {
        let Some(talk) = self.model.talks.get(&number) else { return };
        let party = &self.parties[index];
        let device = party.key;
        let (Some(period), Some(start)) = (talk.member(device.user), talk.starts.get(&device)) else {
            return;
        };
        let acknowledged = talk.acknowledged.get(&device).copied().unwrap_or_default();
        let has = if party.cursor(number) < period.from { Seq::ZERO } else { party.cursor(number) };
        // What it sent itself and follows it has, too.
        let from_start = Some(talk.passed_over(device, *start)).filter(|seq| seq > start);
        let seq = talk.passed_over(device, has.max(acknowledged)).max(from_start.unwrap_or_default());
        if party.connected && seq > acknowledged {
            self.over_a_connection(index as u8, number, |_, _, _| Some(Wish::Receive { device, seq }));
        }
    }

    fn check_all(&self) -> Checked {
        self.store.check()?;
        if let Some((number, line)) = self.lines.iter().find(|(_, line)| !line.is_empty()) {
            return Err(format!("{:?} of c{number} was never answered", line.front()));
        }
        if !self.lists.is_empty() || !self.wishes.is_empty() {
            return Err("somebody waits for an answer".to_owned());
        }
        if let Some((device, id)) = self.store.pending().next() {
            return Err(format!("{device} is still marked in c{}", self.number_of(id)));
        }
        if let Some(party) = self.parties.iter().find(|party| party.known && !party.caught_up) {
            return Err(format!("{} has not caught up", party.key));
        }
        for (number, talk) in &self.model.talks {
            let id = self.ids[usize::from(*number)];
            let log = self.store.log(id);
            if log.len() != talk.log.len() {
                return Err(format!("c{number} has {} entries and not {}", log.len(), talk.log.len()));
            }
            self.parties.iter().try_for_each(|party| party.check_all(*number, talk))?;
            for (device, cursor) in self.store.cursors(id) {
                if cursor != talk.head() {
                    return Err(format!("{device} is at {cursor} of {} in c{number}", talk.head()));
                }
            }
        }
        Ok(())
    }
}

fn part(partition: u8) -> PartitionId {
    PartitionId(partition % (LAST_PARTITION + 1))
}

fn shifted(seq: Seq, more: i8) -> Seq {
    Seq(seq.0.saturating_add_signed(i64::from(more)))
}
