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

/// The first version in which users with a phone number have a table.
pub(crate) const VERSION_WITH_USERS: u32 = 4;

/// Step `n` takes a file from version `n` to version `n + 1`.
const STEPS: [&str; 4] = [
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
    // Where a device begins is no acknowledgement. Of the cursors that are there already it is not known; they count as before.
    "
    ALTER TABLE cursors ADD COLUMN acknowledged INTEGER NOT NULL DEFAULT 1;
    ",
    // Users with a phone number. Nobody else has a row: a user is known by their devices and conversations.
    "
    CREATE TABLE users (
        user BLOB PRIMARY KEY CHECK (length(user) = 16),
        phone INTEGER NOT NULL UNIQUE,   -- the digits of E.164, without the plus sign
        ts INTEGER NOT NULL              -- Unix milliseconds, when it got the number
    ) STRICT, WITHOUT ROWID;
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use model::{
        Body, Change, ClientId, ConversationId, ConversationKind, DeviceId, DeviceKey, Entry, HashKey,
        Payload, Seq, UserId, Wall,
    };
    use rusqlite::OpenFlags;
    use store::{ConversationRecord, DeviceRecord, Engine, MemberRecord, Reply, Request, digest};

    use super::*;
    use crate::vfs::faults::Disk;
    use crate::{OpenError, Options, SqliteStore, open};

    /// A database of version 1, as the first release made it. Never made again, even if the generator below changes.
    fn fixture() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/version-1.db")
    }

    const FIRST: UserId = UserId([0xa1; 16]);
    const SECOND: UserId = UserId([0xb2; 16]);
    const GROUP: ConversationId = ConversationId([0xc3; 16]);

    /// Makes what the fixture holds: a group of two, with a message kept, one trimmed and one client id too old.
    fn generate(directory: &Path) {
        open::create(directory, 1).expect("a database of version 1");
        let file = crate::directory::database(directory);
        let connection = open::connect(&file, OpenFlags::SQLITE_OPEN_READ_WRITE).expect("the database");
        let (first, second, group) = (FIRST.0, SECOND.0, GROUP.0);
        connection
            .execute("UPDATE meta SET value = ?1 WHERE key = 'hash_key'", ([0x5a; 16],))
            .expect("a key");
        connection
            .execute("INSERT INTO conversations VALUES (7, ?1, 1, 2)", (group,))
            .expect("a conversation");
        for (user, read) in [(first, 3), (second, 0)] {
            connection.execute("INSERT INTO members VALUES (7, ?1, 1, ?2)", (user, read)).expect("a member");
            connection.execute("INSERT INTO devices VALUES (?1, 1, 1000)", (user,)).expect("a device");
            connection
                .execute("INSERT INTO cursors VALUES (7, ?1, 1, ?2, ?3)", (user, read.max(2), read == 0))
                .expect("a cursor");
        }
        let entry = "INSERT INTO log VALUES ((7 << 32) | 3, 3000, 0, ?1, 1, ?2, ?3)";
        connection.execute(entry, (first, [3_u8; 16], b"kept".as_slice())).expect("an entry");
        for (seq, ts, payload) in [(2, 2_000, b"gone".as_slice()), (3, 3_000, b"kept")] {
            let client_id = [seq as u8; 16];
            connection
                .execute(
                    "INSERT INTO client_ids VALUES (?1, ?2, 7, ?3, ?4, ?5)",
                    (client_id, first, seq, ts, digest(GROUP, payload)),
                )
                .expect("a client id");
        }
    }

    fn rows(file: &Path) -> Vec<String> {
        let connection = open::connect(file, OpenFlags::SQLITE_OPEN_READ_WRITE).expect("the database");
        let mut rows = Vec::new();
        for table in
            ["meta", "conversations", "log", "members", "cursors", "devices", "client_ids", "sqlite_schema"]
        {
            let mut statement = connection.prepare(&format!("SELECT * FROM {table}")).expect("a table");
            let columns = statement.column_count();
            let mut found = statement.query(()).expect("rows");
            while let Some(row) = found.next().expect("a row") {
                let values: Vec<_> = (0..columns).map(|at| row.get_ref(at).expect("a value")).collect();
                rows.push(format!("{table} {values:?}"));
            }
        }
        rows
    }

    /// Copies the fixture, since opening it changes it.
    fn copied() -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::copy(fixture(), crate::directory::database(directory.path())).expect("a copy");
        directory
    }

    #[test]
    fn the_fixture_is_what_version_1_was() {
        let _disk = Disk::take();
        let made = tempfile::tempdir().expect("a temporary directory");
        generate(made.path());
        let made = crate::directory::database(made.path());
        if std::env::var_os("THRONG_MAKE_FIXTURE").is_some() {
            fs::create_dir_all(fixture().parent().expect("a directory")).expect("a directory");
            fs::copy(&made, fixture()).expect("a copy");
        }
        let kept = copied();
        assert_eq!(rows(&crate::directory::database(kept.path())), rows(&made));
    }

    #[test]
    fn a_database_of_version_1_goes_on_where_it_was() {
        let _disk = Disk::take();
        let directory = copied();
        let mut store = SqliteStore::open(directory.path(), &Options::default()).expect("an open store");
        assert_eq!(store.hash_key(), HashKey([0x5a; 16]));
        let sender = DeviceKey { user: FIRST, device: DeviceId(1) };
        let append = |number: u8, payload: &[u8]| Request::Append {
            conversation: GROUP,
            from: sender,
            client_id: ClientId([number; 16]),
            ts: Wall(9_000),
            payload: Payload::from(payload),
            mark: Vec::new(),
        };
        let member = |user, read, cursor, marked| MemberRecord {
            user,
            joined: Seq(1),
            read: Seq(read),
            devices: vec![DeviceRecord {
                device: DeviceId(1),
                cursor: Seq(cursor),
                acknowledged: true,
                marked,
            }],
        };
        let record = ConversationRecord {
            kind: ConversationKind::Group,
            head: Seq(3),
            trimmed: Seq(2),
            members: vec![member(FIRST, 3, 3, false), member(SECOND, 0, 2, true)],
        };
        let body = Body::Message {
            from: sender,
            client_id: ClientId([3; 16]),
            payload: Payload::from(&b"kept"[..]),
        };
        let mut replies = Vec::new();
        let batch = [
            Request::LoadConversation { conversation: GROUP },
            Request::ReadLog { conversation: GROUP, after: Seq(0), up_to: Seq(9), limit: 9, bytes_max: 99 },
            append(2, b"gone"),
            Request::ForgetClientIds { before: Wall(2_001) },
            append(3, b"kept"),
            append(2, b"gone"),
            Request::AddMember { conversation: GROUP, user: UserId([1; 16]), by: FIRST, ts: Wall(9_001) },
        ];
        store.commit(&batch, &mut replies).expect("the disk works");
        assert_eq!(
            replies,
            [
                Reply::Conversation(Some(record)),
                Reply::Page(vec![Entry { seq: Seq(3), ts: Wall(3_000), body }]),
                Reply::Duplicate { seq: Seq(2), ts: Wall(2_000) },
                Reply::Forgotten(1),
                Reply::Duplicate { seq: Seq(3), ts: Wall(3_000) },
                Reply::Appended { seq: Seq(4) },
                Reply::MemberAdded { seq: Seq(5), devices: Vec::new() },
            ]
        );
        drop(store);
        let connection =
            open::connect(&crate::directory::database(directory.path()), OpenFlags::SQLITE_OPEN_READ_WRITE);
        assert_eq!(version(&connection.expect("the database")).expect("a version"), VERSION);
        assert!(crate::check(directory.path()).expect("it can be checked").is_sound());
        let mut store = SqliteStore::open(directory.path(), &Options::default()).expect("an open store");
        let change = Change::Added { by: FIRST, user: UserId([1; 16]) };
        replies.clear();
        let read =
            Request::ReadLog { conversation: GROUP, after: Seq(4), up_to: Seq(9), limit: 9, bytes_max: 99 };
        store.commit(&[read], &mut replies).expect("the disk works");
        assert_eq!(
            replies,
            [Reply::Page(vec![Entry { seq: Seq(5), ts: Wall(9_001), body: Body::Change(change) }])]
        );
    }

    #[test]
    fn a_database_of_version_3_keeps_its_rows_and_has_no_users() {
        let _disk = Disk::take();
        let directory = tempfile::tempdir().expect("a temporary directory");
        open::create(directory.path(), 3).expect("a database of version 3");
        let file = crate::directory::database(directory.path());
        let connection = open::connect(&file, OpenFlags::SQLITE_OPEN_READ_WRITE).expect("the database");
        connection
            .execute_batch(
                "INSERT INTO conversations VALUES (5, zeroblob(16), 0, 1);
                 INSERT INTO members VALUES (5, x'01', 1, 1);
                 INSERT INTO devices VALUES (x'01', 2, 3);
                 INSERT INTO cursors VALUES (5, x'01', 2, 1, 0, 0);
                 INSERT INTO log VALUES ((5 << 32) | 1, 3, 1, x'01', NULL, NULL, x'01');",
            )
            .expect("rows");
        drop(connection);
        let of_tables = |rows: Vec<String>| -> Vec<String> {
            rows.into_iter().filter(|row| !row.starts_with("sqlite_schema")).collect()
        };
        let before = of_tables(rows(&file));
        assert_eq!(before.len(), 6, "{before:?}");
        drop(SqliteStore::open(directory.path(), &Options::default()).expect("an open store"));
        assert_eq!(of_tables(rows(&file)), before);
        let connection = open::connect(&file, OpenFlags::SQLITE_OPEN_READ_WRITE).expect("the database");
        let users: i64 =
            connection.query_row("SELECT count(*) FROM users", (), |row| row.get(0)).expect("a table");
        assert_eq!((version(&connection).expect("a version"), users), (VERSION, 0));
    }

    #[test]
    fn an_old_database_becomes_the_same_as_a_new_one() {
        let _disk = Disk::take();
        let (old, new) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("another"));
        open::create(old.path(), 1).expect("a database of version 1");
        for directory in [old.path(), new.path()] {
            drop(SqliteStore::open(directory, &Options::default()).expect("an open store"));
        }
        let schema = |directory: &Path| {
            let mut rows = rows(&crate::directory::database(directory));
            rows.retain(|row| !row.starts_with("meta"));
            rows
        };
        assert_eq!(schema(old.path()), schema(new.path()));
    }

    #[test]
    fn a_newer_database_is_refused_and_left_alone() {
        let _disk = Disk::take();
        let directory = tempfile::tempdir().expect("a temporary directory");
        drop(SqliteStore::open(directory.path(), &Options::default()).expect("an open store"));
        let file = crate::directory::database(directory.path());
        let connection = open::connect(&file, OpenFlags::SQLITE_OPEN_READ_WRITE).expect("the database");
        connection.pragma_update(None, "user_version", VERSION + 5).expect("a version");
        drop(connection);
        for error in [
            SqliteStore::open(directory.path(), &Options::default()).err(),
            crate::check(directory.path()).err(),
        ] {
            match error {
                Some(error @ OpenError::Newer { .. }) => {
                    let expected = format!(
                        "has schema version {} and this program knows versions up to {VERSION}",
                        VERSION + 5
                    );
                    assert!(error.to_string().contains(&expected), "{error}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
