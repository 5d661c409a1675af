//! The tables and how they came to be.
//!
//! Owns every `CREATE`, the version that says which of them a file has, and the steps from each version to the next. A step that was
//! released is never changed. Deliberately knows no request.
//!
//! A conversation is called by a small number inside the file, and an entry of a log lies under `number << 32 | seq`: one integer key
//! keeps a conversation's entries together, in order, in the fastest kind of tree SQLite has. The head of a log is not stored: it is
//! the last entry, or what was trimmed when there is none, so nothing can disagree with it and `Append` writes one row less.
//!
//! Client ids are the largest table, and a random place in it would cost every message a page of its own. So the client id comes first in
//! its key: those that begin with the time, as UUIDs of version 7 do, are written side by side.

use rusqlite::{Connection, ffi};

use crate::checksum::CHECKSUM_BYTES;
use crate::trouble::Trouble;

/// Marks a file as ours in the field SQLite keeps for it ("thrn").
pub(crate) const APPLICATION_ID: u32 = 0x7468_726e;

/// The size of a page in new files. Small pages make a commit of many small scattered rows cheap; 4096 is also what disks and the
/// system's page cache deal in.
pub(crate) const PAGE_BYTES: i32 = 4096;

/// The version this program writes.
pub(crate) const VERSION: u32 = STEPS.len() as u32;

/// Step `n` takes a file from version `n` to version `n + 1`.
const STEPS: [&str; 2] = [
    // The first version.
    "
    CREATE TABLE meta (
        key TEXT PRIMARY KEY,
        value ANY NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE conversations (
        number INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
        kind INTEGER NOT NULL,       -- 0 direct, 1 group
        trimmed INTEGER NOT NULL     -- entries up to here are no longer kept
    ) STRICT;

    CREATE TABLE log (
        place INTEGER PRIMARY KEY,   -- number of the conversation << 32 | seq
        ts INTEGER NOT NULL,         -- Unix milliseconds
        kind INTEGER NOT NULL,       -- 0 message, 1 created, 2 added, 3 removed, 4 left
        user BLOB NOT NULL,          -- who sent it or asked for it
        device INTEGER,              -- of a message: which of the user's devices
        name BLOB,                   -- of a message: its client id; of added and removed: who
        body BLOB                    -- of a message: the payload; of created: the members, 16 bytes each
    ) STRICT;

    CREATE TABLE members (
        conversation INTEGER NOT NULL,
        user BLOB NOT NULL,
        joined INTEGER NOT NULL,
        read INTEGER NOT NULL,
        PRIMARY KEY (conversation, user)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX memberships ON members (user);

    CREATE TABLE cursors (
        conversation INTEGER NOT NULL,
        user BLOB NOT NULL,
        device INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        marked INTEGER NOT NULL,     -- 1: in the pending index
        PRIMARY KEY (conversation, user, device)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX pending ON cursors (user, device) WHERE marked = 1;

    CREATE TABLE devices (
        user BLOB NOT NULL,
        device INTEGER NOT NULL,
        ts INTEGER NOT NULL,         -- when it was first seen
        PRIMARY KEY (user, device)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE client_ids (
        client_id BLOB NOT NULL,
        user BLOB NOT NULL,
        conversation INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        ts INTEGER NOT NULL,
        digest BLOB NOT NULL,
        PRIMARY KEY (client_id, user)
    ) STRICT, WITHOUT ROWID;

    CREATE VIEW heads AS
        SELECT number, id, kind, trimmed, coalesce(
            (SELECT max(place) FROM log WHERE place BETWEEN (number << 32) AND ((number << 32) | 4294967295))
                & 4294967295,
            trimmed
        ) AS head
        FROM conversations;

    INSERT INTO meta VALUES ('hash_key', randomblob(16));
    ",
    // Old client ids are found by their age instead of by looking through all of them.
    "
    CREATE INDEX client_ids_by_age ON client_ids (ts);
    ",
];

/// Prepares an empty file: its page size, room for checksums, whose it is.
pub(crate) fn begin(connection: &Connection) -> Result<(), Trouble> {
    let mut reserve = CHECKSUM_BYTES as i32;
    // SAFETY: the handle is open, and the argument is what this operation takes.
    let code = unsafe {
        ffi::sqlite3_file_control(
            connection.handle(),
            c"main".as_ptr(),
            ffi::SQLITE_FCNTL_RESERVE_BYTES,
            (&raw mut reserve).cast(),
        )
    };
    if code != ffi::SQLITE_OK {
        return Err(Trouble::damaged("SQLite leaves no room for checksums"));
    }
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    Ok(())
}

/// The page size in the first bytes of a database file, as SQLite's file format describes them, or the code of SQLite that says what is
/// wrong: `SQLITE_NOTADB` when it is not ours, `SQLITE_CORRUPT` when it was.
pub(crate) fn recognise(header: &[u8; 100]) -> Result<i32, i32> {
    if header[68..72] != APPLICATION_ID.to_be_bytes() {
        return Err(ffi::SQLITE_NOTADB);
    }
    if !header.starts_with(b"SQLite format 3\0") || usize::from(header[20]) != CHECKSUM_BYTES {
        return Err(ffi::SQLITE_CORRUPT);
    }
    match u16::from_be_bytes([header[16], header[17]]) {
        1 => Ok(65_536),
        bytes => Ok(i32::from(bytes)),
    }
}

/// The version a file has.
pub(crate) fn version(connection: &Connection) -> Result<u32, Trouble> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// Takes a file to version `to`, each step in a transaction of its own.
pub(crate) fn migrate(connection: &Connection, to: u32) -> Result<(), Trouble> {
    let from = version(connection)?;
    for at in from..to {
        let step = STEPS[at as usize];
        connection
            .execute_batch(&format!("BEGIN IMMEDIATE; {step} PRAGMA user_version = {}; COMMIT;", at + 1))?;
    }
    Ok(())
}
