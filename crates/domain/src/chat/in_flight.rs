//! What a conversation has asked of the store and waits for.

use model::{ClientId, DeviceKey, Payload, Seq, UserId, Wall};

use crate::input::Origin;

/// What the store was asked and has not answered, in the order of asking.
pub enum InFlight {
    Append {
        origin: Origin,
        from: DeviceKey,
        client_id: ClientId,
        ts: Wall,
        payload: Payload,
        marks: bool,
    },
    Acknowledge {
        origin: Origin,
        device: DeviceKey,
        seq: Seq,
    },
    Read {
        origin: Origin,
        device: DeviceKey,
        seq: Seq,
    },
    Page {
        origin: Origin,
        head: Seq,
    },
    Add {
        origin: Origin,
        by: UserId,
        user: UserId,
        ts: Wall,
    },
    Remove {
        origin: Origin,
        by: UserId,
        user: UserId,
        ts: Wall,
    },
    /// The conversation as it is stored, before its log is trimmed.
    Survey,
    Settle {
        trim: Seq,
        unmarked: Vec<DeviceKey>,
        stored: Vec<(DeviceKey, Seq)>,
    },
}

/// Why new acts wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Barrier {
    /// They do not.
    Open,
    /// Until everything in flight has been answered.
    UntilAnswered,
    /// Until everything in flight has been answered and the conversation has been read anew.
    UntilReloaded,
}

impl InFlight {
    /// Who waits for the answer.
    pub fn origin(&self) -> Option<Origin> {
        match self {
            InFlight::Append { origin, .. }
            | InFlight::Acknowledge { origin, .. }
            | InFlight::Read { origin, .. }
            | InFlight::Page { origin, .. }
            | InFlight::Add { origin, .. }
            | InFlight::Remove { origin, .. } => Some(*origin),
            InFlight::Survey | InFlight::Settle { .. } => None,
        }
    }
}
