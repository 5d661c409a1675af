//! Whether a write-ahead log ends where writing ended.
//!
//! SQLite takes a log up to the first frame whose checksum does not hold, and takes what follows for the end of an interrupted write. After a power
//! loss it is that. But a frame that was damaged later, in the middle, would silently undo every commit from there on (S2). The
//! two are told apart by what follows: a commit is synced before the next one is begun, so frames of later commits after a
//! broken frame mean that the broken one had been whole. After the last commit nothing follows, so whoever wrote it has marked
//! how far the log is known to be durable.
//!
//! Owns reading the log's format (<https://www.sqlite.org/fileformat2.html>, section 4); deliberately changes nothing.

use std::io::{self, BufReader, Read};

use crate::mark::Durable;

/// Bytes before the first frame.
pub(crate) const HEADER_BYTES: usize = 32;
/// Bytes of a frame before its page.
pub(crate) const FRAME_HEADER_BYTES: usize = 24;

/// Whether a page is what was written into its frame: by the frame's header, and the checksum that stands in the header before.
pub(crate) fn frame_holds(sum_before: &[u8; 8], header: &[u8; FRAME_HEADER_BYTES], page: &[u8]) -> bool {
    // Which way round words are read is said in the log's header. It is nearly always the way of this machine.
    [cfg!(target_endian = "big"), cfg!(target_endian = "little")].into_iter().any(|big_endian| {
        let mut sum = Sum { big_endian, first: word(sum_before, 0), second: word(sum_before, 4) };
        sum.next(header, page)
    })
}

/// What a log holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Found {
    /// Frames up to the last that holds.
    pub whole: u64,
    /// Frames of this log after the first that does not, and ends of commits among them.
    pub left_over: u64,
    /// See `left_over`.
    pub commits_after: u64,
    /// Whether the frame that was marked as durable is not among those that hold.
    pub marked_is_missing: bool,
}

impl Found {
    /// Whether something is missing that was there.
    ///
    /// One commit may be an interrupted write whose pieces reached the disk out of order; a second one began after the first
    /// was synced. Frames that a full disk made SQLite give up hold no commit.
    pub(crate) fn is_damaged(&self) -> bool {
        self.marked_is_missing || self.commits_after >= 2
    }
}

/// Reads a whole log, of which so much is marked.
pub(crate) fn look(log: impl Read, marked: Option<Durable>) -> io::Result<Found> {
    let mut log = BufReader::with_capacity(1 << 20, log);
    let mut found = Found { marked_is_missing: marked.is_some(), ..Found::default() };
    let mut header = [0_u8; HEADER_BYTES];
    if !fill(&mut log, &mut header)? {
        return Ok(found);
    }
    let Some(mut sum) = Sum::begin(&header) else { return Ok(found) };
    let page_bytes = word(&header, 8) as usize;
    if !page_bytes.is_power_of_two() || !(512..=65_536).contains(&page_bytes) {
        return Ok(found);
    }
    let salts: [u8; 8] = header[16..24].try_into().expect("eight bytes");
    // A mark is taken back before another log is begun. If this is another one all the same, some other program has begun it.
    let marked = marked.filter(|marked| marked.salts == salts);
    found.marked_is_missing = marked.is_some();
    let (mut frame, mut at) = (vec![0; FRAME_HEADER_BYTES + page_bytes], HEADER_BYTES as u64);
    let mut broken = false;
    while fill(&mut log, &mut frame)? {
        // Frames of earlier rounds through the file bear other salts: one word is counted up, the other is random. Who differs in one
        // byte only is of this round and has been damaged there.
        let strange = frame[8..16].iter().zip(salts).filter(|(byte, salt)| *byte != salt).count();
        let ours = strange <= 1;
        if !broken {
            broken = strange > 0 || !sum.next(&frame[..FRAME_HEADER_BYTES], &frame[FRAME_HEADER_BYTES..]);
        }
        if !broken && marked.is_some_and(|marked| marked.at == at) {
            found.marked_is_missing = false;
        }
        at += frame.len() as u64;
        match (broken, ours && word(&frame, 4) != 0) {
            (false, _) => found.whole += 1,
            (true, true) => found.commits_after += 1,
            (true, false) => {}
        }
        found.left_over += u64::from(broken && ours);
    }
    Ok(found)
}

/// Fills a buffer; false when the file ends before.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The running checksum of a log: each frame's includes all before it.
struct Sum {
    big_endian: bool,
    first: u32,
    second: u32,
}

impl Sum {
    /// None when the log's header does not hold: then it holds nothing, as after a crash right after it was begun.
    fn begin(header: &[u8; 32]) -> Option<Sum> {
        let big_endian = match word(header, 0) {
            0x377f_0682 => false,
            0x377f_0683 => true,
            _ => return None,
        };
        let mut sum = Sum { big_endian, first: 0, second: 0 };
        sum.add(&header[..24]);
        (sum.first == word(header, 24) && sum.second == word(header, 28)).then_some(sum)
    }

    /// Goes on over a frame; whether it holds.
    fn next(&mut self, header: &[u8], page: &[u8]) -> bool {
        self.add(&header[..8]);
        self.add(page);
        self.first == word(header, 16) && self.second == word(header, 20)
    }

    fn add(&mut self, bytes: &[u8]) {
        for pair in bytes.chunks_exact(8) {
            let read = |at: usize| {
                let word: [u8; 4] = pair[at..at + 4].try_into().expect("four bytes");
                if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
            };
            let (left, right) = (read(0), read(4));
            self.first = self.first.wrapping_add(left).wrapping_add(self.second);
            self.second = self.second.wrapping_add(right).wrapping_add(self.first);
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    /// A log of so many commits as SQLite itself writes it, and how many frames it has.
    fn log(commits: u32) -> (Vec<u8>, u64) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("a.db");
        let connection = Connection::open(&file).expect("a database");
        connection
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (a);")
            .expect("a table");
        for number in 1..commits {
            connection.execute("INSERT INTO t VALUES (?1)", (number,)).expect("a row");
        }
        let log = std::fs::read(directory.path().join("a.db-wal")).expect("a log");
        let frames = (log.len() - 32) / (4096 + 24);
        (log, frames as u64)
    }

    fn found(log: &[u8]) -> Found {
        look(log, None).expect("memory can be read")
    }

    #[test]
    fn a_log_of_sqlite_is_whole() {
        let (log, frames) = log(5);
        assert!(frames >= 5);
        assert_eq!(found(&log), Found { whole: frames, ..Found::default() });
        assert_eq!(found(&[]), Found::default());
    }

    #[test]
    fn each_frame_holds_by_itself_until_a_byte_is_changed() {
        let (log, frames) = log(4);
        let holds = |log: &[u8], frame: u64| {
            let at = 32 + frame as usize * (4096 + 24);
            let before = if frame == 0 { 24 } else { at - 4096 - 8 };
            let sum_before = log[before..before + 8].try_into().expect("eight bytes");
            let header = log[at..at + 24].try_into().expect("a header");
            frame_holds(sum_before, header, &log[at + 24..at + 24 + 4096])
        };
        for frame in 0..frames {
            assert!(holds(&log, frame), "frame {frame}");
            let at = 32 + frame as usize * (4096 + 24);
            for byte in (0..8).chain(16..24).chain((24..4096 + 24).step_by(53)) {
                let mut log = log.clone();
                log[at + byte] ^= 0x01;
                assert!(!holds(&log, frame), "byte {byte} of frame {frame}");
            }
        }
    }

    #[test]
    fn a_log_cut_off_anywhere_is_not_damaged() {
        let (log, _) = log(4);
        for length in (0..log.len()).step_by(101) {
            assert!(!found(&log[..length]).is_damaged(), "cut to {length}");
        }
    }

    #[test]
    fn a_byte_changed_in_the_middle_is_damage_and_at_the_end_an_interrupted_write() {
        let (log, frames) = log(6);
        let at = |frame: u64| 32 + frame as usize * (4096 + 24) + 2000;
        for frame in 0..frames {
            let mut log = log.clone();
            log[at(frame)] ^= 1;
            let found = found(&log);
            assert_eq!(found.whole, frame);
            assert_eq!(found.is_damaged(), frame <= frames - 2, "frame {frame} of {frames}");
        }
    }

    #[test]
    fn a_salt_changed_is_damage_too() {
        let (log, frames) = log(6);
        let last_but_one = 32 + (frames as usize - 2) * (4096 + 24);
        for at in last_but_one + 8..last_but_one + 16 {
            let mut log = log.clone();
            log[at] ^= 1;
            assert_eq!(found(&log).whole, frames - 2);
            assert!(found(&log).is_damaged(), "byte {}", at - last_but_one);
        }
    }

    #[test]
    fn with_a_mark_every_byte_changed_before_it_is_damage() {
        let (log, frames) = log(6);
        let place = |frame: u64| 32 + frame * (4096 + 24);
        let salts: [u8; 8] = log[16..24].try_into().expect("eight bytes");
        let is_damaged =
            |log: &[u8], marked: Durable| look(log, Some(marked)).expect("memory can be read").is_damaged();
        let last = Durable { salts, at: place(frames - 1) };
        assert!(!is_damaged(&log, last));
        // The header, but for the version, which SQLite looks at by itself; and frames, their last bytes included.
        let bytes = (0..32).chain((32..log.len()).step_by(37)).chain(log.len() - 30..log.len());
        for at in bytes.filter(|at| !(4..8).contains(at)) {
            let mut log = log.clone();
            log[at] ^= 0x20;
            assert!(is_damaged(&log, last), "byte {at}");
        }
        for length in (0..log.len()).step_by(101) {
            assert!(is_damaged(&log[..length], last), "cut to {length}");
        }
        // What comes after the mark may be an interrupted write.
        let older = Durable { at: place(frames - 2), ..last };
        let mut torn = log.clone();
        torn[place(frames - 1) as usize + 2_000] ^= 1;
        assert!(is_damaged(&torn, last) && !is_damaged(&torn, older));
        // The mark of another log says nothing about this one.
        assert!(!is_damaged(&torn, Durable { salts: [7; 8], ..last }));
    }
}
