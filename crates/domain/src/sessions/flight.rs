//! What is on its way to one device: for each conversation in which something is, a lane that knows how far was pushed.
//!
//! ```text
//!              list of what is pending           everything pushed and acknowledged
//!  Awaiting ───────────────────────────▶ Live ──────────────────────────────────────▶ (back to the pool)
//! ```
//! A device without a lane for a conversation has acknowledged all of it, so the next entry that is delivered follows directly
//! on what it has.

use model::limits::{PAYLOAD_BYTES_MAX, WINDOW_BYTES_MAX, WINDOW_MESSAGES_MAX};
use model::{Body, ConversationId, Entry, Seq};
use store::PendingRecord;

/// What a session names when it has no flight.
pub const NONE: u32 = u32::MAX;

/// What an entry counts beside its payload, in bytes.
const ENTRY_BYTES: u32 = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The store has been asked what is pending; nothing may be pushed before it has answered.
    Awaiting,
    /// What is pending is known.
    Live,
}

/// One conversation on its way to the device: `acked ≤ pushed ≤ head`.
struct Lane {
    conversation: ConversationId,
    acked: Seq,
    pushed: Seq,
    head: Seq,
    /// What was the head when the session began, while that has not been reached.
    pending_until: Seq,
    /// Estimated size of what is pushed and not acknowledged, in bytes.
    bytes: u32,
}

pub struct Flight {
    phase: Phase,
    /// A page has been asked for: of this log after this place, and so many entries at most, for which room is kept.
    fetching: Option<(ConversationId, Seq, u32)>,
    /// `caught_up` has not been said yet.
    catching_up: bool,
    lanes: Vec<Lane>,
    /// What was heard while the list of what is pending is awaited, and may be news to that list.
    early: Vec<(ConversationId, Early)>,
}

/// News that may be later than the list of what is pending.
#[derive(Clone, Copy, Default)]
struct Early {
    /// The device has acknowledged so much.
    acknowledged: Seq,
    /// The entry by which the user went. Whoever comes back begins after it.
    removed: Seq,
}

/// The page that a device needs next.
pub struct Page {
    pub conversation: ConversationId,
    pub after: Seq,
    pub up_to: Seq,
    pub limit: u32,
    pub bytes_max: usize,
}

impl Flight {
    /// An entry was committed. Returns whether it is to be pushed now; otherwise it waits for its turn in a page.
    pub fn deliver(&mut self, conversation: ConversationId, entry: &Entry, own: bool) -> bool {
        let room = self.room();
        let position = match self.lanes.iter().position(|lane| lane.conversation == conversation) {
            Some(position) => position,
            None if own => return false,
            None => {
                let before = entry.seq.previous();
                self.lanes.push(Lane::new(conversation, before, before));
                self.lanes.len() - 1
            }
        };
        let phase = self.phase;
        let lane = &mut self.lanes[position];
        if entry.seq <= lane.head {
            return false;
        }
        let follows = lane.pushed == lane.head && entry.seq == lane.head.next();
        lane.head = entry.seq;
        // While a page is on its way, some lane is behind; only that one must not be overtaken, and it is not at its head.
        if phase != Phase::Live || !follows {
            return false;
        }
        if own {
            lane.pushed = entry.seq;
            return false;
        }
        if !room {
            return false;
        }
        lane.push(entry);
        true
    }

    pub fn handle_pending(&mut self, records: &[PendingRecord]) {
        self.phase = Phase::Live;
        self.catching_up = true;
        for record in records {
            let early = self.early.iter().find(|(conversation, _)| *conversation == record.conversation);
            let early = early.map_or(Early::default(), |(_, early)| *early);
            if record.cursor < early.removed {
                continue;
            }
            let cursor = record.cursor.max(early.acknowledged);
            let lane = match self.lanes.iter_mut().find(|lane| lane.conversation == record.conversation) {
                Some(lane) => {
                    lane.acked = cursor;
                    lane.pushed = cursor;
                    lane.head = lane.head.max(record.head);
                    lane
                }
                None if cursor < record.head => {
                    self.lanes.push(Lane::new(record.conversation, cursor, record.head));
                    self.lanes.last_mut().expect("it was just pushed")
                }
                None => continue,
            };
            lane.pending_until = record.head;
        }
        self.early.clear();
        self.lanes.retain(|lane| lane.acked < lane.head);
    }

    pub fn handle_page(
        &mut self,
        page: (ConversationId, Seq),
        entries: Vec<Entry>,
        mut push: impl FnMut(Entry),
    ) {
        // An earlier flight of the same session may have asked for it.
        let (conversation, after) = page;
        if self.fetching.is_none_or(|(log, place, _)| (log, place) != page) {
            return;
        }
        self.fetching = None;
        let Some(position) = self.lanes.iter().position(|lane| lane.conversation == conversation) else {
            return;
        };
        let lane = &mut self.lanes[position];
        if entries.is_empty() && lane.pushed == after {
            // Nothing is kept of what was asked for: the device is no member any more, and that mail is on its way.
            lane.pushed = lane.head;
        }
        for entry in entries {
            // Some of it may have been acknowledged meanwhile.
            if entry.seq > lane.pushed {
                lane.push(&entry);
                push(entry);
            }
        }
        // The others get their turn.
        self.lanes.rotate_left(position + 1);
    }

    pub fn acknowledged(&mut self, conversation: ConversationId, cursor: Seq) {
        if self.phase == Phase::Awaiting {
            let early = self.early(conversation);
            early.acknowledged = early.acknowledged.max(cursor);
        }
        let Some(position) = self.lanes.iter().position(|lane| lane.conversation == conversation) else {
            return;
        };
        let lane = &mut self.lanes[position];
        if cursor > lane.acked {
            let outstanding = lane.pushed.0 - lane.acked.0;
            let acknowledged = (cursor.0 - lane.acked.0).min(outstanding);
            lane.bytes -= (u64::from(lane.bytes) * acknowledged).checked_div(outstanding).unwrap_or(0) as u32;
            lane.acked = cursor;
            lane.pushed = lane.pushed.max(cursor);
            lane.head = lane.head.max(cursor);
        }
        // While the list of what is pending is awaited, a lane only collects; the list decides.
        if self.phase == Phase::Live && lane.acked == lane.head {
            self.lanes.swap_remove(position);
        }
    }

    /// The user went by the entry at `seq`. A lane that begins there or later is of a membership that came after it.
    pub fn forget(&mut self, conversation: ConversationId, seq: Seq) {
        self.lanes.retain(|lane| lane.conversation != conversation || lane.acked >= seq);
        if self.phase == Phase::Awaiting {
            let early = self.early(conversation);
            early.removed = early.removed.max(seq);
        }
    }

    fn early(&mut self, conversation: ConversationId) -> &mut Early {
        let position = self.early.iter().position(|(other, _)| *other == conversation).unwrap_or_else(|| {
            self.early.push((conversation, Early::default()));
            self.early.len() - 1
        });
        &mut self.early[position].1
    }

    /// Whether the window takes one more message.
    fn room(&self) -> bool {
        let (messages, bytes) = self.outstanding();
        let kept = self.fetching.map_or(0, |(_, _, limit)| limit as usize);
        messages + kept < WINDOW_MESSAGES_MAX
            && (bytes + PAYLOAD_BYTES_MAX <= WINDOW_BYTES_MAX || messages == 0)
    }

    fn outstanding(&self) -> (usize, usize) {
        self.lanes.iter().fold((0, 0), |(messages, bytes), lane| {
            (messages + (lane.pushed.0 - lane.acked.0) as usize, bytes + lane.bytes as usize)
        })
    }

    /// What to ask the store for, if anything; the caller then asks.
    pub fn next_page(&mut self) -> Option<Page> {
        if self.fetching.is_some() || self.phase != Phase::Live {
            return None;
        }
        let lane = self.lanes.iter().find(|lane| lane.pushed < lane.head)?;
        if !self.room() {
            return None;
        }
        let (messages, bytes) = self.outstanding();
        let page = Page {
            conversation: lane.conversation,
            after: lane.pushed,
            up_to: lane.head,
            limit: ((WINDOW_MESSAGES_MAX - messages) as u64).min(lane.head.0 - lane.pushed.0) as u32,
            bytes_max: WINDOW_BYTES_MAX.saturating_sub(bytes),
        };
        self.fetching = Some((page.conversation, page.after, page.limit));
        Some(page)
    }

    /// Whether everything that was pending at the beginning has been pushed; true once.
    pub fn take_caught_up(&mut self) -> bool {
        let reached = self.phase == Phase::Live
            && self.catching_up
            && self.lanes.iter().all(|lane| lane.pushed >= lane.pending_until);
        if reached {
            self.catching_up = false;
        }
        reached
    }

    /// Whether nothing is on its way any more.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Live && self.lanes.is_empty() && !self.catching_up
    }
}

impl Lane {
    fn new(conversation: ConversationId, at: Seq, head: Seq) -> Self {
        Lane { conversation, acked: at, pushed: at, head, pending_until: Seq::ZERO, bytes: 0 }
    }

    fn push(&mut self, entry: &Entry) {
        self.pushed = entry.seq;
        self.head = self.head.max(entry.seq);
        self.bytes += ENTRY_BYTES;
        if let Body::Message { payload, .. } = &entry.body {
            self.bytes += payload.len() as u32;
        }
    }
}

/// The pool of flights; those that are over keep their memory for the next.
pub struct Flights {
    all: Vec<Flight>,
    free: Vec<u32>,
}

impl Flights {
    pub fn new() -> Self {
        Flights { all: Vec::new(), free: Vec::new() }
    }

    pub fn live(&self) -> usize {
        self.all.len() - self.free.len()
    }

    pub fn take(&mut self, phase: Phase) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.all.push(Flight {
                phase,
                fetching: None,
                catching_up: false,
                lanes: Vec::new(),
                early: Vec::new(),
            });
            (self.all.len() - 1) as u32
        });
        let flight = &mut self.all[index as usize];
        flight.phase = phase;
        flight.fetching = None;
        flight.catching_up = phase == Phase::Awaiting;
        index
    }

    pub fn at(&mut self, index: u32) -> &mut Flight {
        &mut self.all[index as usize]
    }

    pub fn release(&mut self, index: u32) {
        if index != NONE {
            let flight = &mut self.all[index as usize];
            flight.lanes.clear();
            flight.lanes.shrink_to(4);
            flight.early = Vec::new();
            self.free.push(index);
        }
    }
}
