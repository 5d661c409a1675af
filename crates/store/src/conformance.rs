//! What every engine must pass.
//!
//! Scripts of requests with the replies the vocabulary demands, and random batches in which an engine must answer as [`crate::MemoryStore`]
//! does. Owns the meaning of the contract as tests; deliberately knows no engine but the reference, and takes seeds as arguments.

mod client_ids;
mod cursors;
mod devices;
mod differential;
mod import;
mod log;
mod members;

use model::{
    Body, Change, ClientId, ConversationId, ConversationKind, DeviceId, DeviceKey, Entry, Payload, Receipt,
    Seq, UserId, Wall,
};

use crate::{ConversationRecord, DeviceRecord, Engine, MemberRecord, PendingRecord, Reply, Request};

pub use differential::{Step, differential, everything, traffic};

/// Which store an engine is opened on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// An empty one.
    Fresh,
    /// The one whose engine was opened last and has been dropped since.
    Again,
}

/// Runs every script, each on an engine of its own.
pub fn run(make: &mut dyn FnMut() -> Box<dyn Engine>) {
    for (name, script) in scripts() {
        println!("{name}");
        script(&mut Subject { engine: Some(make()), reopen: None });
    }
}

/// Runs every script and opens the engine anew after each batch, which must change nothing.
pub fn run_reopening(open: &mut dyn FnMut(Start) -> Box<dyn Engine>) {
    for (name, script) in scripts() {
        println!("{name}, reopened after each batch");
        let engine = Some(open(Start::Fresh));
        script(&mut Subject { engine, reopen: Some(open) });
    }
}

type Script = (&'static str, fn(&mut Subject<'_>));

fn scripts() -> impl Iterator<Item = Script> {
    [log::SCRIPTS, client_ids::SCRIPTS, devices::SCRIPTS, members::SCRIPTS, cursors::SCRIPTS, import::SCRIPTS]
        .into_iter()
        .flatten()
        .copied()
}

/// Names scripts after their functions.
macro_rules! named_after_functions {
    ($($name:ident),* $(,)?) => {
        pub(super) const SCRIPTS: &[super::Script] = &[$((stringify!($name), $name)),*];
    };
}
use named_after_functions;

/// The engine under test.
struct Subject<'a> {
    engine: Option<Box<dyn Engine>>,
    reopen: Option<&'a mut dyn FnMut(Start) -> Box<dyn Engine>>,
}

impl Subject<'_> {
    fn engine(&mut self) -> &mut dyn Engine {
        &mut **self.engine.as_mut().expect("it is only away while it is reopened")
    }

    /// Carries out a batch. What was in `replies` before must stay there.
    fn batch(&mut self, batch: &[Request]) -> Vec<Reply> {
        let mut replies = vec![Reply::Done];
        self.engine().commit(batch, &mut replies).expect("nothing is wrong with the disk");
        assert_eq!(replies.remove(0), Reply::Done);
        assert_eq!(replies.len(), batch.len(), "one reply a request");
        if let Some(reopen) = &mut self.reopen {
            self.engine = None;
            self.engine = Some(reopen(Start::Again));
        }
        replies
    }

    fn one(&mut self, request: Request) -> Reply {
        self.batch(&[request]).pop().expect("one reply")
    }

    /// Every request with the reply it must get, each in a batch of its own.
    #[track_caller]
    fn check(&mut self, script: impl IntoIterator<Item = (Request, Reply)>) {
        for (request, expected) in script {
            let asked = format!("{request:?}");
            assert_eq!(self.one(request), expected, "{asked}");
        }
    }

    /// The same in one batch.
    #[track_caller]
    fn check_batch(&mut self, script: impl IntoIterator<Item = (Request, Reply)>) {
        let (batch, expected): (Vec<_>, Vec<_>) = script.into_iter().unzip();
        assert_eq!(self.batch(&batch), expected);
    }

    fn devices(&mut self) -> Vec<(DeviceKey, u32)> {
        let mut devices = Vec::new();
        let mut each = |device, marks| devices.push((device, marks));
        self.engine().devices(&mut each).expect("nothing is wrong with the disk");
        devices.sort_unstable();
        devices
    }

    fn record(&mut self, conversation: ConversationId) -> ConversationRecord {
        match self.one(load(conversation)) {
            Reply::Conversation(Some(record)) => record,
            other => panic!("no conversation but {other:?}"),
        }
    }

    /// All that is kept of a log.
    fn page(&mut self, conversation: ConversationId) -> Vec<Entry> {
        match self.one(read(conversation, 0, u64::MAX)) {
            Reply::Page(page) => page,
            other => panic!("no page but {other:?}"),
        }
    }

    fn seqs(&mut self, conversation: ConversationId) -> Vec<u64> {
        self.page(conversation).iter().map(|entry| entry.seq.0).collect()
    }

    /// Cursor and mark of a device.
    #[track_caller]
    fn cursor(&mut self, conversation: ConversationId, device: DeviceKey) -> (u64, bool) {
        let record = self.record(conversation);
        let member = record.members.iter().find(|member| member.user == device.user).expect("a member");
        let found = member
            .devices
            .iter()
            .find(|found| found.device == device.device)
            .expect("a device with a cursor");
        (found.cursor.0, found.marked)
    }
}

const NOON: Wall = Wall(1_700_000_000_000);

/// A conversation of users 1 and 2, who have one device each.
fn two_people(subject: &mut Subject<'_>) -> ConversationId {
    let id = conversation(1);
    subject.batch(&[register(device(1, 1)), register(device(2, 1)), create(id, &[1, 2])]);
    id
}

fn user(number: u8) -> UserId {
    let mut id = [0x11; 16];
    (id[0], id[15]) = (number, number);
    UserId(id)
}

fn device(of: u8, number: u32) -> DeviceKey {
    DeviceKey { user: user(of), device: DeviceId(number) }
}

fn conversation(number: u8) -> ConversationId {
    let mut id = [0x22; 16];
    id[0] = number;
    ConversationId(id)
}

fn client_id(number: u32) -> ClientId {
    let mut id = [0x33; 16];
    id[..4].copy_from_slice(&number.to_be_bytes());
    ClientId(id)
}

/// A client id that follows from a time.
fn client_id_at(ts: u64) -> ClientId {
    let mut id = [0x44; 16];
    id[..8].copy_from_slice(&ts.to_be_bytes());
    ClientId(id)
}

fn load(conversation: ConversationId) -> Request {
    Request::LoadConversation { conversation }
}

fn read(conversation: ConversationId, after: u64, up_to: u64) -> Request {
    let (after, up_to) = (Seq(after), Seq(up_to));
    Request::ReadLog { conversation, after, up_to, limit: u32::MAX, bytes_max: usize::MAX }
}

fn register(device: DeviceKey) -> Request {
    Request::RegisterDevice { device, ts: NOON }
}

/// A group made by the first of its members.
fn create(conversation: ConversationId, members: &[u8]) -> Request {
    let members: Vec<UserId> = members.iter().map(|number| user(*number)).collect();
    Request::CreateConversation {
        conversation,
        kind: ConversationKind::Group,
        by: members[0],
        members,
        ts: NOON,
    }
}

/// A message whose payload and client id follow from a number, marking `mark`.
fn append(conversation: ConversationId, from: DeviceKey, number: u32, mark: &[DeviceKey]) -> Request {
    Request::Append {
        conversation,
        from,
        client_id: client_id(number),
        ts: Wall(NOON.0 + u64::from(number)),
        payload: Payload::from(&number.to_be_bytes()[..]),
        mark: mark.to_vec(),
    }
}

fn message(seq: u64, from: DeviceKey, number: u32) -> Entry {
    Entry {
        seq: Seq(seq),
        ts: Wall(NOON.0 + u64::from(number)),
        body: Body::Message {
            from,
            client_id: client_id(number),
            payload: Payload::from(&number.to_be_bytes()[..]),
        },
    }
}

fn change(seq: u64, change: Change) -> Entry {
    Entry { seq: Seq(seq), ts: NOON, body: Body::Change(change) }
}

fn add(conversation: ConversationId, who: u8, by: u8) -> Request {
    Request::AddMember { conversation, user: user(who), by: user(by), ts: NOON }
}

fn remove(conversation: ConversationId, who: u8, by: u8) -> Request {
    Request::RemoveMember { conversation, user: user(who), by: user(by), ts: NOON }
}

fn acknowledge(conversation: ConversationId, device: DeviceKey, seq: u64) -> Request {
    Request::Acknowledge { conversation, device, seq: Seq(seq) }
}

fn mark_read(conversation: ConversationId, who: u8, seq: u64) -> Request {
    Request::MarkRead { conversation, user: user(who), seq: Seq(seq) }
}

fn settle(
    conversation: ConversationId,
    acknowledged: &[(DeviceKey, u64)],
    unmark: &[DeviceKey],
    trim: u64,
) -> Request {
    Request::Settle {
        conversation,
        acknowledged: acknowledged.iter().map(|(device, seq)| (*device, Seq(*seq))).collect(),
        unmark: unmark.to_vec(),
        trim: Seq(trim),
    }
}

/// With the receipts of any number of members.
fn list(who: u8) -> Request {
    Request::ListConversations { user: user(who), receipts_members_max: usize::MAX }
}

/// A receipt of a user, up to where a device has acknowledged and the user has read.
fn receipt(of: u8, delivered: u64, read: u64) -> Receipt {
    Receipt { user: user(of), delivered: Seq(delivered), read: Seq(read) }
}

fn appended(seq: u64) -> Reply {
    Reply::Appended { seq: Seq(seq) }
}

fn pending(places: &[(ConversationId, u64, u64)]) -> Vec<PendingRecord> {
    let record = |(conversation, cursor, head): &(ConversationId, u64, u64)| PendingRecord {
        conversation: *conversation,
        cursor: Seq(*cursor),
        head: Seq(*head),
    };
    places.iter().map(record).collect()
}

/// A member with devices given as number, cursor and mark. Each has acknowledged something if it is beyond where a first device begins.
fn member(who: u8, joined: u64, read: u64, devices: &[(u32, u64, bool)]) -> MemberRecord {
    let record = |(device, cursor, marked): &(u32, u64, bool)| DeviceRecord {
        device: DeviceId(*device),
        cursor: Seq(*cursor),
        acknowledged: *cursor >= joined,
        marked: *marked,
    };
    MemberRecord {
        user: user(who),
        joined: Seq(joined),
        read: Seq(read),
        devices: devices.iter().map(record).collect(),
    }
}
