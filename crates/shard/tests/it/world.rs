//! Whoever drives the shards: sockets, mail, a store and time, all by function calls and in one fixed order.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use domain::{Act, Answer, Effect, Input, Origin, Refusal};
use model::{ConversationId, HashKey, Mono, Now, ShardId, Span, UserId, partition_of_conversation};
use protocol::Encoding;
use shard::{Actions, Ask, Close, Event, Settings, Shard};
use store::{Engine, MemoryStore, Reply};

use crate::client::Client;
use crate::names;

/// How the store answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    Works,
    /// What it was asked is kept until it works again.
    Waits,
    /// It answers `Done` to whatever it was asked, without doing it.
    Lies,
}

pub struct World {
    pub encoding: Encoding,
    pub now: Now,
    pub shards: Vec<Shard>,
    /// Who has which slot, by shard.
    slots: Vec<Vec<Option<String>>>,
    pub clients: BTreeMap<String, Client>,
    /// Where those come from who do not say otherwise.
    pub home: IpAddr,
    pub store: MemoryStore,
    pub mood: Mood,
    pub residents: bool,
    asks: VecDeque<(usize, Ask)>,
    mail: VecDeque<(usize, Effect)>,
    pub answers: VecDeque<Result<Answer, Refusal>>,
    /// Those that were handed over to the HTTP side, with their bytes.
    pub handed_over: Vec<(String, Vec<u8>)>,
}

/// An address of a network for documentation (RFC 5737).
pub const HOME: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

const HASH_KEY: HashKey = HashKey([7; 16]);
/// The ticket of a request whose answer nobody waits for.
const NOBODY: u64 = 0;

impl World {
    /// Without residents a conversation leaves memory as soon as it is quiet.
    pub fn new(encoding: Encoding, shards: u16, residents: bool, adjust: fn(&mut Settings)) -> Self {
        let now = Now { mono: Mono(5_000), wall: names::START };
        let mut settings = Settings::new(shards, HASH_KEY, names::keys(), names::rules());
        if !residents {
            settings.domain.residents_max = 0;
        }
        adjust(&mut settings);
        World {
            encoding,
            now,
            shards: (0..shards).map(|id| Shard::new(ShardId(id), settings.clone(), now)).collect(),
            slots: vec![Vec::new(); usize::from(shards)],
            clients: BTreeMap::new(),
            home: HOME,
            store: MemoryStore::new(),
            mood: Mood::Works,
            residents,
            asks: VecDeque::new(),
            mail: VecDeque::new(),
            answers: VecDeque::new(),
            handed_over: Vec::new(),
        }
    }

    /// Somebody connects; each goes to the next shard.
    pub fn accept(&mut self, name: &str, address: IpAddr) {
        let shard = self.clients.len() % self.shards.len();
        let slots = &mut self.slots[shard];
        let slot = slots.iter().position(Option::is_none).unwrap_or_else(|| {
            slots.push(None);
            slots.len() - 1
        });
        slots[slot] = Some(name.to_owned());
        let client = Client::new(shard, slot as u32, self.encoding);
        assert!(self.clients.insert(name.to_owned(), client).is_none(), "there is a {name} already");
        self.shards[shard].handle(self.now, Event::Accepted { slot: slot as u32, address });
        self.settle();
    }

    /// Bytes of a client arrive in one read.
    pub fn feed(&mut self, name: &str, bytes: &[u8]) {
        let client = self.clients.get_mut(name).expect(name);
        client.sent.extend_from_slice(bytes);
        if client.closed.is_some() {
            return;
        }
        let (shard, slot) = (client.shard, client.slot);
        let mut bytes = bytes.to_vec();
        self.shards[shard].handle(self.now, Event::Received { slot, bytes: &mut bytes });
        self.settle();
    }

    /// A client is gone without a word.
    pub fn part(&mut self, name: &str) {
        let client = self.clients.remove(name).expect(name);
        if client.closed.is_none() {
            self.free(client.shard, client.slot);
        }
        self.settle();
    }

    pub fn outside(&mut self, input: Input) {
        self.shards[0].handle(self.now, Event::Outside(input));
        self.settle();
    }

    pub fn drain(&mut self, within: Span) {
        let until = self.now.mono + within;
        for shard in &mut self.shards {
            shard.handle(self.now, Event::Drain { until });
        }
        self.settle();
    }

    /// Time passes, and what falls due in it is done when it is due.
    pub fn wait(&mut self, span: Span) {
        let end = self.now.mono + span;
        loop {
            let due = self.shards.iter().map(Shard::next_deadline).min().unwrap_or(end);
            self.advance(due.max(self.now.mono).min(end));
            if due > end {
                return;
            }
            for shard in &mut self.shards {
                if shard.next_deadline() <= self.now.mono {
                    shard.handle(self.now, Event::Tick);
                }
            }
            self.settle();
        }
    }

    fn advance(&mut self, to: Mono) {
        self.now.wall.0 += to.since(self.now.mono).0;
        self.now.mono = to;
    }

    /// A socket takes bytes again, or no more.
    pub fn set_reading(&mut self, name: &str, reading: bool) {
        let client = self.clients.get_mut(name).expect(name);
        client.reading = reading;
        if reading {
            client.read();
            if client.closed.is_none() {
                let (shard, slot) = (client.shard, client.slot);
                self.shards[shard].handle(self.now, Event::Unsent { slot, bytes: 0 });
                self.settle();
            }
        }
    }

    pub fn set_mood(&mut self, mood: Mood) {
        self.mood = mood;
        self.settle();
    }

    /// Performs what is asked until nothing is asked any more.
    pub fn settle(&mut self) {
        self.perform_all();
        if !self.residents && self.mood == Mood::Works {
            self.evict();
        }
    }

    /// Asks for a conversation there is none of in each partition that has one: who comes makes room.
    fn evict(&mut self) {
        let origin = Origin::Outside { shard: ShardId(0), ticket: NOBODY };
        let by = UserId(names::id("nobody"));
        let conversations: Vec<ConversationId> = self.store.conversations().collect();
        for conversation in conversations {
            let partition = partition_of_conversation(&HASH_KEY, conversation);
            let none = (0..)
                .map(|number| ConversationId(names::id(&format!("none{number}"))))
                .find(|none| partition_of_conversation(&HASH_KEY, *none) == partition)
                .expect("there are many ids");
            let act = Act::Remove { origin, by, user: by };
            self.shards[0].handle(self.now, Event::Outside(Input::Chat { conversation: none, act }));
            self.perform_all();
        }
    }

    fn perform_all(&mut self) {
        loop {
            let mut busy = false;
            for index in 0..self.shards.len() {
                busy |= self.perform(index);
            }
            while let Some((to, effect)) = self.mail.pop_front() {
                self.shards[to].handle(self.now, Event::Mail(effect));
                busy = true;
            }
            busy |= self.answer();
            if !busy {
                return;
            }
        }
    }

    fn perform(&mut self, index: usize) -> bool {
        let Actions { output, writes, closes, handed_over, asks, mail, answers } =
            std::mem::take(self.shards[index].actions());
        let busy = [writes.len(), closes.len(), handed_over.len(), asks.len(), mail.len(), answers.len()];
        let mut written: Vec<u32> = Vec::new();
        for write in writes {
            let Some(name) = self.tenant(index, write.slot) else { continue };
            self.clients.get_mut(&name).expect(&name).write(&output[write.from..write.to]);
            written.push(write.slot);
        }
        written.dedup();
        for slot in written {
            let Some(name) = self.tenant(index, slot) else { continue };
            let bytes = self.clients[&name].unsent.len();
            if bytes > 0 && !self.clients[&name].reading {
                self.shards[index].handle(self.now, Event::Unsent { slot, bytes });
            }
        }
        for (slot, bytes) in handed_over {
            let name = self.tenant(index, slot).expect("a tenant");
            self.slots[index][slot as usize] = None;
            self.handed_over.push((name, bytes));
        }
        for (slot, how) in closes {
            self.close(index, slot, how);
        }
        self.asks.extend(asks.into_iter().map(|ask| (index, ask)));
        self.mail.extend(mail.into_iter().map(|(to, effect)| (usize::from(to.0), effect)));
        let awaited = answers.into_iter().filter(|(ticket, _)| *ticket != NOBODY);
        self.answers.extend(awaited.map(|(_, answer)| answer));
        busy.iter().any(|count| *count > 0)
    }

    fn tenant(&self, shard: usize, slot: u32) -> Option<String> {
        self.slots[shard].get(slot as usize).cloned().flatten()
    }

    fn close(&mut self, shard: usize, slot: u32, how: Close) {
        let name = self.tenant(shard, slot).expect("only what is open is closed");
        let client = self.clients.get_mut(&name).expect(&name);
        assert_eq!(client.closed.replace(how), None, "{name} is closed once");
        self.free(shard, slot);
    }

    fn free(&mut self, shard: usize, slot: u32) {
        self.slots[shard][slot as usize] = None;
        self.shards[shard].handle(self.now, Event::Gone { slot });
    }

    /// The store answers everything it was asked, in one batch.
    fn answer(&mut self) -> bool {
        if self.mood == Mood::Waits || self.asks.is_empty() {
            return false;
        }
        let asks: Vec<(usize, Ask)> = self.asks.drain(..).collect();
        let mut replies = Vec::new();
        let requests: Vec<_> = asks.iter().map(|(_, ask)| ask.request.clone()).collect();
        match self.mood {
            Mood::Lies => replies.resize(requests.len(), Reply::Done),
            _ => self.store.commit(&requests, &mut replies).expect("there is no disk"),
        }
        for ((shard, Ask { partition, ticket, .. }), reply) in asks.into_iter().zip(replies) {
            self.shards[shard].handle(self.now, Event::Stored { partition, ticket, reply });
        }
        true
    }
}
