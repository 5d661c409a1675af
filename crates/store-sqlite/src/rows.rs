//! How values lie in rows.
//!
//! SQLite's integers are signed: a `u64` keeps its bits, so times from 2^63 on are negative there. Owns that and the layout of log
//! entries; deliberately runs no statement.

use model::{
    Body, Change, ClientId, ConversationId, ConversationKind, DeviceId, DeviceKey, Entry, Payload, Seq,
    UserId, Wall,
};
use rusqlite::Row;
use rusqlite::types::ValueRef;

use crate::trouble::Trouble;

/// The last seq a log can have.
pub(crate) const SEQ_MAX: u64 = u32::MAX as u64;

/// The key of a log entry.
pub(crate) fn place(number: i64, seq: u64) -> i64 {
    debug_assert!(seq <= SEQ_MAX);
    number << 32 | seq as i64
}

pub(crate) fn kind_code(kind: ConversationKind) -> i64 {
    match kind {
        ConversationKind::Direct => 0,
        ConversationKind::Group => 1,
    }
}

pub(crate) fn kind(code: i64) -> Result<ConversationKind, Trouble> {
    match code {
        0 => Ok(ConversationKind::Direct),
        1 => Ok(ConversationKind::Group),
        _ => Err(Trouble::damaged(format!("a conversation of kind {code}"))),
    }
}

/// The columns of a log entry that depend on what it says.
pub(crate) struct Columns<'a> {
    pub kind: i64,
    pub user: UserId,
    pub device: Option<u32>,
    pub name: Option<&'a [u8; 16]>,
    pub body: Option<&'a [u8]>,
}

impl<'a> Columns<'a> {
    pub(crate) fn message(from: DeviceKey, client_id: &'a ClientId, payload: &'a [u8]) -> Self {
        Columns {
            kind: 0,
            user: from.user,
            device: Some(from.device.0),
            name: Some(&client_id.0),
            body: Some(payload),
        }
    }

    /// `members` are the bytes of all of them, one after the other.
    pub(crate) fn created(by: UserId, members: &'a [u8]) -> Self {
        Columns { kind: 1, user: by, device: None, name: None, body: Some(members) }
    }

    pub(crate) fn added(by: UserId, user: &'a UserId) -> Self {
        Columns { kind: 2, user: by, device: None, name: Some(&user.0), body: None }
    }

    pub(crate) fn removed(by: UserId, user: &'a UserId) -> Self {
        if by == *user {
            Columns { kind: 4, user: by, device: None, name: None, body: None }
        } else {
            Columns { kind: 3, user: by, device: None, name: Some(&user.0), body: None }
        }
    }
}

/// An entry from the columns `place, ts, kind, user, device, name, body`.
pub(crate) fn entry(row: &Row<'_>) -> Result<Entry, Trouble> {
    let user = UserId(id(row, 3)?);
    let body = match row.get::<_, i64>(2)? {
        0 => Body::Message {
            from: DeviceKey { user, device: device(row, 4)? },
            client_id: ClientId(id(row, 5)?),
            payload: Payload::from(bytes(row, 6)?),
        },
        1 => {
            let (members, rest) = bytes(row, 6)?.as_chunks::<16>();
            if !rest.is_empty() {
                return Err(Trouble::damaged("an entry with a part of a member"));
            }
            Body::Change(Change::Created {
                by: user,
                members: members.iter().map(|id| UserId(*id)).collect(),
            })
        }
        2 => Body::Change(Change::Added { by: user, user: UserId(id(row, 5)?) }),
        3 => Body::Change(Change::Removed { by: user, user: UserId(id(row, 5)?) }),
        4 => Body::Change(Change::Left { user }),
        kind => return Err(Trouble::damaged(format!("an entry of kind {kind}"))),
    };
    Ok(Entry { seq: Seq(row.get::<_, i64>(0)? as u64 & SEQ_MAX), ts: ts(row, 1)?, body })
}

pub(crate) fn conversation_id(row: &Row<'_>, column: usize) -> Result<ConversationId, Trouble> {
    Ok(ConversationId(id(row, column)?))
}

pub(crate) fn user_id(row: &Row<'_>, column: usize) -> Result<UserId, Trouble> {
    Ok(UserId(id(row, column)?))
}

pub(crate) fn device(row: &Row<'_>, column: usize) -> Result<DeviceId, Trouble> {
    Ok(DeviceId(row.get(column)?))
}

pub(crate) fn seq(row: &Row<'_>, column: usize) -> Result<Seq, Trouble> {
    Ok(Seq(row.get::<_, i64>(column)? as u64))
}

pub(crate) fn ts(row: &Row<'_>, column: usize) -> Result<Wall, Trouble> {
    Ok(Wall(row.get::<_, i64>(column)? as u64))
}

pub(crate) fn id(row: &Row<'_>, column: usize) -> Result<[u8; 16], Trouble> {
    let bytes = bytes(row, column)?;
    bytes.try_into().map_err(|_| Trouble::damaged(format!("an id of {} bytes", bytes.len())))
}

pub(crate) fn bytes<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a [u8], Trouble> {
    match row.get_ref(column)? {
        ValueRef::Blob(bytes) => Ok(bytes),
        other => Err(Trouble::damaged(format!("{} where bytes belong", other.data_type()))),
    }
}
