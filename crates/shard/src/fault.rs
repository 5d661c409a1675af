//! A mistake of ours hurts as little as it can: a panic over the bytes of one connection closes that connection, a panic in the rules of
//! one partition makes that partition begin anew. The process lives.
//!
//! Whatever a panic has left half done is dropped, never used again: the connection's record, or everything the partition has in memory,
//! which can be had again from the store and from clients that come back.

use std::panic::{AssertUnwindSafe, catch_unwind};

use model::{ConnectionId, PartitionId, partition_of_user};
use protocol::CloseCode;

use crate::connection::Phase;
use crate::counters::Metric;
use crate::shard::{Core, Shard};

/// What `act` returns, unless it panics.
pub fn survived<T>(act: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(act)).ok()
}

impl Shard {
    /// Takes bytes of a connection apart. If that panics, the connection is closed.
    pub(crate) fn received_or_broken(&mut self, slot: u32, bytes: &mut [u8]) {
        let counted = self.core.table.opening(slot).filter(|opening| opening.counted);
        let counted = counted.map(|opening| opening.address);
        if survived(|| self.received(slot, bytes)).is_some() {
            return;
        }
        // What was taken out of the record in order to be worked on is lost.
        let phase = self.core.table.get(slot).map(|connection| connection.phase);
        if let (Some(address), Some(Phase::Head | Phase::Upgraded)) = (counted, phase)
            && self.core.table.opening(slot).is_none()
        {
            self.core.unauthenticated.leave(address);
        }
        self.core.broken(slot);
    }
}

impl Core {
    /// Does something for a connection. If that panics, the connection is closed.
    pub(crate) fn or_broken(&mut self, connection: ConnectionId, act: impl FnOnce(&mut Core)) {
        if survived(|| act(self)).is_none()
            && let Some(slot) = self.slot(connection)
        {
            self.broken(slot);
        }
    }

    /// Closes a connection that one of our mistakes has hit.
    fn broken(&mut self, slot: u32) {
        self.counters.count(Metric::Faults);
        if self.table.get(slot).is_some() {
            self.close(slot, CloseCode::Internal, "a fault in the server; connect again");
        }
    }

    /// A partition has lost its sessions: every connection of a user of it is closed.
    pub(crate) fn evict(&mut self, partition: PartitionId) {
        let key = self.settings.hash_key;
        for slot in 0..self.table.slots() as u32 {
            let Some(connection) = self.table.get(slot) else { continue };
            if connection.phase == Phase::Open
                && partition_of_user(&key, connection.device().user) == partition
            {
                self.close(slot, CloseCode::Internal, "a fault in the server; connect again");
            }
        }
    }
}
