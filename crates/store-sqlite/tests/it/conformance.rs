//! The suite every engine passes.

use std::cell::RefCell;

use store::Engine;
use store::conformance::{self, Start};
use store_sqlite::{Options, SqliteStore};
use tempfile::TempDir;

/// Opens stores in temporary directories, small enough in memory that rows are read again and the log is copied often.
fn opener() -> impl FnMut(Start) -> Box<dyn Engine> {
    let directory: RefCell<Option<TempDir>> = RefCell::new(None);
    let options = Options {
        cache_bytes: 64 << 10,
        checkpoint_bytes: 256 << 10,
        conversations_max: 3,
        ..Options::default()
    };
    move |start| {
        let mut directory = directory.borrow_mut();
        if start == Start::Fresh {
            *directory = Some(tempfile::tempdir().expect("a temporary directory"));
        }
        let path = directory.as_ref().expect("fresh comes first").path();
        Box::new(SqliteStore::open(path, &options).expect("an open store"))
    }
}

#[test]
fn the_suite_passes() {
    let mut open = opener();
    conformance::run(&mut || open(Start::Fresh));
}

#[test]
fn the_suite_passes_when_reopened_after_each_batch() {
    conformance::run_reopening(&mut opener());
}

#[test]
fn random_batches_are_answered_as_by_the_reference() {
    let seeds = match std::env::var("THRONG_SEED") {
        Ok(seed) => vec![seed.parse().expect("THRONG_SEED is a number")],
        Err(_) => (0..30).collect(),
    };
    for seed in seeds {
        conformance::differential(seed, 150, &mut opener());
    }
}
