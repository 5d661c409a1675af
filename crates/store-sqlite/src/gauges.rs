//! Numbers about the engine that other threads may read while it works.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Written by the engine, read by whoever reports. Each number is right by itself; they are not taken at one moment.
#[derive(Debug, Default)]
pub struct Gauges {
    commits: AtomicU64,
    commit_nanos: AtomicU64,
    checkpoints: AtomicU64,
    checkpoint_nanos: AtomicU64,
    log_pages: AtomicU64,
    database_bytes: AtomicU64,
    refused: AtomicU64,
    full: AtomicBool,
}

/// What the [`Gauges`] showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers {
    /// Batches that wrote something and were made durable.
    pub commits: u64,
    /// How long the last of them took, the sync included.
    pub commit: Duration,
    /// How often all of the write-ahead log was copied into the database file.
    pub checkpoints: u64,
    /// How long the last of them held up the store's thread.
    pub checkpoint: Duration,
    /// Pages in the write-ahead log.
    pub log_pages: u64,
    /// The length of the database file, without the log.
    pub database_bytes: u64,
    /// Batches refused because the disk took no more.
    pub refused: u64,
    /// Whether the last batch that wanted to write was refused so.
    pub full: bool,
}

impl Gauges {
    /// What they show now.
    pub fn read(&self) -> Numbers {
        let read = |gauge: &AtomicU64| gauge.load(Ordering::Relaxed);
        Numbers {
            commits: read(&self.commits),
            commit: Duration::from_nanos(read(&self.commit_nanos)),
            checkpoints: read(&self.checkpoints),
            checkpoint: Duration::from_nanos(read(&self.checkpoint_nanos)),
            log_pages: read(&self.log_pages),
            database_bytes: read(&self.database_bytes),
            refused: read(&self.refused),
            full: self.full.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn committed(&self, took: Duration) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.commit_nanos.store(took.as_nanos() as u64, Ordering::Relaxed);
        self.full.store(false, Ordering::Relaxed);
    }

    pub(crate) fn checkpointed(&self, took: Duration, database_bytes: u64) {
        self.checkpoints.fetch_add(1, Ordering::Relaxed);
        self.checkpoint_nanos.store(took.as_nanos() as u64, Ordering::Relaxed);
        self.database_bytes.store(database_bytes, Ordering::Relaxed);
    }

    pub(crate) fn opened(&self, database_bytes: u64) {
        self.database_bytes.store(database_bytes, Ordering::Relaxed);
    }

    pub(crate) fn logged(&self, pages: u64) {
        self.log_pages.store(pages, Ordering::Relaxed);
    }

    pub(crate) fn log_pages(&self) -> u64 {
        self.log_pages.load(Ordering::Relaxed)
    }

    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.full.store(true, Ordering::Relaxed);
    }
}
