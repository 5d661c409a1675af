//! How far the write-ahead log is known to have reached the disk.
//!
//! A log ends at the first frame that does not hold. Whether writing was interrupted there, or the frame was whole once and has been
//! damaged since, cannot be seen in the last commit of the log itself: nothing follows it. So after each sync, before anybody
//! hears of the commit, the place of its last frame is written into a small file beside the database. A log that does not hold up to there
//! is damaged.
//!
//! The mark is not synced with every commit, which would be a second wait for the disk. The system keeps it through any death of
//! the process; what a power cut may cost it is told in `docs/decisions/the-end-of-the-log.md`. An older mark of the same log is still true,
//! it only says less. A mark of an earlier log would be wrong, so it is taken back, durably, before a new log is begun.
//!
//! Owns the file and its format; deliberately knows nothing of what is in a frame.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::directory;
#[cfg(test)]
use crate::power;

/// A frame that is on the disk, and all before it in the same log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Durable {
    /// What every frame of this log bears, and of no other.
    pub salts: [u8; 8],
    /// The byte of the log at which the frame begins.
    pub at: u64,
}

/// What a mark's file begins with ("throng, end").
const MAGIC: [u8; 8] = *b"throngE1";
/// Magic, salts, place, checksum: within one sector, so that a power cut leaves the old or the new.
const BYTES: usize = 32;

/// The mark's file for a database file.
pub(crate) fn path(database: &Path) -> PathBuf {
    directory::beside(database, "-mark")
}

/// What the mark of a database file says. None when nothing is marked, there is no mark, or it is not what was written: the log itself
/// may be whole all the same.
pub(crate) fn read(database: &Path) -> io::Result<Option<Durable>> {
    let mut bytes = Vec::with_capacity(BYTES);
    match File::open(path(database)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?.take(BYTES as u64).read_to_end(&mut bytes)?,
    };
    Ok(decode(&bytes))
}

/// Opens the mark of a database file, which is made if need be.
pub(crate) fn open(database: &Path) -> io::Result<File> {
    let path = path(database);
    let is_new = !path.exists();
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
    if is_new {
        file.write_all_at(&encode(None), 0)?;
        file.sync_all()?;
        directory::sync(path.parent().unwrap_or(Path::new(".")))?;
    }
    Ok(file)
}

fn write(file: &File, durable: Option<Durable>) -> io::Result<()> {
    let bytes = encode(durable);
    file.write_all_at(&bytes, 0)?;
    #[cfg(test)]
    power::wrote(power::Kind::Mark, &bytes, 0);
    Ok(())
}

fn sync_data(file: &File) -> io::Result<()> {
    #[cfg(test)]
    let changes = power::syncing(power::Kind::Mark);
    file.sync_data()?;
    #[cfg(test)]
    power::synced(power::Kind::Mark, changes);
    Ok(())
}

/// The mark as whoever writes the log holds it.
pub(crate) struct Mark {
    database: PathBuf,
    file: Option<File>,
    /// Whether anything was marked since the last log was given up: the first mark of a log is synced, so that a log that
    /// was begun is not taken for none when its beginning is damaged.
    begun: bool,
}

impl Mark {
    /// For a database file. Opened now if it is there, since later there may be no descriptor left; made when it is needed.
    pub(crate) fn new(database: PathBuf) -> Mark {
        let file = OpenOptions::new().write(true).open(path(&database)).ok();
        Mark { database, file, begun: false }
    }

    /// Durably marks nothing. Comes before the first byte of a log is written or cut off.
    pub(crate) fn take_back(&mut self) -> io::Result<()> {
        self.begun = false;
        let file = self.file()?;
        write(file, None)?;
        sync_data(file)
    }

    /// Marks a frame that has just become durable. A disk without room keeps the mark it has.
    pub(crate) fn advance(&mut self, durable: Durable) -> io::Result<()> {
        let begun = std::mem::replace(&mut self.begun, true);
        let file = self.file()?;
        match write(file, Some(durable)) {
            Ok(()) if begun => Ok(()),
            Ok(()) => sync_data(file),
            Err(error) if is_no_room(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn file(&mut self) -> io::Result<&File> {
        if self.file.is_none() {
            self.file = Some(open(&self.database)?);
        }
        Ok(self.file.as_ref().expect("it was just opened"))
    }
}

/// Whether a file system says that it is full.
pub(crate) fn is_no_room(error: &io::Error) -> bool {
    [Errno::NOSPC, Errno::DQUOT].iter().any(|full| error.raw_os_error() == Some(full.raw_os_error()))
}

fn encode(durable: Option<Durable>) -> [u8; BYTES] {
    let Durable { salts, at } = durable.unwrap_or(Durable { salts: [0; 8], at: 0 });
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..16].copy_from_slice(&salts);
    bytes[16..24].copy_from_slice(&at.to_be_bytes());
    let sum = sum(&bytes[..24]);
    bytes[24..].copy_from_slice(&sum.to_be_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<Durable> {
    let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
    let number = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    if bytes[..8] != MAGIC || number(24) != sum(&bytes[..24]) || number(16) == 0 {
        return None;
    }
    Some(Durable { salts: bytes[8..16].try_into().expect("eight bytes"), at: number(16) })
}

/// FNV-1a (<http://www.isthe.com/chongo/tech/comp/fnv/>), 64 bits: each step is a bijection, so one changed byte always shows.
fn sum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::faults::Disk;

    const HERE: Durable = Durable { salts: *b"saltsalt", at: 4_152 };

    #[test]
    fn what_is_marked_is_read_until_it_is_taken_back() {
        let _disk = Disk::take();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let database = directory.path().join("a.db");
        assert_eq!(read(&database).expect("no file is no error"), None);
        let mut mark = Mark::new(database.clone());
        let later = Durable { at: 8_272, ..HERE };
        for durable in [HERE, later] {
            mark.advance(durable).expect("it can be written");
            assert_eq!(read(&database).expect("it can be read"), Some(durable));
        }
        // Whoever opens it next goes on with it.
        let mut again = Mark::new(database.clone());
        again.take_back().expect("it can be written");
        assert_eq!(read(&database).expect("it can be read"), None);
    }

    #[test]
    fn a_mark_that_was_changed_or_cut_off_says_nothing() {
        let good = encode(Some(HERE));
        assert_eq!(decode(&good), Some(HERE));
        assert_eq!(decode(&encode(None)), None);
        for at in 0..BYTES {
            let mut bytes = good;
            for changed in 1..=255 {
                bytes[at] = good[at] ^ changed;
                assert_eq!(decode(&bytes), None, "byte {at}");
            }
            assert_eq!(decode(&good[..at]), None);
        }
    }

    #[test]
    fn the_sum_is_fnv_1a() {
        // From the test vectors of draft-eastlake-fnv.
        assert_eq!(sum(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(sum(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(sum(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
