//! The open loop: what a connection waits when jobs come at their own pace, whether or not the server keeps up.
//!
//! One more thread, the same for both sides, says which connections have something to send. It sleeps a little in
//! between, so jobs come in small bursts; a job's time counts from the moment when it was due.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fabric::Outbox;
use tokio::runtime::Builder;
use tokio::sync::Notify;

use crate::by_fabric::{Desk, ITEMS_PER_BLOCK, Mail, Shard, ports};
use crate::by_tokio::{ask, partitions};
use crate::work::{CONNECTIONS, key_of};

const GENERATOR_SLEEP: Duration = Duration::from_micros(50);

/// Hands every connection to `arrive` when it is due, `rate` of them a second, and `None` after each burst.
fn generate(start: Instant, rate: u64, mut arrive: impl FnMut(Option<(usize, u32)>)) {
    assert!(CONNECTIONS as u64 * 1_000_000_000 / rate < u32::MAX.into(), "times are kept in 32 bits of ns");
    let mut next = 0;
    while next < CONNECTIONS {
        let now = start.elapsed().as_nanos() as u64;
        while next < CONNECTIONS {
            let due = next as u64 * 1_000_000_000 / rate;
            if due > now {
                break;
            }
            arrive(Some((next, due as u32)));
            next += 1;
        }
        arrive(None);
        thread::sleep(GENERATOR_SLEEP);
    }
}

/// Each connection's time in ns, over the fabric.
pub fn by_fabric(rate: u64, salt: u64, shards: usize) -> Vec<u32> {
    let (owners, mut ports) = ports(shards + 1);
    let mut generator = ports.pop().expect("the last port");
    owners[shards].set(thread::current()).expect("the generator's port");
    let desks: Vec<_> = (0..shards).map(|id| Desk::new(id, shards, 0, salt)).collect();
    let start = Instant::now();
    thread::scope(|scope| {
        let shard = |((port, owner), desk): (_, Desk)| {
            let owner: &std::sync::OnceLock<_> = owner;
            scope.spawn(move || {
                owner.set(thread::current()).expect("one thread for each port");
                Shard { port, desk: desk.in_open_loop(start) }.run()
            })
        };
        let owners = owners.iter().map(|owner| &**owner);
        let threads: Vec<_> = ports.into_iter().zip(owners).zip(desks).map(shard).collect();
        let mut outbox = Outbox::new(shards, ITEMS_PER_BLOCK);
        generate(start, rate, |arrival| match arrival {
            Some((index, due)) => {
                outbox.push(index % shards, Mail::Arrived { connection: (index / shards) as u32, due });
            }
            None => drop(outbox.flush(&mut generator)),
        });
        while outbox.flush(&mut generator) > 0 {
            thread::sleep(GENERATOR_SLEEP);
        }
        let desks = threads.into_iter().map(|thread| thread.join().expect("a shard"));
        desks.flat_map(|desk| desk.connections.into_iter().map(|connection| connection.time)).collect()
    })
}

/// Each connection's time in ns, with tokio: a connection's task begins when it has something to send.
pub fn by_tokio(rate: u64, salt: u64, threads: usize) -> Vec<u32> {
    let runtime = Builder::new_multi_thread().worker_threads(threads).build().expect("a runtime");
    let partitions = runtime.block_on(async { partitions(0) });
    let times: Arc<[AtomicU32]> = (0..CONNECTIONS).map(|_| AtomicU32::new(0)).collect();
    let unanswered = Arc::new(AtomicUsize::new(CONNECTIONS));
    let all_answered = Arc::new(Notify::new());
    let start = Instant::now();
    generate(start, rate, |arrival| {
        let Some((index, due)) = arrival else { return };
        let (partitions, times) = (partitions.clone(), times.clone());
        let (unanswered, all_answered) = (unanswered.clone(), all_answered.clone());
        runtime.spawn(async move {
            ask(&partitions, salt, key_of(index)).await;
            times[index].store(start.elapsed().as_nanos() as u32 - due, Ordering::Relaxed);
            if unanswered.fetch_sub(1, Ordering::AcqRel) == 1 {
                all_answered.notify_one();
            }
        });
    });
    runtime.block_on(all_answered.notified());
    times.iter().map(|time| time.load(Ordering::Relaxed)).collect()
}
