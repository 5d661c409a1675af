//! Devices: when they become known, where they start, what is pending for them.

use model::Seq;

use super::*;

super::named_after_functions!(
    a_first_device_starts_where_its_user_became_a_member,
    a_later_device_starts_at_the_head,
    a_known_device_changes_nothing,
    a_device_number_belongs_to_its_user,
    pending_is_ordered_by_conversation_and_names_what_is_marked,
    every_device_is_named_with_its_marks,
    a_mark_is_taken_away_at_start_only_from_who_is_not_behind,
);

fn registered(places: &[(ConversationId, u64, u64)]) -> Reply {
    Reply::Registered { fresh: true, conversations: pending(places) }
}

fn a_first_device_starts_where_its_user_became_a_member(subject: &mut Subject<'_>) {
    let (from_the_start, later) = (conversation(2), conversation(1));
    let sender = device(1, 1);
    subject.batch(&[
        register(sender),
        create(from_the_start, &[1, 2]),
        create(later, &[1]),
        append(later, sender, 1, &[]),
        append(later, sender, 2, &[]),
        add(later, 2, 1),
        append(later, sender, 3, &[]),
        append(from_the_start, sender, 4, &[]),
    ]);
    // Nobody's cursor is there yet, and what was appended marked nobody of user 2.
    assert_eq!(subject.record(later).members[1], member(2, 4, 0, &[]));
    subject.check([
        (register(device(2, 5)), registered(&[(later, 3, 5), (from_the_start, 0, 2)])),
        (
            Request::ListPending { device: device(2, 5) },
            Reply::Pending(pending(&[(later, 3, 5), (from_the_start, 0, 2)])),
        ),
    ]);
    assert_eq!(subject.record(later).members[1], member(2, 4, 0, &[(5, 3, true)]));
    assert_eq!(subject.record(from_the_start).members[1], member(2, 1, 0, &[(5, 0, true)]));
}

fn a_later_device_starts_at_the_head(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    subject.batch(&[append(id, device(1, 1), 1, &[]), append(id, device(1, 1), 2, &[])]);
    subject.check([
        (register(device(2, 2)), registered(&[(id, 3, 3)])),
        (register(device(2, 0)), registered(&[(id, 3, 3)])),
    ]);
    assert_eq!(subject.record(id).members[1].devices.len(), 3);
    assert_eq!(subject.cursor(id, device(2, 0)), (3, true));
    assert_eq!(subject.cursor(id, device(2, 1)), (0, true));
    // The head stays where it is when the log behind it is gone.
    subject.batch(&[settle(id, &[], &[], 3)]);
    subject.check([(register(device(1, 9)), registered(&[(id, 3, 3)]))]);
}

fn a_known_device_changes_nothing(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    subject.batch(&[append(id, device(1, 1), 1, &[]), settle(id, &[(device(1, 1), 2)], &[device(1, 1)], 0)]);
    let before = subject.record(id);
    let known = Reply::Registered { fresh: false, conversations: Vec::new() };
    subject.check([(register(device(1, 1)), known.clone())]);
    // Where it is marked is named as ever.
    let marked = Reply::Registered { fresh: false, conversations: pending(&[(id, 0, 2)]) };
    subject.check([(register(device(2, 1)), marked)]);
    assert_eq!(subject.record(id), before);
    let fresh = device(7, 7);
    subject.check_batch([(register(fresh), registered(&[])), (register(fresh), known)]);
}

fn a_device_number_belongs_to_its_user(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    subject.batch(&[append(id, device(1, 1), 1, &[])]);
    subject.check([(acknowledge(id, device(1, 1), 2), Reply::Done)]);
    assert_eq!(subject.cursor(id, device(1, 1)), (2, true));
    assert_eq!(subject.cursor(id, device(2, 1)), (0, true));
    assert_eq!(subject.devices(), [(device(1, 1), 0), (device(2, 1), 1)]);
}

fn pending_is_ordered_by_conversation_and_names_what_is_marked(subject: &mut Subject<'_>) {
    let receiver = device(2, 1);
    let ids = [5, 3, 200, 9].map(conversation);
    subject.batch(&[register(device(1, 1)), register(receiver)]);
    subject.batch(&ids.map(|id| create(id, &[1, 2])));
    subject.batch(&[
        append(ids[0], device(1, 1), 1, &[]),
        acknowledge(ids[2], receiver, 1),
        settle(ids[3], &[(receiver, 1)], &[receiver], 0),
    ]);
    let ask = Request::ListPending { device: receiver };
    subject.check([
        (ask.clone(), Reply::Pending(pending(&[(ids[1], 0, 1), (ids[0], 0, 2), (ids[2], 1, 1)]))),
        (append(ids[3], device(1, 1), 2, &[receiver, receiver]), appended(2)),
        (ask, Reply::Pending(pending(&[(ids[1], 0, 1), (ids[0], 0, 2), (ids[3], 1, 2), (ids[2], 1, 1)]))),
        (Request::ListPending { device: device(2, 2) }, Reply::Pending(Vec::new())),
    ]);
}

fn every_device_is_named_with_its_marks(subject: &mut Subject<'_>) {
    let (first, second) = (conversation(1), conversation(2));
    subject.batch(&[
        register(device(1, 1)),
        register(device(2, 9)),
        register(device(2, 1)),
        register(device(3, 1)),
        create(first, &[1, 2]),
        create(second, &[2]),
    ]);
    let expected = [(device(1, 1), 1), (device(2, 1), 2), (device(2, 9), 2), (device(3, 1), 0)];
    assert_eq!(subject.devices(), expected);
    assert_eq!(subject.devices(), expected);
}

fn a_mark_is_taken_away_at_start_only_from_who_is_not_behind(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    let other = conversation(2);
    subject.batch(&[
        append(id, device(1, 1), 1, &[]),
        create(other, &[2]),
        acknowledge(id, device(1, 1), 2),
        acknowledge(id, device(2, 1), 1),
        settle(other, &[(device(2, 1), 1)], &[], 1),
    ]);
    assert_eq!(subject.cursor(id, device(1, 1)), (2, true));
    assert_eq!(subject.devices(), [(device(1, 1), 0), (device(2, 1), 1)]);
    assert_eq!(subject.cursor(id, device(1, 1)), (2, false));
    assert_eq!(subject.cursor(id, device(2, 1)), (1, true));
    // Also where nothing is left of the log but its head.
    assert_eq!(subject.cursor(other, device(2, 1)), (1, false));
    subject.check([(Request::ListPending { device: device(2, 1) }, Reply::Pending(pending(&[(id, 1, 2)])))]);
    assert_eq!(subject.record(other).head, Seq(1));
}
