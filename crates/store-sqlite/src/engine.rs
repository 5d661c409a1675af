//! The engine: one transaction a batch, and what to do when the disk refuses.
//!
//! Owns begin, commit, roll-back, checkpoints and the decision what is fatal. Deliberately knows no single request.

use std::ffi::{c_char, c_int, c_void};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{DeviceKey, HashKey};
use rusqlite::{Connection, OpenFlags, ffi};
use store::{Engine, Fatal, Reply, Request};

use crate::checkpoint::{Checkpoints, system_error};
use crate::directory::{self, Lock};
use crate::execute::Tables;
use crate::gauges::Gauges;
use crate::mark;
use crate::open::{self, OpenError};
use crate::schema::{self, PAGE_BYTES};
use crate::statements::Prepared;
use crate::trouble::Trouble;

/// Bytes of the database kept in memory while the devices are read, at start.
const START_CACHE_BYTES: usize = 256 << 10;

/// What an operator, or a test, may choose.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of the database kept in memory.
    pub cache_bytes: usize,
    /// The write-ahead log is copied into the database file whenever it has grown by so much. Rows that are written again and again
    /// before that are copied once, so more is cheaper; it also makes the start after a crash longer (a second for some 500 MiB).
    pub checkpoint_bytes: u64,
    /// Conversations remembered so that a message needs no look-up (about 100 bytes each).
    pub conversations_max: usize,
    /// Most pages the database file may have; `None` is SQLite's own limit.
    pub pages_max: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            cache_bytes: 64 << 20,
            checkpoint_bytes: 64 << 20,
            conversations_max: 1 << 17,
            pages_max: None,
        }
    }
}

/// The store in a data directory.
pub struct SqliteStore {
    tables: Tables,
    gauges: Arc<Gauges>,
    state: State,
    hash_key: HashKey,
    file: PathBuf,
    /// To sync it, whoever writes it.
    mark: File,
    checkpoints: Checkpoints,
    room: Room,
    cache_bytes: usize,
    // Declared last: the right to the directory goes after the connection.
    _lock: Lock,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No transaction is open, and memory agrees with the tables.
    Between,
    /// A batch is being carried out. Whoever finds this before a batch comes after a panic.
    Within,
    /// Something fatal happened; nothing is done any more.
    Failed,
}

/// Whether the disk takes more, as far as is known.
#[derive(Debug, Clone, Copy)]
enum Room {
    Enough,
    /// A batch was refused since room was last made.
    Doubtful,
    /// Not even the log could be copied, at that time.
    None(Instant),
}

/// How long writes are refused without a try after the log could not be copied: each try may write as much as the log holds.
const ROOM_PAUSE: Duration = Duration::from_secs(1);

impl SqliteStore {
    /// Opens the store of a directory, which is made if need be, and brings its schema up to date. Refuses at once when another process has
    /// it open.
    ///
    /// The whole file is not looked through here, not even after a crash, when everybody waits for the server: every page is
    /// checked when it is read ([`OpenError::Damaged`] or [`Fatal`] then), and [`crate::check`] reads all of them.
    pub fn open(directory: &Path, options: &Options) -> Result<Self, OpenError> {
        directory::create(directory)
            .map_err(|source| OpenError::Directory { directory: directory.to_path_buf(), source })?;
        let lock = Lock::take(directory).map_err(|error| OpenError::lock(directory, error))?;
        open::create(directory, schema::VERSION)?;
        let file = directory::database(directory);
        let interrupted = open::look_at_log(&file)?;
        let mark = mark::open(&file)
            .map_err(|source| OpenError::Directory { directory: mark::path(&file), source })?;
        let connection = open::connect(&file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        set_up(&connection, options).map_err(|trouble| OpenError::trouble(&file, trouble))?;
        if interrupted {
            open::clear_log(&connection).map_err(|trouble| OpenError::trouble(&file, trouble))?;
        }
        open::bring_up_to_date(&connection, &file)?;
        Self::start(connection, file, mark, lock, options)
    }

    fn start(
        connection: Connection,
        file: PathBuf,
        mark: File,
        lock: Lock,
        options: &Options,
    ) -> Result<Self, OpenError> {
        let trouble = |trouble| OpenError::trouble(&file, trouble);
        let hash_key = hash_key(&connection).map_err(trouble)?;
        let gauges = Arc::new(Gauges::default());
        gauges.opened(fs::metadata(&file).map_or(0, |metadata| metadata.len()));
        // SAFETY: the gauges live in the store, which drops the connection first.
        unsafe {
            let told = Arc::as_ptr(&gauges).cast_mut().cast();
            ffi::sqlite3_wal_hook(connection.handle(), Some(note_log_pages), told);
        }
        let prepared = Prepared::new(connection).map_err(trouble)?;
        let interval = (options.checkpoint_bytes / PAGE_BYTES as u64).max(1);
        let checkpoints = Checkpoints::start(&file, interval)?;
        Ok(SqliteStore {
            tables: Tables::new(prepared, hash_key, options.conversations_max),
            gauges,
            state: State::Between,
            hash_key,
            file,
            mark,
            checkpoints,
            room: Room::Enough,
            cache_bytes: options.cache_bytes,
            _lock: lock,
        })
    }

    /// The secret this store's server hashes ids with, made with the store.
    pub fn hash_key(&self) -> HashKey {
        self.hash_key
    }

    /// Numbers about the engine, to be read from any thread.
    pub fn gauges(&self) -> Arc<Gauges> {
        Arc::clone(&self.gauges)
    }

    /// Carries out all requests in one transaction.
    fn run(&mut self, batch: &[Request], replies: &mut Vec<Reply>) -> Result<(), Trouble> {
        self.tables.statements().begin.execute(())?;
        for request in batch {
            replies.push(self.tables.execute(request)?);
        }
        self.tables.write_moves()?;
        self.tables.statements().commit.execute(())?;
        Ok(())
    }

    /// Carries out a batch, or refuses it when there is no room.
    fn carry_out(&mut self, batch: &[Request], replies: &mut Vec<Reply>) -> Result<(), Trouble> {
        let writes = batch.iter().any(Request::writes);
        if writes && !self.has_room()? {
            return self.refuse(batch, replies);
        }
        let (first, began) = (replies.len(), Instant::now());
        match self.run(batch, replies).map_err(|trouble| self.tried(trouble)) {
            Ok(()) => {
                if writes {
                    self.gauges.committed(began.elapsed());
                }
                Ok(())
            }
            Err(trouble) if trouble.is_no_room() => {
                self.room = Room::Doubtful;
                replies.truncate(first);
                self.roll_back()?;
                self.refuse(batch, replies)
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// Answers a batch that the disk has no room for.
    fn refuse(&mut self, batch: &[Request], replies: &mut Vec<Reply>) -> Result<(), Trouble> {
        self.gauges.refused();
        for request in batch {
            let reply = if request.writes() { Reply::ReadOnly } else { self.tables.execute(request)? };
            replies.push(reply);
        }
        Ok(())
    }

    /// Undoes what a batch did to tables and memory.
    fn roll_back(&mut self) -> Result<(), Trouble> {
        self.tables.forget();
        // After some errors SQLite has rolled back by itself.
        if !self.tables.prepared.connection().is_autocommit() {
            self.tables.statements().roll_back.execute(())?;
        }
        Ok(())
    }

    /// Before a batch that writes: whether there is any use in trying.
    ///
    /// When the disk was full, what room there is now goes to the database file first. Then the log starts anew in the room it has
    /// already, instead of taking the rest and leaving none to copy it.
    fn has_room(&mut self) -> Result<bool, Trouble> {
        match self.room {
            Room::Enough => self.checkpoint().map(|()| true),
            Room::None(since) if since.elapsed() < ROOM_PAUSE => Ok(false),
            Room::Doubtful | Room::None(_) => {
                let (statements, connection) = self.tables.prepared.parts();
                match self.checkpoints.finish_now(&mut statements.copy_log, connection) {
                    Ok(true) => self.room = Room::Enough,
                    // Somebody reads an older state; the disk may have room all the same.
                    Ok(false) => {}
                    Err(trouble) if trouble.is_no_room() => {
                        self.room = Room::None(Instant::now());
                        return Ok(false);
                    }
                    Err(trouble) => return Err(trouble),
                }
                Ok(true)
            }
        }
    }

    /// Keeps the write-ahead log from growing for ever.
    fn checkpoint(&mut self) -> Result<(), Trouble> {
        let began = Instant::now();
        let (statements, connection) = self.tables.prepared.parts();
        let log_pages = self.gauges.log_pages();
        if self.checkpoints.advance(log_pages, &mut statements.copy_log, connection)? {
            let database_bytes = fs::metadata(&self.file).map_or(0, |metadata| metadata.len());
            self.gauges.checkpointed(began.elapsed(), database_bytes);
        }
        Ok(())
    }

    fn tried(&self, trouble: Trouble) -> Trouble {
        system_error(trouble, self.tables.prepared.connection())
    }

    /// Remembers that nothing may be acknowledged any more.
    fn fail(&mut self, trouble: Trouble) -> Fatal {
        self.state = State::Failed;
        trouble.into()
    }

    /// Makes sure that a batch starts from what is durable.
    fn enter(&mut self) -> Result<(), Trouble> {
        match self.state {
            State::Between => {}
            State::Within => self.roll_back()?,
            State::Failed => return Err(Trouble::damaged("the store has failed before")),
        }
        self.state = State::Within;
        Ok(())
    }
}

impl Engine for SqliteStore {
    fn commit(&mut self, batch: &[Request], replies: &mut Vec<Reply>) -> Result<(), Fatal> {
        self.enter().map_err(|trouble| self.fail(trouble))?;
        self.carry_out(batch, replies).map_err(|trouble| self.fail(trouble))?;
        self.state = State::Between;
        Ok(())
    }

    fn rest(&mut self) -> Result<(), Fatal> {
        self.mark.sync_data().map_err(|error| self.fail(Trouble::Sync(mark::path(&self.file), error)))
    }

    fn devices(&mut self, each: &mut dyn FnMut(DeviceKey, u32)) -> Result<(), Fatal> {
        self.enter().map_err(|trouble| self.fail(trouble))?;
        // What is read here once is not what the traffic will need. Were it all kept, its pages would lie between those of whoever is
        // told, and that memory could not be given back.
        self.tables.set_cache(START_CACHE_BYTES).map_err(|trouble| self.fail(trouble))?;
        if let Err(trouble) = self.tables.statements().unmark_caught_up.execute(()) {
            // Marks that are not needed do no harm, so a full disk is no reason not to start.
            let trouble = self.tried(trouble.into());
            if !trouble.is_no_room() {
                return Err(self.fail(trouble));
            }
            self.roll_back().map_err(|trouble| self.fail(trouble))?;
        }
        self.tables.devices(each).map_err(|trouble| self.fail(trouble))?;
        self.tables.set_cache(self.cache_bytes).map_err(|trouble| self.fail(trouble))?;
        self.state = State::Between;
        Ok(())
    }
}

impl Drop for SqliteStore {
    /// Leaves a database without a log, so that the next start has nothing to recover. Not after something fatal: the log must be left
    /// as the failure left it. What goes wrong here loses nothing, the log is still there.
    fn drop(&mut self) {
        self.checkpoints.stop();
        if self.state == State::Failed || self.roll_back().is_err() {
            return;
        }
        let connection = self.tables.prepared.connection();
        let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
    }
}

/// What only the connection that serves needs.
fn set_up(connection: &Connection, options: &Options) -> Result<(), Trouble> {
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", (), |row| row.get(0))?;
    if mode != "wal" {
        return Err(Trouble::damaged(format!("the write-ahead log cannot be turned on, the mode is {mode}")));
    }
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    // Deleted messages are overwritten where that costs no more writing.
    connection.query_row("PRAGMA secure_delete = FAST", (), |_| Ok(()))?;
    connection.pragma_update(None, "cache_size", -((options.cache_bytes / 1024) as i64))?;
    if let Some(pages) = options.pages_max {
        connection.pragma_update(None, "max_page_count", pages)?;
    }
    Ok(())
}

fn hash_key(connection: &Connection) -> Result<HashKey, Trouble> {
    connection
        .query_row("SELECT value FROM meta WHERE key = 'hash_key'", (), |row| row.get(0))
        .map(HashKey)
        .map_err(Trouble::from)
}

/// SQLite calls this after each commit.
unsafe extern "C" fn note_log_pages(
    gauges: *mut c_void,
    _connection: *mut ffi::sqlite3,
    _schema: *const c_char,
    pages: c_int,
) -> c_int {
    // SAFETY: `start` gave the gauges, which live longer than the connection.
    let gauges = unsafe { &*gauges.cast::<Gauges>() };
    gauges.logged(pages.max(0) as u64);
    ffi::SQLITE_OK
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use model::{ClientId, ConversationId, ConversationKind, DeviceId, Entry, Payload, Seq, UserId, Wall};

    use super::*;
    use crate::vfs::faults::Disk;

    const SENDER: DeviceKey = DeviceKey { user: UserId([1; 16]), device: DeviceId(1) };
    const CONVERSATION: ConversationId = ConversationId([5; 16]);

    fn open(directory: &Path) -> SqliteStore {
        // The log is copied every few commits, so that the faults meet copies too.
        let options = Options { checkpoint_bytes: 40 << 10, ..Options::default() };
        SqliteStore::open(directory, &options).expect("an open store")
    }

    fn commit(store: &mut SqliteStore, batch: &[Request]) -> Result<Vec<Reply>, Fatal> {
        let mut replies = Vec::new();
        store.commit(batch, &mut replies).map(|()| replies)
    }

    fn begin(store: &mut SqliteStore) {
        let device = Request::RegisterDevice { device: SENDER, ts: Wall(1) };
        let conversation = Request::CreateConversation {
            conversation: CONVERSATION,
            kind: ConversationKind::Group,
            by: SENDER.user,
            members: vec![SENDER.user],
            ts: Wall(1),
        };
        commit(store, &[device, conversation]).expect("the disk works");
    }

    fn message(number: u8) -> Request {
        Request::Append {
            conversation: CONVERSATION,
            from: SENDER,
            client_id: ClientId([number; 16]),
            ts: Wall(2),
            payload: Payload::from(vec![number; 5_000]),
            mark: Vec::new(),
        }
    }

    fn page() -> Request {
        let (after, up_to) = (Seq(0), Seq(u64::MAX));
        Request::ReadLog { conversation: CONVERSATION, after, up_to, limit: u32::MAX, bytes_max: usize::MAX }
    }

    fn log(store: &mut SqliteStore) -> Vec<Entry> {
        match commit(store, &[page()]).expect("the disk works").pop() {
            Some(Reply::Page(page)) => page,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn after_a_failed_sync_nothing_is_acknowledged_and_all_that_was_is_there() {
        let disk = Disk::take();
        let mut failures = 0;
        for good in 0..30 {
            disk.works();
            let directory = tempfile::tempdir().expect("a temporary directory");
            let mut store = open(directory.path());
            begin(&mut store);
            disk.fails_to_sync_after(good);
            let mut acknowledged = 0;
            while acknowledged < 40 && commit(&mut store, &[message(acknowledged)]).is_ok() {
                acknowledged += 1;
            }
            if acknowledged < 40 {
                failures += 1;
                // The disk says it is well again, and is not believed.
                let next = commit(&mut store, &[message(100)]);
                assert!(next.is_err(), "{next:?}");
                assert!(commit(&mut store, &[page()]).is_err());
                assert!(store.devices(&mut |_, _| {}).is_err());
            }
            assert!(disk.has_failed_to_sync(), "it was never asked to after {good}");
            disk.works();
            drop(store);
            let kept = log(&mut open(directory.path())).len();
            // What failed may have reached the disk all the same.
            let expected = usize::from(acknowledged) + 1;
            assert!(
                (expected..=expected + 1).contains(&kept),
                "{kept} kept of {expected}, {good} good syncs"
            );
        }
        // Wherever the failure hits, in a commit or in a copy by either thread, it ends the store.
        assert_eq!(failures, 30);
    }

    #[test]
    fn a_write_that_fails_for_want_of_room_refuses_the_batch_and_nothing_else() {
        let disk = Disk::take();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut store = open(directory.path());
        begin(&mut store);
        let mut taken = 1;
        for round in 0..40 {
            disk.fails_to_write_after(round % 5, ffi::SQLITE_FULL);
            let before = log(&mut store);
            let replies = commit(&mut store, &[message(round as u8), page()]).expect("it is not fatal");
            if replies[0] == Reply::ReadOnly {
                assert_eq!(replies[1], Reply::Page(before));
                disk.works();
                let again = commit(&mut store, &[message(round as u8)]).expect("there is room");
                assert_eq!(again, [Reply::Appended { seq: Seq(taken + 1) }]);
            }
            disk.works();
            taken += 1;
            assert_eq!(log(&mut store).len() as u64, taken);
        }
        assert!(store.gauges().read().refused > 5, "{:?}", store.gauges().read());
        drop(store);
        assert!(crate::check(directory.path()).expect("it can be checked").is_sound());
    }

    #[test]
    fn a_write_that_fails_otherwise_is_fatal() {
        let disk = Disk::take();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut store = open(directory.path());
        begin(&mut store);
        disk.fails_to_write_after(0, ffi::SQLITE_IOERR_WRITE);
        assert!(commit(&mut store, &[message(1)]).is_err());
        disk.works();
        assert!(commit(&mut store, &[message(1)]).is_err());
        drop(store);
        assert_eq!(log(&mut open(directory.path())).len(), 1);
    }

    #[test]
    fn a_batch_after_a_panic_begins_from_what_is_durable() {
        let _disk = Disk::take();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut store = open(directory.path());
        begin(&mut store);
        commit(&mut store, &[message(1)]).expect("the disk works");
        // What a batch leaves when it is cut off in the middle.
        store.enter().expect("it works");
        store.tables.statements().begin.execute(()).expect("a transaction");
        store.tables.execute(&message(2)).expect("a message");
        assert_eq!(log(&mut store).len(), 2);
        let next = commit(&mut store, &[message(3)]).expect("the disk works");
        assert_eq!(next, [Reply::Appended { seq: Seq(3) }]);
        drop(store);
        assert_eq!(log(&mut open(directory.path())).len(), 3);
    }
}
