//! What was answered is there after a crash (D1, S3).

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::DeviceKey;
use store::conformance::{self, Start};
use store::{Engine, Fatal, Reply, Request};
use store_sqlite::{Options, SqliteStore, check};

use crate::traffic::{begin, commit, conversation, log, message, open};

/// Copies what a killed process would leave on the disk.
pub fn crash(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for name in ["throng.db", "throng.db-wal", "throng.db-mark"] {
        // There is no mark before the first write.
        if from.join(name).exists() {
            fs::copy(from.join(name), to.join(name)).expect("a copy");
        }
    }
}

/// An engine that is never closed: when it goes, what the disk holds at that moment has been put aside.
struct Crashing {
    store: SqliteStore,
    directory: PathBuf,
    left: PathBuf,
}

impl Engine for Crashing {
    fn commit(&mut self, batch: &[Request], replies: &mut Vec<Reply>) -> Result<(), Fatal> {
        self.store.commit(batch, replies)
    }

    fn devices(&mut self, each: &mut dyn FnMut(DeviceKey, u32)) -> Result<(), Fatal> {
        self.store.devices(each)
    }
}

impl Drop for Crashing {
    fn drop(&mut self) {
        crash(&self.directory, &self.left);
    }
}

/// Opens stores one after the other in subdirectories, each on what the one before left.
fn crashing(above: &Path) -> impl FnMut(Start) -> Box<dyn Engine> {
    let above = above.to_path_buf();
    let number = Rc::new(Cell::new(0));
    let options = Options { cache_bytes: 64 << 10, checkpoint_bytes: 256 << 10, ..Options::default() };
    move |start| {
        if start == Start::Fresh {
            number.set(number.get() + 1);
        }
        let directory = above.join(number.get().to_string());
        number.set(number.get() + 1);
        let left = above.join(number.get().to_string());
        let store = SqliteStore::open(&directory, &options).expect("an open store");
        Box::new(Crashing { store, directory, left })
    }
}

#[test]
fn the_suite_passes_with_a_crash_after_each_batch() {
    let above = tempfile::tempdir().expect("a temporary directory");
    conformance::run_reopening(&mut crashing(above.path()));
}

#[test]
fn random_batches_survive_crashes() {
    for seed in [2, 3, 4] {
        let above = tempfile::tempdir().expect("a temporary directory");
        conformance::differential(seed, 200, &mut crashing(above.path()));
    }
}

#[test]
fn every_acknowledged_message_is_there_after_a_crash_at_any_moment() {
    let above = tempfile::tempdir().expect("a temporary directory");
    let served = above.path().join("served");
    let options = Options { checkpoint_bytes: 128 << 10, ..Options::default() };
    let mut store = SqliteStore::open(&served, &options).expect("an open store");
    begin(&mut store, 1);
    for number in 0..60_u32 {
        let replies = commit(&mut store, &[message(conversation(1), number, 3_000)]);
        assert_eq!(replies, [Reply::Appended { seq: model::Seq(u64::from(number) + 2) }]);
        let left = above.path().join(number.to_string());
        crash(&served, &left);
        assert!(check(&left).expect("it can be checked").is_sound());
        let mut again = open(&left);
        assert_eq!(log(&mut again, conversation(1)).len() as u32, number + 2);
        // A crash during the start changes nothing either.
        drop(again);
        assert_eq!(log(&mut open(&left), conversation(1)).len() as u32, number + 2);
    }
}

#[test]
fn a_store_that_was_closed_has_nothing_to_recover() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut store = open(directory.path());
    begin(&mut store, 1);
    drop(store);
    let wal = fs::metadata(directory.path().join("throng.db-wal")).map_or(0, |metadata| metadata.len());
    assert_eq!(wal, 0);
}

#[test]
fn the_log_starts_anew_when_it_has_grown_and_so_stays_bounded() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let checkpoint_bytes = 1 << 20;
    let options = Options { checkpoint_bytes, ..Options::default() };
    let mut store = SqliteStore::open(directory.path(), &options).expect("an open store");
    begin(&mut store, 1);
    let gauges = store.gauges();
    let mut longest = 0;
    for number in 0..400 {
        commit(&mut store, &[message(conversation(1), number, 20_000)]);
        longest = longest.max(gauges.read().log_pages);
    }
    let numbers = gauges.read();
    assert!(numbers.checkpoints > 0, "{numbers:?}");
    // Some 10 MiB went through it. However slow the copying is, it grows to four times where copying begins, and by one batch more.
    assert!(longest * 4096 <= 4 * checkpoint_bytes + (128 << 10), "{longest} pages");
    assert_eq!(numbers.commits, 401);
    assert!(numbers.database_bytes > 1 << 20, "{numbers:?}");
}
