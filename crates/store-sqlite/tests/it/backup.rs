//! Backups and checks beside a server.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use store::Request;
use store_sqlite::{BackupError, OpenError, Progress, backup, check};

use crate::traffic::{SENDER, begin, commit, conversation, log, message, open};

#[test]
fn a_backup_taken_while_messages_are_committed_is_of_one_moment() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("backup.db");
    let mut store = open(&directory.path().join("data"));
    let key = store.hash_key();
    begin(&mut store, 2);
    for number in 0..200 {
        commit(
            &mut store,
            &[message(conversation(1), 2 * number, 9_000), message(conversation(2), 2 * number + 1, 10)],
        );
    }
    let stop = AtomicBool::new(false);
    let mut steps: Vec<Progress> = Vec::new();
    let written = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut number = 400;
            while !stop.load(Ordering::Relaxed) {
                // Every commit makes both logs longer by one.
                let batch =
                    [message(conversation(1), number, 100), message(conversation(2), number + 1, 100)];
                commit(&mut store, &batch);
                number += 2;
            }
            store
        });
        let made = backup(&directory.path().join("data"), &file, &mut |progress| {
            // The check reads beside both.
            if steps.is_empty() {
                assert!(check(&directory.path().join("data")).expect("it can be checked").is_sound());
            }
            steps.push(progress);
        });
        stop.store(true, Ordering::Relaxed);
        let mut store = writer.join().expect("the writer ended");
        made.expect("a backup");
        log(&mut store, conversation(1)).len()
    });
    assert!(steps.len() > 1, "{steps:?}");
    assert!(
        steps.iter().all(|step| step.copied <= step.total)
            && steps.last().is_some_and(|last| last.copied == last.total)
    );
    let report = check(&file).expect("it can be checked");
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(report.devices, 2);
    let names: Vec<_> = fs::read_dir(directory.path())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(names.len(), 2, "nothing is left beside the backup: {names:?}");
    let restored = directory.path().join("restored");
    fs::create_dir(&restored).expect("a directory");
    fs::copy(&file, restored.join("throng.db")).expect("a copy");
    let mut restored = open(&restored);
    let logs = [1, 2].map(|number| log(&mut restored, conversation(number)).len());
    assert_eq!(logs[0], logs[1]);
    assert!((201..=written).contains(&logs[0]), "{logs:?} of {written}");
    assert_eq!(restored.hash_key(), key);
    commit(&mut restored, &[Request::ListPending { device: SENDER }, message(conversation(1), 1_000_000, 1)]);
}

#[test]
fn what_is_there_is_not_overwritten() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    drop(open(&data));
    let file = directory.path().join("precious");
    fs::write(&file, "do not touch").expect("a file");
    match backup(&data, &file, &mut |_| {}) {
        Err(error @ BackupError::Exists { .. }) => assert!(error.to_string().contains("precious"), "{error}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_to_string(&file).expect("the file"), "do not touch");
}

#[test]
fn a_backup_that_cannot_be_made_leaves_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("backup.db");
    match backup(&directory.path().join("nothing"), &file, &mut |_| {}) {
        Err(BackupError::Source(OpenError::Missing { .. })) => {}
        other => panic!("{other:?}"),
    }
    let data = directory.path().join("data");
    let mut store = open(&data);
    begin(&mut store, 1);
    commit(&mut store, &[message(conversation(1), 1, 50_000)]);
    drop(store);
    match backup(&data, &directory.path().join("no/such/directory/backup.db"), &mut |_| {}) {
        Err(BackupError::Write { .. }) => {}
        other => panic!("{other:?}"),
    }
    let database = data.join("throng.db");
    let mut bytes = fs::read(&database).expect("the database");
    let last = bytes.len() - 100;
    bytes[last] ^= 1;
    fs::write(&database, bytes).expect("a file");
    match backup(&data, &file, &mut |_| {}) {
        Err(BackupError::Source(OpenError::Damaged { .. })) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 1);
}
