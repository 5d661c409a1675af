//! From a data directory to an open connection.
//!
//! Owns what must be true of a file before anything is served from it, and how every connection is set up. Deliberately knows
//! no request.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{error, fmt};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, ffi};

use crate::checkpoint::system_error;
use crate::directory::{self, Lock, LockError};
use crate::trouble::Trouble;
use crate::{log_check, mark, schema, vfs};

/// Why a data directory cannot be used.
#[derive(Debug)]
pub enum OpenError {
    /// The directory, or a file in it that is not the database, cannot be made or used.
    Directory {
        /// Which.
        directory: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process uses it.
    InUse {
        /// Which directory.
        directory: PathBuf,
        /// The other process, if it can be told.
        pid: Option<u32>,
    },
    /// There is nothing in the directory.
    Missing {
        /// The file that is not there.
        file: PathBuf,
    },
    /// The file is no database of throng.
    NotOurs {
        /// Which file.
        file: PathBuf,
    },
    /// The file was written by a newer throng.
    Newer {
        /// Which file.
        file: PathBuf,
        /// The version of its tables.
        found: u32,
        /// The newest version this program knows.
        known: u32,
    },
    /// The file is not what was written.
    Damaged {
        /// Which file.
        file: PathBuf,
        /// How it showed.
        source: Box<dyn error::Error + Send + Sync>,
    },
    /// The file cannot be opened, read or written.
    Database {
        /// Which file.
        file: PathBuf,
        /// Why.
        source: Box<dyn error::Error + Send + Sync>,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Directory { directory, .. } => {
                write!(f, "the data directory {} cannot be used", directory.display())
            }
            OpenError::InUse { directory, pid: Some(pid) } => write!(
                f,
                "the data directory {} is in use by process {pid}; stop it or choose another directory",
                directory.display()
            ),
            OpenError::InUse { directory, pid: None } => write!(
                f,
                "the data directory {} is in use by another process; stop it or choose another directory",
                directory.display()
            ),
            OpenError::Missing { file } => write!(f, "there is no database at {}", file.display()),
            OpenError::NotOurs { file } => write!(
                f,
                "{} was not made by throng; move it away or choose another data directory",
                file.display()
            ),
            OpenError::Newer { file, found, known } => write!(
                f,
                "{} has schema version {found} and this program knows versions up to {known}; use a newer throng",
                file.display()
            ),
            OpenError::Damaged { file, .. } => {
                write!(f, "{} is damaged; keep a copy of its directory and restore a backup", file.display())
            }
            OpenError::Database { file, .. } => write!(f, "the database {} cannot be used", file.display()),
        }
    }
}

impl error::Error for OpenError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            OpenError::Directory { source, .. } => Some(source),
            OpenError::Damaged { source, .. } | OpenError::Database { source, .. } => Some(&**source),
            OpenError::InUse { .. }
            | OpenError::Missing { .. }
            | OpenError::NotOurs { .. }
            | OpenError::Newer { .. } => None,
        }
    }
}

impl OpenError {
    pub(crate) fn lock(directory: &Path, error: LockError) -> OpenError {
        let directory = directory.to_path_buf();
        match error {
            LockError::Taken(pid) => OpenError::InUse { directory, pid },
            LockError::Io(source) => OpenError::Directory { directory, source },
        }
    }

    pub(crate) fn trouble(file: &Path, trouble: Trouble) -> OpenError {
        let (file, damage) = (file.to_path_buf(), trouble.is_damage());
        let source = Box::new(trouble);
        if damage { OpenError::Damaged { file, source } } else { OpenError::Database { file, source } }
    }
}

/// Makes the database file of a directory unless it is there, up to schema version `version`. It gets its name when it is complete
/// and durable, so a crash on the way leaves nothing that looks like a database.
pub(crate) fn create(directory: &Path, version: u32) -> Result<(), OpenError> {
    let file = directory::database(directory);
    let io_error = |source| OpenError::Directory { directory: directory.to_path_buf(), source };
    if fs::exists(&file).map_err(io_error)? {
        return Ok(());
    }
    let unfinished = directory::unfinished_database(directory);
    for leftover in [unfinished.clone(), unfinished.with_extension("new-journal")] {
        match fs::remove_file(leftover) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_error(error)),
            _ => {}
        }
    }
    let connection = connect(&unfinished, OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let build = || -> Result<(), Trouble> {
        schema::begin(&connection)?;
        schema::migrate(&connection, version)?;
        connection.close().map_err(|(_, error)| error.into())
    };
    build().map_err(|trouble| OpenError::trouble(&unfinished, trouble))?;
    fs::rename(&unfinished, &file).map_err(io_error)?;
    directory::sync(directory).map_err(io_error)
}

/// Refuses a database whose write-ahead log does not reach as far as it did: SQLite would take it up to where it is broken and forget the
/// rest. True when the log has a rest, of a commit that was interrupted.
pub(crate) fn look_at_log(file: &Path) -> Result<bool, OpenError> {
    let log = directory::beside(file, "-wal");
    let refused = |file, source| OpenError::Database { file, source: Box::new(source) };
    let marked = mark::read(file).map_err(|error| refused(mark::path(file), error))?;
    let found = match File::open(&log).and_then(|log| log_check::look(log, marked)) {
        // No log is an empty one.
        Err(error) if error.kind() == io::ErrorKind::NotFound => log_check::look(io::empty(), marked),
        looked => looked,
    };
    let found = found.map_err(|error| refused(log.clone(), error))?;
    if found.is_damaged() {
        let (broken, after) = (found.whole + 1, found.commits_after);
        let what = match marked.filter(|_| found.marked_is_missing) {
            Some(marked) => format!(
                "frame {broken} of the write-ahead log does not hold or is missing, and {} says that the log was durable up \
                 to byte {}",
                mark::path(file).display(),
                marked.at
            ),
            None => {
                format!("frame {broken} of the write-ahead log does not hold, and {after} commits follow it")
            }
        };
        return Err(OpenError::trouble(&log, Trouble::damaged(what)));
    }
    if found.whole == 0 {
        look_at_length(file)?;
    }
    Ok(found.left_over > 0)
}

/// Begins the log anew, after all of it that counts was copied. What an interrupted commit left in it would lie behind the next one,
/// and after another power cut be taken for a commit that had followed it. A disk without room keeps the log as it is.
pub(crate) fn clear_log(connection: &Connection) -> Result<(), Trouble> {
    let cleared = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
    match cleared.map_err(|error| system_error(error.into(), connection)) {
        Err(trouble) if !trouble.is_no_room() => Err(trouble),
        _ => Ok(()),
    }
}

/// Refuses a file that was cut off. Without a log to say more, it is as long as its header says in bytes 28 to 31
/// (<https://www.sqlite.org/fileformat2.html>, section 1.3); SQLite notices only when whole pages are missing.
fn look_at_length(file: &Path) -> Result<(), OpenError> {
    let mut header = [0_u8; 100];
    let read = File::open(file).and_then(|mut open| {
        open.read_exact(&mut header)?;
        open.metadata()
    });
    // Whatever else is the matter with the file shows when it is opened.
    let Ok(metadata) = read else { return Ok(()) };
    let Ok(page_bytes) = schema::recognise(&header) else { return Ok(()) };
    let pages = u32::from_be_bytes(header[28..32].try_into().expect("four bytes"));
    if metadata.len() < u64::from(pages) * u64::from(page_bytes.unsigned_abs()) {
        return Err(OpenError::trouble(file, Trouble::damaged("its end is missing")));
    }
    Ok(())
}

/// The same for whoever opens a data directory beside a server, if there is one: then the log is being written, and the server has looked.
pub(crate) fn look_at_log_unless_served(directory: &Path) -> Result<(), OpenError> {
    match Lock::take(directory) {
        Ok(_lock) => look_at_log(&directory::database(directory)).map(|_| ()),
        Err(LockError::Taken(_)) => Ok(()),
        Err(error) => Err(OpenError::lock(directory, error)),
    }
}

/// Opens a file through the checking layer, with what every connection needs.
pub(crate) fn connect(file: &Path, flags: OpenFlags) -> Result<Connection, OpenError> {
    vfs::register();
    if !flags.contains(OpenFlags::SQLITE_OPEN_CREATE) {
        match fs::metadata(file) {
            Ok(metadata) if metadata.len() > 0 => {}
            // SQLite would make a database of it.
            Ok(_) => return Err(OpenError::NotOurs { file: file.to_path_buf() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(OpenError::Missing { file: file.to_path_buf() });
            }
            Err(source) => {
                return Err(OpenError::Database { file: file.to_path_buf(), source: Box::new(source) });
            }
        }
    }
    let opened = Connection::open_with_flags_and_vfs(file, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX, vfs::VFS);
    let connection = match opened {
        Ok(connection) => connection,
        // The layer looked at the header and does not know it.
        Err(rusqlite::Error::SqliteFailure(failure, _)) if failure.extended_code == ffi::SQLITE_NOTADB => {
            return Err(OpenError::NotOurs { file: file.to_path_buf() });
        }
        Err(error) => return Err(OpenError::trouble(file, error.into())),
    };
    set_up(&connection).map_err(|error| OpenError::trouble(file, error.into()))?;
    Ok(connection)
}

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_WAIT)?;
    // Every commit is synced before anybody hears of it; `LogBuffer` relies on it too.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // SQLite would sync once more while closing and keep a failure to itself.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // Notice broken cells when a page is read instead of when they are used.
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // A mapped file turns a read error into a signal, and would pass the checksums by.
    connection.pragma_update(None, "mmap_size", 0)
}

/// How long to wait for a lock that somebody else's tool holds on the file.
const BUSY_WAIT: Duration = Duration::from_secs(2);

/// Refuses what is newer than this program, then brings an older file up to date.
pub(crate) fn bring_up_to_date(connection: &Connection, file: &Path) -> Result<(), OpenError> {
    let migrate = || -> Result<u32, Trouble> {
        let found = schema::version(connection)?;
        schema::migrate(connection, schema::VERSION)?;
        Ok(found)
    };
    match migrate().map_err(|trouble| OpenError::trouble(file, trouble))? {
        found if found > schema::VERSION => {
            Err(OpenError::Newer { file: file.to_path_buf(), found, known: schema::VERSION })
        }
        _ => Ok(()),
    }
}
