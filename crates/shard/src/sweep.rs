//! What time does: deadlines, pings, expiry, stalls and draining. No timer per connection: those of equal length wait in one
//! line, and everything else is found by a sweep that goes over the table once a round.

use std::collections::VecDeque;

use model::limits::{
    FRAGMENTS_DEADLINE, PINGS_UNANSWERED_MAX, STALL_DEADLINE, SWEEP_ROUND, TOKEN_EXPIRING_NOTICE,
};
use model::{Mono, Span};
use protocol::{CloseCode, Push};

use crate::connection::{EXPIRY_TOLD, Phase, seconds};
use crate::event::Close;
use crate::shard::{Core, Shard};

/// Connections that one slice of a sweep looks at.
const SLICE: usize = 4_096;
/// Time between two slices of a drain.
const DRAIN_SLICE: Span = Span(50);

/// A connection that must have moved on by then.
struct Deadline {
    at: Mono,
    slot: u32,
    generation: u32,
}

struct Drain {
    until: Mono,
    next: Mono,
    cursor: usize,
    /// Connections at its beginning.
    total: usize,
}

pub(crate) struct Sweep {
    /// Those that have not connected; first-in first-out, since all have equally long.
    connects: VecDeque<Deadline>,
    next: Mono,
    cursor: usize,
    drain: Option<Drain>,
}

impl Sweep {
    pub fn new(now: Mono) -> Self {
        Sweep { connects: VecDeque::new(), next: now + SWEEP_ROUND, cursor: 0, drain: None }
    }

    pub fn await_connect(&mut self, at: Mono, slot: u32, generation: u32) {
        self.connects.push_back(Deadline { at, slot, generation });
    }

    pub fn drain(&mut self, now: Mono, until: Mono, connections: usize) {
        self.drain = Some(Drain { until, next: now, cursor: 0, total: connections });
    }

    pub fn draining(&self) -> bool {
        self.drain.is_some()
    }

    /// How long a drain still takes while so many connections are left; nothing when there is none. Other shards may have more of them
    /// than this one, as chance has it: four standard deviations are allowed for.
    pub fn drain_rest(&self, now: Mono, connections: usize) -> Span {
        let Some(drain) = &self.drain else { return Span(0) };
        let slices = connections + 4 * drain.total.isqrt();
        Span(drain.until.since(now).0.min(DRAIN_SLICE.0 * slices as u64))
    }

    /// When there is next something to do.
    pub fn next(&self, connections: usize) -> Mono {
        let front = self.connects.front().map(|deadline| deadline.at);
        let sweep = (connections > 0).then_some(self.next);
        let drain = self.drain.as_ref().map(|drain| drain.next);
        front.into_iter().chain(sweep).chain(drain).min().unwrap_or(Mono(u64::MAX))
    }

    fn pop_connect_due(&mut self, now: Mono) -> Option<Deadline> {
        let due = self.connects.pop_front_if(|deadline| deadline.at <= now);
        if self.connects.len() * 8 < self.connects.capacity() && self.connects.capacity() > 64 {
            // After a herd the memory goes too.
            self.connects.shrink_to(self.connects.len() * 2);
        }
        due
    }
}

impl Shard {
    pub(crate) fn tick(&mut self) {
        let now = self.core.now.mono;
        self.core.tick_partitions();
        self.core.expire_connects(now);
        if self.core.sweep.next <= now {
            self.sweep_slice(now);
        }
        self.core.drain_slice(now);
    }

    /// Looks at the next connections. Small tables are done in one slice a round, large ones in as many as they need.
    fn sweep_slice(&mut self, now: Mono) {
        let slots = self.core.table.slots();
        let from = self.core.sweep.cursor;
        let to = slots.min(from + SLICE);
        for slot in from..to {
            self.core.inspect(slot as u32, now);
        }
        let slices = slots.div_ceil(SLICE).max(1) as u64;
        self.core.sweep.cursor = if to == slots { 0 } else { to };
        self.core.sweep.next = now + Span((SWEEP_ROUND.0 / slices).max(1));
    }
}

impl Core {
    fn expire_connects(&mut self, now: Mono) {
        while let Some(Deadline { slot, generation, .. }) = self.sweep.pop_connect_due(now) {
            let Some(connection) =
                self.table.get(slot).filter(|connection| connection.generation == generation)
            else {
                continue;
            };
            match connection.phase {
                Phase::Head => self.shut(slot, Close::Now),
                Phase::Upgraded => {
                    self.close(slot, CloseCode::ConnectTimeout, "no valid connect came in time")
                }
                Phase::Free | Phase::Open | Phase::Closing => {}
            }
        }
    }

    fn inspect(&mut self, slot: u32, now: Mono) {
        let (ping, wall) = (self.settings.ping, self.now.wall);
        let connection = self.table.at(slot);
        if !matches!(connection.phase, Phase::Upgraded | Phase::Open) {
            return;
        }
        if connection.receiver.partial_since().is_some_and(|since| now.since(since) > FRAGMENTS_DEADLINE) {
            return self.close(slot, CloseCode::PolicyViolation, "a message took too long to come");
        }
        self.pace.catch_up(&mut connection.rate, now);
        if u64::from(self.table.count_stall(slot)) * SWEEP_ROUND.0 > STALL_DEADLINE.0 {
            return self.close(slot, CloseCode::SlowConsumer, "what was sent is not being read");
        }
        let connection = self.table.at(slot);
        if connection.phase == Phase::Open {
            let expires_at = connection.expires();
            if expires_at <= wall {
                return self.close(slot, CloseCode::Unauthorised, "the token has expired");
            }
            let soon = expires_at.0 <= wall.0 + TOKEN_EXPIRING_NOTICE.0;
            if soon && connection.flags & EXPIRY_TOLD == 0 && self.table.stands(slot) {
                let connection = self.table.at(slot);
                connection.flags |= EXPIRY_TOLD;
                self.push_frame(slot, 64, &Push::TokenExpiring { expires_at });
            }
        }
        let connection = self.table.at(slot);
        let quiet = u64::from(seconds(now).saturating_sub(connection.last_seen)) * 1_000;
        let pings = connection.pings();
        if quiet >= ping.0 * (u64::from(pings) + 1) {
            if pings >= PINGS_UNANSWERED_MAX {
                return self.close(slot, CloseCode::NoPong, "two pings went unanswered");
            }
            connection.count_ping();
            self.ping(slot);
        }
    }

    /// Closes the next connections of a drain, so that all are closed by its end.
    fn drain_slice(&mut self, now: Mono) {
        let Some(drain) = &mut self.sweep.drain else { return };
        if drain.next > now {
            return;
        }
        let slices_left = (drain.until.since(now).0 / DRAIN_SLICE.0).max(1) as usize;
        let mut count = self.table.live().div_ceil(slices_left).max(1);
        let (mut slot, slots) = (drain.cursor, self.table.slots());
        while count > 0 && slot < slots {
            let phase = self.table.at(slot as u32).phase;
            match phase {
                Phase::Free | Phase::Closing => {}
                Phase::Head => self.shut(slot as u32, Close::Now),
                Phase::Upgraded | Phase::Open => {
                    self.close(slot as u32, CloseCode::Draining, "the server is being stopped or replaced");
                }
            }
            count -= usize::from(!matches!(phase, Phase::Free | Phase::Closing));
            slot += 1;
        }
        if let Some(drain) = &mut self.sweep.drain {
            drain.cursor = slot;
            drain.next = if slot == slots { Mono(u64::MAX) } else { now + DRAIN_SLICE };
        }
    }
}
