//! What is on its way to one device: for each conversation in which something is, a lane that knows how far was pushed.
//!
//! ```text
//!              list of what is pending           everything pushed and acknowledged
//!  Awaiting ───────────────────────────▶ Live ──────────────────────────────────────▶ (back to the pool)
//! ```
//! A device without a lane for a conversation has acknowledged all of it, so the next entry that is delivered follows directly
//! on what it has.
//!
//! Somebody who comes back after months may have thousands of lanes, and each of what is pushed and acknowledged touches one. So lanes are
//! found by their conversation, and what has to be known of all of them together is kept in sums.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Place;
use std::ops::Bound::{Excluded, Included, Unbounded};

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
#[derive(Clone, Copy)]
struct Lane {
    acked: Seq,
    pushed: Seq,
    /// The last place that was really pushed; what follows up to `pushed` the device sent itself.
    told: Seq,
    head: Seq,
    /// What was the head when the session began, while that has not been reached.
    pending_until: Seq,
    /// Estimated size of what is pushed and not acknowledged, in bytes.
    bytes: u32,
}

/// Lanes by their conversation, and sums over all of them.
#[derive(Default)]
struct Lanes {
    all: BTreeMap<ConversationId, Lane>,
    sums: Sums,
}

/// What all lanes amount to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Sums {
    /// Messages pushed and not acknowledged.
    messages: usize,
    /// Their estimated size, in bytes.
    bytes: usize,
    /// Lanes in which something that was pending at the beginning has not been pushed.
    pending: usize,
    /// Lanes in which something has not been pushed.
    behind: usize,
}

pub struct Flight {
    phase: Phase,
    /// A page has been asked for: of this log after this place, and so many entries at most, for which room is kept.
    fetching: Option<(ConversationId, Seq, u32)>,
    /// The conversation of the last page: those behind it have the next turn.
    turn: ConversationId,
    /// `caught_up` has not been said yet.
    catching_up: bool,
    lanes: Lanes,
    /// What was heard while the list of what is pending is awaited, and may be news to that list.
    early: BTreeMap<ConversationId, Early>,
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
        let (room, live) = (self.room(), self.phase == Phase::Live);
        if own && !self.lanes.all.contains_key(&conversation) {
            return false;
        }
        self.lanes.change_or_make(conversation, Lane::new(entry.seq.previous()), |lane| {
            if entry.seq <= lane.head {
                return false;
            }
            let follows = lane.pushed == lane.head && entry.seq == lane.head.next();
            lane.head = entry.seq;
            // While a page is on its way, some lane is behind; only that one must not be overtaken, and it is not at its head.
            if !live || !follows {
                return false;
            }
            if own {
                lane.pushed = entry.seq;
                return false;
            }
            if room {
                lane.push(entry);
            }
            room
        })
    }

    /// What is pending is known: of a device that was known before all that is, and then what a lane is not made for it has. A device
    /// that was just made known has a lane in every conversation until their owners know it too: what they deliver before that may
    /// have been committed before the device began, and is not for it.
    pub fn handle_pending(&mut self, records: &[PendingRecord], just_known: bool) {
        self.phase = Phase::Live;
        self.catching_up = true;
        for record in records {
            let early = self.early.get(&record.conversation).copied().unwrap_or_default();
            if record.cursor < early.removed {
                continue;
            }
            let cursor = record.cursor.max(early.acknowledged);
            self.lanes.change_or_make(record.conversation, Lane::new(cursor), |lane| {
                lane.acked = cursor;
                lane.pushed = cursor;
                lane.told = cursor;
                lane.head = lane.head.max(record.head);
                lane.pending_until = record.head;
            });
        }
        self.early.clear();
        if !just_known {
            self.lanes.retain(|_, lane| lane.acked < lane.head);
        }
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
        // The others get their turn.
        self.turn = conversation;
        self.lanes.change(conversation, |lane| {
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
        });
    }

    /// The device has acknowledged so much. Returns how much more it has because it sent that itself, if there is any.
    pub fn acknowledged(&mut self, conversation: ConversationId, cursor: Seq) -> Option<Seq> {
        if self.phase == Phase::Awaiting {
            let early = self.early.entry(conversation).or_default();
            early.acknowledged = early.acknowledged.max(cursor);
        }
        let done = self.lanes.change(conversation, |lane| {
            if cursor > lane.acked {
                let outstanding = lane.pushed.0 - lane.acked.0;
                let acknowledged = (cursor.0 - lane.acked.0).min(outstanding);
                lane.bytes -=
                    (u64::from(lane.bytes) * acknowledged).checked_div(outstanding).unwrap_or(0) as u32;
                lane.acked = cursor;
                lane.pushed = lane.pushed.max(cursor);
                lane.told = lane.told.max(cursor);
                lane.head = lane.head.max(cursor);
            }
            let passed = (lane.acked >= lane.told && lane.acked < lane.pushed).then_some(lane.pushed);
            if let Some(passed) = passed {
                (lane.acked, lane.bytes) = (passed, 0);
            }
            (lane.acked == lane.head, passed)
        });
        let (done, passed) = done?;
        // While the list of what is pending is awaited, a lane only collects; the list decides.
        if self.phase == Phase::Live && done {
            self.lanes.remove(conversation);
        }
        passed
    }

    /// The user went by the entry at `seq`. A lane that begins there or later is of a membership that came after it.
    pub fn forget(&mut self, conversation: ConversationId, seq: Seq) {
        if self.lanes.all.get(&conversation).is_some_and(|lane| lane.acked < seq) {
            self.lanes.remove(conversation);
        }
        if self.phase == Phase::Awaiting {
            let early = self.early.entry(conversation).or_default();
            early.removed = early.removed.max(seq);
        }
    }

    /// Whether the window takes one more message.
    fn room(&self) -> bool {
        let Sums { messages, bytes, .. } = self.lanes.sums;
        let kept = self.fetching.map_or(0, |(_, _, limit)| limit as usize);
        messages + kept < WINDOW_MESSAGES_MAX
            && (bytes + PAYLOAD_BYTES_MAX <= WINDOW_BYTES_MAX || messages == 0)
    }

    /// What to ask the store for, if anything; the caller then asks.
    pub fn next_page(&mut self) -> Option<Page> {
        if self.fetching.is_some() || self.phase != Phase::Live || !self.room() {
            return None;
        }
        let (conversation, lane) = self.lanes.next_behind(self.turn)?;
        let Sums { messages, bytes, .. } = self.lanes.sums;
        let page = Page {
            conversation,
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
        let reached = self.phase == Phase::Live && self.catching_up && self.lanes.sums.pending == 0;
        if reached {
            self.catching_up = false;
        }
        reached
    }

    /// Whether nothing is on its way any more.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Live && self.lanes.all.is_empty() && !self.catching_up
    }
}

impl Lanes {
    /// Changes a lane, if there is one.
    fn change<T>(&mut self, conversation: ConversationId, change: impl FnOnce(&mut Lane) -> T) -> Option<T> {
        let lane = self.all.get_mut(&conversation)?;
        self.sums.take(lane);
        let returned = change(lane);
        self.sums.add(lane);
        Some(returned)
    }

    /// Changes a lane, or this one that it begins with.
    fn change_or_make<T>(
        &mut self,
        conversation: ConversationId,
        new: Lane,
        change: impl FnOnce(&mut Lane) -> T,
    ) -> T {
        let lane = match self.all.entry(conversation) {
            Place::Occupied(lane) => {
                self.sums.take(lane.get());
                lane.into_mut()
            }
            Place::Vacant(place) => place.insert(new),
        };
        let returned = change(lane);
        self.sums.add(lane);
        returned
    }

    fn remove(&mut self, conversation: ConversationId) {
        if let Some(lane) = self.all.remove(&conversation) {
            self.sums.take(&lane);
        }
    }

    fn retain(&mut self, keep: impl FnMut(&ConversationId, &mut Lane) -> bool) {
        self.all.retain(keep);
        self.sums = Sums::default();
        self.all.values().for_each(|lane| self.sums.add(lane));
    }

    /// The first lane after that one, around the circle, in which something has not been pushed. Those that are passed over have
    /// something to be acknowledged, so a window's worth of them at most, or are of a device that was just made known.
    fn next_behind(&self, after: ConversationId) -> Option<(ConversationId, Lane)> {
        if self.sums.behind == 0 {
            return None;
        }
        let behind = self.all.range((Excluded(after), Unbounded));
        let around = behind.chain(self.all.range((Unbounded, Included(after))));
        around.into_iter().find(|(_, lane)| lane.pushed < lane.head).map(|(id, lane)| (*id, *lane))
    }

    fn clear(&mut self) {
        self.all.clear();
        self.sums = Sums::default();
    }
}

impl Sums {
    fn add(&mut self, lane: &Lane) {
        self.messages += (lane.pushed.0 - lane.acked.0) as usize;
        self.bytes += lane.bytes as usize;
        self.pending += usize::from(lane.pushed < lane.pending_until);
        self.behind += usize::from(lane.pushed < lane.head);
    }

    fn take(&mut self, lane: &Lane) {
        self.messages -= (lane.pushed.0 - lane.acked.0) as usize;
        self.bytes -= lane.bytes as usize;
        self.pending -= usize::from(lane.pushed < lane.pending_until);
        self.behind -= usize::from(lane.pushed < lane.head);
    }
}

impl Lane {
    /// A device that has everything up to here.
    fn new(at: Seq) -> Self {
        Lane { acked: at, pushed: at, told: at, head: at, pending_until: Seq::ZERO, bytes: 0 }
    }

    fn push(&mut self, entry: &Entry) {
        self.pushed = entry.seq;
        self.told = entry.seq;
        self.head = self.head.max(entry.seq);
        self.bytes += ENTRY_BYTES;
        if let Body::Message { payload, .. } = &entry.body {
            self.bytes += payload.len() as u32;
        }
    }
}

/// The pool of flights.
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
                turn: ConversationId([0; 16]),
                catching_up: false,
                lanes: Lanes::default(),
                early: BTreeMap::new(),
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
            flight.early.clear();
            self.free.push(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Change, UserId, Wall};

    use super::*;

    fn conversation(number: u64) -> ConversationId {
        ConversationId(u128::from(number).to_be_bytes())
    }

    fn entry(seq: u64) -> Entry {
        let change = Change::Left { user: UserId([7; 16]) };
        Entry { seq: Seq(seq), ts: Wall(0), body: Body::Change(change) }
    }

    /// SplitMix64 (Steele, Lea and Flood, 2014).
    fn numbers(mut state: u64) -> impl FnMut(u64) -> u64 {
        move |bound| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31)) % bound
        }
    }

    /// The sums are those of the lanes, and no search passes over more lanes than the window has messages.
    fn check(flight: &Flight) {
        let mut sums = Sums::default();
        flight.lanes.all.values().for_each(|lane| sums.add(lane));
        assert_eq!(flight.lanes.sums, sums);
        assert!(sums.messages <= WINDOW_MESSAGES_MAX, "{sums:?}");
        if flight.phase == Phase::Live {
            let passed_over = flight.lanes.all.values().filter(|lane| lane.pushed == lane.head).count();
            assert!(passed_over <= WINDOW_MESSAGES_MAX, "{passed_over} lanes are passed over");
        }
    }

    #[test]
    fn x2_who_comes_back_to_thousands_of_conversations_is_served_from_each_in_turn() {
        const LANES: u64 = 3_000;
        let mut flights = Flights::new();
        let index = flights.take(Phase::Awaiting);
        let flight = flights.at(index);
        let record =
            |number| PendingRecord { conversation: conversation(number), cursor: Seq(1), head: Seq(3) };
        flight.handle_pending(&(0..LANES).map(record).collect::<Vec<_>>(), false);
        let (mut pushed, mut fetched) = (0, Vec::new());
        while !flight.is_over() {
            let page = flight.next_page().expect("there is room, since everything is acknowledged at once");
            fetched.push(page.conversation);
            assert_eq!((page.after, page.up_to, page.limit), (Seq(1), Seq(3), 2));
            flight.handle_page((page.conversation, page.after), vec![entry(2), entry(3)], |_| pushed += 1);
            check(flight);
            flight.acknowledged(page.conversation, Seq(3));
            flight.take_caught_up();
        }
        assert_eq!(pushed, 2 * LANES);
        fetched.sort_unstable();
        fetched.dedup();
        assert_eq!(fetched.len() as u64, LANES, "each had its turn");
    }

    #[test]
    fn what_a_device_sent_itself_after_the_last_it_was_told_needs_no_acknowledgement() {
        let mut flights = Flights::new();
        let index = flights.take(Phase::Live);
        let (flight, id) = (flights.at(index), conversation(1));
        for (seq, own) in [(2, false), (3, true), (4, false), (5, true), (6, true)] {
            assert_eq!(flight.deliver(id, &entry(seq), own), !own);
        }
        assert_eq!(flight.acknowledged(id, Seq(2)), None, "4 is still on its way");
        check(flight);
        assert_eq!(flight.acknowledged(id, Seq(4)), Some(Seq(6)));
        assert!(flight.is_over());
        check(flight);
    }

    #[test]
    fn sums_are_those_of_the_lanes_whatever_happens() {
        let seed = std::env::var("THRONG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
        println!("THRONG_SEED={seed}");
        let mut next = numbers(seed);
        let mut flights = Flights::new();
        let mut heads = [Seq(0); 40];
        for _ in 0..60 {
            let index = flights.take(Phase::Awaiting);
            let flight = flights.at(index);
            for _ in 0..400 {
                let at = next(heads.len() as u64);
                let (id, head) = (conversation(at), &mut heads[at as usize]);
                match next(9) {
                    0..=3 => {
                        *head = head.next();
                        flight.deliver(id, &entry(head.0), next(4) == 0);
                    }
                    4 | 5 => {
                        let cursor = flight.lanes.all.get(&id).map_or(*head, |lane| lane.pushed);
                        flight.acknowledged(id, cursor);
                    }
                    6 if flight.phase == Phase::Awaiting => {
                        let record = |(number, head): (usize, &Seq)| PendingRecord {
                            conversation: conversation(number as u64),
                            cursor: Seq(head.0.saturating_sub(3)),
                            head: *head,
                        };
                        let records: Vec<PendingRecord> = heads.iter().enumerate().map(record).collect();
                        flight.handle_pending(&records, false);
                    }
                    7 => {
                        if let Some(page) = flight.next_page() {
                            let kept = next(u64::from(page.limit) + 1);
                            let entries = (1..=kept).map(|offset| entry(page.after.0 + offset)).collect();
                            flight.handle_page((page.conversation, page.after), entries, |_| {});
                        }
                    }
                    _ => flight.forget(id, *head),
                }
                check(flight);
            }
            flights.release(index);
        }
    }
}
