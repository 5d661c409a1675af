//! Copying the write-ahead log into the database file without holding up commits.
//!
//! A log that is only written grows for ever; it starts anew when all of it has been copied. Most of the copying is done by a thread with a
//! connection of its own, while commits go on. What they add meanwhile is copied by further passes, each shorter than the one
//! before, and the rest, when little is left, by the store's own thread, so that an end is reached however busy it is.
//!
//! SQLite would copy by itself after a commit, and would not say when a sync fails in it, which must end the process (S1).

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};

use rusqlite::{Connection, OpenFlags, Row, Statement, ffi};

use crate::open::{self, OpenError};
use crate::trouble::Trouble;

/// The statement of [`copy`].
pub(crate) const COPY: &str = "PRAGMA wal_checkpoint(PASSIVE)";

/// How far a copy came.
#[derive(Debug, Clone, Copy)]
struct Copied {
    /// How many pages of the log are in the database file.
    pages: u64,
    /// Whether that was all there were when it began. Not so while somebody reads an older state: a backup, a check.
    complete: bool,
}

/// Syncs the log, copies what no reader still needs there, syncs the file. Waits for nobody.
fn copy(statement: &mut Statement<'_>, connection: &Connection) -> Result<Copied, Trouble> {
    let columns = |row: &Row<'_>| Ok((row.get::<_, bool>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
    match statement.query_row((), columns) {
        Ok((busy, log, copied)) => {
            Ok(Copied { pages: copied.max(0) as u64, complete: !busy && log == copied })
        }
        Err(error) => Err(system_error(error.into(), connection)),
    }
}

/// When to copy, and who does it.
pub(crate) struct Checkpoints {
    copier: Copier,
    /// A copy begins whenever the log has grown by so many pages.
    interval: u64,
    /// The length of the log at which the next one begins.
    due_at: u64,
    /// Passes the thread has made for this one.
    passes: u32,
}

/// Passes of the thread before the store's own thread copies the rest, however much it is.
const PASSES_MAX: u32 = 3;

/// When the log has grown to so many intervals, the store's own thread waits for the copy: a disk that cannot keep up slows down
/// whoever writes instead of being filled by the log.
const INTERVALS_MAX: u64 = 4;

impl Checkpoints {
    pub(crate) fn start(file: &Path, interval: u64) -> Result<Self, OpenError> {
        Ok(Checkpoints { copier: Copier::start(file)?, interval, due_at: interval, passes: 0 })
    }

    /// Called between batches with the length of the log: does what is due. True when the store's own thread copied.
    pub(crate) fn advance(
        &mut self,
        log_pages: u64,
        statement: &mut Statement<'_>,
        connection: &Connection,
    ) -> Result<bool, Trouble> {
        let answer = if self.is_long(log_pages) { self.copier.wait() } else { self.copier.poll() };
        match answer {
            Some(answer) => {
                let rest_begins = self.note(answer, log_pages)?;
                if let Some(copied) = rest_begins {
                    return self.finish(copied, log_pages, statement, connection);
                }
            }
            None if log_pages >= self.due_at && !self.copier.busy => {
                self.passes = 1;
                self.copier.begin();
            }
            None => {}
        }
        Ok(false)
    }

    fn is_long(&self, log_pages: u64) -> bool {
        log_pages >= INTERVALS_MAX * self.interval
    }

    /// After a pass of the thread: how far it came, if the next is the last.
    fn note(&mut self, answer: Result<Copied, Trouble>, log_pages: u64) -> Result<Option<u64>, Trouble> {
        match answer {
            Ok(copied) if copied.complete => Ok(Some(copied.pages)),
            Ok(_) => {
                self.due_at = log_pages + self.interval;
                Ok(None)
            }
            Err(trouble) if trouble.is_no_room() => {
                self.due_at = log_pages + self.interval;
                Ok(None)
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// Copies the rest, or lets the thread make another pass when that would take long.
    fn finish(
        &mut self,
        copied: u64,
        log_pages: u64,
        statement: &mut Statement<'_>,
        connection: &Connection,
    ) -> Result<bool, Trouble> {
        let much_is_left = log_pages.saturating_sub(copied) > self.interval / 16;
        if much_is_left && self.passes < PASSES_MAX && !self.is_long(log_pages) {
            self.passes += 1;
            self.copier.begin();
            return Ok(false);
        }
        // When all of the log is copied, the next commit starts it anew.
        let rest = copy(statement, connection);
        self.due_at = self.interval;
        if let Some(copied) = self.note(rest, log_pages)? {
            debug_assert!(copied >= log_pages);
        }
        Ok(true)
    }

    /// Copies now, whatever the length of the log: true when all of it is copied.
    pub(crate) fn finish_now(
        &mut self,
        statement: &mut Statement<'_>,
        connection: &Connection,
    ) -> Result<bool, Trouble> {
        if let Some(Err(trouble)) = self.copier.wait()
            && !trouble.is_no_room()
        {
            return Err(trouble);
        }
        self.due_at = self.interval;
        Ok(copy(statement, connection)?.complete)
    }

    /// Ends the thread, after the copy it is making.
    pub(crate) fn stop(&mut self) {
        self.copier.stop();
    }
}

/// Adds what the system said to what SQLite said.
pub(crate) fn system_error(trouble: Trouble, connection: &Connection) -> Trouble {
    match trouble {
        // SAFETY: the handle is open.
        Trouble::Sqlite(error, _) => {
            Trouble::Sqlite(error, unsafe { ffi::sqlite3_system_errno(connection.handle()) })
        }
        other @ (Trouble::Damaged(_) | Trouble::Sync(..)) => other,
    }
}

/// The thread that copies.
struct Copier {
    /// Asks for a copy; dropped to end the thread.
    ask: Option<SyncSender<()>>,
    answers: Receiver<Result<Copied, Trouble>>,
    thread: Option<JoinHandle<()>>,
    /// Whether one is being made.
    busy: bool,
}

impl Copier {
    fn start(file: &Path) -> Result<Self, OpenError> {
        let connection = open::connect(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let (ask, asked) = sync_channel(1);
        let (answer, answers) = sync_channel(1);
        let work = move || {
            let mut prepared = connection.prepare(COPY);
            while asked.recv().is_ok() {
                let copied = match &mut prepared {
                    Ok(statement) => copy(statement, &connection),
                    Err(_) => Err(Trouble::damaged("the log cannot be copied")),
                };
                if answer.send(copied).is_err() {
                    break;
                }
            }
        };
        let thread = thread::Builder::new()
            .name("store-copier".to_owned())
            .spawn(work)
            .map_err(|source| OpenError::Database { file: file.to_path_buf(), source: Box::new(source) })?;
        Ok(Copier { ask: Some(ask), answers, thread: Some(thread), busy: false })
    }

    /// Asks for a copy, unless one is being made.
    fn begin(&mut self) {
        if !self.busy {
            let ask = self.ask.as_ref().expect("nothing is asked for after `stop`");
            // There is room, as the last one was answered; a thread that is gone shows in `poll`.
            let _ = ask.try_send(());
            self.busy = true;
        }
    }

    /// What became of the copy that was asked for, once it is made.
    fn poll(&mut self) -> Option<Result<Copied, Trouble>> {
        if !self.busy {
            return None;
        }
        let answer = match self.answers.try_recv() {
            Ok(answer) => answer,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(gone()),
        };
        self.busy = false;
        Some(answer)
    }
}

impl Copier {
    /// What became of the copy that was asked for, when it is made.
    fn wait(&mut self) -> Option<Result<Copied, Trouble>> {
        if !self.busy {
            return None;
        }
        self.busy = false;
        Some(self.answers.recv().unwrap_or_else(|_| Err(gone())))
    }

    /// Waits for a copy that is being made: the connection must be closed before the directory is given up.
    fn stop(&mut self) {
        self.ask = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn gone() -> Trouble {
    Trouble::damaged("the thread that copies the log is gone")
}

impl Drop for Copier {
    fn drop(&mut self) {
        self.stop();
    }
}
