//! What a quiet connection costs the heap, by hand-written events: everything around a shard is left out.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr};

use model::{DeviceId, DeviceKey, HashKey, Mono, Now, ShardId, Span, UserId};
use protocol::Encoding;
use shard::{Event, Settings, Shard};
use store::Reply;

use crate::{client, names, wire};

/// The system's allocator, which knows how many bytes each thread holds.
struct Holding;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

fn hold(bytes: isize) {
    // A thread that is ending no longer counts.
    let _ = HELD.try_with(|held| held.set(held.get() + bytes));
}

// SAFETY: every call goes to the system's allocator as it came; only a counter is touched besides.
unsafe impl GlobalAlloc for Holding {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        hold(layout.size() as isize);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        hold(-(layout.size() as isize));
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Holding = Holding;

const CONNECTIONS: u32 = 10_000;

fn user(number: u32) -> UserId {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&number.to_be_bytes());
    UserId(id)
}

/// Performs what a shard asks: its store knows nobody, and its sockets take everything.
fn perform(shard: &mut Shard, now: Now) {
    loop {
        let actions = shard.actions();
        let asks = std::mem::take(&mut actions.asks);
        let closes = std::mem::take(&mut actions.closes);
        actions.clear();
        if asks.is_empty() && closes.is_empty() {
            return;
        }
        for ask in asks {
            let reply = Reply::Registered { fresh: true, conversations: Vec::new() };
            shard.handle(now, Event::Stored { partition: ask.partition, ticket: ask.ticket, reply });
        }
        for (slot, _) in closes {
            shard.handle(now, Event::Gone { slot });
        }
    }
}

/// Connects everybody in two reads each, the second in the middle of a frame, and lets the connect deadlines pass.
fn connect_all(shard: &mut Shard, now: &mut Now, encoding: Encoding) {
    for slot in 0..CONNECTIONS {
        let address = IpAddr::V4(Ipv4Addr::from(slot));
        shard.handle(*now, Event::Accepted { slot, address });
        let device = DeviceKey { user: user(slot), device: DeviceId(1) };
        let token = names::token(device, *now, Span::seconds(3_600));
        let command = serde_json::json!({"id": 1, "connect": {"token": token}});
        let mut bytes = client::request(encoding, &[]);
        bytes.extend(client::message(encoding, &wire::encode(encoding, &command), 2));
        let cut = bytes.len() - 10;
        let (first, second) = bytes.split_at_mut(cut);
        shard.handle(*now, Event::Received { slot, bytes: first });
        shard.handle(*now, Event::Received { slot, bytes: second });
        perform(shard, *now);
    }
    *now = Now { mono: now.mono + Span::seconds(11), wall: now.wall };
    shard.handle(*now, Event::Tick);
    perform(shard, *now);
    assert_eq!(shard.connections(), CONNECTIONS as usize);
}

#[test]
fn a_quiet_connection_costs_its_records_and_a_second_one_in_its_place_nothing() {
    for encoding in Encoding::ALL {
        let mut now = Now { mono: Mono(5_000), wall: names::START };
        let settings = Settings::new(1, HashKey([7; 16]), names::keys(), names::rules());
        let mut shard = Shard::new(ShardId(0), settings, now);
        let before = HELD.get();
        connect_all(&mut shard, &mut now, encoding);
        let cost = (HELD.get() - before) as usize;
        let each = cost / CONNECTIONS as usize;
        println!("{each} bytes for a connection, its session and its device");
        // At most 64 bytes for the connection, 96 for its session and 16 for the device, and tables that double when they grow.
        assert!(each <= 2 * (64 + 96 + 16), "{each} bytes for a connection");
        for slot in 0..CONNECTIONS {
            shard.handle(now, Event::Gone { slot });
        }
        perform(&mut shard, now);
        assert_eq!(shard.connections(), 0);
        connect_all(&mut shard, &mut now, encoding);
        let again = (HELD.get() - before) as usize;
        assert!(again <= cost + 1024, "{again} bytes the second time, {cost} the first");
    }
}
