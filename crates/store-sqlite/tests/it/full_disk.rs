//! A disk that takes no more (S4).

use model::Seq;
use store::{Reply, Request};
use store_sqlite::{Options, SqliteStore, check};

use crate::traffic::{RECEIVER, SENDER, begin, commit, conversation, log, message};

/// Fills a small database until it refuses; gives back the number of the first refused message.
fn fill(store: &mut SqliteStore) -> u32 {
    for number in 0..10_000 {
        let to = conversation(1);
        match &commit(store, &[message(to, number, 2_000)])[..] {
            [Reply::Appended { .. }] => {}
            [Reply::ReadOnly] => return number,
            other => panic!("{other:?}"),
        }
    }
    panic!("the database never was full");
}

fn small(directory: &std::path::Path) -> SqliteStore {
    let options = Options { pages_max: Some(200), ..Options::default() };
    let mut store = SqliteStore::open(directory, &options).expect("an open store");
    begin(&mut store, 2);
    store
}

#[test]
fn nothing_of_a_refused_batch_is_kept_and_its_reads_are_answered() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut store = small(directory.path());
    let refused = fill(&mut store);
    let (kept, other) = (log(&mut store, conversation(1)), log(&mut store, conversation(2)));
    assert_eq!(kept.len() as u32, refused + 1);
    let load = |number| Request::LoadConversation { conversation: conversation(number) };
    let before = commit(&mut store, &[load(1), load(2)]);
    let acknowledge = Request::Acknowledge { conversation: conversation(2), device: RECEIVER, seq: Seq(1) };
    let replies = commit(
        &mut store,
        &[
            load(2),
            acknowledge.clone(),
            message(conversation(2), 20_000, 10),
            message(conversation(1), 20_001, 60_000),
            load(2),
            load(1),
        ],
    );
    let expected = [
        before[1].clone(),
        Reply::ReadOnly,
        Reply::ReadOnly,
        Reply::ReadOnly,
        before[1].clone(),
        before[0].clone(),
    ];
    assert_eq!(replies, expected);
    assert_eq!(log(&mut store, conversation(1)), kept);
    assert_eq!(log(&mut store, conversation(2)), other);
    assert_eq!(commit(&mut store, &[load(1), load(2)]), before);
    assert!(store.gauges().read().refused >= 2 && store.gauges().read().full);
    assert!(check(directory.path()).expect("it can be checked").is_sound());
}

#[test]
fn it_goes_on_by_itself_when_there_is_room_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut store = small(directory.path());
    let refused = fill(&mut store);
    // Everybody has everything, so the owner of the conversation lets it go.
    let head = Seq(u64::from(refused) + 1);
    let settle = Request::Settle {
        conversation: conversation(1),
        acknowledged: vec![(SENDER, head), (RECEIVER, head)],
        unmark: vec![SENDER, RECEIVER],
        trim: head,
    };
    assert_eq!(commit(&mut store, &[settle]), [Reply::Done]);
    // The refused message was never taken, so it is no repeat.
    let again = commit(&mut store, &[message(conversation(1), refused, 2_000)]);
    assert_eq!(again, [Reply::Appended { seq: head.next() }]);
    assert_eq!(log(&mut store, conversation(1)).len(), 1);
    assert!(!store.gauges().read().full);
    drop(store);
    let mut larger = crate::traffic::open(directory.path());
    let more = commit(&mut larger, &[message(conversation(1), refused + 1, 60_000)]);
    assert_eq!(more, [Reply::Appended { seq: head.next().next() }]);
}
