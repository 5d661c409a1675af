//! Output that sockets did not take yet, in chunks that exist only while there is some.

use std::collections::VecDeque;
use std::io::IoSlice;

/// One page: what a slow reader with little to read costs.
const CHUNK_BYTES: usize = 4 * 1024;
/// Empty chunks kept for the next socket that stalls.
const IDLE_CHUNKS_MAX: usize = 64;
/// Chunks given to the kernel at once.
pub(crate) const SLICES_MAX: usize = 64;

#[derive(Debug, Default)]
struct Outbox {
    chunks: VecDeque<Vec<u8>>,
    /// Bytes of the first chunk that have gone out.
    sent: usize,
    bytes: usize,
}

/// The outboxes of all sockets of a reactor, by the index a slot remembers.
#[derive(Debug, Default)]
pub(crate) struct Outboxes {
    outboxes: Vec<Outbox>,
    vacant: Vec<u32>,
    idle_chunks: Vec<Vec<u8>>,
    bytes: usize,
}

impl Outboxes {
    /// Bytes waiting in all of them.
    pub fn total_bytes(&self) -> usize {
        self.bytes
    }

    pub fn open(&mut self) -> u32 {
        self.vacant.pop().unwrap_or_else(|| {
            self.outboxes.push(Outbox::default());
            (self.outboxes.len() - 1) as u32
        })
    }

    /// Drops what waits and frees the index.
    pub fn close(&mut self, index: u32) {
        let outbox = &mut self.outboxes[index as usize];
        self.bytes -= outbox.bytes;
        let mut chunks = std::mem::take(outbox).chunks;
        while let Some(chunk) = chunks.pop_front() {
            keep(&mut self.idle_chunks, chunk);
        }
        self.vacant.push(index);
    }

    pub fn bytes(&self, index: u32) -> usize {
        self.outboxes[index as usize].bytes
    }

    pub fn push(&mut self, index: u32, mut bytes: &[u8]) {
        let outbox = &mut self.outboxes[index as usize];
        outbox.bytes += bytes.len();
        self.bytes += bytes.len();
        while !bytes.is_empty() {
            let room = outbox.chunks.back().map_or(0, |chunk| CHUNK_BYTES - chunk.len());
            if room == 0 {
                let chunk = self.idle_chunks.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK_BYTES));
                outbox.chunks.push_back(chunk);
                continue;
            }
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            if let Some(chunk) = outbox.chunks.back_mut() {
                chunk.extend_from_slice(now);
            }
            bytes = later;
        }
    }

    /// Fills `slices` with what waits longest, and says how many there are.
    pub fn slices<'a>(&'a self, index: u32, slices: &mut [IoSlice<'a>; SLICES_MAX]) -> usize {
        let outbox = &self.outboxes[index as usize];
        let mut count = 0;
        for (place, chunk) in slices.iter_mut().zip(&outbox.chunks) {
            *place = IoSlice::new(if count == 0 { &chunk[outbox.sent..] } else { chunk });
            count += 1;
        }
        count
    }

    /// Forgets the first `count` bytes, which have gone out; returns how many are left.
    pub fn consume(&mut self, index: u32, count: usize) -> usize {
        let outbox = &mut self.outboxes[index as usize];
        outbox.bytes -= count;
        self.bytes -= count;
        outbox.sent += count;
        while let Some(first) = outbox.chunks.front()
            && outbox.sent >= first.len()
        {
            outbox.sent -= first.len();
            if let Some(chunk) = outbox.chunks.pop_front() {
                keep(&mut self.idle_chunks, chunk);
            }
        }
        outbox.bytes
    }
}

fn keep(idle: &mut Vec<Vec<u8>>, mut chunk: Vec<u8>) {
    if idle.len() < IDLE_CHUNKS_MAX {
        chunk.clear();
        idle.push(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [usize; 6] = [1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES, 300_000];

    fn waiting(outboxes: &Outboxes, index: u32) -> Vec<u8> {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let count = outboxes.slices(index, &mut slices);
        slices[..count].iter().flat_map(|slice| slice.iter().copied()).collect()
    }

    #[test]
    fn bytes_come_out_as_they_went_in_whatever_the_sizes() {
        for push in SIZES {
            for consume in SIZES {
                let mut outboxes = Outboxes::default();
                let index = outboxes.open();
                let mut model = VecDeque::new();
                let mut next = 0u32;
                for round in 0..6 {
                    let bytes: Vec<u8> = (0..push)
                        .map(|_| {
                            next += 1;
                            (next ^ (next >> 8)) as u8
                        })
                        .collect();
                    outboxes.push(index, &bytes);
                    model.extend(bytes);
                    let out = waiting(&outboxes, index);
                    assert!(
                        model.iter().take(out.len()).eq(&out),
                        "push {push}, consume {consume}, round {round}"
                    );
                    let count = consume.min(out.len());
                    model.drain(..count);
                    assert_eq!(outboxes.consume(index, count), model.len());
                    assert_eq!((outboxes.bytes(index), outboxes.total_bytes()), (model.len(), model.len()));
                }
            }
        }
    }

    #[test]
    fn a_closed_outbox_is_used_again_empty_and_few_chunks_are_kept() {
        let mut outboxes = Outboxes::default();
        let (first, second) = (outboxes.open(), outboxes.open());
        outboxes.push(first, &[1; 1_000_000]);
        outboxes.push(second, &[2; 10]);
        outboxes.close(first);
        assert_eq!(outboxes.total_bytes(), 10);
        assert!(outboxes.idle_chunks.len() <= IDLE_CHUNKS_MAX);
        let again = outboxes.open();
        assert_eq!((again, waiting(&outboxes, again)), (first, Vec::new()));
        outboxes.push(again, &[3; 2]);
        assert_eq!((waiting(&outboxes, again), waiting(&outboxes, second)), (vec![3; 2], vec![2; 10]));
    }
}
