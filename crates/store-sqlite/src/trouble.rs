//! What may go wrong inside, and which kind of wrong it is.
//!
//! Owns the line between what passes by itself (no room on the disk) and what ends the process (everything else the disk can do).

use std::path::PathBuf;
use std::{fmt, io};

use rusqlite::{Error, ffi};
use store::Fatal;

/// Why a statement or a batch failed.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// SQLite says so; the second is the system's error number at that moment.
    Sqlite(Error, i32),
    /// The rows say what they cannot say.
    Damaged(String),
    /// A file of ours beside the database could not be synced.
    Sync(PathBuf, io::Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Sqlite(error, 0)
    }
}

impl Trouble {
    /// A row with content that was never written.
    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Trouble::Damaged(what.into())
    }

    /// Whether it is only that there is no room, so that the batch is undone and later ones may be tried.
    ///
    /// A failed sync is never this, even when the system calls it "no space": what was written before it may be lost. A file system
    /// that has become read-only is not this either: it becomes so after it has failed to write. A lock held by another program
    /// (somebody opened the file with a tool and writes) passes like a full disk.
    pub(crate) fn is_no_room(&self) -> bool {
        let Trouble::Sqlite(Error::SqliteFailure(failure, _), system) = self else { return false };
        let out_of_space = matches!(*system, ENOSPC | EDQUOT);
        match failure.extended_code & 0xff {
            ffi::SQLITE_FULL | ffi::SQLITE_BUSY => true,
            ffi::SQLITE_IOERR => match failure.extended_code {
                ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC => false,
                ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_SHMSIZE | ffi::SQLITE_IOERR_TRUNCATE => {
                    out_of_space
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether the file is not what was written.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Trouble::Damaged(_) => true,
            Trouble::Sqlite(Error::SqliteFailure(failure, _), _) => {
                failure.extended_code == ffi::SQLITE_IOERR_DATA
                    || matches!(failure.extended_code & 0xff, ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB)
            }
            Trouble::Sqlite(..) | Trouble::Sync(..) => false,
        }
    }
}

/// Linux's "no space left on device" and "quota exceeded".
const ENOSPC: i32 = rustix::io::Errno::NOSPC.raw_os_error();
const EDQUOT: i32 = rustix::io::Errno::DQUOT.raw_os_error();

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Damaged(what) => write!(f, "the database is damaged: {what}"),
            Trouble::Sqlite(Error::SqliteFailure(failure, _), _)
                if failure.extended_code == ffi::SQLITE_IOERR_DATA =>
            {
                f.write_str("the database is damaged: the checksum of a page does not match its content")
            }
            Trouble::Sync(file, _) => write!(f, "{} cannot be synced", file.display()),
            Trouble::Sqlite(_, 0) => f.write_str("SQLite failed"),
            Trouble::Sqlite(_, system) => {
                write!(f, "SQLite failed ({})", std::io::Error::from_raw_os_error(*system))
            }
        }
    }
}

impl std::error::Error for Trouble {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Trouble::Sqlite(error, _) => Some(error),
            Trouble::Sync(_, error) => Some(error),
            Trouble::Damaged(_) => None,
        }
    }
}

impl From<Trouble> for Fatal {
    fn from(trouble: Trouble) -> Self {
        Fatal(Box::new(trouble))
    }
}
