//! Collects a turn's mail into one block for each destination.
//!
//! It owns the items until a ring takes them, in order, and the emptied blocks that are used again. A destination
//! that is not touched costs four bytes and no time.

use crate::doorbell::PORTS_MAX;
use crate::port::Port;

/// How much memory of emptied blocks an outbox keeps for later ones. A few hundred outboxes may exist, so it is
/// small beside their other buffers and still many blocks of a busy turn.
const SPARE_BYTES_MAX: usize = 256 * 1024;

/// No line is open for this destination.
const NONE: u32 = u32::MAX;

/// The mail one port's owner has gathered and not yet sent.
pub struct Outbox<T> {
    /// For each destination, its newest line.
    newest: Box<[u32]>,
    /// Lines in the order in which they were begun.
    lines: Vec<Line<T>>,
    items_per_block: usize,
    items: usize,
    /// Whom to wake when all lines are sent; kept for its memory only.
    posted: Vec<u16>,
    spares: Vec<Vec<T>>,
    spare_bytes: usize,
}

/// A block in the making.
struct Line<T> {
    to: u16,
    block: Vec<T>,
}

impl<T: Send> Outbox<T> {
    /// An outbox towards `ports` destinations. A block takes at most `items_per_block` (the rest goes into another),
    /// so that what a receiver takes in one turn is bounded by blocks.
    ///
    /// # Panics
    /// If `items_per_block` is zero or there are more than [`PORTS_MAX`] ports.
    pub fn new(ports: usize, items_per_block: usize) -> Self {
        assert!(items_per_block > 0, "a block must hold something");
        assert!(ports <= PORTS_MAX, "{ports} ports, but a fabric has at most {PORTS_MAX}");
        Self {
            newest: vec![NONE; ports].into(),
            lines: Vec::new(),
            items_per_block,
            items: 0,
            posted: Vec::new(),
            spares: Vec::new(),
            spare_bytes: 0,
        }
    }

    /// Adds an item for port `to`, behind all others for it.
    ///
    /// # Panics
    /// If there is no port `to`.
    #[inline]
    pub fn push(&mut self, to: usize, item: T) {
        self.items += 1;
        match self.lines.get_mut(self.newest[to] as usize) {
            Some(line) if line.block.len() < self.items_per_block => line.block.push(item),
            _ => self.begin_line(to, item),
        }
    }

    #[inline(never)]
    fn begin_line(&mut self, to: usize, item: T) {
        let mut block = self.spares.pop().unwrap_or_default();
        self.spare_bytes -= bytes(&block);
        block.push(item);
        self.newest[to] = self.lines.len() as u32;
        self.lines.push(Line { to: to as u16, block });
    }

    /// Sends what was collected and wakes those of its receivers that sleep. What a full ring refuses stays, in order,
    /// for the next flush. Returns how many items stay: while that is not zero, take in no new work from outside, but
    /// go on receiving mail.
    pub fn flush(&mut self, port: &mut Port<T>) -> usize {
        let mut kept = 0;
        for index in 0..self.lines.len() {
            let to = usize::from(self.lines[index].to);
            // The newest line of a port stands behind its others, unless one was refused in this very flush and has
            // moved to the front: nothing may overtake that one.
            let overtakes = (self.newest[to] as usize) < index;
            if overtakes || !self.post_line(index, port) {
                self.newest[to] = kept as u32;
                self.lines.swap(kept, index);
                kept += 1;
            }
        }
        self.lines.truncate(kept);
        if !self.posted.is_empty() {
            port.wake(self.posted.drain(..).map(usize::from));
        }
        port.set_waiting(self.items);
        self.items
    }

    /// Puts one line's block into its ring; false if the ring was full and the line still has it.
    fn post_line(&mut self, index: usize, port: &mut Port<T>) -> bool {
        let line = &mut self.lines[index];
        let (to, items) = (usize::from(line.to), line.block.len());
        if let Err(block) = port.post(to, std::mem::take(&mut line.block)) {
            line.block = block;
            return false;
        }
        self.items -= items;
        self.posted.push(line.to);
        if self.newest[to] as usize == index {
            self.newest[to] = NONE;
        }
        true
    }

    /// How many items it holds: collected since the last flush, or refused by it.
    pub fn items(&self) -> usize {
        self.items
    }

    /// Gives back the memory of emptied blocks; for a port that has fallen quiet.
    pub fn rest(&mut self) {
        self.spares = Vec::new();
        self.spare_bytes = 0;
    }

    /// Takes an emptied block, most often a received one, to be filled again. Items still in it are dropped.
    pub fn recycle(&mut self, mut block: Vec<T>) {
        block.clear();
        let more = bytes(&block);
        if more > 0 && self.spare_bytes + more <= SPARE_BYTES_MAX {
            self.spare_bytes += more;
            self.spares.push(block);
        }
    }
}

fn bytes<T>(block: &Vec<T>) -> usize {
    block.capacity() * size_of::<T>()
}
