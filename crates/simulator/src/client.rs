//! A client: one device with its durable memory, its connections and its habits.
//!
//! Owns what a well-made client does (see "Delivery" in `docs/protocol.md`): it remembers per conversation how far it has everything,
//! ignores what it has, acknowledges what it has stored, and sends again what was not answered. `hearing` is what comes in, `acting`
//! what it does by itself. Deliberately knows nothing of the server's insides.

mod acting;
mod hearing;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use model::{ClientId, ConversationId, DeviceKey, HashKey, Mono, Now, Payload, Seq, ShardId, UserId, Wall};
use protocol::{CloseCode, Encoding};
use store::MemoryStore;
use websocket::Pool;

use crate::coverage::{Coverage, Seen};
use crate::link::{Heard, Link};
use crate::names::Named;
use crate::oracle::Oracle;
use crate::plan::Plan;
use crate::random::Random;
use crate::tokens::Tokens;
use crate::trace::Trace;
use crate::violation::Checked;
use crate::wires::Wires;

/// What is around a client while it does something.
pub struct Around<'a> {
    /// The time.
    pub now: Now,
    /// Chance.
    pub random: &'a mut Random,
    /// What is noted.
    pub trace: &'a mut Trace,
    /// What is counted.
    pub coverage: &'a mut Coverage,
    /// The network.
    pub wires: &'a mut Wires,
    /// The checkers.
    pub oracle: &'a mut Oracle,
    /// What is durable; only for the checkers.
    pub store: &'a MemoryStore,
    /// The circumstances.
    pub plan: &'a Plan,
    /// Where tokens come from.
    pub tokens: &'a Tokens,
    /// Buffers for incomplete frames.
    pub pool: &'a mut Pool,
    /// Shards to connect to.
    pub shards: u16,
    /// Which of them owns whom follows from it.
    pub hash_key: HashKey,
    /// Nothing goes wrong any more.
    pub calm: bool,
}

/// How a client goes about things.
#[derive(Debug, Clone, Copy)]
pub struct Habits {
    encoding: Encoding,
    /// Acknowledges once so many entries have come.
    acknowledge_every: u64,
    /// Or so often in a thousand steps.
    acknowledge_permille: u32,
    /// Acknowledges again what is pushed again; otherwise, after a reconnect, whatever was not answered.
    acknowledge_again: bool,
    /// Acknowledges also what it has sent itself.
    acknowledge_own: bool,
    /// `recv` carries no id, and so gets no answer.
    silent: bool,
    /// Speaks before `connect` was answered.
    eager: bool,
    /// Connects anew when `connect` is not answered soon, so often in a thousand steps.
    impatient: u32,
    /// Puts the token into the upgrade.
    bearer: bool,
    /// Messages it sends without having the answers.
    outstanding_max: usize,
    /// How active it is, in a thousand steps.
    talkative: u32,
}

impl Habits {
    fn draw(random: &mut Random) -> Habits {
        Habits {
            encoding: if random.below(2) == 0 { Encoding::Json } else { Encoding::Cbor },
            acknowledge_every: *random.pick(&[1, 1, 5, 100]).unwrap_or(&1),
            acknowledge_permille: *random.pick(&[10, 100, 300]).unwrap_or(&100),
            acknowledge_again: random.below(2) == 0,
            acknowledge_own: random.below(2) == 0,
            silent: random.below(4) == 0,
            eager: random.below(3) == 0,
            impatient: *random.pick(&[0, 0, 20, 100]).unwrap_or(&0),
            bearer: random.below(3) == 0,
            outstanding_max: *random.pick(&[1, 4, 1_000]).unwrap_or(&4),
            talkative: *random.pick(&[20, 100, 300]).unwrap_or(&100),
        }
    }
}

/// What a client remembers of a conversation, across everything.
#[derive(Debug, Default)]
pub struct Place {
    /// It has everything up to here.
    pub cursor: Seq,
    /// Everything it has, whichever way it came.
    pub have: BTreeSet<Seq>,
    /// Places of its own messages after the cursor.
    own: BTreeSet<Seq>,
    /// The server has confirmed so much.
    acknowledged: Seq,
    /// It has asked for so much on this connection.
    asked: Seq,
    /// The user has read so far, as confirmed.
    read: Seq,
}

/// A message that is not confirmed.
#[derive(Debug, Clone)]
pub struct Outgoing {
    id: ClientId,
    conversation: ConversationId,
    payload: Payload,
    /// It went out on this connection.
    under_way: bool,
    /// It went out before.
    repeated: bool,
    /// Not before then.
    not_before: Mono,
}

/// What a request was about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Want {
    what: What,
    conversation: ConversationId,
    /// Where the membership began that the client had when it asked.
    member_since: Option<Seq>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Send(ClientId),
    Passing,
    Recv(Seq),
    /// Up to here, and whether that was known to be acknowledged.
    Read(Seq, bool),
    Sync(Seq),
    /// A `send` under a client id that is taken, unless it is forgotten.
    Reuse(ClientId),
    /// A `recv` of what does not exist.
    Beyond,
}

/// One device of a user.
pub struct Client {
    /// Its number in the run.
    pub number: u16,
    /// Who it is.
    pub key: DeviceKey,
    habits: Habits,
    /// What it remembers.
    pub places: BTreeMap<ConversationId, Place>,
    /// What it has to send.
    pub outbox: VecDeque<Outgoing>,
    /// The connection it uses.
    pub link: Option<Link<Want>>,
    /// Older ones that were replaced and still live.
    pub older: Vec<Link<Want>>,
    /// The shard it always connects to, if it does.
    pub home: Option<ShardId>,
    /// When it connects next.
    pub come_back: Mono,
    /// The server has asked it to send nothing before then.
    patient_until: Mono,
    /// Whether it ever connected.
    pub known: bool,
    /// How far each member has got, as the last receipt said.
    pub receipts: BTreeMap<(ConversationId, UserId), Seq>,
    token_ends: Wall,
    sent: u32,
    /// Some messages that were confirmed.
    done: Vec<(ClientId, ConversationId)>,
}

impl Client {
    /// A device that has never connected.
    pub fn new(number: u16, key: DeviceKey, random: &mut Random) -> Self {
        Client {
            number,
            key,
            habits: Habits::draw(random),
            places: BTreeMap::new(),
            outbox: VecDeque::new(),
            link: None,
            older: Vec::new(),
            come_back: first_time(random),
            home: None,
            known: false,
            patient_until: Mono(0),
            receipts: BTreeMap::new(),
            token_ends: Wall(0),
            sent: 0,
            done: Vec::new(),
        }
    }

    /// Has the plainest habits from now on, and always connects to one shard.
    pub fn settle_down(&mut self, home: ShardId) {
        self.home = Some(home);
        self.come_back = Mono(0);
        self.habits = Habits {
            encoding: Encoding::Json,
            acknowledge_every: 1,
            acknowledge_permille: 0,
            acknowledge_again: false,
            acknowledge_own: false,
            silent: false,
            eager: false,
            impatient: 0,
            bearer: false,
            outstanding_max: 1,
            talkative: 0,
        };
    }

    /// Waits for no answer before it sends the next message.
    pub fn hurry(&mut self) {
        self.habits.outstanding_max = 1_000;
    }

    /// Does something, perhaps.
    pub fn step(&mut self, around: &mut Around<'_>) -> Checked {
        let mut older = std::mem::take(&mut self.older);
        for mut link in older.drain(..) {
            if self.listen(&mut link, false, around)? {
                self.older.push(link);
            }
        }
        match self.link.take() {
            None => {
                if around.now.mono >= self.come_back && (around.calm || around.random.permille(300)) {
                    self.connect(around);
                }
            }
            Some(mut link) => {
                if !self.listen(&mut link, true, around)? {
                    self.lost(around);
                } else if let Some(link) = self.act(link, around) {
                    self.link = Some(link);
                }
            }
        }
        self.speak(around);
        Ok(())
    }

    /// Whether it has nothing left to do.
    pub fn is_content(&self, oracle: &Oracle) -> bool {
        let done = |(conversation, place): (&ConversationId, &Place)| {
            let member = oracle.membership(*conversation, self.key.user);
            // Whether what it asked for on an earlier connection was done it does not know, unless it is pushed again.
            let asked = self.habits.acknowledge_again && place.asked >= place.cursor;
            asked
                || place.acknowledged >= place.cursor
                || member.is_none_or(|member| place.cursor <= member.start)
        };
        self.outbox.is_empty()
            && self.older.is_empty()
            && self.link.as_ref().is_some_and(|link| link.caught_up && link.awaiting.is_empty())
            && self.places.iter().all(done)
    }

    /// Asks again for everything that is not known to have succeeded.
    pub fn calm_down(&mut self) {
        self.places.values_mut().for_each(|place| place.asked = place.acknowledged);
        self.come_back = Mono(0);
    }

    /// What is left to do, for a report.
    pub fn complaint(&self) -> String {
        let link = self.link.as_ref().map(|link| (link.connected, link.caught_up, link.awaiting.len()));
        let places: Vec<String> = (self.places.iter().filter(|(_, place)| place.acknowledged < place.cursor))
            .map(|(id, place)| format!("{} {} of {}", Named(*id), place.acknowledged, place.cursor))
            .collect();
        format!("outbox {}, older {}, link {link:?}, {places:?}", self.outbox.len(), self.older.len())
    }

    /// Opens a connection. The state that belongs to a connection starts anew.
    pub fn connect(&mut self, around: &mut Around<'_>) {
        let anywhere = ShardId(around.random.below(usize::from(around.shards)) as u16);
        let shard = self.home.unwrap_or(anywhere);
        let room = around.plan.room_max.min(200 << around.random.below(14));
        let wire = around.wires.open(shard, room);
        let (token, ends) = around.token(self.key);
        self.token_ends = ends;
        let bearer = self.habits.bearer.then_some(token.as_str());
        let mut link = Link::open(wire, around.now.mono, self.habits.encoding, bearer, around.random);
        link.whole_frames = self.home.is_some();
        around.trace.line(format_args!(
            "{} client {} connects to shard {}",
            around.now.mono.0,
            Named(self.key),
            shard.0
        ));
        around.coverage.count(Seen::Connects);
        self.known = true;
        if !self.habits.acknowledge_again {
            self.places.values_mut().for_each(|place| place.asked = place.acknowledged);
        }
        for outgoing in &mut self.outbox {
            outgoing.repeated |= outgoing.under_way;
            outgoing.under_way = false;
        }
        if let Some(old) = self.link.replace(link) {
            self.older.push(old);
        }
    }

    /// The connection is gone; comes back after a while.
    fn lost(&mut self, around: &mut Around<'_>) {
        around.trace.line(format_args!(
            "{} client {} has lost its connection",
            around.now.mono.0,
            Named(self.key)
        ));
        let late = !around.calm && around.random.permille(around.plan.sleepers);
        let wait = around.random.between(0, if late { 60_000 } else { 2_000 });
        self.come_back = Mono(around.now.mono.0 + wait);
    }

    /// Reads what has come over a link and takes it in. False when the link is over.
    fn listen(
        &mut self,
        link: &mut Link<Want>,
        newest: bool,
        around: &mut Around<'_>,
    ) -> Result<bool, crate::violation::Violation> {
        let Some(wire) = around.wires.get(link.wire) else { return Ok(false) };
        if !around.calm && link.stalled_until > around.now.mono {
            return Ok(true);
        }
        if around.calm {
            wire.room = 1 << 22;
        }
        let count = if around.calm { wire.down.len() } else { around.random.arrived(wire.down.len()) };
        let bytes: Vec<u8> = wire.down.drain(..count).collect();
        let over = wire.broken || (wire.down_ended && wire.down.is_empty() && wire.unsent.is_empty());
        let mut heard = Vec::new();
        if !bytes.is_empty() {
            link.hear(around.pool, around.now.mono, bytes, &mut heard);
        }
        let mut ended = false;
        for what in heard {
            ended |= matches!(what, Heard::Closed(_) | Heard::Refused(_));
            self.hear(link, what, around)?;
            if newest && link.farewell == Some(CloseCode::Replaced) && !ended {
                around.coverage.count(Seen::NewestReplaced);
            }
        }
        if over || ended {
            if let Some(wire) = around.wires.get(link.wire) {
                wire.up_ended = true;
                wire.forgotten = true;
            }
            around.wires.tidy(link.wire);
            return Ok(false);
        }
        Ok(true)
    }

    /// Hands what is to be sent to the network.
    fn speak(&mut self, around: &mut Around<'_>) {
        for link in self.link.iter_mut().chain(&mut self.older) {
            let Some(wire) = around.wires.get(link.wire) else { continue };
            let out = link.output();
            let count = if around.calm { out.len() } else { around.random.arrived(out.len()) };
            if !wire.broken && !wire.up_ended {
                wire.up.extend(out.drain(..count));
            }
        }
    }
}

/// When a device connects for the first time: soon, later, or when everything is over.
fn first_time(random: &mut Random) -> Mono {
    let most = 1_000 << random.below(7);
    Mono(if random.below(10) == 0 { u64::MAX } else { random.between(0, most) })
}
