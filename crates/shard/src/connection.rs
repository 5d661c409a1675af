//! The table of connections: one small record each, in the slots of the reactor.
//!
//! ```text
//!  accept           upgrade                `connect`              close
//! ────────▶ Head ───────────▶ Upgraded ───────────────▶ Open ───────────────▶ Closing ──▶ (free)
//!             │ not the socket path: handed over, free    at any time, with a reason
//! ```

use std::net::IpAddr;

use auth::{Identity, SessionId};
use hashbrown::HashMap;
use model::{ConnectionId, DeviceId, DeviceKey, HashKey, Mono, ShardId, UserId, Wall};
use protocol::Encoding;
use websocket::{Receiver, RequestReader};

/// What a connection awaits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Nobody: the slot is free.
    Free,
    /// The end of its request head.
    Head,
    /// Its `connect`.
    Upgraded,
    /// Commands.
    Open,
    /// Being closed, later in this turn.
    Closing,
}

/// What is only known of a connection before it is open. It exists until the session stands.
#[derive(Debug)]
pub struct Opening {
    pub address: IpAddr,
    pub reader: RequestReader,
    pub head: Vec<u8>,
    /// From `Authorization` of the upgrade.
    pub identity: Option<Identity>,
    /// The session to name in the reply to `connect`.
    pub session: Option<SessionId>,
    /// It counts among those that have not said who they are.
    pub counted: bool,
}

/// What waits for a socket that does not take it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clogged {
    /// How many bytes.
    pub bytes: usize,
    /// Sweeps in a row that found none of them taken.
    pub sweeps: u8,
}

/// One connection. At most 64 bytes is the promise; see [`CONNECTION_BYTES`]. What only a few of them have at a time is kept beside the
/// table.
#[derive(Debug)]
pub struct Connection {
    pub receiver: Receiver,
    user: UserId,
    device: DeviceId,
    pub generation: u32,
    /// When the token expires, in seconds of Unix time.
    expires: u32,
    /// When something last came, in seconds.
    pub last_seen: u32,
    /// The moment up to which commands have used up the allowed rate, as `Pace` counts it.
    pub rate: u32,
    pub phase: Phase,
    pub encoding: Encoding,
    pub flags: u8,
}

/// The size of a connection's record, in bytes.
pub const CONNECTION_BYTES: usize = size_of::<Connection>();
const _: () = assert!(CONNECTION_BYTES <= 64);

/// `token_expiring` was pushed.
pub const EXPIRY_TOLD: u8 = 1;
/// Pings sent since something last came: two bits.
pub const PINGS_SHIFT: u8 = 1;
const PINGS_MASK: u8 = 0b110;

impl Connection {
    const fn free() -> Self {
        Connection {
            receiver: Receiver::new(),
            user: UserId([0; 16]),
            device: DeviceId(0),
            generation: 0,
            expires: 0,
            last_seen: 0,
            rate: 0,
            phase: Phase::Free,
            encoding: Encoding::Json,
            flags: 0,
        }
    }

    /// Whose it is, once that is known.
    pub fn device(&self) -> DeviceKey {
        DeviceKey { user: self.user, device: self.device }
    }

    pub fn set_device(&mut self, device: DeviceKey) {
        self.user = device.user;
        self.device = device.device;
    }

    /// The first moment at which the session is over. Whole seconds, as tokens have them.
    pub fn expires(&self) -> Wall {
        Wall(u64::from(self.expires) * 1_000)
    }

    pub fn set_expires(&mut self, at: Wall) {
        self.expires = u32::try_from(at.0 / 1_000).unwrap_or(u32::MAX);
        self.flags &= !EXPIRY_TOLD;
    }

    /// Something came.
    pub fn seen(&mut self, now: Mono) {
        self.last_seen = seconds(now);
        self.flags &= !PINGS_MASK;
    }

    pub fn pings(&self) -> u8 {
        (self.flags & PINGS_MASK) >> PINGS_SHIFT
    }

    pub fn count_ping(&mut self) {
        let pings = (self.pings() + 1).min(3);
        self.flags = self.flags & !PINGS_MASK | pings << PINGS_SHIFT;
    }
}

/// Seconds of the monotonic clock, as records keep them: 136 years.
pub fn seconds(now: Mono) -> u32 {
    (now.0 / 1_000) as u32
}

/// Connections in one piece of the table.
const PIECE: usize = 256;

/// All connections of a shard, in pieces that never move: growing copies nothing, at whatever size.
pub struct Table {
    shard: ShardId,
    pieces: Vec<Box<[Connection]>>,
    live: usize,
    /// Of those that are not open yet.
    openings: HashMap<u32, Box<Opening>, HashKey>,
    /// Of those whose output waits.
    clogged: HashMap<u32, Clogged, HashKey>,
}

impl Table {
    pub fn new(shard: ShardId, hash_key: HashKey) -> Self {
        Table {
            shard,
            pieces: Vec::new(),
            live: 0,
            openings: HashMap::with_hasher(hash_key),
            clogged: HashMap::with_hasher(hash_key),
        }
    }

    pub fn live(&self) -> usize {
        self.live
    }

    /// Slots ever used: a sweep goes over these.
    pub fn slots(&self) -> usize {
        self.pieces.len() * PIECE
    }

    pub fn open(&mut self, slot: u32, address: IpAddr, now: Mono) -> &mut Connection {
        while self.slots() <= slot as usize {
            self.pieces.push(std::iter::repeat_with(Connection::free).take(PIECE).collect());
        }
        self.live += 1;
        let connection = self.at(slot);
        debug_assert_eq!(connection.phase, Phase::Free, "slot {slot} was given out twice");
        let generation = connection.generation;
        *connection = Connection { generation, phase: Phase::Head, ..Connection::free() };
        connection.seen(now);
        let opening = Opening {
            address,
            reader: RequestReader::new(),
            head: Vec::new(),
            identity: None,
            session: None,
            counted: true,
        };
        self.openings.insert(slot, Box::new(opening));
        self.at(slot)
    }

    /// What is only known of a connection before it is open.
    pub fn opening(&mut self, slot: u32) -> Option<&mut Opening> {
        self.openings.get_mut(&slot).map(|opening| &mut **opening)
    }

    /// Whether its `connect` has been answered, so that something may be pushed.
    pub fn stands(&self, slot: u32) -> bool {
        !self.openings.contains_key(&slot)
    }

    /// Takes it out, to be put back or to be done with.
    pub fn take_opening(&mut self, slot: u32) -> Option<Box<Opening>> {
        self.openings.remove(&slot)
    }

    pub fn put_opening(&mut self, slot: u32, opening: Box<Opening>) {
        self.openings.insert(slot, opening);
    }

    /// Bytes that wait for the socket.
    pub fn unsent(&self, slot: u32) -> usize {
        if self.clogged.is_empty() { 0 } else { self.clogged.get(&slot).map_or(0, |clogged| clogged.bytes) }
    }

    /// So many bytes wait for the socket now.
    pub fn set_unsent(&mut self, slot: u32, bytes: usize) {
        if bytes == 0 {
            self.clogged.remove(&slot);
            return;
        }
        let clogged = self.clogged.entry(slot).or_default();
        if bytes < clogged.bytes {
            clogged.sweeps = 0;
        }
        clogged.bytes = bytes;
    }

    /// A sweep looks at a connection; returns how many in a row have found that nothing was taken of what waits.
    pub fn count_stall(&mut self, slot: u32) -> u8 {
        if self.clogged.is_empty() {
            return 0;
        }
        self.clogged.get_mut(&slot).map_or(0, |clogged| {
            clogged.sweeps = clogged.sweeps.saturating_add(1);
            clogged.sweeps
        })
    }

    /// Gives back memory that a burst has left behind.
    pub fn rest(&mut self) {
        self.openings.shrink_to(64);
        self.clogged.shrink_to(64);
    }

    /// The slot is free; who had it is never reached through it again.
    pub fn free(&mut self, slot: u32) {
        let connection = self.at(slot);
        if connection.phase != Phase::Free {
            let generation = connection.generation.wrapping_add(1);
            *connection = Connection { generation, ..Connection::free() };
            self.live -= 1;
            self.openings.remove(&slot);
            self.clogged.remove(&slot);
        }
    }

    pub fn at(&mut self, slot: u32) -> &mut Connection {
        &mut self.pieces[slot as usize / PIECE][slot as usize % PIECE]
    }

    pub fn get(&mut self, slot: u32) -> Option<&mut Connection> {
        let piece = self.pieces.get_mut(slot as usize / PIECE)?;
        Some(&mut piece[slot as usize % PIECE]).filter(|connection| connection.phase != Phase::Free)
    }

    /// The tenant an id means, if it still has the slot.
    pub fn find(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.get(id.slot).filter(|connection| connection.generation == id.generation)
    }

    pub fn id(&self, slot: u32) -> ConnectionId {
        ConnectionId {
            shard: self.shard,
            slot,
            generation: self.pieces[slot as usize / PIECE][slot as usize % PIECE].generation,
        }
    }
}
