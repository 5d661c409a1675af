//! The data directory and who may use it.
//!
//! Owns the directory's mode, the lock file and the names of the files. Deliberately knows nothing of what is in the database.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// The database file of a data directory.
pub(crate) fn database(directory: &Path) -> PathBuf {
    directory.join("throng.db")
}

/// Where a new database file is made before it gets its name.
pub(crate) fn unfinished_database(directory: &Path) -> PathBuf {
    directory.join("throng.db.new")
}

/// A file that belongs to a database file, as SQLite names those of its own.
pub(crate) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Makes the directory if it is not there, for its owner only, and durable.
pub(crate) fn create(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    match directory.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync(parent),
        _ => sync(Path::new(".")),
    }
}

/// Makes names in a directory durable.
pub(crate) fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// The right to use a data directory, for as long as it lives. The system takes it back when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// Why there is no [`Lock`].
#[derive(Debug)]
pub(crate) enum LockError {
    /// Somebody has it; the process id if they left it.
    Taken(Option<u32>),
    /// The lock file cannot be used.
    Io(io::Error),
}

impl From<io::Error> for LockError {
    fn from(error: io::Error) -> Self {
        LockError::Io(error)
    }
}

impl Lock {
    /// Takes the lock of a directory or says at once who has it.
    pub(crate) fn take(directory: &Path) -> Result<Lock, LockError> {
        let path = directory.join("throng.lock");
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                file.set_len(0)?;
                file.write_all(format!("{}\n", std::process::id()).as_bytes())?;
                Ok(Lock { _file: file })
            }
            Err(Errno::WOULDBLOCK) => {
                let mut text = String::new();
                file.rewind()?;
                let length = file.take(32).read_to_string(&mut text).unwrap_or(0);
                Err(LockError::Taken(text[..length].trim().parse().ok()))
            }
            Err(error) => Err(LockError::Io(error.into())),
        }
    }
}
