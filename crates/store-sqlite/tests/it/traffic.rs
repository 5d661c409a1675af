//! A little traffic between two users, and what it left.

use std::path::Path;

use model::{
    ClientId, ConversationId, ConversationKind, DeviceId, DeviceKey, Entry, Payload, Seq, UserId, Wall,
};
use store::{Engine, Reply, Request};
use store_sqlite::{Options, SqliteStore};

pub const SENDER: DeviceKey = DeviceKey { user: UserId([1; 16]), device: DeviceId(1) };
pub const RECEIVER: DeviceKey = DeviceKey { user: UserId([2; 16]), device: DeviceId(1) };

pub fn open(directory: &Path) -> SqliteStore {
    SqliteStore::open(directory, &Options::default()).expect("an open store")
}

pub fn commit(store: &mut dyn Engine, batch: &[Request]) -> Vec<Reply> {
    let mut replies = Vec::new();
    store.commit(batch, &mut replies).expect("nothing is wrong with the disk");
    replies
}

pub fn conversation(number: u8) -> ConversationId {
    ConversationId([number; 16])
}

/// Both devices and so many conversations of both, numbered from 1 on.
pub fn begin(store: &mut dyn Engine, conversations: u8) {
    let mut batch: Vec<Request> =
        [SENDER, RECEIVER].map(|device| Request::RegisterDevice { device, ts: Wall(1) }).into();
    batch.extend((1..=conversations).map(|number| Request::CreateConversation {
        conversation: conversation(number),
        kind: ConversationKind::Direct,
        by: SENDER.user,
        members: vec![SENDER.user, RECEIVER.user],
        ts: Wall(2),
    }));
    commit(store, &batch);
}

/// A message of `length` bytes; the number makes client id and bytes.
pub fn message(to: ConversationId, number: u32, length: usize) -> Request {
    let mut client_id = [9; 16];
    client_id[..4].copy_from_slice(&number.to_be_bytes());
    Request::Append {
        conversation: to,
        from: SENDER,
        client_id: ClientId(client_id),
        ts: Wall(u64::from(number)),
        payload: Payload::from(vec![number as u8; length]),
        mark: Vec::new(),
    }
}

pub fn log(store: &mut dyn Engine, of: ConversationId) -> Vec<Entry> {
    let request = Request::ReadLog {
        conversation: of,
        after: Seq(0),
        up_to: Seq(u64::MAX),
        limit: u32::MAX,
        bytes_max: usize::MAX,
    };
    match commit(store, &[request]).pop() {
        Some(Reply::Page(page)) => page,
        other => panic!("no page but {other:?}"),
    }
}
