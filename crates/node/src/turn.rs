//! One turn of a core. The file to read first.
//!
//! 1 wait · 2 gather events, bounded · 3 inbound bytes to inputs, 4 routed, 5 decided by the rules (all three in [`shard`]) ·
//! 6 one batch to the store · 7 effects to frames (also in [`shard`]) · 8 flush sockets and mail · 9 account.

use std::collections::HashMap;
use std::io::IoSlice;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use domain::{Answer, Refusal};
use fabric::{Outbox, Port};
use model::{Mono, Now, Span};
use reactor::{Accepted, Event as SocketEvent, Reactor, Read, SocketId};
use shard::{Actions, Close, Event, Shard};
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::gauges::ShardGauges;
use crate::inbox::{Command, Draining};
use crate::parcel::Parcel;

/// Connections accepted in one turn.
const ACCEPTS_MAX: usize = 64;
/// Blocks of mail taken in one turn.
const BLOCKS_MAX: usize = 256;
/// Items in one block of mail.
pub const ITEMS_PER_BLOCK: usize = 1_024;
/// The same complaint is logged so often at most.
const COMPLAIN_EVERY: Span = Span::seconds(10);
/// Slices given to one system call.
const SLICES_MAX: usize = 64;

/// All that one shard thread owns.
pub struct Turn {
    pub shard: Shard,
    pub reactor: Reactor,
    pub port: Port<Parcel>,
    pub outbox: Outbox<Parcel>,
    pub inbox: Receiver<Command>,
    /// Where connections go that are not ours.
    pub http: Arc<OwnedFd>,
    pub clock: Clock,
    pub gauges: Arc<ShardGauges>,
    /// The port of the store thread.
    pub store: usize,
    pub waiting: HashMap<u64, oneshot::Sender<Result<Answer, Refusal>>>,
    pub draining: Option<Draining>,
    pub buffer: Box<[u8]>,
    pub accepted: Vec<Accepted>,
    pub actions: Actions,
    /// When it last said that there is no descriptor left.
    pub complained: Option<Mono>,
    pub turns: u64,
    /// The last turn that had much to do.
    pub busy: Mono,
    /// Memory of bursts was given back since then.
    pub rested: bool,
}

/// Actions of a turn from which on it counts as busy.
const BUSY_ACTIONS: usize = 16;
/// Quiet for so long, a shard gives back the memory of bursts.
const REST_AFTER: Span = Span::seconds(1);

impl Turn {
    /// Turns until told to stop.
    pub fn run(mut self) -> std::io::Result<()> {
        loop {
            self.wait()?;
            let now = self.clock.now();
            self.turns += 1;
            self.gather_mail(now);
            if !self.gather_commands(now) {
                return Ok(());
            }
            self.gather_sockets(now);
            if self.shard.next_deadline() <= now.mono {
                self.shard.handle(now, Event::Tick);
            }
            self.perform(now);
            self.rest(now);
            self.account(now);
        }
    }

    /// 1 Waits until something happens or is due.
    fn wait(&mut self) -> std::io::Result<()> {
        if self.outbox.items() > 0 {
            // A full ring: let the others turn, and take no new work meanwhile.
            std::thread::sleep(Duration::from_micros(50));
            return Ok(());
        }
        if !self.port.prepare_sleep() {
            self.reactor.wait(Some(Duration::ZERO))?;
            return Ok(());
        }
        let now = self.clock.now().mono;
        let due = self.shard.next_deadline();
        let due = self.draining.as_ref().map_or(due, |draining| due.min(draining.until).min(now + Span(20)));
        let timeout = (due != Mono(u64::MAX)).then(|| Duration::from_millis(due.since(now).0));
        let waited = self.reactor.wait(timeout);
        self.port.awake();
        waited.map(|_| ())
    }

    /// 2 Takes mail from the other shards and the store.
    fn gather_mail(&mut self, now: Now) {
        let Turn { shard, port, outbox, .. } = self;
        port.receive(
            &mut |_, mut block| {
                for parcel in block.drain(..) {
                    match parcel {
                        Parcel::Effect(effect) => shard.handle(now, Event::Mail(effect)),
                        Parcel::Stored { partition, ticket, reply } => {
                            shard.handle(now, Event::Stored { partition, ticket, reply });
                        }
                        Parcel::Ask(_) => debug_assert!(false, "only the store is asked"),
                    }
                }
                outbox.recycle(block);
            },
            BLOCKS_MAX,
        );
    }

    /// 2 Takes what comes from outside the sockets; false when it is time to end.
    fn gather_commands(&mut self, now: Now) -> bool {
        while let Ok(command) = self.inbox.try_recv() {
            match command {
                Command::Request { ticket, input, answer } => {
                    self.waiting.insert(ticket, answer);
                    self.shard.handle(now, Event::Outside(*input));
                }
                Command::Know { devices } => {
                    devices.into_iter().for_each(|device| self.shard.know(device, 0));
                }
                Command::Probe { answer } => {
                    // Gathering the numbers looks at every partition, so it is done when somebody wants them.
                    self.gauges.publish(self.shard.counters(), self.turns);
                    let _ = answer.send(());
                }
                Command::Drain { within, done } => {
                    self.reactor.stop_listening();
                    let until = now.mono + within;
                    self.draining = Some(Draining { until, done: Some(done) });
                    self.shard.handle(now, Event::Drain { until });
                }
                Command::Stop => return false,
            }
        }
        true
    }

    /// 2 Takes what the sockets have, unless mail is held up: then their bytes wait in the kernel.
    fn gather_sockets(&mut self, now: Now) {
        if self.outbox.items() > 0 {
            return;
        }
        while let Some(event) = self.reactor.next_event() {
            match event {
                SocketEvent::Accept => self.accept(now),
                SocketEvent::Readable(id) => self.read(now, id),
                SocketEvent::Writable(id) => self.flush(now, id),
                SocketEvent::HungUp(id) => self.gone(id),
                SocketEvent::Woken | SocketEvent::Connected(_) | SocketEvent::ConnectFailed(..) => {}
            }
        }
    }

    fn accept(&mut self, now: Now) {
        if let Err(error) = self.reactor.accept_some(ACCEPTS_MAX, &mut self.accepted) {
            // Whoever has taken the descriptors shall not fill the disk with this too.
            if self.complained.is_none_or(|at| now.mono.since(at) >= COMPLAIN_EVERY) {
                self.complained = Some(now.mono);
                tracing::warn!(%error, "accepting rests: no descriptor or memory is left for new connections");
            }
        }
        for Accepted { id, peer } in self.accepted.drain(..) {
            let address: IpAddr = peer.ip();
            self.shard.handle(now, Event::Accepted { slot: id.slot, address });
        }
    }

    fn read(&mut self, now: Now, id: SocketId) {
        match self.reactor.read_into(id, &mut self.buffer) {
            Read::Bytes(bytes) => self.shard.handle(now, Event::Received { slot: id.slot, bytes }),
            Read::Blocked => {}
            Read::Closed | Read::Reset(_) => self.gone(id),
        }
    }

    fn flush(&mut self, now: Now, id: SocketId) {
        match self.reactor.flush(id) {
            Ok(sent) => self.shard.handle(now, Event::Unsent { slot: id.slot, bytes: sent.queued_bytes }),
            Err(_) => self.gone(id),
        }
    }

    /// The peer is gone. The slot must not be given to another before this turn's output is sent, so it is closed then.
    fn gone(&mut self, id: SocketId) {
        self.shard.actions().closes.push((id.slot, Close::Now));
    }

    /// 6, 8 Performs what the shard asks, until it asks nothing more.
    fn perform(&mut self, now: Now) {
        loop {
            std::mem::swap(&mut self.actions, self.shard.actions());
            let mut actions = std::mem::take(&mut self.actions);
            let idle = actions.writes.is_empty()
                && actions.closes.is_empty()
                && actions.mail.is_empty()
                && actions.asks.is_empty()
                && actions.handed_over.is_empty()
                && actions.answers.is_empty();
            if idle {
                self.actions = actions;
                break;
            }
            if actions.writes.len() + actions.mail.len() + actions.asks.len() > BUSY_ACTIONS {
                self.busy = now.mono;
                self.rested = false;
            }
            self.write(now, &mut actions);
            for (slot, bytes) in actions.handed_over.drain(..) {
                self.hand_over(slot, &bytes);
            }
            for (slot, how) in actions.closes.drain(..) {
                self.close(now, slot, how);
            }
            for (ticket, answer) in actions.answers.drain(..) {
                if let Some(waiting) = self.waiting.remove(&ticket) {
                    let _ = waiting.send(answer);
                }
            }
            for (to, effect) in actions.mail.drain(..) {
                self.outbox.push(usize::from(to.0), Parcel::Effect(effect));
            }
            for ask in actions.asks.drain(..) {
                self.outbox.push(self.store, Parcel::Ask(ask));
            }
            actions.clear();
            self.actions = actions;
        }
        self.outbox.flush(&mut self.port);
    }

    /// 8 One system call for each connection that has output, whatever it consists of.
    fn write(&mut self, now: Now, actions: &mut Actions) {
        if !actions.writes.is_sorted_by_key(|write| write.slot) {
            actions.writes.sort_by_key(|write| write.slot);
        }
        for parts in actions.writes.chunk_by(|a, b| a.slot == b.slot) {
            let slot = parts[0].slot;
            let Some(id) = self.reactor.tenant(slot) else { continue };
            let mut sent = Ok(None);
            for parts in parts.chunks(SLICES_MAX) {
                let mut slices = [IoSlice::new(&[]); SLICES_MAX];
                for (slice, part) in slices.iter_mut().zip(parts) {
                    *slice = IoSlice::new(&actions.output[part.from..part.to]);
                }
                sent = self.reactor.send(id, &slices[..parts.len()]).map(Some);
                if sent.is_err() {
                    break;
                }
            }
            match sent {
                Ok(Some(sent)) if sent.queued_bytes > 0 => {
                    self.shard.handle(now, Event::Unsent { slot, bytes: sent.queued_bytes });
                }
                Ok(_) => {}
                Err(_) => self.gone(id),
            }
        }
    }

    fn close(&mut self, now: Now, slot: u32, how: Close) {
        if let Some(id) = self.reactor.tenant(slot) {
            match how {
                Close::AfterFlush => self.reactor.close_after_flush(id),
                Close::Now => self.reactor.close(id),
            }
        }
        self.shard.handle(now, Event::Gone { slot });
    }

    fn hand_over(&mut self, slot: u32, bytes: &[u8]) {
        let Some(fd) = self.reactor.tenant(slot).and_then(|id| self.reactor.detach(id)) else { return };
        if let Err(error) = reactor::send_fd(&*self.http, &fd, bytes) {
            tracing::warn!(%error, "an HTTP connection was dropped");
        }
    }

    /// 9 After a burst, gives its memory back.
    fn rest(&mut self, now: Now) {
        if !self.rested && now.mono.since(self.busy) > REST_AFTER {
            self.rested = true;
            self.shard.rest();
            self.actions.rest();
            self.outbox.rest();
            self.gauges.count_rest();
        }
    }

    /// 9 Says when a drain is over.
    fn account(&mut self, now: Now) {
        if let Some(draining) = &mut self.draining
            && (self.reactor.sockets() == 0 || now.mono >= draining.until + Span(2_500))
            && let Some(done) = draining.done.take()
        {
            let _ = done.send(());
        }
    }
}
