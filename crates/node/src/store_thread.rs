//! The group commit: one thread drains what all shards ask into one transaction, commits, answers all. While one commit is in
//! the disk, the next batch gathers. What comes from outside the shards is let in one request a batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use domain::Ticket;
use fabric::{Outbox, Port};
use model::{PartitionId, Span, Wall};
use store::{Engine, Fatal, Reply, Request};

use crate::clock::Clock;
use crate::gauges::StoreGauges;
use crate::import::{Knock, Knocks};
use crate::parcel::Parcel;

/// Blocks taken between two looks at how large the batch has become.
const BLOCKS_MAX: usize = 16;
/// How often old client ids are looked for.
const FORGET_EVERY: Duration = Duration::from_secs(60);
/// Without a request for so long after a commit, the engine may rest.
const REST_AFTER: Duration = Duration::from_millis(100);
/// Answers in one block.
const ITEMS_PER_BLOCK: usize = 1_024;

/// The process's exit code when the store failed.
pub const EXIT_STORE_FAILED: i32 = 74;

pub struct StoreThread {
    pub engine: Box<dyn Engine>,
    pub port: Port<Parcel>,
    /// Requests of nobody's partition.
    pub outside: Knocks,
    pub gauges: Arc<StoreGauges>,
    pub stop: Arc<AtomicBool>,
    pub clock: Clock,
    /// Client ids are remembered for this long.
    pub idempotency: Span,
    /// Requests in one transaction.
    pub batch_max: usize,
}

/// Who asked.
struct Address {
    shard: usize,
    partition: PartitionId,
    ticket: Ticket,
}

impl StoreThread {
    /// Runs until told to stop, and then until nothing is left to do.
    pub fn run(mut self) {
        let mut requests: Vec<Request> = Vec::new();
        let mut addresses: Vec<Address> = Vec::new();
        let mut replies: Vec<Reply> = Vec::new();
        let mut outbox = Outbox::new(self.port.ports(), ITEMS_PER_BLOCK);
        let mut forget_at = Instant::now() + FORGET_EVERY;
        let mut rest_at = None;
        loop {
            let stopping = self.stop.load(Ordering::Acquire);
            self.gather(&mut requests, &mut addresses, &mut outbox);
            let from_outside = self.outside.try_recv().ok().map(|Knock { request, answer }| {
                requests.push(request);
                answer
            });
            if Instant::now() >= forget_at {
                forget_at = Instant::now() + FORGET_EVERY;
                let before = Wall(self.clock.now().wall.0.saturating_sub(self.idempotency.0));
                requests.push(Request::ForgetClientIds { before });
            }
            if requests.is_empty() {
                if outbox.flush(&mut self.port) > 0 {
                    std::thread::sleep(Duration::from_micros(50));
                } else if stopping {
                    return;
                } else if rest_at.is_some_and(|rest_at| rest_at <= Instant::now()) {
                    rest_at = None;
                    self.engine.rest().unwrap_or_else(|fatal| stop(&fatal));
                } else if self.port.prepare_sleep() {
                    let next = rest_at.map_or(forget_at, |rest_at: Instant| rest_at.min(forget_at));
                    std::thread::park_timeout(next.saturating_duration_since(Instant::now()));
                    self.port.awake();
                }
                continue;
            }
            self.commit(&requests, &mut replies);
            rest_at = requests.iter().any(Request::writes).then(|| Instant::now() + REST_AFTER).or(rest_at);
            requests.clear();
            let mut replies = replies.drain(..);
            // The addresses come first: one more would take a reply with it before it finds that it has no address.
            for Address { shard, partition, ticket } in addresses.drain(..) {
                let reply = replies.next().expect("every request has a reply");
                outbox.push(shard, Parcel::Stored { partition, ticket, reply });
            }
            if let Some(answer) = from_outside {
                // Who asked may have gone.
                let _ = answer.send(replies.next().expect("every request has a reply"));
            }
            // What is left belongs to the housekeeping.
            drop(replies);
            outbox.flush(&mut self.port);
        }
    }

    fn gather(
        &mut self,
        requests: &mut Vec<Request>,
        addresses: &mut Vec<Address>,
        outbox: &mut Outbox<Parcel>,
    ) {
        while requests.len() < self.batch_max {
            let taken = self.port.receive(
                &mut |shard, mut block| {
                    for parcel in block.drain(..) {
                        let Parcel::Ask(ask) = parcel else { continue };
                        addresses.push(Address { shard, partition: ask.partition, ticket: ask.ticket });
                        requests.push(ask.request);
                    }
                    outbox.recycle(block);
                },
                BLOCKS_MAX,
            );
            if taken == 0 {
                return;
            }
        }
    }

    fn commit(&mut self, requests: &[Request], replies: &mut Vec<Reply>) {
        let began = Instant::now();
        self.gauges.queued.store(requests.len() as u64, Ordering::Relaxed);
        replies.clear();
        // Nothing of the batch was promised to anybody.
        self.engine.commit(requests, replies).unwrap_or_else(|fatal| stop(&fatal));
        assert_eq!(replies.len(), requests.len(), "an engine answers every request of a batch");
        self.note_read_only(requests, replies);
        self.gauges.batch(requests.len(), began.elapsed().as_micros() as u64);
        self.gauges.queued.store(0, Ordering::Relaxed);
    }

    fn note_read_only(&self, requests: &[Request], replies: &[Reply]) {
        let Some(position) = requests.iter().rposition(Request::writes) else { return };
        let read_only = u64::from(replies[position] == Reply::ReadOnly);
        if self.gauges.read_only.swap(read_only, Ordering::Relaxed) != read_only {
            match read_only {
                1 => tracing::error!(
                    "the disk is full: sends are refused until there is space; reading goes on"
                ),
                _ => tracing::info!("the disk takes writes again"),
            }
        }
    }
}

/// Ends the process: going on could acknowledge what the disk has lost.
fn stop(fatal: &Fatal) -> ! {
    tracing::error!(error = %chain(fatal), "the store failed; stopping so that nothing is acknowledged that could be lost. Start again to recover");
    std::process::exit(EXIT_STORE_FAILED);
}

/// An error with what caused it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
