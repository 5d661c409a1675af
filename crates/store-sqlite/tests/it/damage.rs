//! Damage is noticed, never skipped (S2).

use std::fs;
use std::path::Path;

use model::Entry;
use store::{Engine, Request};
use store_sqlite::{OpenError, Options, SqliteStore, check};

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

/// The log as an engine tells it, or that it does not.
fn told(directory: &Path) -> Option<Vec<Entry>> {
    let mut store = SqliteStore::open(directory, &Options::default()).ok()?;
    let request = Request::ReadLog {
        conversation: conversation(1),
        after: model::Seq(0),
        up_to: model::Seq(u64::MAX),
        limit: u32::MAX,
        bytes_max: usize::MAX,
    };
    let mut replies = Vec::new();
    store.commit(&[request], &mut replies).ok()?;
    match replies.pop() {
        Some(store::Reply::Page(page)) => Some(page),
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
            match told(directory.path()) {
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
    assert_eq!(told(directory.path()), Some(expected));
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

#[test]
fn an_interrupted_last_write_is_no_damage() {
    let above = tempfile::tempdir().expect("a temporary directory");
    let (served, left) = (above.path().join("served"), above.path().join("left"));
    let mut store = open(&served);
    begin(&mut store, 1);
    for number in 0..5 {
        commit(&mut store, &[message(conversation(1), number, 100)]);
    }
    crash(&served, &left);
    let wal = left.join("throng.db-wal");
    let bytes = fs::read(&wal).expect("a log");
    fs::write(&wal, &bytes[..bytes.len() - 100]).expect("a log");
    let mut again = open(&left);
    assert_eq!(log(&mut again, conversation(1)).len(), 5);
    assert!(check(&left).expect("it can be checked").is_sound());
    assert_eq!(
        commit(&mut again as &mut dyn Engine, &[message(conversation(1), 4, 100)]),
        [store::Reply::Appended { seq: model::Seq(6) }]
    );
}
