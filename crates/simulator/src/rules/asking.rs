//! How a wish becomes an act, and how its answer finds back.

use domain::{Act, Origin};
use model::{ClientId, ConnectionId, ConversationKind, DeviceKey, Payload, UserId};

use super::model::Wish;

/// The client id of a message.
pub fn client_id(user: UserId, number: u16) -> ClientId {
    let mut id = user.0;
    id[..2].copy_from_slice(&number.to_be_bytes());
    ClientId(id)
}

/// Where the answer goes to that has this id.
pub fn over(connection: ConnectionId, id: u64) -> Origin {
    Origin::Connection { connection, id: std::num::NonZeroU64::new(id) }
}

/// The id of what is answered there.
pub fn id_of(origin: Origin) -> u64 {
    match origin {
        Origin::Connection { id, .. } => id.map_or(0, std::num::NonZeroU64::get),
        Origin::Outside { ticket, .. } => ticket,
    }
}

/// What the rules are told of a wish.
pub fn act(origin: Origin, wish: &Wish, device: DeviceKey) -> Act {
    match wish.clone() {
        Wish::Send { from, number, payload } => {
            Act::Send { origin, from, client_id: client_id(from.user, number), payload }
        }
        Wish::Pass { from } => Act::Pass { origin, from, payload: Payload::from(&b"gone"[..]) },
        Wish::Receive { device, seq } => Act::Receive { origin, device, seq },
        Wish::Read { seq, .. } => Act::Read { origin, device, seq },
        Wish::Sync { user, after, limit, .. } => Act::Sync { origin, user, after, limit },
        Wish::Create { by, direct, members } => {
            let kind = if direct { ConversationKind::Direct } else { ConversationKind::Group };
            Act::Create { origin, by, kind, members }
        }
        Wish::Add { by, user } => Act::Add { origin, by, user },
        Wish::Remove { by, user } => Act::Remove { origin, by, user },
    }
}
