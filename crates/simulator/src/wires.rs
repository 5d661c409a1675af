//! The network: one wire a connection, with bytes under way in both directions.
//!
//! Owns what a kernel would: what was sent and not yet read, how much a socket takes, who has closed its side. Deliberately knows
//! nothing of what the bytes say.

use model::ShardId;

/// Names a wire for a whole run.
pub type WireId = usize;

/// One connection between a client and a shard.
#[derive(Debug)]
pub struct Wire {
    /// From the client, not yet read by the server.
    pub up: Vec<u8>,
    /// The client sends no more.
    pub up_ended: bool,
    /// To the client, not yet read by it.
    pub down: Vec<u8>,
    /// The server sends no more.
    pub down_ended: bool,
    /// The connection is broken: nothing comes through any more.
    pub broken: bool,
    /// What the server has sent and the socket does not take yet.
    pub unsent: Vec<u8>,
    /// How much the socket takes, in bytes under way.
    pub room: usize,
    /// The server closes it as soon as everything is sent.
    pub lingers: bool,
    /// The server has let go of it.
    pub let_go: bool,
    /// The client has let go of it.
    pub forgotten: bool,
}

impl Wire {
    fn new(room: usize) -> Self {
        Wire {
            up: Vec::new(),
            up_ended: false,
            down: Vec::new(),
            down_ended: false,
            broken: false,
            unsent: Vec::new(),
            room,
            lingers: false,
            let_go: false,
            forgotten: false,
        }
    }

    /// Moves what the socket takes. Returns how much waits.
    pub fn flush(&mut self) -> usize {
        let takes = self.room.saturating_sub(self.down.len()).min(self.unsent.len());
        self.down.extend(self.unsent.drain(..takes));
        if self.unsent.is_empty() && self.lingers {
            self.down_ended = true;
        }
        self.unsent.len()
    }

    /// The connection breaks for both sides.
    pub fn sever(&mut self) {
        self.broken = true;
        self.up.clear();
        self.down.clear();
        self.unsent.clear();
    }
}

/// All wires of a run that anybody still holds.
#[derive(Debug, Default)]
pub struct Wires {
    all: Vec<Option<Wire>>,
    /// Those that nobody has accepted yet.
    knocking: Vec<(ShardId, WireId)>,
}

impl Wires {
    /// A client connects to a shard.
    pub fn open(&mut self, shard: ShardId, room: usize) -> WireId {
        self.all.push(Some(Wire::new(room)));
        let id = self.all.len() - 1;
        self.knocking.push((shard, id));
        id
    }

    /// The connections that wait for a shard to accept them.
    pub fn arrivals(&mut self, shard: ShardId) -> Vec<WireId> {
        let here = self.knocking.extract_if(.., |(to, _)| *to == shard);
        here.map(|(_, id)| id).collect()
    }

    /// A shard takes no more connections: those that come are refused.
    pub fn refuse_arrivals(&mut self) {
        for (_, id) in std::mem::take(&mut self.knocking) {
            if let Some(wire) = self.get(id) {
                wire.sever();
                wire.let_go = true;
            }
            self.tidy(id);
        }
    }

    /// The wire, while somebody holds it.
    pub fn get(&mut self, id: WireId) -> Option<&mut Wire> {
        self.all.get_mut(id)?.as_mut()
    }

    /// Forgets it when neither side holds it.
    pub fn tidy(&mut self, id: WireId) {
        if self.get(id).is_some_and(|wire| wire.let_go && wire.forgotten) {
            self.all[id] = None;
        }
    }

    /// The server's process is gone: all its sockets break.
    pub fn sever_all(&mut self) {
        self.knocking.clear();
        for wire in self.all.iter_mut().flatten() {
            wire.sever();
            wire.let_go = true;
        }
        for id in 0..self.all.len() {
            self.tidy(id);
        }
    }
}
