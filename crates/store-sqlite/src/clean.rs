//! Removing users by their phone numbers, with all that is only theirs.
//!
//! Owns the decision who goes and what stays, made in two temporary tables, and the removal in the order of the tables. It looks through whole tables,
//! which is why nobody asks for it while clients wait.

use std::ops::RangeInclusive;

use model::Phone;
use rusqlite::Connection;
use store::Cleaned;

use crate::execute::Tables;
use crate::trouble::Trouble;

/// Which users are meant, and which conversations only they have to do with.
const CHOOSE: [&str; 6] = [
    "CREATE TEMP TABLE going (user BLOB PRIMARY KEY) STRICT, WITHOUT ROWID",
    "CREATE TEMP TABLE emptied (number INTEGER PRIMARY KEY) STRICT",
    "INSERT INTO going SELECT user FROM users WHERE phone BETWEEN ?1 AND ?2",
    "INSERT OR IGNORE INTO emptied SELECT m.conversation FROM going g JOIN members m ON m.user = g.user",
    "DELETE FROM emptied
        WHERE EXISTS (SELECT 1 FROM members m WHERE m.conversation = number AND m.user NOT IN (SELECT user FROM going))
           OR EXISTS (SELECT 1 FROM log l WHERE l.place BETWEEN (number << 32) AND ((number << 32) | 4294967295)
                AND l.user NOT IN (SELECT user FROM going))",
    "DELETE FROM emptied WHERE number IN (
        SELECT conversation FROM client_ids WHERE user NOT IN (SELECT user FROM going))",
];

/// Who is a member elsewhere stays.
const SPARE: &str = "DELETE FROM going WHERE EXISTS (
    SELECT 1 FROM members m WHERE m.user = going.user AND m.conversation NOT IN (SELECT number FROM emptied))";

impl Tables {
    pub(crate) fn clean(&mut self, phones: &RangeInclusive<Phone>) -> Result<Cleaned, Trouble> {
        self.write_moves()?;
        // What is remembered of conversations may be of those that go.
        self.forget();
        let connection = self.prepared.connection();
        let (first, last) = (phones.start().0 as i64, phones.end().0 as i64);
        for step in CHOOSE {
            let mut statement = connection.prepare(step)?;
            match statement.parameter_count() {
                0 => statement.execute(())?,
                _ => statement.execute((first, last))?,
            };
        }
        connection.execute(SPARE, ())?;
        let gone = |sql: &str| -> Result<u64, Trouble> { Ok(connection.execute(sql, ())? as u64) };
        let cleaned = Cleaned {
            cursors: gone("DELETE FROM cursors WHERE conversation IN (SELECT number FROM emptied)")?,
            members: gone("DELETE FROM members WHERE conversation IN (SELECT number FROM emptied)")?,
            entries: entries(connection)?,
            client_ids: gone(
                "DELETE FROM client_ids WHERE user IN (SELECT user FROM going)
                    OR conversation IN (SELECT number FROM emptied)",
            )?,
            conversations: gone("DELETE FROM conversations WHERE number IN (SELECT number FROM emptied)")?,
            devices: gone("DELETE FROM devices WHERE user IN (SELECT user FROM going)")?,
            users: gone("DELETE FROM users WHERE user IN (SELECT user FROM going)")?,
            users_stayed: count(
                connection,
                "SELECT count(*) FROM users WHERE phone BETWEEN ?1 AND ?2",
                first,
                last,
            )?,
            conversations_stayed: count(
                connection,
                "SELECT count(DISTINCT m.conversation) FROM users u JOIN members m ON m.user = u.user
                    WHERE u.phone BETWEEN ?1 AND ?2",
                first,
                last,
            )?,
        };
        connection.execute_batch("DROP TABLE temp.going; DROP TABLE temp.emptied")?;
        Ok(cleaned)
    }
}

/// The logs of the conversations that go, each a range of places.
fn entries(connection: &Connection) -> Result<u64, Trouble> {
    let mut numbers = connection.prepare("SELECT number FROM emptied ORDER BY number")?;
    let mut log = connection.prepare("DELETE FROM log WHERE place BETWEEN ?1 AND ?2")?;
    let (mut found, mut entries) = (numbers.query(())?, 0);
    while let Some(row) = found.next()? {
        let number: i64 = row.get(0)?;
        entries += log.execute((number << 32, number << 32 | 0xffff_ffff))? as u64;
    }
    Ok(entries)
}

fn count(connection: &Connection, sql: &str, first: i64, last: i64) -> Result<u64, Trouble> {
    let rows: i64 = connection.query_row(sql, (first, last), |row| row.get(0))?;
    Ok(rows.unsigned_abs())
}
