//! One shard: one `match` says what is done about each event.

use std::collections::VecDeque;
use std::num::NonZeroU64;

use domain::{Effect, Effects, Input, Origin, Partition, Subject};
use model::{ConnectionId, DeviceKey, Mono, Now, PARTITIONS, PartitionId, ShardId};
use websocket::Pool;

use crate::admission::{Bucket, Pace, Unauthenticated};
use crate::connection::{Phase, Table};
use crate::counters::{Counters, Metric};
use crate::event::{Actions, Ask, Close, Event};
use crate::fault::survived;
use crate::settings::{Settings, owner_of};
use crate::sweep::Sweep;

/// All that one core owns.
pub struct Shard {
    pub(crate) pool: Pool,
    pub(crate) websocket: websocket::Settings,
    pub(crate) core: Core,
}

/// What the handling of a connection's bytes works on, apart from the buffers these bytes are in.
pub(crate) struct Core {
    pub id: ShardId,
    pub settings: Settings,
    pub table: Table,
    /// This shard's partitions; partition `p` is at `p / shards`.
    partitions: Vec<Partition>,
    /// No partition has anything due before.
    partitions_due: Mono,
    /// Inputs for this shard's own partitions, until the event that caused them is done with.
    inputs: VecDeque<(PartitionId, Input)>,
    effects: Effects,
    pub unauthenticated: Unauthenticated,
    pub admission: Bucket,
    pub pace: Pace,
    pub sweep: Sweep,
    pub counters: Counters,
    pub now: Now,
    pub actions: Actions,
}

impl Shard {
    /// Nobody is connected and no device known yet.
    pub fn new(id: ShardId, settings: Settings, now: Now) -> Self {
        let mine = (0..PARTITIONS).filter(|p| owner_of(PartitionId(*p as u8), settings.shards) == id).count();
        let partition = || Partition::new(settings.hash_key, settings.domain);
        let message_bytes_max = settings.payload_bytes_max.div_ceil(3) * 4 + 2 * 1024;
        let core = Core {
            id,
            table: Table::new(id, settings.hash_key),
            partitions: std::iter::repeat_with(partition).take(mine).collect(),
            partitions_due: Mono(u64::MAX),
            inputs: VecDeque::new(),
            effects: Vec::new(),
            unauthenticated: Unauthenticated::new(
                settings.hash_key,
                settings.unauthenticated_max,
                settings.unauthenticated_per_address_max,
            ),
            admission: Bucket::new(settings.admission_per_second, settings.admission_burst),
            pace: Pace::new(settings.commands_per_second, settings.commands_burst),
            sweep: Sweep::new(now.mono),
            counters: Counters::default(),
            now,
            actions: Actions::default(),
            settings,
        };
        Shard { pool: Pool::default(), websocket: websocket_settings(message_bytes_max), core }
    }

    /// Learns at start of a device of one of its partitions, and in how many conversations it is marked pending.
    pub fn know(&mut self, device: DeviceKey, pending: u32) {
        let partition = model::partition_of_user(&self.core.settings.hash_key, device.user);
        self.core.partition(partition).know(device, pending);
    }

    /// Whether anything of this shard is still connected.
    pub fn connections(&self) -> usize {
        self.core.table.live()
    }

    /// What it asks of the outside so far; whoever performs it clears it.
    pub fn actions(&mut self) -> &mut Actions {
        &mut self.core.actions
    }

    /// Gives back memory that a burst has left behind; for a shard that has fallen quiet.
    pub fn rest(&mut self) {
        self.pool = Pool::default();
        self.core.actions.rest();
        self.core.table.rest();
        self.core.effects.shrink_to(64);
        self.core.inputs.shrink_to(64);
    }

    /// What it has counted, gauges included.
    pub fn counters(&mut self) -> &mut Counters {
        self.core.gauge();
        &mut self.core.counters
    }

    /// Handles one event. `now` never goes back.
    pub fn handle(&mut self, now: Now, event: Event<'_>) {
        self.core.now = now;
        match event {
            Event::Accepted { slot, address } => self.core.accepted(slot, address),
            Event::Received { slot, bytes } => self.received_or_broken(slot, bytes),
            Event::Unsent { slot, bytes } => self.core.unsent(slot, bytes),
            Event::Gone { slot } => self.gone(slot),
            Event::Mail(effect) => self.core.perform(effect),
            Event::Stored { partition, ticket, reply } => {
                self.core.input(partition, Input::Stored { ticket, reply })
            }
            Event::Outside(input) => self.core.submit(input),
            Event::Tick => self.tick(),
            Event::Drain { until } => {
                let connections = self.core.table.live();
                self.core.sweep.drain(now.mono, until, connections);
            }
        }
        self.core.work();
    }

    /// When [`Event::Tick`] next has something to do.
    pub fn next_deadline(&self) -> Mono {
        self.core.partitions_due.min(self.core.sweep.next(self.core.table.live()))
    }

    fn gone(&mut self, slot: u32) {
        self.core.gone(slot);
        if let Some(connection) = self.core.table.get(slot) {
            connection.receiver.discard(&mut self.pool);
            self.core.table.free(slot);
        }
    }
}

fn websocket_settings(message_bytes_max: usize) -> websocket::Settings {
    websocket::Settings {
        role: websocket::Role::Server,
        message_bytes_max,
        fragments_max: model::limits::FRAGMENTS_MAX,
    }
}

impl Core {
    fn accepted(&mut self, slot: u32, address: std::net::IpAddr) {
        self.counters.count(Metric::Accepted);
        let full = self.table.live() >= self.settings.connections_max;
        let fits = self.unauthenticated.enter(address);
        let connection = self.table.open(slot, address, self.now.mono);
        connection.rate = self.pace.start(self.now.mono);
        let generation = connection.generation;
        if full || !fits || self.sweep.draining() {
            self.counters.count(Metric::UpgradesRefused);
            self.table.at(slot).phase = Phase::Closing;
            self.actions.closes.push((slot, Close::Now));
        } else {
            self.sweep.await_connect(self.now.mono + self.settings.connect_deadline, slot, generation);
        }
    }

    fn unsent(&mut self, slot: u32, bytes: usize) {
        if self.table.get(slot).is_some() {
            self.table.set_unsent(slot, bytes);
        }
    }

    /// Tells the owner of the user, when there is one, that the connection is over; does not free the slot.
    pub fn gone(&mut self, slot: u32) {
        let Some(connection) = self.table.get(slot) else { return };
        let (phase, device) = (connection.phase, connection.device());
        self.authenticated(slot);
        if phase == Phase::Open {
            let connection = self.table.id(slot);
            self.submit(Input::Disconnect { connection, device });
        }
    }

    /// It does not count among the unauthenticated any more.
    pub fn authenticated(&mut self, slot: u32) {
        if let Some(opening) = self.table.opening(slot)
            && std::mem::take(&mut opening.counted)
        {
            self.unauthenticated.leave(opening.address);
        }
    }

    pub fn origin(&self, slot: u32, id: Option<NonZeroU64>) -> Origin {
        Origin::Connection { connection: self.table.id(slot), id }
    }

    /// Hands an input to the owner of what it touches, here or on another shard.
    pub fn submit(&mut self, input: Input) {
        match input.owner(&self.settings.hash_key) {
            Some(to) => self.mail(to, input),
            None => debug_assert!(false, "only requests are submitted"),
        }
    }

    fn mail(&mut self, to: PartitionId, input: Input) {
        let shard = owner_of(to, self.settings.shards);
        if shard == self.id {
            self.inputs.push_back((to, input));
        } else {
            self.actions.mail.push((shard, Effect::Mail { to, input }));
        }
    }

    /// An input that is known to be for this shard.
    fn input(&mut self, partition: PartitionId, input: Input) {
        debug_assert_eq!(owner_of(partition, self.settings.shards), self.id);
        self.inputs.push_back((partition, input));
    }

    pub fn partition(&mut self, partition: PartitionId) -> &mut Partition {
        &mut self.partitions[usize::from(partition.0) / usize::from(self.settings.shards)]
    }

    /// Lets the rules decide until nothing is left to decide here.
    fn work(&mut self) {
        while let Some((partition, input)) = self.inputs.pop_front() {
            let subject = input.subject();
            self.rule(partition, subject, |owner, now, effects| owner.handle(now, input, effects));
        }
    }

    /// Lets one rule of a partition decide, and does what it wishes. If it panics, the partition begins anew.
    fn rule(
        &mut self,
        partition: PartitionId,
        subject: Subject,
        decide: impl FnOnce(&mut Partition, Now, &mut Effects),
    ) {
        let now = self.now;
        let mut effects = std::mem::take(&mut self.effects);
        let owner = self.partition(partition);
        if survived(|| decide(owner, now, &mut effects)).is_none() {
            let wished = std::mem::take(&mut effects);
            owner.reload(subject, wished, &mut effects);
            self.counters.count(Metric::Faults);
            for shard in 0..self.settings.shards {
                self.route(partition, Effect::Evict { partition, by: ShardId(shard) });
            }
        }
        let due = self.partition(partition).next_deadline();
        self.partitions_due = due.map_or(self.partitions_due, |due| due.min(self.partitions_due));
        for effect in effects.drain(..) {
            self.route(partition, effect);
        }
        self.effects = effects;
    }

    /// Does what is due in the rules.
    pub fn tick_partitions(&mut self) {
        let now = self.now;
        if self.partitions_due > now.mono {
            return;
        }
        for index in 0..self.partitions.len() {
            if self.partitions[index].next_deadline().is_none_or(|due| due > now.mono) {
                continue;
            }
            let partition =
                PartitionId((index * usize::from(self.settings.shards) + usize::from(self.id.0)) as u8);
            self.rule(partition, Subject::default(), |owner, now, effects| owner.tick(now, effects));
        }
        let due = self.partitions.iter().filter_map(Partition::next_deadline).min();
        self.partitions_due = due.unwrap_or(Mono(u64::MAX));
    }

    /// Performs a wish here or sends it to the shard that can.
    fn route(&mut self, from: PartitionId, effect: Effect) {
        let shard = match &effect {
            Effect::Answer { origin: Origin::Connection { connection, .. }, .. }
            | Effect::Push { connection, .. }
            | Effect::Close { connection, .. } => connection.shard,
            Effect::Answer { origin: Origin::Outside { shard, .. }, .. } => *shard,
            Effect::Mail { to, .. } => owner_of(*to, self.settings.shards),
            Effect::Evict { by, .. } => *by,
            Effect::Ask { .. } => self.id,
        };
        match effect {
            Effect::Ask { ticket, request } => {
                self.actions.asks.push(Ask { partition: from, ticket, request })
            }
            effect if shard == self.id => self.perform(effect),
            effect => self.actions.mail.push((shard, effect)),
        }
    }

    /// Performs a wish that is for this shard.
    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Mail { to, input } => self.input(to, input),
            Effect::Answer { origin: Origin::Connection { connection, id }, answer } => {
                self.or_broken(connection, |core| core.answer(connection, id, answer));
            }
            Effect::Answer { origin: Origin::Outside { ticket, .. }, answer } => {
                self.actions.answers.push((ticket, answer));
            }
            Effect::Push { connection, push } => {
                self.or_broken(connection, |core| core.push(connection, push));
            }
            Effect::Evict { partition, .. } => self.evict(partition),
            Effect::Close { connection, cause } => self.close_for(connection, cause),
            Effect::Ask { .. } => debug_assert!(false, "a partition asks the store through its own shard"),
        }
    }

    /// The slot of a live connection.
    pub fn slot(&mut self, connection: ConnectionId) -> Option<u32> {
        self.table.find(connection).map(|_| connection.slot)
    }

    fn gauge(&mut self) {
        self.counters.set(Metric::Connections, self.table.live());
        self.counters.set(Metric::Unauthenticated, self.unauthenticated.count());
        let mut all = domain::Counts::default();
        for partition in &self.partitions {
            let counts = partition.counts();
            all.sessions += counts.sessions;
            all.devices += counts.devices;
            all.conversations += counts.conversations;
            all.flights += counts.flights;
        }
        self.counters.set(Metric::Sessions, all.sessions);
        self.counters.set(Metric::Devices, all.devices);
        self.counters.set(Metric::Conversations, all.conversations);
        self.counters.set(Metric::Flights, all.flights);
    }
}
