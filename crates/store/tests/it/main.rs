//! The reference engine passes its own suite, and its check finds what is broken.

use model::{ConversationId, ConversationKind, DeviceId, DeviceKey, Seq, UserId, Wall};
use store::conformance::{self, Start};
use store::{Engine, MemoryStore, Reply, Request};

#[test]
fn the_reference_passes_the_suite() {
    conformance::run(&mut || Box::new(MemoryStore::new()));
}

/// The reference, with a disk that outlives it.
#[derive(Clone, Default)]
struct Kept(std::sync::Arc<std::sync::Mutex<MemoryStore>>);

impl Engine for Kept {
    fn commit(&mut self, batch: &[Request], replies: &mut Vec<Reply>) -> Result<(), store::Fatal> {
        self.0.lock().expect("no panic").commit(batch, replies)
    }

    fn devices(&mut self, each: &mut dyn FnMut(DeviceKey, u32)) -> Result<(), store::Fatal> {
        self.0.lock().expect("no panic").devices(each)
    }
}

#[test]
fn the_random_batches_keep_the_invariants() {
    for seed in seeds(40) {
        let mut kept = Kept::default();
        let mut open = |start| {
            if start == Start::Fresh {
                kept = Kept::default();
            }
            Box::new(kept.clone()) as Box<dyn Engine>
        };
        conformance::differential(seed, 200, &mut open);
    }
}

/// `THRONG_SEED` alone, if it is set, or so many from 0 on.
fn seeds(most: u64) -> Vec<u64> {
    match std::env::var("THRONG_SEED") {
        Ok(seed) => vec![seed.parse().expect("THRONG_SEED is a number")],
        Err(_) => (0..most).collect(),
    }
}

const CONVERSATION: ConversationId = ConversationId([1; 16]);
const DEVICE: DeviceKey = DeviceKey { user: UserId([2; 16]), device: DeviceId(1) };

fn with_one_conversation() -> MemoryStore {
    let mut store = MemoryStore::new();
    let batch = [
        Request::RegisterDevice { device: DEVICE, ts: Wall(1) },
        Request::CreateConversation {
            conversation: CONVERSATION,
            kind: ConversationKind::Group,
            by: DEVICE.user,
            members: vec![DEVICE.user],
            ts: Wall(1),
        },
    ];
    store.commit(&batch, &mut Vec::new()).expect("memory does not fail");
    store
}

fn settle(store: &mut MemoryStore, unmark: Vec<DeviceKey>, trim: Seq) {
    let request = Request::Settle { conversation: CONVERSATION, acknowledged: Vec::new(), unmark, trim };
    store.commit(&[request], &mut Vec::new()).expect("memory does not fail");
}

#[test]
fn a_device_behind_and_not_marked_is_found() {
    let mut store = with_one_conversation();
    assert_eq!(store.check(), Ok(()));
    settle(&mut store, vec![DEVICE], Seq::ZERO);
    let broken = store.check().expect_err("the device is behind");
    assert!(broken.contains("not marked pending"), "{broken}");
}

#[test]
fn an_entry_trimmed_too_early_is_found() {
    let mut store = with_one_conversation();
    settle(&mut store, Vec::new(), Seq(1));
    let broken = store.check().expect_err("the device has not acknowledged it");
    assert!(broken.contains("is at 0, the log keeps 2..=1"), "{broken}");
}

#[test]
fn a_full_disk_refuses_writes_and_answers_reads() {
    let mut store = with_one_conversation();
    let before = store.record(CONVERSATION);
    let acknowledge = Request::Acknowledge { conversation: CONVERSATION, device: DEVICE, seq: Seq(1) };
    let load = Request::LoadConversation { conversation: CONVERSATION };
    store.set_full(true);
    let mut replies = Vec::new();
    store.commit(&[acknowledge.clone(), load.clone()], &mut replies).expect("memory does not fail");
    assert_eq!(replies, [Reply::ReadOnly, Reply::Conversation(before)]);
    store.set_full(false);
    replies.clear();
    store.commit(&[acknowledge], &mut replies).expect("memory does not fail");
    assert_eq!(replies, [Reply::Done]);
    assert_eq!(store.cursors(CONVERSATION).collect::<Vec<_>>(), [(DEVICE, Seq(1))]);
}
