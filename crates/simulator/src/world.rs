//! A whole server with its clients, its disk and its network, moved by chance from one seed.

use std::collections::BTreeSet;

use model::limits::SWEEP_ROUND;
use model::{ConversationId, DeviceId, DeviceKey, HashKey, Mono, Now, ShardId, Span, UserId, Wall};
use shard::Shard;
use store::Engine;
use websocket::Pool;

use crate::client::{Around, Client};
use crate::coverage::{Coverage, Seen};
use crate::disk::Disk;
use crate::names::{Named, Registry};
use crate::office::Office;
use crate::oracle::Oracle;
use crate::plan::Plan;
use crate::post::Post;
use crate::random::Random;
use crate::server::{Side, Surroundings};
use crate::strangers;
use crate::tamper::{Mistake, Tamper};
use crate::tokens::Tokens;
use crate::trace::Trace;
use crate::violation::{Checked, broken};
use crate::wires::Wires;

/// How often old client ids are looked for.
pub const FORGET_EVERY: Span = Span::seconds(60);

/// The wall clock at the start: a moment in 2023, as good as any.
const EPOCH: Wall = Wall(1_700_000_000_000);

/// Everything there is in a run.
pub struct World {
    /// The circumstances.
    pub plan: Plan,
    /// Chance.
    pub random: Random,
    /// The time.
    pub now: Now,
    /// What was noted.
    pub trace: Trace,
    /// What was counted.
    pub coverage: Coverage,
    /// The process: its shards.
    pub sides: Vec<Side>,
    /// Mail between them.
    pub post: Post,
    /// The store.
    pub disk: Disk,
    /// The network.
    pub wires: Wires,
    /// The clients.
    pub clients: Vec<Client>,
    /// Who asks from outside.
    pub office: Office,
    /// The checkers.
    pub oracle: Oracle,
    /// What is made wrong on purpose.
    pub tamper: Tamper,
    /// The users.
    pub users: Vec<UserId>,
    tokens: Tokens,
    hash_key: HashKey,
    pool: Pool,
    /// Conversations that were loaded in this process.
    pub loaded: BTreeSet<ConversationId>,
    /// Nothing goes wrong any more.
    pub calm: bool,
    draining_until: Option<Mono>,
    disk_rests_until: u32,
    /// When client ids are next forgotten.
    pub forget_at: Mono,
    /// Turns of the store thread before its next sync: a mistake made on purpose.
    pub sync_waits: u32,
    /// A sync has failed, and the process ends after some more steps.
    pub ends_in: Option<u32>,
}

impl World {
    /// A world in which nobody is connected.
    pub fn new(plan: Plan, mut random: Random, trace: Trace, tamper: Tamper) -> Self {
        let hash_key = HashKey(random.bytes16());
        let registry = Registry { hash_key, last: plan.partitions };
        let users: Vec<UserId> = (0..plan.users).map(|number| registry.user(&mut random, number)).collect();
        let mut clients = Vec::new();
        for user in &users {
            for device in 1..=random.between(1, u64::from(plan.devices_max)) as u32 {
                let key = DeviceKey { user: *user, device: DeviceId(device) };
                clients.push(Client::new(clients.len() as u16, key, &mut random));
            }
        }
        let queues = plan.shards + u16::from(tamper.mistake() == Mistake::TwoWriters);
        let mut world = World {
            now: Now { mono: Mono(1), wall: Wall(EPOCH.0 + random.between(0, 999)) },
            hash_key,
            trace,
            coverage: Coverage::default(),
            sides: Vec::new(),
            post: Post::new(queues),
            disk: Disk::new(queues),
            wires: Wires::default(),
            clients,
            office: Office::new(registry, plan.conversations_max),
            oracle: Oracle::default(),
            tamper,
            users,
            tokens: Tokens::new(),
            pool: Pool::default(),
            loaded: BTreeSet::new(),
            calm: false,
            draining_until: None,
            disk_rests_until: 0,
            forget_at: Mono(0),
            sync_waits: 0,
            ends_in: None,
            plan,
            random,
        };
        world.start();
        world
    }

    /// The key of the partition hash.
    pub fn hash_key(&self) -> HashKey {
        self.hash_key
    }

    /// Starts the process from what is durable.
    fn start(&mut self) {
        let mut settings =
            shard::Settings::new(self.plan.shards, self.hash_key, self.tokens.keys(), self.tokens.rules());
        settings.commands_burst = self.plan.commands_burst;
        settings.commands_per_second = self.plan.commands_burst / 2;
        settings.admission_burst = self.plan.admission_burst;
        settings.admission_per_second = self.plan.admission_burst;
        settings.connections_max = self.plan.connections_max;
        settings.unauthenticated_max = self.plan.unauthenticated_max;
        settings.domain.residents_max = self.plan.residents_max;
        settings.domain.receipts_members_max = self.plan.receipts_members_max;
        let side = |id, queue| Side::new(queue, Shard::new(id, settings.clone(), self.now), &self.plan);
        self.sides = (0..self.plan.shards).map(|id| side(ShardId(id), ShardId(id))).collect();
        if self.tamper.mistake() == Mistake::TwoWriters {
            // It takes itself for the first.
            self.sides.push(side(ShardId(0), ShardId(self.plan.shards)));
        }
        let (sides, key, shards) = (&mut self.sides, self.hash_key, self.plan.shards);
        let know = &mut |device: DeviceKey, pending| {
            let partition = model::partition_of_user(&key, device.user);
            sides[usize::from(shard::owner_of(partition, shards).0)].shard.know(device, pending);
        };
        self.disk.store.devices(know).expect("memory does not fail");
        self.oracle.restarted(self.plan.shards, &self.disk.store);
    }

    /// The process dies, and another takes its place.
    pub fn crash(&mut self) -> Checked {
        if !self.calm && self.random.below(2) == 0 {
            self.begin_commit()?;
        }
        self.trace.line(format_args!("{} the process dies and is started again", self.now.mono.0));
        self.coverage.count(Seen::Crashes);
        self.restart()
    }

    /// Everything but the disk is gone, and another process takes its place.
    pub fn restart(&mut self) -> Checked {
        self.wires.sever_all();
        self.post.clear();
        self.tamper.restarted();
        self.office.crash();
        self.loaded.clear();
        self.draining_until = None;
        self.ends_in = None;
        self.sync_waits = 0;
        self.forget_at = self.now.mono + FORGET_EVERY;
        self.recover()?;
        self.start();
        Ok(())
    }

    /// Some time passes.
    pub fn pass(&mut self, span: Span) {
        self.now.mono.0 += span.0;
        self.now.wall.0 += span.0;
    }

    /// Something happens, as chance will have it, in the `step`-th step.
    pub fn step(&mut self, step: u32) -> Checked {
        self.fate(step)?;
        let time = if self.random.below(4) == 0 { self.random.between(1, 20) } else { 0 };
        self.pass(Span(time));
        match self.random.below(100) {
            0..=29 => {
                let side = self.random.below(self.sides.len());
                if self.sides[side].rests_until <= step {
                    self.turn(side)?;
                }
            }
            30..=41 if self.disk_rests_until < step => self.commit(false)?,
            42..=97 => {
                let client = self.random.below(self.clients.len());
                self.client(client)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// What goes wrong, and what comes from outside.
    fn fate(&mut self, step: u32) -> Checked {
        while self.plan.crashes.first() == Some(&step) {
            self.plan.crashes.remove(0);
            self.crash()?;
        }
        if let Some((from, to)) = self.plan.full {
            self.disk.full = (from..to).contains(&step);
        }
        match self.ends_in {
            Some(0) => {
                self.trace.line(format_args!(
                    "{} the process ends because a sync failed, and is started again",
                    self.now.mono.0
                ));
                self.restart()?;
            }
            steps => self.ends_in = steps.map(|steps| steps - 1),
        }
        if self.plan.drain == Some(step) {
            self.drain();
        }
        if self.plan.storm == Some(step) {
            self.storm(step);
        }
        if self.draining_until.is_some() {
            self.wires.refuse_arrivals();
        }
        if self.draining_until.is_some_and(|until| self.now.mono > until) {
            self.trace.line(format_args!("{} the process has drained and is started again", self.now.mono.0));
            for side in 0..self.sides.len() {
                self.turn(side)?;
                let left = self.sides[side].shard.connections();
                if left > 0 {
                    return broken(
                        "X5",
                        format!("shard {side} has drained and still has {left} connections"),
                    );
                }
            }
            self.restart()?;
        }
        if self.random.permille(self.plan.strangers) {
            let shard = ShardId(self.random.below(usize::from(self.plan.shards)) as u16);
            strangers::visit(&mut self.wires, shard, &mut self.random, &mut self.coverage);
        }
        if self.random.permille(self.plan.disk_stalls) {
            self.coverage.count(Seen::DiskStalls);
            self.disk_rests_until = step + self.random.between(10, 500) as u32;
        }
        if self.random.permille(self.plan.shard_stalls) {
            self.coverage.count(Seen::ShardStalls);
            let side = self.random.below(self.sides.len());
            self.sides[side].rests_until = step + self.random.between(10, 300) as u32;
        }
        if self.random.permille(self.plan.leaps) {
            let leap = self.random.between(100, self.plan.leap_max.0);
            match self.random.below(2) {
                0 => self.live_through(Span(leap))?,
                // The whole process stood still.
                _ => self.pass(Span(leap)),
            }
        }
        if self.plan.wall_jumps && self.random.permille(3) {
            let jump = self.random.between(0, 120_000);
            self.now.wall.0 = self.now.wall.0 + jump - 60_000;
        }
        if self.random.permille(self.plan.holds) {
            let shards = usize::from(self.plan.shards);
            let pair = [self.random.below(shards), self.random.below(shards)];
            let until = Mono(self.now.mono.0 + self.random.between(1, self.plan.hold_max.0));
            self.coverage.count(Seen::MailHeld);
            self.post.hold(ShardId(pair[0] as u16), ShardId(pair[1] as u16), until);
        }
        if self.random.permille(self.plan.office) {
            let shard = ShardId(self.random.below(usize::from(self.plan.shards)) as u16);
            if let Some(input) = self.office.request(&self.users, &self.oracle, shard, &mut self.random) {
                self.sides[usize::from(shard.0)].outside.push_back(input);
            }
        }
        Ok(())
    }

    /// Whether the process is about to end.
    pub fn is_draining(&self) -> bool {
        self.draining_until.is_some()
    }

    /// Time passes in which the shards turn now and then, and nobody else does anything.
    fn live_through(&mut self, span: Span) -> Checked {
        let end = Mono(self.now.mono.0 + span.0);
        while self.now.mono < end {
            self.pass(Span(SWEEP_ROUND.0.min(end.0 - self.now.mono.0)));
            for side in 0..self.sides.len() {
                self.turn(side)?;
            }
        }
        Ok(())
    }

    /// All members of the largest conversation speak at once, while the disk does nothing.
    fn storm(&mut self, step: u32) {
        let members = |id: &ConversationId| self.disk.store.cursors(*id).count();
        let Some(conversation) = self.disk.store.conversations().max_by_key(members) else { return };
        self.coverage.count(Seen::Storms);
        self.trace.line(format_args!("{} a storm in {}", self.now.mono.0, Named(conversation)));
        for client in 0..self.clients.len() {
            let count = self.random.between(100, 600);
            let (client, mut around) = self.around(client);
            if around.oracle.share(conversation, client.key).is_some() {
                client.hurry();
                (0..count).for_each(|_| client.write(conversation, &mut around));
            }
        }
        self.disk_rests_until = step + 600;
    }

    fn drain(&mut self) {
        self.coverage.count(Seen::Drains);
        let until = Mono(self.now.mono.0 + self.random.between(10, 3_000));
        self.trace.line(format_args!("{} Event::Drain until {}", self.now.mono.0, until.0));
        for side in &mut self.sides {
            side.shard.handle(self.now, shard::Event::Drain { until });
        }
        self.draining_until = Some(until + Span(2_500));
    }

    /// A turn of one shard. Whether anything happened.
    pub fn turn(&mut self, side: usize) -> Result<bool, crate::violation::Violation> {
        let mut around = Surroundings {
            now: self.now,
            random: &mut self.random,
            trace: &mut self.trace,
            coverage: &mut self.coverage,
            wires: &mut self.wires,
            post: &mut self.post,
            disk: &mut self.disk,
            office: &mut self.office,
            oracle: &mut self.oracle,
            tamper: &mut self.tamper,
            faults: if self.calm { 0 } else { self.plan.faults },
            calm: self.calm,
        };
        let busy = self.sides[side].turn(&mut around);
        if let Some(violation) = self.sides[side].violation.take() {
            return Err(violation);
        }
        self.office.verdict()?;
        Ok(busy)
    }

    /// A client does something.
    pub fn client(&mut self, client: usize) -> Checked {
        let (client, mut around) = self.around(client);
        client.step(&mut around)
    }

    /// A client and what is around it.
    pub fn around(&mut self, client: usize) -> (&mut Client, Around<'_>) {
        let around = Around {
            now: self.now,
            random: &mut self.random,
            trace: &mut self.trace,
            coverage: &mut self.coverage,
            wires: &mut self.wires,
            oracle: &mut self.oracle,
            store: &self.disk.store,
            plan: &self.plan,
            tokens: &self.tokens,
            pool: &mut self.pool,
            shards: self.plan.shards,
            hash_key: self.hash_key,
            calm: self.calm,
        };
        (&mut self.clients[client], around)
    }
}
