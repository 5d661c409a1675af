//! Every statement the engine runs, prepared once.
//!
//! Owns the SQL and the connection under it. Deliberately knows no request.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use rusqlite::{Connection, PrepFlags, Statement};

use crate::checkpoint::COPY;
use crate::trouble::Trouble;

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:expr;)*) => {
        pub(crate) struct Statements<'c> {
            $($(#[$doc])* pub(crate) $name: Statement<'c>,)*
        }

        impl<'c> Statements<'c> {
            fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
                let prepare = |sql| connection.prepare_with_flags(sql, PrepFlags::SQLITE_PREPARE_PERSISTENT);
                Ok(Statements { $($name: prepare($sql)?,)* })
            }
        }

        #[cfg(test)]
        const ALL: &[(&str, &str)] = &[$((stringify!($name), $sql)),*];
    };
}

statements! {
    // Begins without a lock; the first write takes it.
    begin = "BEGIN DEFERRED";
    commit = "COMMIT";
    roll_back = "ROLLBACK";
    copy_log = COPY;

    conversation = "SELECT number, kind, trimmed, head FROM heads WHERE id = ?1";
    create_conversation = "INSERT INTO conversations (id, kind, trimmed) VALUES (?1, ?2, 0)";
    set_trimmed = "UPDATE conversations SET trimmed = ?2 WHERE number = ?1";

    put_entry = "INSERT INTO log (place, ts, kind, user, device, name, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    page = "SELECT place, ts, kind, user, device, name, body FROM log WHERE place BETWEEN ?1 AND ?2 ORDER BY place";
    trim = "DELETE FROM log WHERE place BETWEEN ?1 AND ?2";

    put_member = "INSERT OR IGNORE INTO members (conversation, user, joined, read) VALUES (?1, ?2, ?3, 0)";
    remove_member = "DELETE FROM members WHERE conversation = ?1 AND user = ?2";
    mark_read = "UPDATE members SET read = ?3 WHERE conversation = ?1 AND user = ?2 AND read < ?3";
    members = "SELECT user, joined, read FROM members WHERE conversation = ?1 ORDER BY user";
    members_by_arrival = "SELECT user FROM members WHERE conversation = ?1 ORDER BY joined, user";
    receipts = "SELECT m.user, m.read, coalesce(
            (SELECT max(k.seq) FROM cursors k
                WHERE k.conversation = m.conversation AND k.user = m.user AND k.acknowledged = 1), 0)
        FROM members m WHERE m.conversation = ?1 ORDER BY m.joined, m.user";
    conversations_of_user = "SELECT h.number, h.id, h.kind, h.head
        FROM members m JOIN heads h ON h.number = m.conversation
        WHERE m.user = ?1 ORDER BY h.id";

    cursors = "SELECT user, device, seq, marked, acknowledged FROM cursors WHERE conversation = ?1 ORDER BY user, device";
    marks_of_member = "SELECT device FROM cursors
        WHERE conversation = ?1 AND user = ?2 AND marked = 1 ORDER BY device";
    remove_cursors = "DELETE FROM cursors WHERE conversation = ?1 AND user = ?2";
    acknowledge = "UPDATE cursors SET seq = ?4, acknowledged = 1
        WHERE conversation = ?1 AND user = ?2 AND device = ?3
            AND (seq < ?4 OR (seq = ?4 AND acknowledged = 0))";
    mark = "UPDATE cursors SET marked = 1 WHERE conversation = ?1 AND user = ?2 AND device = ?3 AND marked = 0";
    unmark = "UPDATE cursors SET marked = 0 WHERE conversation = ?1 AND user = ?2 AND device = ?3 AND marked = 1";
    mark_all = "UPDATE cursors SET marked = 1 WHERE conversation = ?1 AND marked = 0";
    /// The cursors of a new member's devices, before the entry that made them one.
    start_member = "INSERT OR IGNORE INTO cursors (conversation, user, device, seq, marked, acknowledged)
        SELECT ?1, user, device, ?3 - 1, 1, 0 FROM devices WHERE user = ?2";
    /// The cursors of a user's first device, before the entries that made the user a member.
    start_first_device = "INSERT INTO cursors (conversation, user, device, seq, marked, acknowledged)
        SELECT conversation, user, ?2, joined - 1, 1, 0 FROM members WHERE user = ?1";
    /// The cursors of a later device, at the heads.
    start_later_device = "INSERT INTO cursors (conversation, user, device, seq, marked, acknowledged)
        SELECT m.conversation, m.user, ?2, h.head, 1, 0
        FROM members m JOIN heads h ON h.number = m.conversation WHERE m.user = ?1";
    pending = "SELECT h.id, k.seq, h.head FROM cursors k JOIN heads h ON h.number = k.conversation
        WHERE k.user = ?1 AND k.device = ?2 AND k.marked = 1 ORDER BY h.id";
    /// Takes away the marks of devices that are not behind.
    unmark_caught_up = "UPDATE cursors SET marked = 0 WHERE marked = 1
        AND seq >= (SELECT head FROM heads WHERE number = conversation)";

    put_device = "INSERT OR IGNORE INTO devices (user, device, ts) VALUES (?1, ?2, ?3)";
    has_other_devices = "SELECT EXISTS (SELECT 1 FROM devices WHERE user = ?1 AND device <> ?2)";
    devices_of_user = "SELECT device FROM devices WHERE user = ?1 ORDER BY device";
    devices = "SELECT d.user, d.device, (SELECT count(*) FROM cursors k
            WHERE k.user = d.user AND k.device = d.device AND k.marked = 1)
        FROM devices d ORDER BY d.user, d.device";

    /// Changes nothing when the user has a number, or somebody else has this one.
    put_user = "INSERT INTO users (user, phone, ts) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    has_number = "SELECT EXISTS (SELECT 1 FROM users WHERE user = ?1)";
    /// The device of a user who has neither another nor a conversation.
    put_first_device = "INSERT INTO devices (user, device, ts) SELECT ?1, ?2, ?3
        WHERE NOT EXISTS (SELECT 1 FROM devices WHERE user = ?1) AND NOT EXISTS (SELECT 1 FROM members WHERE user = ?1)";
    import_conversation = "INSERT INTO conversations (id, kind, trimmed) VALUES (?1, ?2, 0) ON CONFLICT DO NOTHING";
    /// The cursors of a member's devices, behind the first entry.
    start_imported = "INSERT INTO cursors (conversation, user, device, seq, marked, acknowledged)
        SELECT ?1, user, device, 1, 0, 1 FROM devices WHERE user = ?2";

    /// Changes nothing when the user has used the client id before.
    put_client_id = "INSERT INTO client_ids (user, client_id, conversation, seq, ts, digest)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING";
    client_id = "SELECT seq, ts, digest FROM client_ids WHERE user = ?1 AND client_id = ?2";
    /// The oldest within a range of times.
    forget_client_ids = "DELETE FROM client_ids WHERE (client_id, user) IN (
        SELECT client_id, user FROM client_ids WHERE ts BETWEEN ?1 AND ?2 ORDER BY ts, client_id, user LIMIT ?3)";
}

/// A connection and its prepared statements, which borrow it: the connection stays where it is until they are gone.
pub(crate) struct Prepared {
    statements: ManuallyDrop<Statements<'static>>,
    connection: NonNull<Connection>,
}

// SAFETY: a `Connection` may go to another thread; what borrows it here goes along, and nothing else does.
unsafe impl Send for Prepared {}

impl Prepared {
    pub(crate) fn new(connection: Connection) -> Result<Self, Trouble> {
        let connection = NonNull::from(Box::leak(Box::new(connection)));
        // SAFETY: it was just leaked, so it lives until `drop` takes it back, after the last statement.
        match Statements::prepare(unsafe { connection.as_ref() }) {
            Ok(statements) => Ok(Prepared { statements: ManuallyDrop::new(statements), connection }),
            Err(error) => {
                // SAFETY: it was leaked above and no statement is left.
                drop(unsafe { Box::from_raw(connection.as_ptr()) });
                Err(error.into())
            }
        }
    }

    pub(crate) fn connection(&self) -> &Connection {
        // SAFETY: it lives as long as `self`, and is only ever borrowed shared.
        unsafe { self.connection.as_ref() }
    }

    /// Lets the cache have so many bytes from now on, and empties it.
    pub(crate) fn set_cache(&self, bytes: usize) -> rusqlite::Result<()> {
        self.connection().pragma_update(None, "cache_size", -((bytes / 1024) as i64))?;
        // SAFETY: the handle is that of an open connection; the call only frees pages that nothing uses.
        unsafe { rusqlite::ffi::sqlite3_db_release_memory(self.connection().handle()) };
        Ok(())
    }

    /// Both of them.
    pub(crate) fn parts(&mut self) -> (&mut Statements<'static>, &Connection) {
        // SAFETY: as in `connection`.
        (&mut self.statements, unsafe { self.connection.as_ref() })
    }

    /// The statements; not to be kept longer than the borrow.
    pub(crate) fn statements(&mut self) -> &mut Statements<'static> {
        &mut self.statements
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // SAFETY: the statements go first, once; then nothing borrows the connection, which came from a box.
        unsafe {
            ManuallyDrop::drop(&mut self.statements);
            drop(Box::from_raw(self.connection.as_ptr()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_once_at_start_looks_through_a_table() {
        let connection = Connection::open_in_memory().expect("a database");
        crate::schema::migrate(&connection, crate::schema::VERSION).expect("tables");
        for (name, sql) in ALL {
            let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect(name);
            // Parameters stay NULL, which changes no plan.
            let mut steps = plan.raw_query();
            while let Some(step) = steps.next().expect("a step") {
                let step: String = step.get(3).expect("a text");
                let at_start = matches!(*name, "devices" | "unmark_caught_up");
                let scans = step.starts_with("SCAN") && step != "SCAN CONSTANT ROW";
                assert!(at_start || !scans, "{name}: {step}");
                // Lists are ordered by conversation id or arrival, which no index of theirs has.
                let sorted =
                    ["pending", "conversations_of_user", "members_by_arrival", "receipts"].contains(name);
                assert!(sorted || !step.contains("TEMP B-TREE"), "{name}: {step}");
            }
        }
    }
}
