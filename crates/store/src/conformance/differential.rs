//! Random batches, answered by an engine as by the reference.

use std::ops::Range;

use model::{ConversationKind, DeviceId, DeviceKey, Payload, Phone, Seq, Wall};

use super::{Start, client_id, conversation, device, user};
use crate::{Engine, ImportedConversation, ImportedUser, MemoryStore, Request};

const USERS: Range<u8> = 1..7;
const DEVICES: Range<u32> = 1..4;
const CONVERSATIONS: Range<u8> = 1..6;
const PHONES: Range<u64> = 100..110;

/// Runs `batches` random batches, every one of them on the engine and on a [`MemoryStore`], and demands the same replies; the engine is
/// reopened now and then. Even seeds ask only what the owner of a conversation would ask, and the invariants are checked; odd ones ask
/// anything. Gives back the reference as it is at the end.
pub fn differential(seed: u64, batches: u32, open: &mut dyn FnMut(Start) -> Box<dyn Engine>) -> MemoryStore {
    println!("THRONG_SEED={seed}");
    let mut reference = MemoryStore::new();
    let mut engine = open(Start::Fresh);
    let mut source = Source { random: Random(seed), lawful: seed.is_multiple_of(2), now: 1_000 };
    for number in 0..batches {
        let batch = source.batch(&reference);
        let what = format!("seed {seed}, batch {number}");
        compare(&batch, &mut reference, &mut *engine, &what);
        if source.lawful {
            reference.check().unwrap_or_else(|broken| panic!("{what}: {broken}"));
        }
        match source.random.below(40) {
            0 => {
                drop(engine);
                engine = open(Start::Again);
            }
            1 => assert_eq!(devices(&mut *engine), devices(&mut reference), "{what}, devices after it"),
            _ => {}
        }
    }
    compare(&everything(), &mut reference, &mut *engine, &format!("seed {seed}, at the end"));
    reference
}

/// A batch, and the reference as it is after it.
#[derive(Debug)]
pub struct Step {
    /// What is asked.
    pub batch: Vec<Request>,
    /// What is then.
    pub after: MemoryStore,
}

/// Random batches of a seed, such as the owners of conversations ask for, for tests that compare an engine with the reference at
/// moments of their own.
pub fn traffic(seed: u64, batches: u32) -> Vec<Step> {
    let mut reference = MemoryStore::new();
    let mut source = Source { random: Random(seed), lawful: true, now: 1_000 };
    let step = |_| {
        let batch = source.batch(&reference);
        reference.commit(&batch, &mut Vec::new()).expect("memory does not fail");
        Step { batch, after: reference.clone() }
    };
    (0..batches).map(step).collect()
}

fn compare(batch: &[Request], reference: &mut MemoryStore, engine: &mut dyn Engine, what: &str) {
    let (mut expected, mut found) = (Vec::new(), Vec::new());
    reference.commit(batch, &mut expected).expect("memory does not fail");
    engine.commit(batch, &mut found).unwrap_or_else(|error| panic!("{what}: {error:?}"));
    assert_eq!(found.len(), expected.len(), "{what}: one reply a request");
    for (at, request) in batch.iter().enumerate() {
        assert!(
            found[at] == expected[at],
            "{what}, request {at}: {request:?}\nexpected {:?}\nfound    {:?}\nthe batch: {batch:#?}",
            expected[at],
            found[at]
        );
    }
}

fn devices(engine: &mut dyn Engine) -> Vec<(DeviceKey, u32)> {
    let mut devices = Vec::new();
    engine
        .devices(&mut |device, marks| devices.push((device, marks)))
        .expect("nothing is wrong with the disk");
    devices.sort_unstable();
    devices
}

/// Questions that together show all there is.
pub fn everything() -> Vec<Request> {
    let mut batch = Vec::new();
    for id in CONVERSATIONS.map(conversation) {
        batch.push(super::load(id));
        batch.push(super::read(id, 0, u64::MAX));
    }
    for number in USERS {
        batch.push(super::list(number));
        batch.extend(DEVICES.map(|which| Request::ListPending { device: device(number, which) }));
    }
    batch
}

/// Where requests come from.
struct Source {
    random: Random,
    lawful: bool,
    now: u64,
}

impl Source {
    fn batch(&mut self, reference: &MemoryStore) -> Vec<Request> {
        let mut batch = Vec::new();
        if self.lawful && self.random.below(3) == 0 {
            batch.extend(self.owners_settle(reference));
        }
        // Mostly small ones, and batches that only read.
        let most = [1, 3, 10, 60][self.random.below(4) as usize];
        let only_reads = self.random.below(6) == 0;
        for _ in 0..=self.random.below(most) {
            let request = self.request();
            if !only_reads || !request.writes() {
                batch.push(request);
            }
        }
        batch
    }

    fn request(&mut self) -> Request {
        self.now += self.random.below(3);
        let (conversation, device, ts) = (self.conversation(), self.device(), Wall(self.now));
        match self.random.below(100) {
            0..30 => Request::Append {
                conversation,
                from: device,
                client_id: client_id(self.random.below(60) as u32),
                ts,
                payload: self.payload(),
                mark: self.marks(),
            },
            30..48 => Request::Acknowledge { conversation, device, seq: self.seq() },
            48..55 => Request::MarkRead { conversation, user: device.user, seq: self.seq() },
            55..60 => Request::RegisterDevice { device, ts },
            60..64 => Request::CreateConversation {
                conversation,
                kind: if self.random.below(2) == 0 {
                    ConversationKind::Direct
                } else {
                    ConversationKind::Group
                },
                by: device.user,
                members: self.members(),
                ts,
            },
            64..68 => Request::AddMember { conversation, user: self.user(), by: device.user, ts },
            68 if self.random.below(3) == 0 => self.import(ts),
            69 if self.random.below(6) == 0 => {
                let first = self.phone();
                Request::Clean { phones: first..=Phone(first.0 + self.random.below(8)) }
            }
            68..71 => Request::RemoveMember { conversation, user: self.user(), by: device.user, ts },
            71..74 if !self.lawful => Request::Settle {
                conversation,
                acknowledged: (0..self.random.below(4)).map(|_| (self.device(), self.seq())).collect(),
                unmark: (0..self.random.below(4)).map(|_| self.device()).collect(),
                trim: self.seq(),
            },
            71..80 => Request::LoadConversation { conversation },
            80..90 => Request::ReadLog {
                conversation,
                after: self.seq(),
                up_to: self.seq(),
                limit: self.random.below(20) as u32,
                bytes_max: self.random.below(200) as usize,
            },
            90..95 => Request::ListPending { device },
            95..99 => Request::ListConversations {
                user: device.user,
                receipts_members_max: self.random.below(USERS.len() as u64) as usize,
            },
            _ => Request::ForgetClientIds { before: Wall(self.now.saturating_sub(self.random.below(150))) },
        }
    }

    fn import(&mut self, ts: Wall) -> Request {
        let users =
            (0..self.random.below(4)).map(|_| ImportedUser { device: self.device(), phone: self.phone() });
        let users = users.collect();
        let conversations = (0..self.random.below(3)).filter_map(|_| {
            let members = self.members();
            let conversation = self.conversation();
            let kind = ConversationKind::Direct;
            (!members.is_empty()).then_some(ImportedConversation { conversation, kind, members })
        });
        Request::Import { users, conversations: conversations.collect(), ts }
    }

    fn phone(&mut self) -> Phone {
        Phone(PHONES.start + self.random.below(PHONES.end - PHONES.start))
    }

    /// What the owner of a conversation would do at the beginning of a batch: never unmark who is behind, never trim what somebody lacks.
    fn owners_settle(&mut self, reference: &MemoryStore) -> Option<Request> {
        let conversation = self.conversation();
        let record = reference.record(conversation)?;
        let mut trim = record.head;
        let (mut acknowledged, mut unmark) = (Vec::new(), Vec::new());
        for member in &record.members {
            if member.devices.is_empty() {
                trim = trim.min(member.joined.previous());
            }
            for found in &member.devices {
                let device = DeviceKey { user: member.user, device: found.device };
                let mut cursor = found.cursor;
                if self.random.below(2) == 0 {
                    let seq = Seq(self.random.below(record.head.0 + 1));
                    cursor = cursor.max(seq);
                    acknowledged.push((device, seq));
                }
                if cursor == record.head && self.random.below(2) == 0 {
                    unmark.push(device);
                }
                trim = trim.min(cursor);
            }
        }
        Some(Request::Settle { conversation, acknowledged, unmark, trim })
    }

    /// Everybody, when the law asks for it: a device that is not in the conversation is not marked in it.
    fn marks(&mut self) -> Vec<DeviceKey> {
        let mut marks = Vec::new();
        for number in USERS {
            for which in DEVICES {
                if self.lawful || self.random.below(4) == 0 {
                    marks.push(device(number, which));
                }
            }
        }
        marks
    }

    /// Small and few, so that repeats happen; now and then long enough to leave the page it begins on.
    fn payload(&mut self) -> Payload {
        let length = if self.random.below(50) == 0 { 9_000 } else { self.random.below(2) as usize };
        let byte = self.random.below(2) as u8;
        Payload::from(vec![byte; length])
    }

    fn seq(&mut self) -> Seq {
        match self.random.below(40) {
            0 => Seq(u64::MAX - self.random.below(2)),
            1 => Seq(self.random.next()),
            2..15 => Seq(self.random.below(200)),
            _ => Seq(self.random.below(30)),
        }
    }

    fn members(&mut self) -> Vec<model::UserId> {
        let mut members: Vec<_> = USERS.filter(|_| self.random.below(3) == 0).map(user).collect();
        let turn = self.random.below(members.len().max(1) as u64) as usize;
        members.rotate_left(turn);
        members
    }

    fn user(&mut self) -> model::UserId {
        user(USERS.start + self.random.below(USERS.len() as u64) as u8)
    }

    fn device(&mut self) -> DeviceKey {
        let device = DEVICES.start + self.random.below(DEVICES.len() as u64) as u32;
        DeviceKey { user: self.user(), device: DeviceId(device) }
    }

    fn conversation(&mut self) -> model::ConversationId {
        conversation(CONVERSATIONS.start + self.random.below(CONVERSATIONS.len() as u64) as u8)
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Less than `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
