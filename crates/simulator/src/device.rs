//! A log device under the store: what was written, what was synced, and what is left of it when the power goes.
//!
//! A batch is written as frames, one a request, and synced; only then is it durable. When the process dies, what was synced is there; of
//! what was not, any part may be. From time to time the log is folded into an image. Recovery takes the image and then every whole batch
//! of the log up to the first frame that is missing. Deliberately knows nothing of who asked and who is answered.

use store::{Engine, MemoryStore, Reply, Request};

use crate::random::Random;

/// Names a batch: they are numbered from 1 in the order of writing.
type BatchNumber = u64;

/// Frames of the log after which it is folded into the image.
const LOG_FRAMES_MAX: usize = 400;

/// One request in the log.
#[derive(Debug, Clone)]
struct Frame {
    batch: BatchNumber,
    /// The batch ends with it.
    last: bool,
    request: Request,
}

/// How recovery goes about it. Anything but `Soundly` is a mistake made on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Whole batches after the image, up to the first missing frame.
    Soundly,
    /// Also the batches that the image has already.
    FromTheStart,
    /// Also the beginning of a batch whose end is missing.
    TornToo,
}

/// What recovery found.
#[derive(Debug)]
pub struct Recovered {
    /// What is durable.
    pub store: MemoryStore,
    /// The batch that was written and not known to be synced, if all of it survived, and what it was answered by the store.
    pub survivor: Option<(Vec<Request>, Vec<Reply>)>,
    /// The beginning of a batch survived, and counts for nothing.
    pub torn: bool,
}

/// The device.
#[derive(Debug, Default)]
pub struct Device {
    /// What was folded.
    image: MemoryStore,
    /// The last batch that the image has.
    image_has: BatchNumber,
    /// Synced, and perhaps folded already. A frame that did not survive is missing.
    log: Vec<Option<Frame>>,
    /// Written since the last sync.
    unsynced: Vec<Option<Frame>>,
    /// The last batch that was written.
    written: BatchNumber,
    /// The last batch that was synced.
    synced: BatchNumber,
}

impl Device {
    /// Writes a batch. It is not durable yet.
    pub fn write(&mut self, batch: &[Request]) {
        self.written += 1;
        let number = self.written;
        let frame = |(index, request): (usize, &Request)| {
            Some(Frame { batch: number, last: index + 1 == batch.len(), request: request.clone() })
        };
        self.unsynced.extend(batch.iter().enumerate().map(frame));
    }

    /// What was written is durable from now on.
    pub fn sync(&mut self) {
        self.log.append(&mut self.unsynced);
        self.synced = self.written;
        if self.log.len() > LOG_FRAMES_MAX {
            self.fold();
            self.truncate();
        }
    }

    /// The process dies, or a sync fails. Of what was not synced any part may have reached the disk, in any order, and the rest will not.
    pub fn lose(&mut self, random: &mut Random) {
        let len = self.unsynced.len();
        let (written, lost) = match random.below(4) {
            0 => (len, 0),
            // In the order of writing, up to somewhere.
            1 | 2 => (random.below(len + 1), 0),
            // In any other.
            _ => (len, 3),
        };
        for (index, frame) in self.unsynced.iter_mut().enumerate() {
            if index >= written || lost > 0 && random.below(lost) == 0 {
                *frame = None;
            }
        }
        self.log.append(&mut self.unsynced);
    }

    /// Reads what is durable. Changes nothing.
    pub fn recover(&self, reading: Reading) -> Recovered {
        let mut store = self.image.clone();
        let mut survivor = None;
        let mut batch: Vec<Request> = Vec::new();
        let first = if reading == Reading::FromTheStart { 0 } else { self.image_has };
        let whole = self.log.iter().map_while(Option::as_ref);
        for frame in whole.filter(|frame| frame.batch > first) {
            batch.push(frame.request.clone());
            if frame.last {
                let replies = carry_out(&mut store, &batch);
                let requests = std::mem::take(&mut batch);
                if frame.batch > self.synced {
                    survivor = Some((requests, replies));
                }
            }
        }
        if reading == Reading::TornToo && !batch.is_empty() {
            carry_out(&mut store, &batch);
        }
        Recovered { store, survivor, torn: !batch.is_empty() }
    }

    /// After recovery: what was found is the image from now on. A crash after this finds it there, and the log as well.
    pub fn adopt(&mut self, recovered: &MemoryStore) {
        self.image = recovered.clone();
        self.image_has = self.written;
    }

    /// The log starts anew; everything in it is in the image.
    pub fn truncate(&mut self) {
        self.log.clear();
        self.synced = self.written;
    }

    /// Copies the synced batches into the image.
    fn fold(&mut self) {
        let mut batch: Vec<Request> = Vec::new();
        for frame in self.log.iter().flatten().filter(|frame| frame.batch > self.image_has) {
            batch.push(frame.request.clone());
            if frame.last {
                carry_out(&mut self.image, &batch);
                batch.clear();
            }
        }
        self.image_has = self.synced;
    }
}

/// Executes a batch.
pub fn carry_out(store: &mut MemoryStore, batch: &[Request]) -> Vec<Reply> {
    let mut replies = Vec::new();
    store.commit(batch, &mut replies).expect("memory does not fail");
    replies
}
