//! What a message costs the allocator: once on its way in, nothing on its way out.

use std::alloc::{GlobalAlloc, Layout, System};
use std::borrow::Cow;
use std::cell::Cell;

use model::{Body, DeviceId, DeviceKey, Entry, Payload, Seq, Wall};
use protocol::client::encode_request;
use protocol::{Command, Encoding, Push, decode, encode_push};

use crate::bytes::{CLIENT, CONV, PAYLOAD_MAX, USER, request};

/// The system's allocator, counting per thread.
struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator as it came; only a counter is touched besides.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending no longer counts.
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> usize {
    let before = COUNT.get();
    work();
    COUNT.get() - before
}

fn payload() -> Payload {
    Payload::from(&[7; 220][..])
}

#[test]
fn a_send_allocates_its_payload_and_nothing_else() {
    for encoding in Encoding::ALL {
        let mut frame = Vec::new();
        let command = Command::Send { conversation: CONV, client_id: CLIENT, payload: payload() };
        encode_request(encoding, &mut frame, &request(7, command.clone()));
        let mut read = None;
        let count = allocations(|| read = decode(encoding, &frame, PAYLOAD_MAX).next());
        assert_eq!(read, Some(Ok(request(7, command))));
        assert_eq!(count, 1, "{encoding:?}");
    }
}

#[test]
fn other_commands_and_every_push_allocate_nothing() {
    let from = DeviceKey { user: USER, device: DeviceId(1) };
    let body = Body::Message { from, client_id: CLIENT, payload: payload() };
    let entry = Entry { seq: Seq(1), ts: Wall(1), body };
    let push = Push::Message { conversation: CONV, entry: Cow::Borrowed(&entry) };
    for encoding in Encoding::ALL {
        let mut out = Vec::with_capacity(4096);
        assert_eq!(allocations(|| encode_push(encoding, &mut out, &push)), 0, "{encoding:?}");
        out.clear();
        encode_request(encoding, &mut out, &request(7, Command::Recv { conversation: CONV, seq: Seq(9) }));
        assert_eq!(
            allocations(|| assert_eq!(decode(encoding, &out, PAYLOAD_MAX).count(), 1)),
            0,
            "{encoding:?}"
        );
    }
}
