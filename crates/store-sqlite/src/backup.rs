//! A copy of the database while it is in use.
//!
//! Owns the way from a data directory to one file that is a complete database. The copy is of one moment: the one at which it began. Deliberately takes
//! no lock on the directory, as a server holds it; like a check, it lets the write-ahead log grow while it lasts.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::{error, fmt, fs, io};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::directory;
use crate::open::{self, OpenError};
use crate::schema::PAGE_BYTES;
use crate::trouble::Trouble;

/// How far a backup is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that are copied.
    pub copied: u64,
    /// Bytes in all.
    pub total: u64,
}

/// Why there is no backup.
#[derive(Debug)]
pub enum BackupError {
    /// Something of that name is there already.
    Exists {
        /// Which file.
        file: PathBuf,
    },
    /// The database cannot be read.
    Source(OpenError),
    /// The copy cannot be written.
    Write {
        /// Which file.
        file: PathBuf,
        /// Why.
        source: Box<dyn error::Error + Send + Sync>,
    },
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackupError::Exists { file } => {
                write!(f, "{} is there already; choose another name for the backup", file.display())
            }
            BackupError::Source(error) => error.fmt(f),
            BackupError::Write { file, .. } => write!(f, "the backup {} cannot be written", file.display()),
        }
    }
}

impl error::Error for BackupError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            BackupError::Exists { .. } => None,
            BackupError::Source(error) => error.source(),
            BackupError::Write { source, .. } => Some(&**source),
        }
    }
}

/// Pages copied between two calls of `progress`: a mebibyte.
const PAGES_PER_STEP: i32 = (1 << 20) / PAGE_BYTES;

/// Copies the database of a data directory to a new file, which is complete and durable when it gets its name. Put into an empty directory as
/// `throng.db`, it is a data directory.
pub fn backup(
    data_directory: &Path,
    file: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), BackupError> {
    let exists = || BackupError::Exists { file: file.to_path_buf() };
    let write =
        |source: Box<dyn error::Error + Send + Sync>| BackupError::Write { file: file.to_path_buf(), source };
    if fs::symlink_metadata(file).is_ok() {
        return Err(exists());
    }
    let database = directory::database(data_directory);
    if database.exists() {
        open::look_at_log_unless_served(data_directory).map_err(BackupError::Source)?;
    }
    let source = open_source(&database)?;
    let unfinished = unfinished(file);
    // An earlier backup that was interrupted; nobody else writes this name.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(write(Box::new(error))),
        _ => {}
    }
    // Made here and not by SQLite: for its owner only, and with the system's own words when it cannot be.
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unfinished)
        .map_err(|error| write(Box::new(error)))?;
    let named = copy(&source, &database, &unfinished, progress).map_err(|error| match error {
        CopyError::Source(error) => BackupError::Source(error),
        CopyError::Write(source) => write(source),
    });
    let named = named.and_then(|()| {
        match renameat_with(CWD, &unfinished, CWD, file, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(exists()),
            Err(error) => return Err(write(Box::new(error))),
        }
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        directory::sync(parent).map_err(|error| write(Box::new(error)))
    });
    if named.is_err() {
        // What matters is why it failed, and that is told.
        let _ = fs::remove_file(&unfinished);
    }
    named
}

enum CopyError {
    Source(OpenError),
    Write(Box<dyn error::Error + Send + Sync>),
}

/// The database, with a transaction that keeps it as it is now. Without that, every commit of the server would make the copy begin
/// again.
fn open_source(database: &Path) -> Result<Connection, BackupError> {
    let connection =
        open::connect(database, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(BackupError::Source)?;
    let begin = || -> rusqlite::Result<()> {
        connection.pragma_update(None, "query_only", true)?;
        connection.execute_batch("BEGIN; SELECT count(*) FROM meta;")
    };
    begin().map_err(|error| BackupError::Source(OpenError::trouble(database, error.into())))?;
    Ok(connection)
}

fn copy(
    source: &Connection,
    database: &Path,
    unfinished: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), CopyError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut target = open::connect(unfinished, flags).map_err(|error| CopyError::Write(Box::new(error)))?;
    let blame = |error: rusqlite::Error| {
        let trouble = Trouble::from(error);
        // Only the source is read, and only reading finds damage.
        if trouble.is_damage() {
            CopyError::Source(OpenError::trouble(database, trouble))
        } else {
            CopyError::Write(Box::new(trouble))
        }
    };
    // The file has no name yet that anybody would look for, so it needs no way back.
    target.pragma_update(None, "journal_mode", "OFF").map_err(blame)?;
    {
        let backup = Backup::new(source, &mut target).map_err(blame)?;
        loop {
            let step = backup.step(PAGES_PER_STEP).map_err(blame)?;
            let pages = backup.progress();
            let bytes = |pages: i32| u64::from(pages.unsigned_abs()) * PAGE_BYTES as u64;
            let (total, left) = (bytes(pages.pagecount), bytes(pages.remaining));
            progress(Progress { copied: total - left, total });
            match step {
                StepResult::Done => break,
                StepResult::More => {}
                _ => return Err(CopyError::Write("SQLite found the copy locked by somebody".into())),
            }
        }
    }
    // One file, without a log beside it, until somebody serves from it.
    target.query_row("PRAGMA journal_mode = DELETE", (), |_| Ok(())).map_err(blame)?;
    target.close().map_err(|(_, error)| blame(error))
}

/// The name a backup has until it is complete.
fn unfinished(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".unfinished");
    PathBuf::from(name)
}
