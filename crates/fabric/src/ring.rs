//! A bounded ring of blocks with one producer and one consumer.
//!
//! It owns the slots and the two positions, and knows nothing of ports, doorbells or sleep. It is Lamport's ring:
//! positions only grow (modulo the word), each is written by one side only, a slot belongs to the producer while
//! `tail - head < capacity` and to the consumer while `head < tail`. The producer remembers the last `head` it saw
//! and reads the consumer's cache line only when the ring looks full.

use crate::sync::{AtomicUsize, Line, Ordering, UnsafeCell};

/// See the module.
pub(crate) struct Ring<T> {
    producer: Line<ProducerSide<T>>,
    /// How many blocks have been taken; written by the consumer.
    head: Line<AtomicUsize>,
}

/// What the producer writes, and the slots' address, which both sides read together with `tail`.
struct ProducerSide<T> {
    /// How many blocks have been put in; written by the producer.
    tail: AtomicUsize,
    /// The last `head` the producer saw; touched by the producer only.
    head_seen: UnsafeCell<usize>,
    /// A power of two of slots. An empty slot holds a `Vec` without memory, so dropping the slots drops what is left.
    slots: Box<[UnsafeCell<Vec<T>>]>,
}

impl<T> Ring<T> {
    /// A ring with room for `blocks`, which is a power of two.
    pub(crate) fn new(blocks: usize) -> Self {
        debug_assert!(blocks.is_power_of_two());
        Self {
            producer: Line(ProducerSide {
                tail: AtomicUsize::new(0),
                head_seen: UnsafeCell::new(0),
                slots: (0..blocks).map(|_| UnsafeCell::new(Vec::new())).collect(),
            }),
            head: Line(AtomicUsize::new(0)),
        }
    }

    /// Puts a block in, or gives it back when the ring is full.
    ///
    /// # Safety
    /// No two calls of `push` on one ring may overlap: one thread produces.
    pub(crate) unsafe fn push(&self, block: Vec<T>) -> Result<(), Vec<T>> {
        let ProducerSide { tail: tail_now, head_seen, slots } = &*self.producer;
        let tail = tail_now.load(Ordering::Relaxed);
        // SAFETY: only the producer touches `head_seen`, and there is one producer.
        let full = head_seen.with_mut(|seen| unsafe {
            if tail.wrapping_sub(*seen) == slots.len() {
                // Acquire: the consumer has emptied the slot before it moved on, and only then may it be filled again.
                *seen = self.head.load(Ordering::Acquire);
            }
            tail.wrapping_sub(*seen) == slots.len()
        });
        if full {
            return Err(block);
        }
        let slot = &slots[tail & (slots.len() - 1)];
        // SAFETY: `tail - head < capacity`, so the consumer does not look at this slot until `tail` moves past it.
        slot.with_mut(|slot| unsafe { *slot = block });
        tail_now.store(tail.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    /// Takes the oldest block, and says how many more were there at that moment.
    ///
    /// # Safety
    /// No two calls of `pop` on one ring may overlap: one thread consumes.
    pub(crate) unsafe fn pop(&self) -> Option<(Vec<T>, usize)> {
        let ProducerSide { tail, slots, .. } = &*self.producer;
        let head = self.head.load(Ordering::Relaxed);
        let filled = tail.load(Ordering::Acquire).wrapping_sub(head);
        if filled == 0 {
            return None;
        }
        let slot = &slots[head & (slots.len() - 1)];
        // SAFETY: `head < tail`, so the producer does not look at this slot until `head` moves past it.
        let block = slot.with_mut(|slot| unsafe { std::mem::take(&mut *slot) });
        self.head.store(head.wrapping_add(1), Ordering::Release);
        Some((block, filled - 1))
    }
}
