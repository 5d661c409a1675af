//! Looking through a whole database.
//!
//! Owns the list of what must hold. Reads every page, so every checksum is compared too. Deliberately repairs nothing.
//!
//! It works beside a server: all is read in one transaction, which sees one state, and readers do not hold up the writer. While it
//! reads, the write-ahead log cannot start anew and grows by what the server writes.

use std::fmt;
use std::path::Path;

use model::{ConversationId, Seq};
use rusqlite::{Connection, OpenFlags};
use store::digest;

use crate::open::{self, OpenError};
use crate::rows::{self, SEQ_MAX};
use crate::trouble::Trouble;
use crate::{directory, schema};

/// What was looked through and what was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckReport {
    /// Conversations.
    pub conversations: u64,
    /// Entries of logs that are still kept.
    pub entries: u64,
    /// Devices.
    pub devices: u64,
    /// Client ids that are remembered.
    pub client_ids: u64,
    /// Users with a phone number.
    pub users: u64,
    /// What does not hold, one sentence each; at most [`FINDINGS_MAX`].
    pub findings: Vec<String>,
}

/// Most findings of a report: enough to see what happened.
pub const FINDINGS_MAX: usize = 100;

impl CheckReport {
    /// Whether nothing was found.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }

    fn find(&mut self, what: impl fmt::Display) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(what.to_string());
        }
    }
}

/// Looks through the database of a data directory, or through a database file such as a backup. Changes nothing. An error means that it could not
/// be looked through at all; damage is a finding.
pub fn check(path: &Path) -> Result<CheckReport, OpenError> {
    let is_directory = path.is_dir();
    let file = if is_directory { directory::database(path) } else { path.to_path_buf() };
    let mut report = CheckReport::default();
    if is_directory && file.exists() {
        match open::look_at_log_unless_served(path) {
            Err(OpenError::Damaged { source, .. }) => report.find(source),
            other => other?,
        }
    }
    let trouble = |trouble| OpenError::trouble(&file, trouble);
    let connection = open::connect(&file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "query_only", true).map_err(|error| trouble(error.into()))?;
    let found = schema::version(&connection).map_err(trouble)?;
    if found > schema::VERSION {
        return Err(OpenError::Newer { file: file.clone(), found, known: schema::VERSION });
    }
    for look in [pages, logs, rows, client_ids] {
        match look(&connection, &mut report) {
            Ok(()) => {}
            Err(damage) if damage.is_damage() => report.find(describe(&damage)),
            Err(other) => return Err(trouble(other)),
        }
    }
    Ok(report)
}

fn describe(trouble: &Trouble) -> String {
    match std::error::Error::source(trouble) {
        Some(source) => format!("{trouble}: {source}"),
        None => trouble.to_string(),
    }
}

/// SQLite's own check: trees, free pages, indexes against their tables, constraints.
fn pages(connection: &Connection, report: &mut CheckReport) -> Result<(), Trouble> {
    // Begun here, the transaction lasts until the connection is closed, so that all looks see one state.
    connection.execute_batch("BEGIN")?;
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check({FINDINGS_MAX})"))?;
    let mut found = statement.query(())?;
    while let Some(row) = found.next()? {
        let text: String = row.get(0)?;
        if text != "ok" {
            report.find(text);
        }
    }
    Ok(())
}

/// Every log is dense from the first kept entry to the head (D4) and belongs to a conversation.
fn logs(connection: &Connection, report: &mut CheckReport) -> Result<(), Trouble> {
    let mut conversation = connection.prepare("SELECT id, trimmed FROM conversations WHERE number = ?1")?;
    let mut statement =
        connection.prepare("SELECT place, ts, kind, user, device, name, body FROM log ORDER BY place")?;
    let mut found = statement.query(())?;
    let mut before = None;
    while let Some(row) = found.next()? {
        report.entries += 1;
        let place: i64 = row.get(0)?;
        let (number, seq) = (place >> 32, Seq(place as u64 & SEQ_MAX));
        if let Err(damage) = rows::entry(row) {
            report.find(format!("entry {seq} of conversation number {number}: {}", describe(&damage)));
        }
        let expected = match before {
            Some((same, last)) if same == number => last,
            _ => {
                let mut found = conversation.query((number,))?;
                match found.next()? {
                    Some(row) => rows::seq(row, 1)?,
                    None => {
                        report.find(format!("entry {seq} belongs to no conversation (number {number})"));
                        seq.previous()
                    }
                }
            }
        }
        .next();
        if seq != expected {
            report.find(format!("conversation number {number} has entry {seq} where {expected} belongs"));
        }
        before = Some((number, seq));
    }
    Ok(())
}

/// What one query finds, with a sentence about each row.
const RULES: [(&str, &str); 10] = [
    ("a conversation without its first entry", "SELECT hex(id) FROM heads WHERE head = 0"),
    (
        "a conversation with an id or a kind that is none",
        "SELECT '' || number FROM conversations WHERE length(id) <> 16 OR kind NOT IN (0, 1) OR trimmed < 0",
    ),
    (
        "a cursor outside the log, or behind and not marked pending",
        "SELECT hex(h.id) || ' ' || hex(k.user) || '/' || k.device || ' at ' || k.seq || ' of ' || h.head
            || ', kept from ' || (h.trimmed + 1) || ', marked ' || k.marked
         FROM cursors k JOIN heads h ON h.number = k.conversation
         WHERE k.seq > h.head OR k.seq < h.trimmed OR (k.seq < h.head AND k.marked <> 1) OR k.marked NOT IN (0, 1)",
    ),
    (
        "a cursor of nobody",
        "SELECT k.conversation || ' ' || hex(k.user) || '/' || k.device FROM cursors k
         WHERE NOT EXISTS (SELECT 1 FROM members m WHERE m.conversation = k.conversation AND m.user = k.user)
            OR NOT EXISTS (SELECT 1 FROM devices d WHERE d.user = k.user AND d.device = k.device)",
    ),
    (
        "a member's device without a cursor",
        "SELECT m.conversation || ' ' || hex(m.user) || '/' || d.device
         FROM members m JOIN devices d ON d.user = m.user
         WHERE NOT EXISTS (SELECT 1 FROM cursors k
            WHERE k.conversation = m.conversation AND k.user = m.user AND k.device = d.device)",
    ),
    (
        "a member of no conversation",
        "SELECT conversation || ' ' || hex(user) FROM members
         WHERE conversation NOT IN (SELECT number FROM conversations)",
    ),
    (
        "a member who joined or read outside the log",
        "SELECT hex(h.id) || ' ' || hex(m.user) || ' joined ' || m.joined || ' read ' || m.read || ' of ' || h.head
         FROM members m JOIN heads h ON h.number = m.conversation
         WHERE m.joined NOT BETWEEN 1 AND h.head OR m.read NOT BETWEEN 0 AND h.head OR length(m.user) <> 16",
    ),
    (
        "a member without devices who lost entries",
        "SELECT hex(h.id) || ' ' || hex(m.user) || ' joined ' || m.joined || ', trimmed up to ' || h.trimmed
         FROM members m JOIN heads h ON h.number = m.conversation
         WHERE h.trimmed >= m.joined AND NOT EXISTS (SELECT 1 FROM devices d WHERE d.user = m.user)",
    ),
    (
        "a device with an id that is none",
        "SELECT hex(user) || '/' || device FROM devices
         WHERE length(user) <> 16 OR device NOT BETWEEN 0 AND 4294967295",
    ),
    (
        "no hash key",
        "SELECT 'meta' WHERE NOT EXISTS (SELECT 1 FROM meta WHERE key = 'hash_key' AND length(value) = 16)",
    ),
];

/// The same, of the table that older versions do not have.
const NUMBERS: (&str, &str) = (
    "a user with an id or a phone number that is none",
    "SELECT hex(user) || ' ' || phone FROM users
     WHERE length(user) <> 16 OR phone NOT BETWEEN 1 AND 999999999999999",
);

fn rows(connection: &Connection, report: &mut CheckReport) -> Result<(), Trouble> {
    let count = |table| -> Result<u64, Trouble> {
        let rows: i64 =
            connection.query_row(&format!("SELECT count(*) FROM {table}"), (), |row| row.get(0))?;
        Ok(rows.unsigned_abs())
    };
    report.conversations = count("conversations")?;
    report.devices = count("devices")?;
    report.client_ids = count("client_ids")?;
    // A backup may be of a version that had no such table.
    let numbered = schema::version(connection)? >= schema::VERSION_WITH_USERS;
    if numbered {
        report.users = count("users")?;
    }
    for (what, query) in RULES.into_iter().chain(numbered.then_some(NUMBERS)) {
        let mut statement = connection.prepare(&format!("{query} LIMIT {FINDINGS_MAX}"))?;
        let mut found = statement.query(())?;
        while let Some(row) = found.next()? {
            report.find(format!("{what}: {}", row.get::<_, String>(0)?));
        }
    }
    Ok(())
}

/// Every remembered client id leads to a place there is, and to its message when that is still kept (D3).
fn client_ids(connection: &Connection, report: &mut CheckReport) -> Result<(), Trouble> {
    let mut statement = connection.prepare(
        "SELECT c.client_id, c.user, c.seq, c.ts, c.digest, v.id, v.trimmed,
            l.ts, l.user, l.name, l.body, l.kind
         FROM client_ids c LEFT JOIN conversations v ON v.number = c.conversation
            LEFT JOIN log l ON l.place = (c.conversation << 32) | c.seq",
    )?;
    let mut found = statement.query(())?;
    while let Some(row) = found.next()? {
        if let Some(wrong) = wrong_with_client_id(row)? {
            report.find(format!("client id {}: {wrong}", model::ClientId(rows::id(row, 0)?)));
        }
    }
    Ok(())
}

fn wrong_with_client_id(row: &rusqlite::Row<'_>) -> Result<Option<&'static str>, Trouble> {
    let (Some(id), Some(trimmed)) = (row.get::<_, Option<[u8; 16]>>(5)?, row.get::<_, Option<i64>>(6)?)
    else {
        return Ok(Some("its conversation does not exist"));
    };
    let seq: i64 = row.get(2)?;
    if seq <= trimmed {
        return Ok((seq <= 1).then_some("it leads to a place that holds no message"));
    }
    if row.get::<_, Option<i64>>(11)? != Some(0) {
        return Ok(Some("it leads to a place that holds no message"));
    }
    let same = row.get_ref(7)? == row.get_ref(3)?
        && row.get_ref(8)? == row.get_ref(1)?
        && row.get_ref(9)? == row.get_ref(0)?
        && digest(ConversationId(id), rows::bytes(row, 10)?) == rows::id(row, 4)?;
    Ok((!same).then_some("it leads to another message"))
}

#[cfg(test)]
mod tests {
    use model::{ClientId, ConversationKind, DeviceId, DeviceKey, Payload, Phone, UserId, Wall};
    use store::{Engine, ImportedUser, Request};

    use super::*;
    use crate::vfs::faults::Disk;
    use crate::{Options, SqliteStore};

    fn filled() -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut store = SqliteStore::open(directory.path(), &Options::default()).expect("an open store");
        let (sender, receiver) = (UserId([1; 16]), UserId([2; 16]));
        let id = ConversationId([3; 16]);
        let from = DeviceKey { user: sender, device: DeviceId(1) };
        let message = |number: u8| Request::Append {
            conversation: id,
            from,
            client_id: ClientId([number; 16]),
            ts: Wall(1),
            payload: Payload::from(&[number][..]),
            mark: Vec::new(),
        };
        let batch = [
            Request::RegisterDevice { device: from, ts: Wall(1) },
            Request::Import {
                users: vec![ImportedUser { device: from, phone: Phone(41) }],
                conversations: Vec::new(),
                ts: Wall(1),
            },
            Request::CreateConversation {
                conversation: id,
                kind: ConversationKind::Direct,
                by: sender,
                members: vec![sender, receiver],
                ts: Wall(1),
            },
            message(1),
            message(2),
            message(3),
        ];
        store.commit(&batch, &mut Vec::new()).expect("the disk works");
        directory
    }

    #[test]
    fn a_backup_of_the_version_before_users_is_sound() {
        let _disk = Disk::take();
        let directory = tempfile::tempdir().expect("a temporary directory");
        open::create(directory.path(), schema::VERSION_WITH_USERS - 1).expect("an older database");
        assert_eq!(check(directory.path()).expect("it can be checked"), CheckReport::default());
    }

    #[test]
    fn what_does_not_hold_is_found() {
        let _disk = Disk::take();
        let sound = filled();
        let report = check(sound.path()).expect("it can be checked");
        let expected = CheckReport {
            conversations: 1,
            entries: 4,
            devices: 1,
            client_ids: 3,
            users: 1,
            findings: Vec::new(),
        };
        assert_eq!(report, expected);
        for (breaking, finding) in [
            ("DELETE FROM log WHERE place & 255 = 3", "has entry 4 where 3 belongs"),
            ("DELETE FROM log WHERE place & 255 < 4", "has entry 4 where 1 belongs"),
            ("DELETE FROM log", "a conversation without its first entry"),
            ("UPDATE log SET kind = 9 WHERE place & 255 = 2", "an entry of kind 9"),
            ("UPDATE log SET user = x'00' WHERE place & 255 = 2", "an id of 1 bytes"),
            (
                "INSERT INTO log VALUES ((99 << 32) | 1, 0, 4, zeroblob(16), NULL, NULL, NULL)",
                "belongs to no conversation",
            ),
            ("UPDATE cursors SET marked = 0", "behind and not marked pending"),
            ("UPDATE cursors SET seq = 5", "a cursor outside the log"),
            (
                "UPDATE conversations SET trimmed = 1; DELETE FROM log WHERE place & 255 = 1",
                "a cursor outside the log",
            ),
            (
                "UPDATE conversations SET trimmed = 1; DELETE FROM log WHERE place & 255 = 1",
                "a member without devices who lost entries",
            ),
            ("UPDATE conversations SET kind = 2", "an id or a kind that is none"),
            ("DELETE FROM members", "a cursor of nobody"),
            ("DELETE FROM devices", "a cursor of nobody"),
            ("DELETE FROM cursors", "a member's device without a cursor"),
            ("INSERT INTO members VALUES (99, zeroblob(16), 1, 0)", "a member of no conversation"),
            ("UPDATE members SET joined = 0", "joined or read outside the log"),
            ("UPDATE members SET read = 5", "joined or read outside the log"),
            ("INSERT INTO devices VALUES (x'01', 1, 0)", "a device with an id that is none"),
            ("UPDATE users SET phone = 0", "a user with an id or a phone number that is none"),
            ("DELETE FROM meta", "no hash key"),
            ("UPDATE client_ids SET seq = 4 WHERE seq = 3", "it leads to another message"),
            ("UPDATE client_ids SET seq = 9 WHERE seq = 3", "it leads to a place that holds no message"),
            ("UPDATE client_ids SET seq = 1 WHERE seq = 3", "it leads to a place that holds no message"),
            ("UPDATE client_ids SET conversation = 9 WHERE seq = 3", "its conversation does not exist"),
            ("UPDATE client_ids SET digest = zeroblob(16) WHERE seq = 3", "it leads to another message"),
            ("UPDATE log SET body = x'07' WHERE place & 255 = 3", "it leads to another message"),
        ] {
            let directory = filled();
            let file = directory::database(directory.path());
            let connection = open::connect(&file, OpenFlags::SQLITE_OPEN_READ_WRITE).expect("the database");
            connection.execute_batch(breaking).expect(breaking);
            drop(connection);
            let report = check(directory.path()).expect("it can be checked");
            assert!(
                report.findings.iter().any(|found| found.contains(finding)),
                "{breaking}: {:?}",
                report.findings
            );
        }
    }
}
