//! One port's doorbell: which rings have mail for it, and whether it sleeps.
//!
//! It owns the protocol by which no wake-up is lost and none is sent twice, and knows neither rings nor wakers.
//!
//! ```text
//!          producer                                   consumer
//!  1  ring.push(block)                         1  state = ASLEEP
//!  2  bits |= 1 << from                        2  fence(SeqCst)
//!  3  fence(SeqCst)                            3  any bit? then AWAKE again, and take the mail
//!  4  state ASLEEP? make it AWAKE, and wake    4  otherwise sleep
//! ```
//!
//! One of the two fences is first in the single order of all of them. If it is the producer's, the consumer's step 3
//! sees the bit; if it is the consumer's, the producer's step 4 sees the sleep. Of all who see it, the one whose
//! exchange succeeds sends the wake-up, so each sleep is ended by at most one.
//!
//! The consumer takes bits *before* it looks into the rings. A block that this look misses was put in after it, so
//! its bit is set after the taking, and stays.
//!
//! A producer that finds its ring full may sleep too, so it asks to hear of room, by the same kind of handshake:
//! it sets its bit in `wanted`, fences, and tries once more; the consumer, having taken blocks, fences, looks at
//! `wanted`, and rings the doorbell of each producer it finds there, as if it had sent it mail.

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// Loom tracks each atomic by itself; a model with a few ports needs no more than one word.
const WORDS: usize = if cfg!(loom) { 1 } else { 15 };
const BITS: usize = u64::BITS as usize;

/// The most ports a fabric can have: what fits beside the state word in 128 bytes of doorbell.
pub const PORTS_MAX: usize = WORDS * BITS;

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// State and bits share a line on purpose: a producer that sets a bit already holds the line it then reads.
#[repr(align(128))]
pub(crate) struct Doorbell {
    bits: [AtomicU64; WORDS],
    state: AtomicU32,
    /// Producers that found their ring to this port full. It is on lines of its own: the owner looks at it whenever
    /// it has taken something, and it hardly ever changes.
    wanted: Wanted,
}

#[repr(align(128))]
struct Wanted([AtomicU64; WORDS]);

#[cfg(not(loom))]
const _: () = assert!(size_of::<Doorbell>() == 256);

impl Doorbell {
    pub(crate) fn new() -> Self {
        let words = || std::array::from_fn(|_| AtomicU64::new(0));
        Self { bits: words(), state: AtomicU32::new(AWAKE), wanted: Wanted(words()) }
    }

    /// Producer, step 2: says that the ring of `from` has mail. A [`fence`] and [`Self::end_sleep`] must follow.
    pub(crate) fn ring(&self, from: usize) {
        // Release: whoever takes the bit sees the block.
        self.bits[from / BITS].fetch_or(1 << (from % BITS), Ordering::Release);
    }

    /// Producer, step 4, after a SeqCst fence: true for the one who must now wake the owner.
    pub(crate) fn end_sleep(&self) -> bool {
        self.state.load(Ordering::Relaxed) == ASLEEP
            && self.state.compare_exchange(ASLEEP, AWAKE, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Producer: asks to be rung when there is room in the ring of `from`. A [`fence`] and another try must follow.
    pub(crate) fn want_room(&self, from: usize) {
        self.wanted.0[from / BITS].fetch_or(1 << (from % BITS), Ordering::Relaxed);
    }

    /// Consumer: moves the bits that are set into `pending`, which is as long as there are words in use. True if
    /// there were any.
    pub(crate) fn take(&self, pending: &mut [u64]) -> bool {
        let mut any = 0;
        for (word, pending) in self.bits.iter().zip(pending) {
            let bits = take(word);
            any |= bits;
            *pending |= bits;
        }
        any != 0
    }

    /// Consumer, after it took blocks and a SeqCst fence: the next of the first `words` words of producers that want
    /// to hear of room, and its index.
    pub(crate) fn take_wanted(&self, words: usize) -> impl Iterator<Item = (usize, u64)> {
        self.wanted.0[..words].iter().map(take).enumerate().filter(|(_, bits)| *bits != 0)
    }

    /// Consumer: whether any of the first `words` words has a bit set.
    pub(crate) fn is_rung(&self, words: usize) -> bool {
        self.bits[..words].iter().any(|word| word.load(Ordering::Relaxed) != 0)
    }

    /// Consumer, steps 1 to 3: true if it may sleep; whoever rings from now on sends a wake-up.
    pub(crate) fn begin_sleep(&self, words: usize) -> bool {
        self.state.store(ASLEEP, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let quiet = !self.is_rung(words);
        if !quiet {
            self.awake();
        }
        quiet
    }

    /// Consumer: sleeps no more, whatever ended the sleep.
    pub(crate) fn awake(&self) {
        if self.state.load(Ordering::Relaxed) != AWAKE {
            self.state.store(AWAKE, Ordering::Relaxed);
        }
    }
}

/// Empties a word. Looking first keeps the line shared when nothing has come; a bit overlooked here stays set.
fn take(word: &AtomicU64) -> u64 {
    match word.load(Ordering::Relaxed) {
        0 => 0,
        // Acquire: who has the bit sees the block.
        _ => word.swap(0, Ordering::Acquire),
    }
}
