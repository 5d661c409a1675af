//! What a port has done, readable from any thread.
//!
//! Every number is written by the port's owner alone, so counting is a plain load and store. Readers may see one
//! number a moment older than another.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One port's numbers. Aligned so that counting never disturbs another core.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Gauges {
    pub(crate) blocks_sent: Gauge,
    pub(crate) items_sent: Gauge,
    pub(crate) blocks_received: Gauge,
    pub(crate) items_received: Gauge,
    pub(crate) wakes_sent: Gauge,
    pub(crate) sends_refused: Gauge,
    pub(crate) rings_made: Gauge,
    pub(crate) items_waiting: Gauge,
}

/// A reading of [`Gauges`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Blocks put into rings since the start.
    pub blocks_sent: u64,
    /// Items in those blocks.
    pub items_sent: u64,
    /// Blocks taken from rings since the start.
    pub blocks_received: u64,
    /// Items in those blocks.
    pub items_received: u64,
    /// Sleepers this port has woken.
    pub wakes_sent: u64,
    /// Blocks that a full ring gave back; one that is refused again counts again.
    pub sends_refused: u64,
    /// Rings this port has made: destinations it has ever sent to.
    pub rings_made: u64,
    /// Items its outbox kept at the last flush because a ring was full.
    pub items_waiting: u64,
}

impl Gauges {
    /// Reads all of them.
    pub fn read(&self) -> Counts {
        Counts {
            blocks_sent: self.blocks_sent.get(),
            items_sent: self.items_sent.get(),
            blocks_received: self.blocks_received.get(),
            items_received: self.items_received.get(),
            wakes_sent: self.wakes_sent.get(),
            sends_refused: self.sends_refused.get(),
            rings_made: self.rings_made.get(),
            items_waiting: self.items_waiting.get(),
        }
    }
}

/// A number with one writer.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicU64);

impl Gauge {
    pub(crate) fn add(&self, more: usize) {
        self.0.store(self.get().wrapping_add(more as u64), Relaxed);
    }

    pub(crate) fn set(&self, value: usize) {
        self.0.store(value as u64, Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
