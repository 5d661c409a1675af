//! All rings of a fabric: one pointer for each ordered pair of ports, null until its producer first uses it.
//!
//! It owns the rings and frees them, with whatever is in them, when the last port is gone.

use std::ptr;

use crate::ring::Ring;
use crate::sync::{AtomicPtr, Ordering};

pub(crate) struct Matrix<T> {
    /// `to * ports + from`: a consumer that follows its doorbell walks along one row.
    rings: Box<[AtomicPtr<Ring<T>>]>,
    ports: usize,
    blocks_per_ring: usize,
}

impl<T> Matrix<T> {
    pub(crate) fn new(ports: usize, blocks_per_ring: usize) -> Self {
        let rings = (0..ports * ports).map(|_| AtomicPtr::new(ptr::null_mut())).collect();
        Self { rings, ports, blocks_per_ring: blocks_per_ring.max(1).next_power_of_two() }
    }

    /// The ring from `from` to `to`, and whether this call made it.
    ///
    /// # Safety
    /// Only the owner of port `from` may call this.
    pub(crate) unsafe fn made(&self, from: usize, to: usize) -> (&Ring<T>, bool) {
        let cell = self.cell(from, to);
        // Relaxed: the only thread that ever writes this pointer is the one that reads it here.
        let mut ring = cell.load(Ordering::Relaxed);
        let new = ring.is_null();
        if new {
            ring = Box::into_raw(Box::new(Ring::new(self.blocks_per_ring)));
            cell.store(ring, Ordering::Release);
        }
        // SAFETY: it came from a box that lives until the matrix drops.
        (unsafe { &*ring }, new)
    }

    /// The ring from `from` to `to`, if its producer has made it.
    pub(crate) fn get(&self, from: usize, to: usize) -> Option<&Ring<T>> {
        // Acquire: a bit that stood for room may lead here before the bit of the first block is set.
        let ring = self.cell(from, to).load(Ordering::Acquire);
        // SAFETY: it is null, or came from a box that lives until the matrix drops.
        unsafe { ring.as_ref() }
    }

    fn cell(&self, from: usize, to: usize) -> &AtomicPtr<Ring<T>> {
        assert!(from < self.ports && to < self.ports, "no such port: from {from} to {to} of {}", self.ports);
        &self.rings[to * self.ports + from]
    }
}

impl<T> Drop for Matrix<T> {
    fn drop(&mut self) {
        for cell in &self.rings {
            // Relaxed: whoever drops the last port has seen all that the others did.
            let ring = cell.load(Ordering::Relaxed);
            if !ring.is_null() {
                // SAFETY: it came from a box, and nobody is left who could reach it.
                drop(unsafe { Box::from_raw(ring) });
            }
        }
    }
}
