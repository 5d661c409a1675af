//! What a data directory may be and who may use it.

use std::error::Error;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use store_sqlite::{OpenError, Options, SqliteStore, check};

use crate::traffic::open;

#[test]
fn a_directory_is_made_for_its_owner_only() {
    let above = tempfile::tempdir().expect("a temporary directory");
    let directory = above.path().join("some/where");
    drop(open(&directory));
    let mode = fs::metadata(&directory).expect("it was made").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_second_user_is_refused_at_once_and_told_who_has_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = open(directory.path());
    match SqliteStore::open(directory.path(), &Options::default()) {
        Err(error @ OpenError::InUse { pid: Some(pid), .. }) => {
            assert_eq!(pid, std::process::id());
            assert!(error.to_string().contains(&format!("in use by process {pid}")), "{error}");
        }
        other => panic!("{:?}", other.err()),
    }
    drop(store);
    drop(open(directory.path()));
}

#[test]
fn the_hash_key_is_made_once_and_differs_between_stores() {
    let (first, second) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("another"));
    let key = open(first.path()).hash_key();
    assert_eq!(open(first.path()).hash_key(), key);
    assert_ne!(open(second.path()).hash_key(), key);
}

#[test]
fn somebody_elses_file_is_refused_and_left_alone() {
    let above = tempfile::tempdir().expect("a temporary directory");
    let address_book = above.path().join("contacts.db");
    let foreign = rusqlite::Connection::open(&address_book).expect("a database");
    foreign
        .execute_batch("CREATE TABLE contacts (name TEXT); INSERT INTO contacts VALUES ('Ada');")
        .expect("SQL");
    drop(foreign);
    let foreign = fs::read(&address_book).expect("a file");
    for content in [&foreign[..], b"not a database at all", &[0; 4096], &[7; 8192]] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("throng.db");
        fs::write(&file, content).expect("a file");
        match SqliteStore::open(directory.path(), &Options::default()) {
            Err(OpenError::NotOurs { file: named }) => assert_eq!(named, file),
            other => panic!("{:?}", other.err()),
        }
        assert_eq!(fs::read(&file).expect("the file"), content);
    }
}

#[test]
fn what_cannot_be_a_directory_is_named() {
    let above = tempfile::tempdir().expect("a temporary directory");
    let file = above.path().join("file");
    fs::write(&file, "in the way").expect("a file");
    match SqliteStore::open(&file, &Options::default()) {
        Err(error @ OpenError::Directory { .. }) => {
            assert!(error.to_string().contains(&file.display().to_string()), "{error}");
            assert!(error.source().is_some());
        }
        other => panic!("{:?}", other.err()),
    }
    match check(&above.path().join("nothing")) {
        Err(OpenError::Missing { .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_an_interrupted_creation_left_does_not_matter() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for name in ["throng.db.new", "throng.db.new-journal"] {
        fs::write(directory.path().join(name), [1; 5000]).expect("a file");
    }
    drop(open(directory.path()));
    assert!(!directory.path().join("throng.db.new").exists());
    assert!(check(directory.path()).expect("it can be checked").is_sound());
}
