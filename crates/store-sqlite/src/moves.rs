//! Cursors and read marks that moved in this batch and are not written yet.
//!
//! A device that acknowledges ten messages of a batch one by one needs one row written, not ten. Owns the gathering; whoever reads
//! or replaces such rows writes these first.

use hashbrown::HashMap;
use model::{DeviceId, HashKey, UserId};

/// A row of a conversation: of a device (its cursor) or of a user (their read mark).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Row {
    pub number: i64,
    pub user: UserId,
    pub device: Option<DeviceId>,
}

/// Rows and how far they moved.
pub(crate) struct Moves {
    furthest: HashMap<Row, u64, HashKey>,
    sorted: Vec<(Row, u64)>,
}

impl Moves {
    pub(crate) fn new(key: HashKey) -> Self {
        Moves { furthest: HashMap::with_hasher(key), sorted: Vec::new() }
    }

    pub(crate) fn note(&mut self, row: Row, seq: u64) {
        let furthest = self.furthest.entry(row).or_default();
        *furthest = seq.max(*furthest);
    }

    /// All of them in the order of their tables, so that neighbours are written together.
    pub(crate) fn take(&mut self) -> &[(Row, u64)] {
        self.sorted.clear();
        self.sorted.extend(self.furthest.drain());
        self.sorted.sort_unstable();
        &self.sorted
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.furthest.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.furthest.clear();
    }
}
