//! The table of sockets: which descriptor, whose turn, what is armed. Sixteen bytes each.

use std::os::fd::OwnedFd;

/// A socket for as long as it is open: a slot of its reactor's table and which tenant of that slot it is. An id that
/// has gone stale reaches nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId {
    /// The place in the table; small numbers are used again first.
    pub slot: u32,
    /// How often the slot was used before.
    pub generation: u32,
}

impl SocketId {
    pub(crate) fn token(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    pub(crate) fn from_token(token: u64) -> SocketId {
        SocketId { slot: token as u32, generation: (token >> 32) as u32 }
    }
}

/// No outbox; or, in a vacant slot, the end of the list of vacant ones.
pub(crate) const NONE: u32 = u32::MAX;

/// One socket.
#[derive(Debug)]
pub(crate) struct Slot {
    fd: Option<OwnedFd>,
    generation: u32,
    /// The index of the outbox while output waits; in a vacant slot, the next vacant one.
    pub outbox: u32,
    pub state: State,
}

const _: () = assert!(size_of::<Slot>() == 16);

/// What is so about a socket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub phase: Phase,
    pub reading: Reading,
    /// What epoll was told last.
    pub armed: Armed,
    /// The peer has said its last or the connection broke: reading goes on until it finds that.
    pub ending: bool,
}

/// Where a socket is in its life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The connection is still being made.
    Connecting,
    #[default]
    Open,
    /// Nobody waits for input any more; it closes when the output is out and the peer has closed too.
    Lingering,
}

/// What a read would do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Nothing: the next event is not here yet.
    #[default]
    Awaited,
    /// Ask the kernel: the present event has not been answered with a read yet.
    Ready,
    /// The last read may have left something: the socket's turn comes again without an event.
    Again,
    /// The caller has no room for what would be read.
    Paused,
    /// The peer has said all: the last read gave the end or an error.
    Ended,
}

/// Under which events a socket is registered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Armed {
    /// Not in the epoll set: it would be reported for ever.
    #[default]
    Absent,
    /// Only errors and hang-ups, which cannot be masked.
    Nothing,
    /// When something new comes. What a read leaves is remembered here ([`Reading::Again`]), so the kernel need not look at the
    /// socket once more after every event, as it does to find out whether to report it again.
    ReadNew,
    /// While there is something to read.
    Read,
    Write,
    ReadWrite,
}

impl Armed {
    pub fn wanting(read: bool, write: bool, phase: Phase) -> Armed {
        match (read, write) {
            (false, false) => Armed::Nothing,
            (true, false) if phase == Phase::Open => Armed::ReadNew,
            (true, false) => Armed::Read,
            (false, true) => Armed::Write,
            (true, true) => Armed::ReadWrite,
        }
    }
}

/// All sockets of a reactor.
#[derive(Debug)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    vacant: u32,
    occupied: usize,
}

impl Slots {
    pub const fn new() -> Slots {
        Slots { slots: Vec::new(), vacant: NONE, occupied: 0 }
    }

    pub fn len(&self) -> usize {
        self.occupied
    }

    pub fn insert(&mut self, fd: OwnedFd, state: State) -> SocketId {
        self.occupied += 1;
        if self.vacant == NONE {
            let slot = self.slots.len() as u32;
            self.slots.push(Slot { fd: Some(fd), generation: 0, outbox: NONE, state });
            return SocketId { slot, generation: 0 };
        }
        let index = self.vacant;
        let slot = &mut self.slots[index as usize];
        self.vacant = slot.outbox;
        slot.fd = Some(fd);
        slot.outbox = NONE;
        slot.state = state;
        SocketId { slot: index, generation: slot.generation }
    }

    /// The socket and its descriptor, unless the id is stale.
    pub fn get_mut(&mut self, id: SocketId) -> Option<(&OwnedFd, &mut u32, &mut State)> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        if slot.generation != id.generation {
            return None;
        }
        Some((slot.fd.as_ref()?, &mut slot.outbox, &mut slot.state))
    }

    pub fn get(&self, id: SocketId) -> Option<(&OwnedFd, &Slot)> {
        let slot = self.slots.get(id.slot as usize)?;
        if slot.generation != id.generation {
            return None;
        }
        Some((slot.fd.as_ref()?, slot))
    }

    /// The id of whoever has this slot now.
    pub fn tenant(&self, slot: u32) -> Option<SocketId> {
        let Slot { fd, generation, .. } = self.slots.get(slot as usize)?;
        fd.as_ref().map(|_| SocketId { slot, generation: *generation })
    }

    /// Vacates a slot; the descriptor and the outbox are the caller's to end.
    pub fn remove(&mut self, id: SocketId) -> Option<(OwnedFd, u32)> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        if slot.generation != id.generation {
            return None;
        }
        let fd = slot.fd.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        let outbox = std::mem::replace(&mut slot.outbox, self.vacant);
        self.vacant = id.slot;
        self.occupied -= 1;
        Some((fd, outbox))
    }
}
