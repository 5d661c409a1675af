//! Damage is noticed, never skipped (S2).

use std::error::Error;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use model::Entry;
use store::{Engine, Fatal, Request};
use store_sqlite::{OpenError, Options, SqliteStore, check};
use tempfile::TempDir;

use crate::durability::crash;
use crate::traffic::{begin, commit, conversation, log, message, open};

const PAGE: usize = 4096;

/// A closed store with messages on leaves and on pages of their own; what its log says.
fn filled(directory: &Path) -> Vec<Entry> {
    let mut store = open(directory);
    begin(&mut store, 3);
    for number in 0..40 {
        let length = if number % 8 == 0 { 9_000 } else { 300 };
        commit(&mut store, &[message(conversation(1), number, length)]);
    }
    log(&mut store, conversation(1))
}

/// The log as the store of a directory tells it, or that it does not.
fn opened_and_told(directory: &Path) -> Option<Vec<Entry>> {
    told(&mut SqliteStore::open(directory, &Options::default()).ok()?).ok()
}

/// The log as a store tells it.
fn told(store: &mut SqliteStore) -> Result<Vec<Entry>, Fatal> {
    let request = Request::ReadLog {
        conversation: conversation(1),
        after: model::Seq(0),
        up_to: model::Seq(u64::MAX),
        limit: u32::MAX,
        bytes_max: usize::MAX,
    };
    let mut replies = Vec::new();
    store.commit(&[request], &mut replies)?;
    match replies.pop() {
        Some(store::Reply::Page(page)) => Ok(page),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_byte_changed_on_any_page_is_found() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let expected = filled(directory.path());
    assert!(check(directory.path()).expect("it can be checked").is_sound());
    let file = directory.path().join("throng.db");
    let whole = fs::read(&file).expect("the database");
    let mut refused = 0;
    for page in 0..whole.len() / PAGE {
        for at in [0, 17, 1_111, 2_222, 4_090] {
            let mut broken = whole.clone();
            broken[page * PAGE + at] ^= 0x10;
            fs::write(&file, &broken).expect("a file");
            match check(directory.path()) {
                Ok(report) => assert!(!report.is_sound(), "page {page}, byte {at}"),
                Err(OpenError::Damaged { .. }) => {}
                Err(other) => panic!("page {page}, byte {at}: {other:?}"),
            }
            fs::write(&file, &broken).expect("a file");
            match opened_and_told(directory.path()) {
                Some(log) => assert!(log == expected, "page {page}, byte {at} was served as it is"),
                None => refused += 1,
            }
        }
    }
    // The log itself lies on a good part of the pages.
    assert!(
        refused > whole.len() / PAGE,
        "{refused} of {} changes were noticed while serving",
        5 * whole.len() / PAGE
    );
    fs::write(&file, &whole).expect("a file");
    assert_eq!(opened_and_told(directory.path()), Some(expected));
}

#[test]
fn a_page_in_the_place_of_another_is_found() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    filled(directory.path());
    let file = directory.path().join("throng.db");
    let mut bytes = fs::read(&file).expect("the database");
    let last = bytes.len() / PAGE - 1;
    let (front, back) = bytes.split_at_mut(last * PAGE);
    front[(last - 1) * PAGE..].swap_with_slice(back);
    fs::write(&file, &bytes).expect("a file");
    assert!(!check(directory.path()).expect("it can be checked").is_sound());
}

#[test]
fn a_file_that_was_cut_off_is_found() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    filled(directory.path());
    let file = directory.path().join("throng.db");
    let whole = fs::read(&file).expect("the database");
    for pages in [2, whole.len() / PAGE / 2, whole.len() / PAGE - 1] {
        fs::write(&file, &whole[..pages * PAGE]).expect("a file");
        match check(directory.path()) {
            Ok(report) => assert!(!report.is_sound(), "{pages} pages"),
            Err(OpenError::Damaged { .. }) => {}
            Err(other) => panic!("{pages} pages: {other:?}"),
        }
    }
}

#[test]
fn a_log_broken_in_the_middle_is_refused_and_not_taken_for_its_end() {
    let above = tempfile::tempdir().expect("a temporary directory");
    let (served, left) = (above.path().join("served"), above.path().join("left"));
    let mut store = open(&served);
    begin(&mut store, 1);
    for number in 0..20 {
        commit(&mut store, &[message(conversation(1), number, 100)]);
    }
    crash(&served, &left);
    let wal = left.join("throng.db-wal");
    let mut bytes = fs::read(&wal).expect("a log");
    let middle = 32 + (bytes.len() - 32) / (PAGE + 24) / 2 * (PAGE + 24) + 1_000;
    bytes[middle] ^= 1;
    fs::write(&wal, &bytes).expect("a log");
    match SqliteStore::open(&left, &Options::default()) {
        Err(error @ OpenError::Damaged { .. }) => {
            assert!(error.to_string().contains("restore a backup"), "{error}")
        }
        other => panic!("{:?}", other.err()),
    }
    assert!(!check(&left).expect("it can be checked").is_sound());
    // Made whole again, it is all there.
    bytes[middle] ^= 1;
    fs::write(&wal, &bytes).expect("a log");
    assert_eq!(log(&mut open(&left), conversation(1)).len(), 21);
}

/// A store with five messages, and what it would leave: killed now, or with the power cut before the mark of the last
/// commit had reached the disk.
struct Cut {
    killed: PathBuf,
    power_cut: PathBuf,
    /// Bytes of the log before the last commit.
    before_last: usize,
    _above: TempDir,
}

impl Cut {
    fn new() -> Cut {
        let above = tempfile::tempdir().expect("a temporary directory");
        let served = above.path().join("served");
        let (killed, power_cut) = (above.path().join("killed"), above.path().join("power cut"));
        let mut store = open(&served);
        begin(&mut store, 1);
        for number in 0..4 {
            commit(&mut store, &[message(conversation(1), number, 100)]);
        }
        let before_last = fs::metadata(served.join(WAL)).expect("a log").len() as usize;
        let mark = fs::read(served.join(MARK)).expect("a mark");
        commit(&mut store, &[message(conversation(1), 4, 100)]);
        crash(&served, &killed);
        crash(&served, &power_cut);
        assert!(fs::read(power_cut.join(MARK)).expect("a mark") != mark, "every commit is marked");
        fs::write(power_cut.join(MARK), mark).expect("a file");
        Cut { killed, power_cut, before_last, _above: above }
    }
}

const WAL: &str = "throng.db-wal";
const MARK: &str = "throng.db-mark";

#[test]
fn an_interrupted_last_write_is_no_damage() {
    for missing in [1, 100, 4_100] {
        let cut = Cut::new();
        let bytes = fs::read(cut.power_cut.join(WAL)).expect("a log");
        let length = cut.before_last.max(bytes.len() - missing);
        fs::write(cut.power_cut.join(WAL), &bytes[..length]).expect("a log");
        assert!(check(&cut.power_cut).expect("it can be checked").is_sound());
        let mut again = open(&cut.power_cut);
        assert_eq!(log(&mut again, conversation(1)).len(), 5);
        assert_eq!(
            commit(&mut again as &mut dyn Engine, &[message(conversation(1), 4, 100)]),
            [store::Reply::Appended { seq: model::Seq(6) }]
        );
    }
}

#[test]
fn the_last_commit_of_a_killed_process_does_not_vanish() {
    let cut = Cut::new();
    let (killed, before_last) = (&cut.killed, cut.before_last);
    let bytes = fs::read(killed.join(WAL)).expect("a log");
    let refused = |what: &str| {
        match SqliteStore::open(killed, &Options::default()) {
            Err(error @ OpenError::Damaged { .. }) => {
                let said = error.source().expect("it says how it showed").to_string();
                assert!(said.contains("throng.db-mark says that the log was durable"), "{what}: {said}");
            }
            other => panic!("{what}: {:?}", other.err()),
        }
        assert!(!check(killed).expect("it can be checked").is_sound(), "{what}");
    };
    for at in (0..32).chain((before_last..bytes.len()).step_by(97)).chain([bytes.len() - 1]) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x04;
        fs::write(killed.join(WAL), bytes).expect("a log");
        refused(&format!("byte {at}"));
    }
    for length in [0, 20, before_last, bytes.len() - 1] {
        fs::write(killed.join(WAL), &bytes[..length]).expect("a log");
        refused(&format!("cut to {length}"));
    }
    fs::remove_file(killed.join(WAL)).expect("a file");
    refused("removed");
    // Made whole again, it is all there.
    fs::write(killed.join(WAL), bytes).expect("a log");
    assert_eq!(log(&mut open(killed), conversation(1)).len(), 6);
}

/// What `docs/decisions/the-end-of-the-log.md` says cannot be told: it is the only commit for which that holds.
#[test]
fn after_a_power_cut_damage_in_the_very_last_commit_is_taken_for_an_interrupted_write() {
    let cut = Cut::new();
    let (power_cut, before_last) = (&cut.power_cut, cut.before_last);
    let bytes = fs::read(power_cut.join(WAL)).expect("a log");
    let mut last = bytes.clone();
    last[before_last + 1_000] ^= 1;
    fs::write(power_cut.join(WAL), &last).expect("a log");
    assert!(check(power_cut).expect("it can be checked").is_sound());
    // The commit before it is what the mark reached.
    let mut before = bytes.clone();
    before[before_last - 1_000] ^= 1;
    fs::write(power_cut.join(WAL), &before).expect("a log");
    assert!(!check(power_cut).expect("it can be checked").is_sound());
    fs::write(power_cut.join(WAL), &last).expect("a log");
    assert_eq!(log(&mut open(power_cut), conversation(1)).len(), 5);
}

#[test]
fn a_log_that_was_begun_anew_is_not_measured_by_the_mark_of_the_one_before() {
    let above = tempfile::tempdir().expect("a temporary directory");
    let (served, left) = (above.path().join("served"), above.path().join("left"));
    let options = Options { checkpoint_bytes: 64 << 10, ..Options::default() };
    let mut store = SqliteStore::open(&served, &options).expect("an open store");
    begin(&mut store, 1);
    let (mut began_anew, mut length) = (0, 0);
    for number in 0..60 {
        commit(&mut store, &[message(conversation(1), number, 3_000)]);
        let now = store.gauges().read().log_pages;
        began_anew += u32::from(now < length);
        length = now;
        let _ = fs::remove_dir_all(&left);
        crash(&served, &left);
        assert_eq!(log(&mut open(&left), conversation(1)).len() as u32, number + 2);
        // Stopped as it should be, it leaves nothing that could be missing.
        let _ = fs::remove_file(left.join(WAL));
        assert_eq!(log(&mut open(&left), conversation(1)).len() as u32, number + 2);
    }
    assert!(began_anew >= 2, "{began_anew}");
}

/// Damage of the log under a server that runs: SQLite compares the log's checksums only when it recovers.
#[test]
fn a_byte_changed_in_the_log_of_a_running_server_is_not_served_and_not_copied() {
    for copied in [false, true] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        // So small a cache that what was written has to be read again.
        let options = Options { cache_bytes: 64 << 10, checkpoint_bytes: 4 << 20, ..Options::default() };
        let mut store = SqliteStore::open(directory.path(), &options).expect("an open store");
        begin(&mut store, 1);
        let mut number = 0;
        let mut write = |store: &mut SqliteStore, count: u32| -> Result<(), Fatal> {
            for _ in 0..count {
                number += 1;
                store.commit(&[message(conversation(1), number, 3_000)], &mut Vec::new())?;
            }
            Ok(())
        };
        write(&mut store, 60).expect("the disk works");
        let expected = log(&mut store, conversation(1));
        let wal = OpenOptions::new().read(true).write(true).open(directory.path().join(WAL)).expect("a log");
        let bytes = fs::read(directory.path().join(WAL)).expect("a log");
        // In the middle of a payload, which is this number over and over, where it was written last.
        let at = bytes
            .windows(2_000)
            .rposition(|window| window.iter().all(|byte| *byte == 7))
            .expect("it is there");
        wal.write_all_at(&[8], at as u64 + 1_000).expect("a file of ours");
        let told = match copied {
            false => told(&mut store),
            // Until the log has been copied into the database file and begun anew.
            true => write(&mut store, 1_000).and_then(|()| told(&mut store)),
        };
        match told {
            Ok(entries) => assert!(entries.starts_with(&expected), "a wrong answer"),
            Err(fatal) => {
                let source = fatal.source().expect("it says why").to_string();
                assert!(source.contains("the database is damaged"), "{source}");
                // Nothing was made good meanwhile: the next start notices too.
                drop(store);
                assert!(SqliteStore::open(directory.path(), &options).is_err());
                assert!(!check(directory.path()).expect("it can be checked").is_sound());
                continue;
            }
        }
        panic!("the change was never met, copied {copied}");
    }
}

/// What is spilled from the cache and changed again is written over, and its checksum made right only with the commit.
#[test]
fn a_transaction_that_writes_over_its_own_pages_is_no_damage() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let options = Options { cache_bytes: 64 << 10, checkpoint_bytes: 4 << 20, ..Options::default() };
    let mut store = SqliteStore::open(directory.path(), &options).expect("an open store");
    begin(&mut store, 1);
    let mut expected = 1;
    for round in 0..3 {
        // Client ids all over the place, so that pages of their table come back again and again.
        let batch: Vec<Request> = (0..1_500_u32)
            .map(|number| {
                let scattered = (round * 1_500 + number).wrapping_mul(2_654_435_761);
                message(conversation(1), scattered, 300)
            })
            .collect();
        commit(&mut store, &batch);
        expected += batch.len();
        assert_eq!(log(&mut store, conversation(1)).len(), expected);
    }
    assert!(check(directory.path()).expect("it can be checked").is_sound());
}
