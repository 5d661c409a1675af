//! A port: the only door one thread has to the fabric.
//!
//! It owns its end of every ring that leads from it or to it, and what it has heard from its doorbell and not yet
//! emptied. It knows nothing of how its thread waits.

use std::fmt;
use std::sync::Arc as Shared;

use crate::doorbell::{Doorbell, PORTS_MAX};
use crate::gauges::Gauges;
use crate::matrix::Matrix;
use crate::sync::{Arc, Ordering, fence};

/// Wakes the owner of one port: a write to an eventfd, an unpark. It is called by other ports' threads, at most once
/// for each time that owner announced its sleep, and may come late, when the owner is already awake again.
pub type Waker = Box<dyn Fn() + Send + Sync>;

/// Makes a fabric with one port for each waker. Every ring has room for `blocks_per_ring` blocks, rounded up to a
/// power of two. Dropping the last port frees all of it and drops the mail nobody took.
///
/// # Panics
/// If there are more than [`PORTS_MAX`] wakers.
pub fn connect<T: Send>(wakers: Vec<Waker>, blocks_per_ring: usize) -> Vec<Port<T>> {
    let count = wakers.len();
    assert!(count <= PORTS_MAX, "{count} ports, but a fabric has at most {PORTS_MAX}");
    let fabric = Arc::new(Fabric {
        matrix: Matrix::new(count, blocks_per_ring),
        doorbells: wakers.iter().map(|_| Doorbell::new()).collect(),
        wakers: wakers.into(),
    });
    let port = |id| Port {
        id,
        fabric: fabric.clone(),
        pending: vec![0; count.div_ceil(64)].into(),
        next: 0,
        made_room: false,
        refused: false,
        retry: false,
        gauges: Shared::default(),
    };
    (0..count).map(port).collect()
}

/// What all ports share.
struct Fabric<T> {
    matrix: Matrix<T>,
    doorbells: Box<[Doorbell]>,
    wakers: Box<[Waker]>,
}

/// One thread's end of the fabric. There is exactly one for each id, it cannot be copied, and sending and receiving
/// need it alone: that is what makes every ring have one producer and one consumer.
pub struct Port<T> {
    id: usize,
    fabric: Arc<Fabric<T>>,
    /// Rings that have rung and that were not yet seen empty; a bit for each.
    pending: Box<[u64]>,
    /// The ring whose turn it is.
    next: usize,
    /// Blocks were taken, and nobody was told yet that there is room.
    made_room: bool,
    /// A full ring gave a block back, and the doorbell has not rung since.
    refused: bool,
    /// The doorbell has rung after a refusal, and the owner has not been told yet that another try may succeed.
    retry: bool,
    gauges: Shared<Gauges>,
}

impl<T: Send> Port<T> {
    /// Its number, from 0.
    pub fn id(&self) -> usize {
        self.id
    }

    /// How many ports the fabric has.
    pub fn ports(&self) -> usize {
        self.fabric.doorbells.len()
    }

    /// Its numbers, to be read by anybody.
    pub fn gauges(&self) -> Shared<Gauges> {
        self.gauges.clone()
    }

    /// Sends a block to port `to` and wakes its owner if it sleeps. An empty block is dropped. Mail from one port to
    /// another arrives in the order in which it was sent.
    ///
    /// # Errors
    /// The block itself, when the ring is full. When there is room again this port's own doorbell rings, its owner is
    /// woken if it sleeps, and [`Self::prepare_sleep`] refuses once, so that a turn follows in which to try again.
    ///
    /// # Panics
    /// If there is no port `to`.
    pub fn send(&mut self, to: usize, block: Vec<T>) -> Result<(), Vec<T>> {
        if block.is_empty() {
            return Ok(());
        }
        self.post(to, block)?;
        self.wake([to]);
        Ok(())
    }

    /// Sends without waking anybody; [`Self::wake`] must follow before the turn ends.
    pub(crate) fn post(&mut self, to: usize, block: Vec<T>) -> Result<(), Vec<T>> {
        let items = block.len();
        if let Err(block) = self.push(to, block) {
            self.fabric.doorbells[to].want_room(self.id);
            fence(Ordering::SeqCst);
            // Either the consumer sees the wish, or this sees the room it made.
            if let Err(block) = self.push(to, block) {
                self.refused = true;
                self.gauges.sends_refused.add(1);
                return Err(block);
            }
        }
        self.fabric.doorbells[to].ring(self.id);
        self.gauges.blocks_sent.add(1);
        self.gauges.items_sent.add(items);
        Ok(())
    }

    fn push(&mut self, to: usize, block: Vec<T>) -> Result<(), Vec<T>> {
        // SAFETY: this port is the only one with its id, and `&mut self` makes its calls follow each other.
        unsafe {
            let (ring, new) = self.fabric.matrix.made(self.id, to);
            if new {
                self.gauges.rings_made.add(1);
            }
            ring.push(block)
        }
    }

    /// Wakes those of `posted` that sleep, at the price of one fence for all of them.
    pub(crate) fn wake(&self, posted: impl IntoIterator<Item = usize>) {
        fence(Ordering::SeqCst);
        for to in posted {
            if self.fabric.doorbells[to].end_sleep() {
                self.gauges.wakes_sent.add(1);
                (self.fabric.wakers[to])();
            }
        }
    }

    /// Notes how many items its owner's outbox could not send.
    pub(crate) fn set_waiting(&self, items: usize) {
        self.gauges.items_waiting.set(items);
    }

    /// Takes at most `blocks_max` blocks, one from each ring that has mail, round after round, and hands each to
    /// `each` with the port it came from. Returns how many there were. What is left counts as mail: the next call
    /// goes on with the ring whose turn it is, and [`Self::prepare_sleep`] refuses until it is taken.
    pub fn receive(&mut self, each: &mut impl FnMut(usize, Vec<T>), blocks_max: usize) -> usize {
        let rung = self.fabric.doorbells[self.id].take(&mut self.pending);
        // A bit may stand for mail, for room, or for both.
        self.retry |= rung && std::mem::take(&mut self.refused);
        let mut taken = 0;
        while taken < blocks_max {
            let Some(from) = self.next_pending() else { break };
            // SAFETY: this port is the only one with its id, and `&mut self` makes its calls follow each other.
            let popped = self.fabric.matrix.get(from, self.id).and_then(|ring| unsafe { ring.pop() });
            // Seen empty after its bit was taken: what comes later rings again.
            if popped.as_ref().is_none_or(|(_, left)| *left == 0) {
                self.pending[from / 64] &= !(1 << (from % 64));
            }
            let Some((block, _)) = popped else { continue };
            self.next = from + 1;
            self.made_room = true;
            taken += 1;
            self.gauges.blocks_received.add(1);
            self.gauges.items_received.add(block.len());
            each(from, block);
        }
        if std::mem::take(&mut self.made_room) {
            self.tell_of_room();
        }
        taken
    }

    /// Rings those who found their ring to this port full.
    fn tell_of_room(&self) {
        fence(Ordering::SeqCst);
        for (word, mut bits) in self.fabric.doorbells[self.id].take_wanted(self.pending.len()) {
            while bits != 0 {
                let from = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                self.fabric.doorbells[from].ring(self.id);
                self.wake([from]);
            }
        }
    }

    /// The first pending ring at or after `next`, going round.
    fn next_pending(&self) -> Option<usize> {
        let words = self.pending.len();
        let (start, shift) = (self.next / 64, self.next % 64);
        let ahead = self.pending.get(start).map_or(0, |word| word & (!0 << shift));
        if ahead != 0 {
            return Some(start * 64 + ahead.trailing_zeros() as usize);
        }
        // The word of `next` comes again at the end, for the bits before `next`.
        (start + 1..words).chain(0..words.min(start + 1)).find_map(|index| {
            let word = self.pending[index];
            (word != 0).then(|| index * 64 + word.trailing_zeros() as usize)
        })
    }

    /// Whether there may be something to receive, or room where there was none.
    pub fn has_mail(&self) -> bool {
        self.is_behind() || self.fabric.doorbells[self.id].is_rung(self.pending.len())
    }

    /// Whether what the doorbell said before was not all acted upon.
    fn is_behind(&self) -> bool {
        self.retry || self.pending.iter().any(|word| *word != 0)
    }

    /// Announces that the owner is about to sleep. True means that it may: whoever sends from now on, or makes room
    /// where this port found none, wakes it. False means that there may be mail or room, that nothing was announced,
    /// and that another turn should receive and send what waits.
    #[must_use = "sleeping in spite of mail would leave it lying"]
    pub fn prepare_sleep(&mut self) -> bool {
        let behind = self.is_behind();
        self.retry = false;
        !behind && self.fabric.doorbells[self.id].begin_sleep(self.pending.len())
    }

    /// Says that the owner is awake again, whatever woke it. From here on nobody sends it a wake-up.
    pub fn awake(&mut self) {
        self.fabric.doorbells[self.id].awake();
    }
}

impl<T> fmt::Debug for Port<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port")
            .field("id", &self.id)
            .field("counts", &self.gauges.read())
            .finish_non_exhaustive()
    }
}
