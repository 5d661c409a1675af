//! What a conversation is to those in it: a list of entries, members who come and go, and how far each device says it has got.
//!
//! Written from `docs/protocol.md` and from nothing else: no residents, no lines, no marks, no pages. What is asked takes effect in the
//! order in which it arrives; an answer that says "not now" means that nothing happened.

use std::collections::{BTreeMap, BTreeSet};

use domain::{Answer, Refusal};
use model::{Body, Change, DeviceKey, Entry, Payload, Seq, UserId, Wall};

/// What somebody asks of a conversation.
#[derive(Debug, Clone)]
pub enum Wish {
    Send { from: DeviceKey, number: u16, payload: Payload },
    Pass { from: DeviceKey },
    Receive { device: DeviceKey, seq: Seq },
    Read { user: UserId, seq: Seq },
    Sync { user: UserId, after: Seq, limit: u32, head: Seq },
    Create { by: UserId, direct: bool, members: Vec<UserId> },
    Add { by: UserId, user: UserId },
    Remove { by: UserId, user: UserId },
}

/// A membership: entries from the first of these on, and before the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    pub from: Seq,
    pub until: Option<Seq>,
}

impl Period {
    pub fn contains(&self, seq: Seq) -> bool {
        seq >= self.from && self.until.is_none_or(|until| seq < until)
    }
}

/// A conversation that exists.
#[derive(Debug)]
pub struct Talk {
    number: u8,
    direct: bool,
    pub log: Vec<Entry>,
    periods: BTreeMap<UserId, Vec<Period>>,
    read: BTreeMap<UserId, Seq>,
    /// How far each device was told that it has acknowledged, and how far it has ever tried to.
    pub acknowledged: BTreeMap<DeviceKey, Seq>,
    tried: BTreeMap<DeviceKey, Seq>,
    /// How far anybody had got in earlier memberships.
    before: BTreeMap<UserId, Seq>,
    /// After which entry each device must get everything.
    pub starts: BTreeMap<DeviceKey, Seq>,
    /// Where the message of each number is.
    numbers: BTreeMap<(UserId, u16), Seq>,
}

type Verdict = Result<(), String>;

impl Talk {
    pub fn head(&self) -> Seq {
        Seq(self.log.len() as u64)
    }

    pub fn member(&self, user: UserId) -> Option<Period> {
        let last = self.periods.get(&user)?.last()?;
        last.until.is_none().then_some(*last)
    }

    pub fn members(&self) -> impl Iterator<Item = UserId> {
        self.periods.keys().copied().filter(|user| self.member(*user).is_some())
    }

    /// Whether a user may see an entry.
    pub fn may_see(&self, user: UserId, seq: Seq) -> bool {
        self.periods.get(&user).is_some_and(|periods| periods.iter().any(|period| period.contains(seq)))
    }

    /// Whether a user ever was a member.
    pub fn knows(&self, user: UserId) -> bool {
        self.periods.contains_key(&user)
    }

    pub fn sent_by(&self, seq: Seq, device: DeviceKey) -> bool {
        let entry = self.log.get(seq.previous().0 as usize);
        matches!(entry, Some(Entry { body: Body::Message { from, .. }, .. }) if *from == device)
    }

    /// What follows a place and was sent by a device itself, that device has.
    pub fn passed_over(&self, device: DeviceKey, mut seq: Seq) -> Seq {
        while self.sent_by(seq.next(), device) {
            seq = seq.next();
        }
        seq
    }

    /// No device of a user has got further than this, whatever was refused.
    pub fn delivered_max(&self, user: UserId) -> Seq {
        let places = self.starts.iter().chain(&self.acknowledged).chain(&self.tried);
        let reached = places.filter(|(device, _)| device.user == user);
        reached.map(|(device, seq)| self.passed_over(*device, *seq)).max().unwrap_or_default()
    }

    /// The same, over all memberships.
    pub fn reached(&self, user: UserId) -> Seq {
        self.delivered_max(user).max(self.before.get(&user).copied().unwrap_or_default())
    }

    /// How far a device has asked its cursor to move.
    pub fn tried_by(&self, device: DeviceKey) -> Seq {
        self.tried.get(&device).copied().unwrap_or_default()
    }

    /// Whether an entry may have been given up: all devices that should have it do.
    pub fn may_be_gone(&self, seq: Seq) -> bool {
        self.starts.iter().filter(|(device, _)| self.member(device.user).is_some()).all(|(device, start)| {
            let acknowledged = self.acknowledged.get(device).copied().unwrap_or_default().max(*start);
            self.passed_over(*device, acknowledged) >= seq
        })
    }

    fn join(&mut self, user: UserId, seq: Seq, devices: &Devices) {
        let reached = self.reached(user);
        self.before.insert(user, reached);
        self.periods.entry(user).or_default().push(Period { from: seq, until: None });
        self.read.remove(&user);
        for (device, began) in devices.iter().filter(|(device, _)| device.user == user) {
            self.acknowledged.remove(device);
            self.tried.remove(device);
            self.starts.insert(*device, start(began, self.number, seq));
        }
    }

    fn leave(&mut self, user: UserId, seq: Seq) {
        if let Some(period) = self.periods.get_mut(&user).and_then(|periods| periods.last_mut()) {
            period.until = Some(seq);
        }
    }
}

/// Everything there is.
#[derive(Debug, Default)]
pub struct Model {
    pub talks: BTreeMap<u8, Talk>,
    /// Devices that were told they are connected, once at least.
    pub devices: Devices,
}

/// Devices, each with how long the logs were when it was made known; a user's first device has the logs from the beginning.
pub type Devices = BTreeMap<DeviceKey, BTreeMap<u8, Seq>>;

/// After which entry a device must get everything, in a conversation that its user joined by this one.
fn start(began: &BTreeMap<u8, Seq>, number: u8, joined: Seq) -> Seq {
    joined.previous().max(began.get(&number).copied().unwrap_or_default())
}

impl Model {
    /// A device has connected for the first time; `began` is how long the logs were when it was made known.
    pub fn registered(&mut self, device: DeviceKey, began: &BTreeMap<u8, Seq>) {
        if self.devices.contains_key(&device) {
            return;
        }
        for (number, talk) in &mut self.talks {
            if let Some(period) = talk.member(device.user) {
                talk.starts.insert(device, start(began, *number, period.from));
            }
        }
        self.devices.insert(device, began.clone());
    }

    /// What was asked of a conversation was answered, and so was everything before it.
    pub fn apply(&mut self, number: u8, wish: &Wish, answer: &Result<Answer, Refusal>) -> Verdict {
        if let (Wish::Receive { device, seq }, Some(talk)) = (wish, self.talks.get_mut(&number)) {
            let tried = talk.tried.entry(*device).or_default();
            *tried = (*tried).max(*seq);
        }
        if let Err(Refusal::ReadOnly | Refusal::Overloaded(_)) = answer {
            return Ok(());
        }
        let checked = match self.talks.get_mut(&number) {
            None => return self.apply_to_nothing(number, wish, answer),
            Some(talk) => talk.apply(wish, answer, &self.devices),
        };
        checked.map_err(|expected| format!("{wish:?} of c{number} was answered {answer:?}, {expected}"))
    }

    fn apply_to_nothing(&mut self, number: u8, wish: &Wish, answer: &Result<Answer, Refusal>) -> Verdict {
        match (wish, answer) {
            (Wish::Create { by, direct, members }, Ok(Answer::Conversation { summary, fresh: true })) => {
                self.make(number, *by, *direct, members);
                same_members(&self.talks[&number], &summary.members)
            }
            (Wish::Create { .. }, answer) => Err(format!("c{number} was not made: {answer:?}")),
            (_, Err(Refusal::NotMember)) => Ok(()),
            (wish, answer) => Err(format!("c{number} is not there and {wish:?} was answered {answer:?}")),
        }
    }

    fn make(&mut self, number: u8, by: UserId, direct: bool, members: &[UserId]) {
        let body = Body::Change(Change::Created { by, members: members.to_vec() });
        let mut talk = Talk {
            number,
            direct,
            log: vec![Entry { seq: Seq(1), ts: Wall(0), body }],
            periods: BTreeMap::new(),
            read: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            tried: BTreeMap::new(),
            before: BTreeMap::new(),
            starts: BTreeMap::new(),
            numbers: BTreeMap::new(),
        };
        members.iter().for_each(|user| talk.join(*user, Seq(1), &self.devices));
        self.talks.insert(number, talk);
    }

    /// The process has ended. Of what was not answered, a part has happened, as the log shows: takes over what can only be that.
    pub fn adopt(&mut self, number: u8, log: &[Entry], unanswered: &[Wish]) -> Verdict {
        let mut wishes = unanswered.iter();
        let known = self.talks.get(&number).map_or(0, |talk| talk.log.len());
        for entry in log.iter().skip(known) {
            let Some(wish) = wishes.find(|wish| leads_to(wish, entry)) else {
                return Err(format!("#{} of c{number} is there and nobody has asked for it", entry.seq));
            };
            match (wish, self.talks.get_mut(&number)) {
                (Wish::Create { by, direct, members }, None) => self.make(number, *by, *direct, members),
                (Wish::Send { number: sent, from, .. }, Some(talk)) => {
                    talk.numbers.insert((from.user, *sent), entry.seq);
                    talk.log.push(entry.clone());
                }
                (_, Some(talk)) => talk.change(entry, &self.devices),
                (wish, None) => return Err(format!("{wish:?} happened before there was a c{number}")),
            }
        }
        if let Some(talk) = self.talks.get_mut(&number) {
            for wish in unanswered {
                if let Wish::Receive { device, seq } = wish {
                    let tried = talk.tried.entry(*device).or_default();
                    *tried = (*tried).max(*seq);
                }
            }
        }
        Ok(())
    }
}

/// Whether an entry is what comes of a wish.
fn leads_to(wish: &Wish, entry: &Entry) -> bool {
    match (wish, &entry.body) {
        (Wish::Send { from, payload, .. }, Body::Message { from: sender, payload: sent, .. }) => {
            from == sender && payload == sent
        }
        (Wish::Create { by, .. }, Body::Change(Change::Created { by: maker, .. })) => by == maker,
        (Wish::Add { by, user }, Body::Change(Change::Added { by: adder, user: added })) => {
            (by, user) == (adder, added)
        }
        (Wish::Remove { by, user }, Body::Change(Change::Removed { by: remover, user: gone })) => {
            (by, user) == (remover, gone)
        }
        (Wish::Remove { by, user }, Body::Change(Change::Left { user: gone })) => by == user && user == gone,
        _ => false,
    }
}

fn same_members(talk: &Talk, named: &[UserId]) -> Verdict {
    let (mine, named): (BTreeSet<_>, BTreeSet<_>) =
        (talk.members().collect(), named.iter().copied().collect());
    if mine == named { Ok(()) } else { Err(format!("it has {} members, not {}", mine.len(), named.len())) }
}

impl Talk {
    /// A change of the membership, as its entry says.
    fn change(&mut self, entry: &Entry, devices: &Devices) {
        self.log.push(entry.clone());
        match &entry.body {
            Body::Change(Change::Added { user, .. }) => self.join(*user, entry.seq, devices),
            Body::Change(Change::Removed { user, .. } | Change::Left { user }) => {
                self.leave(*user, entry.seq)
            }
            _ => {}
        }
    }

    fn apply(&mut self, wish: &Wish, answer: &Result<Answer, Refusal>, devices: &Devices) -> Verdict {
        let asker = match wish {
            Wish::Send { from, .. } | Wish::Pass { from } => from.user,
            Wish::Receive { device, .. } => device.user,
            Wish::Read { user, .. } | Wish::Sync { user, .. } => *user,
            Wish::Create { by, .. } | Wish::Add { by, .. } | Wish::Remove { by, .. } => *by,
        };
        let Some(period) = self.member(asker) else {
            let told = *answer == Err(Refusal::NotMember);
            return if told { Ok(()) } else { Err("and is no member".to_owned()) };
        };
        let head = self.head();
        let bad = matches!(answer, Err(Refusal::BadRequest(_)));
        let holds = match wish {
            Wish::Send { from, number, payload } => return self.send(*from, *number, payload, answer),
            Wish::Pass { .. } => *answer == Ok(Answer::Passed),
            Wish::Receive { seq, .. } if *seq > head => bad,
            Wish::Receive { device, seq } => {
                let acknowledged = self.acknowledged.entry(*device).or_default();
                *acknowledged = (*acknowledged).max(*seq);
                *answer == Ok(Answer::Received)
            }
            Wish::Read { user, seq } => return self.mark_read(*user, *seq, answer),
            Wish::Sync { after, limit, head, .. } => {
                return self.page((*after).max(period.from.previous()), *limit, *head, answer);
            }
            Wish::Create { .. } => match answer {
                Ok(Answer::Conversation { summary, fresh: false }) => {
                    return same_members(self, &summary.members);
                }
                _ => false,
            },
            Wish::Add { .. } | Wish::Remove { .. } if self.direct => bad,
            Wish::Add { by, user } => {
                let fresh = self.member(*user).is_none();
                if fresh {
                    self.entry_of(Change::Added { by: *by, user: *user }, devices);
                }
                return self.changed(fresh, answer);
            }
            Wish::Remove { user, .. } if self.member(*user).is_none() => {
                matches!(answer, Err(Refusal::NotFound(_)))
            }
            Wish::Remove { by, user } => {
                let change = match by == user {
                    true => Change::Left { user: *user },
                    false => Change::Removed { by: *by, user: *user },
                };
                self.entry_of(change, devices);
                return self.changed(true, answer);
            }
        };
        if holds { Ok(()) } else { Err(format!("the head is {head}")) }
    }

    fn entry_of(&mut self, change: Change, devices: &Devices) {
        let entry = Entry { seq: self.head().next(), ts: Wall(0), body: Body::Change(change) };
        self.change(&entry, devices);
    }

    fn changed(&self, is_fresh: bool, answer: &Result<Answer, Refusal>) -> Verdict {
        match answer {
            Ok(Answer::Conversation { summary, fresh }) if *fresh == is_fresh => {
                same_members(self, &summary.members)
            }
            _ => Err(format!("fresh: {is_fresh}")),
        }
    }

    fn send(
        &mut self,
        from: DeviceKey,
        number: u16,
        payload: &Payload,
        answer: &Result<Answer, Refusal>,
    ) -> Verdict {
        if let Some(first) = self.numbers.get(&(from.user, number)).copied() {
            let entry = &self.log[first.previous().0 as usize];
            let same = matches!(&entry.body, Body::Message { payload: sent, .. } if sent == payload);
            let told = match answer {
                Ok(Answer::Sent { seq, duplicate, .. }) => same && *duplicate && *seq == first,
                Err(Refusal::ClientIdReused) => !same,
                _ => false,
            };
            return if told { Ok(()) } else { Err(format!("it is at #{first}, the same: {same}")) };
        }
        let place = self.head().next();
        match answer {
            Ok(Answer::Sent { seq, ts, duplicate: false }) if *seq == place => {
                let client_id = super::asking::client_id(from.user, number);
                let body = Body::Message { from, client_id, payload: payload.clone() };
                self.log.push(Entry { seq: place, ts: *ts, body });
                self.numbers.insert((from.user, number), place);
                Ok(())
            }
            _ => Err(format!("its place would be #{place}")),
        }
    }

    fn mark_read(&mut self, user: UserId, seq: Seq, answer: &Result<Answer, Refusal>) -> Verdict {
        let read = self.read.get(&user).copied().unwrap_or_default();
        let acknowledged = self.acknowledged.iter().filter(|(device, _)| device.user == user);
        let certain = acknowledged.map(|(_, seq)| *seq).max().unwrap_or_default();
        let possible = self.delivered_max(user);
        match answer {
            Ok(Answer::Read) if seq <= read || seq <= possible && seq <= self.head() => {
                self.read.insert(user, read.max(seq));
                Ok(())
            }
            Err(Refusal::BadRequest(_)) if seq > certain => Ok(()),
            _ => Err(format!("{read} was read, {certain} acknowledged, {possible} at most")),
        }
    }

    /// A page after a place: what is kept of it, in order, as of some moment since it was asked for.
    fn page(&self, after: Seq, limit: u32, asked_at: Seq, answer: &Result<Answer, Refusal>) -> Verdict {
        let Ok(Answer::Page { entries, head, more, .. }) = answer else { return Err("a page".to_owned()) };
        if *head < asked_at || *head > self.head() {
            return Err(format!("the head was {asked_at} and is {}", self.head()));
        }
        if entries.len() > limit.max(1) as usize {
            return Err(format!("at most {limit}"));
        }
        let mut place = after;
        for entry in entries {
            if entry.seq <= place {
                return Err(format!("#{} comes after #{place}", entry.seq));
            }
            while entry.seq > place.next() {
                place = place.next();
                if !self.may_be_gone(place) {
                    return Err(format!("#{place} is missing"));
                }
            }
            if !self.log.get(entry.seq.previous().0 as usize).is_some_and(|mine| same(mine, entry)) {
                return Err(format!("#{} is something else", entry.seq));
            }
            place = entry.seq;
        }
        let expected = place < *head && !entries.is_empty();
        if *more == expected { Ok(()) } else { Err(format!("more: {expected}")) }
    }
}

/// Whether two entries say the same; when a change was made is not modelled.
pub fn same(mine: &Entry, theirs: &Entry) -> bool {
    let timed = matches!(mine.body, Body::Message { .. });
    mine.seq == theirs.seq && mine.body == theirs.body && (!timed || mine.ts == theirs.ts)
}
