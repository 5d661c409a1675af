//! One client id, one message (D3).

use model::{Payload, Seq, Wall};

use super::*;
use crate::FORGET_MAX;

super::named_after_functions!(
    a_repeat_gets_the_first_place_again,
    a_repeat_within_a_batch_is_one_too,
    the_same_client_id_with_other_bytes_is_refused,
    client_ids_belong_to_the_user,
    a_repeat_marks_nobody,
    a_repeat_is_known_after_its_entry_is_gone,
    a_repeat_is_known_after_its_sender_has_left,
    a_forgotten_client_id_names_a_new_message,
    the_oldest_are_forgotten_first_and_not_too_many_at_once,
    extreme_times_are_forgotten_in_order,
);

fn first(seq: u64, number: u32) -> Reply {
    Reply::Duplicate { seq: Seq(seq), ts: Wall(NOON.0 + u64::from(number)) }
}

fn a_repeat_gets_the_first_place_again(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    let mut later = append(id, device(1, 1), 1, &[]);
    if let Request::Append { ts, .. } = &mut later {
        *ts = Wall(NOON.0 + 5_000);
    }
    subject.check([
        (append(id, device(1, 1), 1, &[]), appended(2)),
        (append(id, device(1, 1), 2, &[]), appended(3)),
        (later, first(2, 1)),
        (append(id, device(1, 1), 2, &[]), first(3, 2)),
        (append(id, device(1, 1), 3, &[]), appended(4)),
    ]);
    assert_eq!(subject.seqs(id), [1, 2, 3, 4]);
}

fn a_repeat_within_a_batch_is_one_too(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    subject.check_batch([
        (append(id, device(1, 1), 1, &[]), appended(2)),
        (append(id, device(1, 1), 1, &[]), first(2, 1)),
        (append(id, device(1, 1), 2, &[]), appended(3)),
        (append(id, device(1, 1), 1, &[]), first(2, 1)),
    ]);
    assert_eq!(subject.seqs(id), [1, 2, 3]);
}

fn the_same_client_id_with_other_bytes_is_refused(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    let elsewhere = conversation(2);
    subject.batch(&[create(elsewhere, &[1])]);
    let with = |conversation, bytes: &[u8]| Request::Append {
        conversation,
        from: device(1, 1),
        client_id: client_id(1),
        ts: NOON,
        payload: Payload::from(bytes),
        mark: Vec::new(),
    };
    subject.check([
        (with(id, b"one"), appended(2)),
        (with(id, b"two"), Reply::ClientIdReused),
        (with(id, b""), Reply::ClientIdReused),
        (with(elsewhere, b"one"), Reply::ClientIdReused),
        (with(conversation(9), b"one"), Reply::Conflict),
        (with(id, b"one"), Reply::Duplicate { seq: Seq(2), ts: NOON }),
    ]);
    subject.check_batch([
        (with(id, b"two"), Reply::ClientIdReused),
        (append(id, device(1, 1), 2, &[]), appended(3)),
    ]);
    assert_eq!(subject.seqs(elsewhere), [1]);
}

fn client_ids_belong_to_the_user(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    subject.check([
        (append(id, device(1, 1), 1, &[]), appended(2)),
        (append(id, device(2, 1), 1, &[]), appended(3)),
        // Whichever of the user's devices repeats it.
        (append(id, device(1, 8), 1, &[]), first(2, 1)),
    ]);
}

fn a_repeat_marks_nobody(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    let (sender, receiver) = (device(1, 1), device(2, 1));
    subject.batch(&[
        append(id, sender, 1, &[]),
        settle(id, &[(sender, 2), (receiver, 2)], &[sender, receiver], 0),
    ]);
    subject.check([(append(id, sender, 1, &[sender, receiver]), first(2, 1))]);
    assert_eq!(subject.cursor(id, receiver), (2, false));
    subject.check([(append(id, sender, 2, &[receiver]), appended(3))]);
    assert_eq!(subject.cursor(id, receiver), (2, true));
    assert_eq!(subject.cursor(id, sender), (2, false));
}

fn a_repeat_is_known_after_its_entry_is_gone(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    subject.batch(&[append(id, device(1, 1), 1, &[])]);
    subject.batch(&[settle(id, &[(device(1, 1), 2), (device(2, 1), 2)], &[], 2)]);
    assert_eq!(subject.seqs(id), [0; 0]);
    subject.check([
        (append(id, device(1, 1), 1, &[]), first(2, 1)),
        (append(id, device(1, 1), 2, &[]), appended(3)),
    ]);
}

fn a_repeat_is_known_after_its_sender_has_left(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    subject.batch(&[append(id, device(1, 1), 1, &[]), remove(id, 1, 1)]);
    subject.check([(append(id, device(1, 1), 1, &[]), first(2, 1))]);
}

fn forget(before: u64) -> Request {
    Request::ForgetClientIds { before: Wall(before) }
}

fn a_forgotten_client_id_names_a_new_message(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    subject.batch(&[append(id, device(1, 1), 1, &[]), append(id, device(1, 1), 2, &[])]);
    subject.check([
        // Message `n` was taken at noon + n, and that time itself is not before it.
        (forget(NOON.0 + 1), Reply::Forgotten(0)),
        (forget(NOON.0 + 2), Reply::Forgotten(1)),
        (forget(NOON.0 + 2), Reply::Forgotten(0)),
        (append(id, device(1, 1), 2, &[]), first(3, 2)),
        (append(id, device(1, 1), 1, &[]), appended(4)),
    ]);
    subject.check_batch([
        (forget(u64::MAX), Reply::Forgotten(2)),
        (append(id, device(1, 1), 2, &[]), appended(5)),
        (append(id, device(1, 1), 2, &[]), first(5, 2)),
        (forget(0), Reply::Forgotten(0)),
    ]);
    assert_eq!(subject.seqs(id), [1, 2, 3, 4, 5]);
}

fn the_oldest_are_forgotten_first_and_not_too_many_at_once(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    // The younger a message, the smaller its place.
    let more = FORGET_MAX + 10;
    let batch: Vec<Request> = (0..more).rev().map(|number| append(id, device(1, 1), number, &[])).collect();
    subject.batch(&batch);
    subject.check([(forget(u64::MAX), Reply::Forgotten(FORGET_MAX))]);
    // Message 0 is the oldest and lies last.
    let head = u64::from(more) + 1;
    subject.check([
        (append(id, device(1, 1), more - 1, &[]), first(2, more - 1)),
        (append(id, device(1, 1), FORGET_MAX, &[]), first(head - u64::from(FORGET_MAX), FORGET_MAX)),
        (append(id, device(1, 1), FORGET_MAX - 1, &[]), appended(head + 1)),
        (forget(u64::MAX), Reply::Forgotten(11)),
    ]);
}

fn extreme_times_are_forgotten_in_order(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    let half = 1_u64 << 63;
    let at = |ts: u64| Request::Append {
        conversation: id,
        from: device(1, 1),
        client_id: client_id_at(ts),
        ts: Wall(ts),
        payload: Payload::from(&ts.to_be_bytes()[..]),
        mark: Vec::new(),
    };
    subject.batch(&[u64::MAX, half, half - 1, 0].map(at));
    subject.check([
        (forget(0), Reply::Forgotten(0)),
        (forget(1), Reply::Forgotten(1)),
        (forget(half), Reply::Forgotten(1)),
        (at(half), Reply::Duplicate { seq: Seq(3), ts: Wall(half) }),
        (forget(half + 1), Reply::Forgotten(1)),
        (at(u64::MAX), Reply::Duplicate { seq: Seq(2), ts: Wall(u64::MAX) }),
        (at(0), appended(6)),
        // The last moment there is is never before another.
        (forget(u64::MAX), Reply::Forgotten(1)),
        (at(u64::MAX), Reply::Duplicate { seq: Seq(2), ts: Wall(u64::MAX) }),
    ]);
}
