//! Numbers that threads publish and the metrics page reads: written by one thread each, relaxed.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use shard::{Counters, Metric};

/// One shard's counters as last published.
#[derive(Debug)]
#[repr(align(128))]
pub struct ShardGauges {
    values: [AtomicU64; Metric::ALL.len()],
    turns: AtomicU64,
    rests: AtomicU64,
}

impl Default for ShardGauges {
    fn default() -> Self {
        ShardGauges {
            values: [const { AtomicU64::new(0) }; Metric::ALL.len()],
            turns: AtomicU64::new(0),
            rests: AtomicU64::new(0),
        }
    }
}

impl ShardGauges {
    pub(crate) fn publish(&self, counters: &Counters, turns: u64) {
        for metric in Metric::ALL {
            self.values[*metric as usize].store(counters.get(*metric), Relaxed);
        }
        self.turns.store(turns, Relaxed);
    }

    pub(crate) fn count_rest(&self) {
        self.rests.fetch_add(1, Relaxed);
    }

    /// How often the shard fell quiet after a burst and gave memory back to the allocator.
    pub fn rests(&self) -> u64 {
        self.rests.load(Relaxed)
    }

    /// One counter.
    pub fn get(&self, metric: Metric) -> u64 {
        self.values[metric as usize].load(Relaxed)
    }

    /// Turns of the shard's loop.
    pub fn turns(&self) -> u64 {
        self.turns.load(Relaxed)
    }
}

/// Upper bounds of the commit latency histogram, in microseconds.
pub const COMMIT_MICROS_BOUNDS: [u64; 10] =
    [250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 2_500_000];
/// Upper bounds of the batch size histogram, in requests.
pub const BATCH_SIZE_BOUNDS: [u64; 10] = [1, 4, 16, 64, 256, 512, 1_024, 2_048, 4_096, 16_384];

/// A histogram with fixed bounds; the last bucket has none.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; 11],
    sum: AtomicU64,
}

impl Histogram {
    fn record(&self, bounds: &[u64; 10], value: u64) {
        let bucket = bounds.iter().position(|bound| value <= *bound).unwrap_or(bounds.len());
        self.buckets[bucket].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
    }

    /// How many values lie in each bucket, not cumulative, and their sum.
    pub fn read(&self) -> ([u64; 11], u64) {
        (std::array::from_fn(|index| self.buckets[index].load(Relaxed)), self.sum.load(Relaxed))
    }
}

/// The store thread's numbers.
#[derive(Debug, Default)]
pub struct StoreGauges {
    /// Requests carried out, reads included.
    pub requests: AtomicU64,
    /// Batches committed, or read.
    pub batches: AtomicU64,
    /// Requests of the batch that is being carried out; those that wait for the next one are in the rings.
    pub queued: AtomicU64,
    /// 1 while the disk takes no more.
    pub read_only: AtomicU64,
    /// Time of a batch from its first request to its answers, in microseconds.
    pub commit_micros: Histogram,
    /// Requests of a batch.
    pub batch_size: Histogram,
}

impl StoreGauges {
    pub(crate) fn batch(&self, requests: usize, micros: u64) {
        self.requests.fetch_add(requests as u64, Relaxed);
        self.batches.fetch_add(1, Relaxed);
        self.commit_micros.record(&COMMIT_MICROS_BOUNDS, micros);
        self.batch_size.record(&BATCH_SIZE_BOUNDS, requests as u64);
    }
}
