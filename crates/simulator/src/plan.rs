//! What kind of run a seed makes: how large a world, and how much goes wrong in it.

use model::Span;
use model::limits::IDEMPOTENCY_WINDOW;

use crate::random::Random;

/// The circumstances of a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Shards of the server.
    pub shards: u16,
    /// Users.
    pub users: u8,
    /// Devices of a user, at most.
    pub devices_max: u32,
    /// Steps before things calm down.
    pub steps: u32,
    /// Conversations a partition keeps in memory.
    pub residents_max: usize,
    /// Receipts are not sent in conversations with more members.
    pub receipts_members_max: usize,
    /// The steps at which the process crashes.
    pub crashes: Vec<u32>,
    /// The step at which it is drained and started again.
    pub drain: Option<u32>,
    /// From and to which step the disk is full.
    pub full: Option<(u32, u32)>,
    /// The batches for which there is no room, counted over the run.
    pub full_writes: Vec<u64>,
    /// The syncs that fail, counted over the run.
    pub failed_syncs: Vec<u64>,
    /// The step at which everybody speaks at once in one conversation, while the disk does nothing.
    pub storm: Option<u32>,
    /// Longest payload, in bytes.
    pub payload_max: usize,
    /// Bursts of messages, in a thousand steps of a client.
    pub bursts: u32,
    /// Messages in a burst, at most.
    pub burst_max: u64,
    /// How often clients lose their connection, in a thousand of their steps.
    pub breaks: u32,
    /// How often clients stop reading for a while, in a thousand of their steps.
    pub stalls: u32,
    /// How often clients do what they should not, in a thousand of their steps.
    pub mischief: u32,
    /// How often mail between two shards is held back, in a thousand steps.
    pub holds: u32,
    /// For how long, at most.
    pub hold_max: Span,
    /// How often a long time passes, in a thousand steps.
    pub leaps: u32,
    /// How long that is, at most.
    pub leap_max: Span,
    /// The wall clock jumps, too.
    pub wall_jumps: bool,
    /// How long a token is valid.
    pub token_life: Span,
    /// Bytes a socket takes, at most.
    pub room_max: usize,
    /// How often members come and go, in a thousand steps.
    pub office: u32,
    /// Conversations that are made, at most.
    pub conversations_max: u16,
    /// How often a client comes back late, in a thousand.
    pub sleepers: u32,
    /// How often the disk does nothing for a while, in a thousand steps.
    pub disk_stalls: u32,
    /// How often a shard does nothing for a while, in a thousand steps.
    pub shard_stalls: u32,
    /// Partitions that all conversations and users fall into; more crowd in each when they are few.
    pub partitions: u8,
    /// Commands a connection may send in a burst, and then half as many a second.
    pub commands_burst: u32,
    /// Upgrades a shard admits at once, and then as many a second.
    pub admission_burst: u32,
    /// For how long client ids are remembered.
    pub idempotency: Span,
    /// Connections of one shard.
    pub connections_max: usize,
    /// Connections of one shard that have not said who they are.
    pub unauthenticated_max: usize,
    /// How often somebody comes who is no client of ours, in a thousand steps.
    pub strangers: u32,
    /// How often a rule panics in the middle, in a thousand turns.
    pub faults: u32,
}

impl Plan {
    /// Nothing goes wrong: so many shards, and two users with one device each.
    pub fn quiet(shards: u16) -> Plan {
        Plan {
            shards,
            users: 2,
            devices_max: 1,
            steps: 0,
            residents_max: 1_024,
            receipts_members_max: 64,
            crashes: Vec::new(),
            drain: None,
            full: None,
            full_writes: Vec::new(),
            failed_syncs: Vec::new(),
            storm: None,
            payload_max: 16,
            bursts: 0,
            burst_max: 0,
            breaks: 0,
            stalls: 0,
            mischief: 0,
            holds: 0,
            hold_max: Span(1),
            leaps: 0,
            leap_max: Span(1),
            wall_jumps: false,
            token_life: Span::seconds(3_600),
            room_max: 1 << 20,
            office: 0,
            conversations_max: 1,
            sleepers: 0,
            disk_stalls: 0,
            shard_stalls: 0,
            partitions: 255,
            commands_burst: 2_000,
            admission_burst: 20_000,
            idempotency: IDEMPOTENCY_WINDOW,
            connections_max: usize::MAX,
            unauthenticated_max: 8_192,
            strangers: 0,
            faults: 0,
        }
    }

    /// The circumstances of a seed.
    pub fn draw(random: &mut Random) -> Plan {
        let steps: u64 = *random.pick(&[500, 2_000, 4_000, 8_000]).unwrap_or(&500);
        let steps = random.between(steps / 2, steps) as u32;
        let crash = |random: &mut Random| random.between(u64::from(steps / 10), u64::from(steps)) as u32;
        let mut crashes: Vec<u32> = (0..random.below(5)).map(|_| crash(random)).collect();
        crashes.sort_unstable();
        let drain = (random.below(4) == 0).then(|| crash(random));
        let full = (random.below(5) == 0).then(|| {
            let from = crash(random);
            (from, from + random.between(20, 300) as u32)
        });
        // Early ones are reached by every run, late ones only by the longer runs.
        let nth = |random: &mut Random| {
            let most = 2 + (u64::from(steps) >> (2 + random.below(6)));
            random.between(1, most)
        };
        let full_writes = (random.below(3) == 0).then(|| (0..8).map(|_| nth(random)).collect());
        let failed_syncs = (random.below(4) == 0).then(|| (0..2).map(|_| nth(random)).collect());
        let storm = (random.below(8) == 0).then(|| crash(random));
        let burst_max = if random.below(3) == 0 { 700 } else { 60 };
        Plan {
            shards: *random.pick(&[1, 2, 2, 3, 4, 4, 7]).unwrap_or(&2),
            users: *random.pick(&[2, 3, 5, 8, 12]).unwrap_or(&5),
            devices_max: random.between(1, 3) as u32,
            steps,
            residents_max: *random.pick(&[1, 1, 2, 3, 1_024, 1_024]).unwrap_or(&1),
            receipts_members_max: *random.pick(&[3, 64, 64]).unwrap_or(&64),
            crashes,
            drain,
            full,
            full_writes: full_writes.unwrap_or_default(),
            failed_syncs: failed_syncs.unwrap_or_default(),
            storm,
            payload_max: *random.pick(&[16, 64, 64, 300, 300, 5_000, 60_000]).unwrap_or(&64),
            bursts: *random.pick(&[0, 2, 5]).unwrap_or(&0),
            burst_max,
            breaks: *random.pick(&[1, 3, 10, 40]).unwrap_or(&0),
            stalls: *random.pick(&[0, 5, 20, 40]).unwrap_or(&0),
            mischief: *random.pick(&[0, 10, 60]).unwrap_or(&0),
            holds: *random.pick(&[0, 5, 30, 100]).unwrap_or(&0),
            hold_max: Span(*random.pick(&[10, 200, 1_500, 6_000]).unwrap_or(&10)),
            leaps: *random.pick(&[1, 3, 10, 40]).unwrap_or(&5),
            leap_max: Span(*random.pick(&[2_500, 5_000, 70_000]).unwrap_or(&5_000)),
            wall_jumps: random.below(4) == 0,
            token_life: Span::seconds(*random.pick(&[30, 90, 3_600, 86_400]).unwrap_or(&3_600)),
            room_max: *random.pick(&[200, 4_096, 65_536, 1 << 20]).unwrap_or(&4_096),
            office: *random.pick(&[10, 30, 80, 200]).unwrap_or(&10),
            conversations_max: *random.pick(&[2, 5, 40]).unwrap_or(&5),
            sleepers: *random.pick(&[0, 100, 600]).unwrap_or(&0),
            shard_stalls: *random.pick(&[0, 2, 10]).unwrap_or(&0),
            disk_stalls: *random.pick(&[0, 0, 2]).unwrap_or(&0),
            partitions: *random.pick(&[2, 4, 16, 255]).unwrap_or(&255),
            commands_burst: *random.pick(&[100, 2_000, 2_000]).unwrap_or(&2_000),
            idempotency: *random
                .pick(&[Span::seconds(60), Span::seconds(900), IDEMPOTENCY_WINDOW])
                .unwrap_or(&IDEMPOTENCY_WINDOW),
            connections_max: *random.pick(&[2, 5, usize::MAX, usize::MAX, usize::MAX]).unwrap_or(&usize::MAX),
            unauthenticated_max: *random.pick(&[3, 8_192, 8_192]).unwrap_or(&8_192),
            strangers: *random.pick(&[0, 2, 10]).unwrap_or(&0),
            admission_burst: *random.pick(&[2, 20_000, 20_000]).unwrap_or(&20_000),
            faults: *random.pick(&[0, 0, 1, 10]).unwrap_or(&0),
        }
    }
}
