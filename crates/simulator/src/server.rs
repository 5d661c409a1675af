//! The server's process: its shards, each with its slots, and one turn of a shard as the node does it.
//!
//! Owns the table from slots to wires. A turn gathers mail, replies of the store, requests from outside and what the sockets have,
//! lets time act when something is due, and then performs what the shard asks: writes, closes, answers, mail, and last what goes to
//! the store.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use domain::{Effect, Input, Origin};
use model::limits::{OUTBOX_BYTES_MAX, WINDOW_BYTES_MAX};
use model::{ConnectionId, Now, ShardId};
use shard::{Close, Event, Metric, Shard};
use store::Reply;

use crate::coverage::{Coverage, Seen};
use crate::disk::Disk;
use crate::office::Office;
use crate::oracle::Oracle;
use crate::plan::Plan;
use crate::post::Post;
use crate::random::Random;
use crate::strangers::HTTP_REQUEST;
use crate::tamper::Tamper;
use crate::trace::Trace;
use crate::violation::Violation;
use crate::wires::{WireId, Wires};
use crate::words::Said;

/// Most bytes that may wait for a socket: where it counts as a slow consumer, and the answers that were under way by then: a full
/// window, and some pages of `sync`.
const UNSENT_MAX: usize = OUTBOX_BYTES_MAX + 4 * (WINDOW_BYTES_MAX / 3 * 4);

/// A fault strikes within so many places where a rule may break.
const FAULT_POINTS_MAX: u64 = 12;

/// One shard and what a reactor would keep for it.
pub struct Side {
    /// The rules and connections.
    pub shard: Shard,
    /// Where its mail and its replies come.
    id: ShardId,
    connections_max: usize,
    unauthenticated_max: usize,
    slots: Vec<Option<WireId>>,
    free: Vec<u32>,
    /// How often each slot was given out.
    tenants: Vec<u32>,
    /// Requests that have come from outside the sockets.
    pub outside: VecDeque<Input>,
    /// It does nothing before this step.
    pub rests_until: u32,
    /// How often its rules have panicked on purpose.
    faults: u64,
    /// What was wrong with what the shard did, if something was.
    pub violation: Option<Violation>,
}

/// What is around a shard while it turns.
pub struct Surroundings<'a> {
    /// The time.
    pub now: Now,
    /// Chance.
    pub random: &'a mut Random,
    /// What is noted.
    pub trace: &'a mut Trace,
    /// What is counted.
    pub coverage: &'a mut Coverage,
    /// The network.
    pub wires: &'a mut Wires,
    /// Mail between shards.
    pub post: &'a mut Post,
    /// The store thread.
    pub disk: &'a mut Disk,
    /// Who waits for answers outside the sockets.
    pub office: &'a mut Office,
    /// The checkers.
    pub oracle: &'a mut Oracle,
    /// What is made wrong on purpose.
    pub tamper: &'a mut Tamper,
    /// How often a rule panics, in a thousand turns.
    pub faults: u32,
    /// Everything that waits is taken.
    pub calm: bool,
}

impl Surroundings<'_> {
    fn arrived(&mut self, len: usize) -> usize {
        if self.calm { len } else { self.random.arrived(len) }
    }
}

impl Side {
    /// A shard without connections.
    pub fn new(id: ShardId, shard: Shard, plan: &Plan) -> Self {
        Side {
            shard,
            id,
            connections_max: plan.connections_max,
            unauthenticated_max: plan.unauthenticated_max,
            slots: Vec::new(),
            free: Vec::new(),
            tenants: Vec::new(),
            outside: VecDeque::new(),
            rests_until: 0,
            faults: 0,
            violation: None,
        }
    }

    /// Whether none of its rules has ever panicked.
    pub fn unharmed(&self) -> bool {
        self.faults == 0
    }

    /// One turn. Returns whether anything happened.
    pub fn turn(&mut self, around: &mut Surroundings<'_>) -> bool {
        let strikes = around.random.below(1_000) < around.faults as usize;
        domain::fault::arm(if strikes { around.random.between(1, FAULT_POINTS_MAX) as u32 } else { 0 });
        let busy = catch_unwind(AssertUnwindSafe(|| self.turn_unharmed(around))).unwrap_or_else(|panic| {
            if !strikes {
                resume_unwind(panic);
            }
            let what = "a panic made on purpose was not survived".to_owned();
            self.violation = Some(Violation { invariant: "panic", what });
            true
        });
        if self.violation.is_some() {
            return true;
        }
        if strikes && domain::fault::arm(0) == 0 {
            around.coverage.count(Seen::Faults);
            self.faults += 1;
        }
        if self.shard.counters().get(Metric::Faults) != self.faults {
            let what = "a rule or the handling of a connection has panicked".to_owned();
            self.violation = Some(Violation { invariant: "panic", what });
        }
        busy
    }

    fn turn_unharmed(&mut self, around: &mut Surroundings<'_>) -> bool {
        around.coverage.count(Seen::Turns);
        let mut busy = self.gather_mail(around);
        while let Some(input) = self.outside.pop_front() {
            around.trace.line(format_args!(
                "{} s{} Event::Outside({})",
                around.now.mono.0,
                self.id.0,
                Said(&input)
            ));
            self.shard.handle(around.now, Event::Outside(input));
            busy = true;
        }
        busy |= self.gather_sockets(around);
        if self.shard.next_deadline() <= around.now.mono {
            self.shard.handle(around.now, Event::Tick);
        }
        busy |= self.perform(around);
        self.check_caps(around);
        busy
    }

    /// X1: what a shard keeps is bounded.
    fn check_caps(&mut self, around: &mut Surroundings<'_>) {
        let connections = self.shard.connections();
        if connections > self.connections_max {
            self.too_much(format!("{connections} connections, not {}", self.connections_max));
        }
        // The gauges look at every partition.
        if around.random.below(16) > 0 {
            return;
        }
        let counters = self.shard.counters();
        let [sessions, flights, unauthenticated] =
            [Metric::Sessions, Metric::Flights, Metric::Unauthenticated].map(|metric| counters.get(metric));
        if flights > sessions {
            self.too_much(format!("{flights} flights for {sessions} sessions"));
        }
        if unauthenticated > self.unauthenticated_max as u64 {
            self.too_much(format!("{unauthenticated} connections of strangers"));
        }
    }

    fn too_much(&mut self, what: String) {
        let what = format!("shard {} has {what}", self.id.0);
        self.violation.get_or_insert(Violation { invariant: "X1", what });
    }

    /// Mail of the other shards and replies of the store, in any order but that of each sender.
    fn gather_mail(&mut self, around: &mut Surroundings<'_>) -> bool {
        let store = around.post.shards();
        let mut left: Vec<(u16, usize)> = Vec::new();
        for from in (0..store).filter(|from| *from != self.id.0) {
            let waiting = around.post.waiting(ShardId(from), self.id, around.now.mono);
            left.push((from, around.arrived(waiting)));
        }
        left.push((store, around.arrived(around.disk.answered(self.id))));
        left.retain(|(_, count)| *count > 0);
        let busy = !left.is_empty();
        while !left.is_empty() {
            let at = around.random.below(left.len());
            let (from, count) = &mut left[at];
            if *from == store {
                self.take_reply(around)
            } else {
                self.take_mail(ShardId(*from), around)
            }
            *count -= 1;
            if *count == 0 {
                left.swap_remove(at);
            }
        }
        busy
    }

    fn take_mail(&mut self, from: ShardId, around: &mut Surroundings<'_>) {
        let Some(effect) = around.post.pop(from, self.id) else { return };
        around.trace.line(format_args!(
            "{} s{} Event::Mail from s{}: {}",
            around.now.mono.0,
            self.id.0,
            from.0,
            Said(&effect)
        ));
        if let Effect::Mail { to, input: Input::Deliver(delivery) } = &effect {
            around.oracle.hears_by_mail(*to, delivery.conversation, delivery.entry.seq);
        }
        if let Some(connection) = addressee(&effect) {
            // The first tenant has the generation 0.
            let tenants = self.tenants.get(connection.slot as usize).copied().unwrap_or_default();
            around.coverage.add(Seen::StaleMail, u64::from(connection.generation + 1 < tenants));
        }
        self.shard.handle(around.now, Event::Mail(effect));
    }

    fn take_reply(&mut self, around: &mut Surroundings<'_>) {
        let Some(answered) = around.disk.pop(self.id) else { return };
        let (ticket, reply) = (answered.ticket, answered.reply);
        if answered.after_failure {
            let what = format!("{} is told although a sync has failed", Said(&reply));
            self.violation.get_or_insert(Violation { invariant: "S1", what });
        }
        around.trace.line(format_args!(
            "{} s{} Event::Stored {} {}",
            around.now.mono.0,
            self.id.0,
            Said(&reply),
            Said(&ticket)
        ));
        if let domain::Ticket::Conversation { conversation, .. } = &ticket {
            let seq = match &reply {
                Reply::Appended { seq }
                | Reply::MemberAdded { seq, .. }
                | Reply::MemberRemoved { seq, .. } => *seq,
                Reply::Created { fresh: true, record } => record.head,
                _ => model::Seq::ZERO,
            };
            around.oracle.hears(self.id, *conversation, seq);
        }
        self.shard.handle(around.now, Event::Stored { partition: answered.partition, ticket, reply });
    }

    fn gather_sockets(&mut self, around: &mut Surroundings<'_>) -> bool {
        let mut busy = false;
        for wire in around.wires.arrivals(self.id) {
            let slot = self.free.pop().unwrap_or_else(|| {
                self.slots.push(None);
                self.tenants.push(0);
                self.slots.len() as u32 - 1
            });
            self.tenants[slot as usize] += 1;
            self.slots[slot as usize] = Some(wire);
            around.trace.line(format_args!("{} s{} Event::Accepted {slot}", around.now.mono.0, self.id.0));
            let full = self.shard.connections() >= self.connections_max;
            around.coverage.add(Seen::ConnectionsFull, u64::from(full));
            let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
            self.shard.handle(around.now, Event::Accepted { slot, address });
            busy = true;
        }
        let mut order: Vec<u32> = (0..self.slots.len() as u32).collect();
        for index in (1..order.len()).rev() {
            order.swap(index, around.random.below(index + 1));
        }
        for slot in order {
            busy |= self.attend(slot, around);
        }
        busy
    }

    /// One socket: what it sends, what it now takes, whether it is gone.
    fn attend(&mut self, slot: u32, around: &mut Surroundings<'_>) -> bool {
        let Some(id) = self.slots[slot as usize] else { return false };
        let calm = around.calm;
        let Some(wire) = around.wires.get(id) else { return false };
        let mut busy = false;
        if wire.let_go {
            // The reactor has it to itself until the peer has closed too.
            if !wire.unsent.is_empty() {
                wire.flush();
            }
            if wire.broken || wire.forgotten || (wire.down_ended && wire.up_ended) {
                wire.sever();
                self.vacate(slot, around);
            }
            return false;
        }
        if !wire.unsent.is_empty() && wire.down.len() < wire.room {
            let bytes = wire.flush();
            self.shard.handle(around.now, Event::Unsent { slot, bytes });
            busy = true;
        }
        let Some(wire) = around.wires.get(id) else { return busy };
        let count = if calm { wire.up.len() } else { around.random.arrived(wire.up.len()) };
        if count > 0 {
            let mut bytes: Vec<u8> = wire.up.drain(..count).collect();
            around.trace.line(format_args!(
                "{} s{} Event::Received {slot}, {count} bytes",
                around.now.mono.0, self.id.0
            ));
            around.trace.bytes(&bytes);
            self.shard.handle(around.now, Event::Received { slot, bytes: &mut bytes });
            busy = true;
        }
        let Some(wire) = around.wires.get(id) else { return busy };
        if wire.broken || (wire.up_ended && wire.up.is_empty()) {
            self.shard.actions().closes.push((slot, Close::Now));
            busy = true;
        }
        busy
    }

    fn vacate(&mut self, slot: u32, around: &mut Surroundings<'_>) {
        if let Some(id) = self.slots[slot as usize].take() {
            self.free.push(slot);
            around.wires.tidy(id);
        }
    }

    /// Performs what the shard asks, until it asks nothing more.
    fn perform(&mut self, around: &mut Surroundings<'_>) -> bool {
        let mut busy = false;
        loop {
            let mut actions = std::mem::take(self.shard.actions());
            let idle = actions.writes.is_empty()
                && actions.closes.is_empty()
                && actions.mail.is_empty()
                && actions.asks.is_empty()
                && actions.handed_over.is_empty()
                && actions.answers.is_empty();
            if idle {
                return busy;
            }
            busy = true;
            self.write(&actions, around);
            for (slot, bytes) in actions.handed_over.drain(..) {
                self.hand_over(slot, &bytes, around);
            }
            for (slot, how) in actions.closes.drain(..) {
                self.close(slot, how, around);
            }
            for (ticket, answer) in actions.answers.drain(..) {
                around.office.answered(ticket, answer, around.oracle, around.trace, around.now);
            }
            for (to, effect) in actions.mail.drain(..) {
                around.trace.line(format_args!(
                    "{} s{} Actions::mail to s{}: {}",
                    around.now.mono.0,
                    self.id.0,
                    to.0,
                    Said(&effect)
                ));
                let (from, spare) = (self.id, ShardId(around.post.shards() - 1));
                around.tamper.mail(to, spare, effect, around.random, &mut |to, effect| {
                    around.post.push(from, to, effect);
                });
            }
            for ask in actions.asks.drain(..) {
                around.trace.line(format_args!(
                    "{} s{} Actions::asks {} {}",
                    around.now.mono.0,
                    self.id.0,
                    Said(&ask.request),
                    Said(&ask.ticket)
                ));
                around.coverage.add(Seen::TakeoverWhileWaiting, u64::from(around.disk.awaits(&ask.ticket)));
                let asked = around.disk.ask(self.id, around.tamper.ask(ask, around.random));
                if let Err(violation) = asked {
                    self.violation.get_or_insert(violation);
                }
            }
        }
    }

    fn write(&mut self, actions: &shard::Actions, around: &mut Surroundings<'_>) {
        let mut writes = actions.writes.clone();
        writes.sort_by_key(|write| write.slot);
        for parts in writes.chunk_by(|a, b| a.slot == b.slot) {
            let slot = parts[0].slot;
            let Some(id) = self.slots.get(slot as usize).copied().flatten() else { continue };
            let Some(wire) = around.wires.get(id) else { continue };
            let mut count = 0;
            for part in parts {
                let bytes = &actions.output[part.from..part.to];
                around.trace.bytes(bytes);
                count += bytes.len();
                if !wire.broken {
                    wire.unsent.extend_from_slice(bytes);
                }
            }
            around.trace.line(format_args!(
                "{} s{} Actions::writes {slot}, {count} bytes",
                around.now.mono.0, self.id.0
            ));
            let bytes = wire.flush();
            if bytes > UNSENT_MAX {
                let what = format!("{bytes} bytes wait for a socket that does not take them");
                self.violation = Some(Violation { invariant: "X1", what });
            }
            if bytes > 0 {
                around.coverage.count(Seen::Unsent);
                self.shard.handle(around.now, Event::Unsent { slot, bytes });
            }
        }
    }

    fn hand_over(&mut self, slot: u32, bytes: &[u8], around: &mut Surroundings<'_>) {
        around.trace.line(format_args!("{} s{} Actions::handed_over {slot}", around.now.mono.0, self.id.0));
        around.coverage.count(Seen::HandedOver);
        if !HTTP_REQUEST.starts_with(bytes) {
            self.violation =
                Some(Violation { invariant: "handover", what: "other bytes than came".to_owned() });
        }
        if let Some(wire) = self.slots[slot as usize].and_then(|id| around.wires.get(id)) {
            wire.sever();
            wire.let_go = true;
        }
        self.vacate(slot, around);
    }

    fn close(&mut self, slot: u32, how: Close, around: &mut Surroundings<'_>) {
        let Some(id) = self.slots.get(slot as usize).copied().flatten() else { return };
        let Some(wire) = around.wires.get(id) else { return };
        if wire.let_go {
            return;
        }
        around
            .trace
            .line(format_args!("{} s{} Actions::closes {slot} {how:?}", around.now.mono.0, self.id.0));
        wire.let_go = true;
        match how {
            Close::AfterFlush => {
                wire.lingers = true;
                wire.flush();
            }
            Close::Now => {
                wire.sever();
                self.vacate(slot, around);
            }
        }
        self.shard.handle(around.now, Event::Gone { slot });
    }
}

/// The connection that a piece of mail is for.
fn addressee(effect: &Effect) -> Option<ConnectionId> {
    match effect {
        Effect::Push { connection, .. }
        | Effect::Close { connection, .. }
        | Effect::Answer { origin: Origin::Connection { connection, .. }, .. } => Some(*connection),
        _ => None,
    }
}
