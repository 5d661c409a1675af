//! Members: coming, going, coming back, and what each of them leaves.

use model::{Change, ConversationKind, ConversationListing, ConversationSummary, DeviceId, Seq};

use super::*;

super::named_after_functions!(
    a_new_member_starts_just_before_the_entry_that_says_so,
    a_member_without_devices_may_be_added,
    whoever_comes_or_goes_everybody_is_marked,
    a_removed_member_leaves_nothing_behind,
    leaving_is_told_from_being_removed,
    who_comes_back_starts_anew,
    who_is_in_is_not_added_and_who_is_out_not_removed,
    the_last_member_may_go,
    members_are_told_in_the_order_in_which_they_came,
    conversations_are_listed_by_id,
);

fn added(seq: u64, devices: &[u32]) -> Reply {
    Reply::MemberAdded { seq: Seq(seq), devices: devices.iter().map(|number| DeviceId(*number)).collect() }
}

fn removed(seq: u64, unmarked: &[u32]) -> Reply {
    let unmarked = unmarked.iter().map(|number| DeviceId(*number)).collect();
    Reply::MemberRemoved { seq: Seq(seq), unmarked }
}

fn a_new_member_starts_just_before_the_entry_that_says_so(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    subject.batch(&[
        register(device(3, 4)),
        register(device(3, 2)),
        append(id, device(1, 1), 1, &[]),
        append(id, device(1, 1), 2, &[]),
    ]);
    subject.check([(add(id, 3, 1), added(4, &[2, 4]))]);
    assert_eq!(subject.record(id).members[2], member(3, 4, 0, &[(2, 3, true), (4, 3, true)]));
    assert_eq!(subject.page(id)[3], change(4, Change::Added { by: user(1), user: user(3) }));
    subject.check([
        (Request::ListPending { device: device(3, 4) }, Reply::Pending(pending(&[(id, 3, 4)]))),
        (append(id, device(3, 4), 3, &[]), appended(5)),
    ]);
}

fn a_member_without_devices_may_be_added(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    subject.check([(add(id, 3, 2), added(2, &[]))]);
    assert_eq!(subject.record(id).members[2], member(3, 2, 0, &[]));
}

fn whoever_comes_or_goes_everybody_is_marked(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    let both = [device(1, 1), device(2, 1)];
    let caught_up = |seq| settle(id, &both.map(|device| (device, seq)), &both, 0);
    subject.batch(&[caught_up(1)]);
    assert_eq!(both.map(|device| subject.cursor(id, device)), [(1, false); 2]);
    subject.check([(add(id, 3, 1), added(2, &[]))]);
    assert_eq!(both.map(|device| subject.cursor(id, device)), [(1, true); 2]);
    subject.batch(&[caught_up(2)]);
    subject.check([(remove(id, 3, 1), removed(3, &[]))]);
    assert_eq!(both.map(|device| subject.cursor(id, device)), [(2, true); 2]);
    // Only marks that were there are told to be gone.
    subject.batch(&[caught_up(3)]);
    subject.check([(remove(id, 2, 1), removed(4, &[]))]);
}

fn a_removed_member_leaves_nothing_behind(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    let other = conversation(2);
    subject.batch(&[
        register(device(2, 2)),
        create(other, &[1, 2]),
        append(id, device(2, 1), 1, &[device(1, 1), device(2, 1), device(2, 2)]),
    ]);
    subject.check([(remove(id, 2, 1), removed(3, &[1, 2]))]);
    let record = subject.record(id);
    assert_eq!(record.members, [member(1, 1, 0, &[(1, 0, true)])]);
    assert_eq!(subject.page(id)[2], change(3, Change::Removed { by: user(1), user: user(2) }));
    let Reply::Conversations(left) = subject.one(list(2)) else {
        panic!("no conversations");
    };
    assert_eq!(left.iter().map(|listing| listing.summary.id).collect::<Vec<_>>(), [other]);
    for of in [device(2, 1), device(2, 2)] {
        subject.check([(Request::ListPending { device: of }, Reply::Pending(pending(&[(other, 0, 1)])))]);
    }
    // Nothing of theirs moves any more, and nobody marks them.
    subject.check_batch([
        (acknowledge(id, device(2, 1), 3), Reply::Done),
        (mark_read(id, 2, 3), Reply::Done),
        (append(id, device(1, 1), 2, &[device(2, 1), device(1, 1)]), appended(4)),
        (settle(id, &[(device(2, 1), 4)], &[device(2, 2)], 0), Reply::Done),
    ]);
    assert_eq!(subject.record(id).members, record.members);
    assert_eq!(subject.devices(), [(device(1, 1), 2), (device(2, 1), 1), (device(2, 2), 1)]);
    // A device they get later has nothing to do here.
    let fresh = Reply::Registered { fresh: true, conversations: pending(&[(other, 1, 1)]) };
    subject.check([(register(device(2, 3)), fresh)]);
}

fn leaving_is_told_from_being_removed(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    subject.check([(remove(id, 2, 2), removed(2, &[1]))]);
    assert_eq!(subject.page(id)[1], change(2, Change::Left { user: user(2) }));
}

fn who_comes_back_starts_anew(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    let theirs = device(2, 1);
    subject.batch(&[append(id, device(1, 1), 1, &[]), acknowledge(id, theirs, 2), mark_read(id, 2, 2)]);
    assert_eq!(subject.record(id).members[1], member(2, 1, 2, &[(1, 2, true)]));
    // An acknowledgement from before they went does not count for what is theirs now, in one batch or in several.
    subject.check_batch([
        (append(id, device(1, 1), 2, &[]), appended(3)),
        (append(id, device(1, 1), 3, &[]), appended(4)),
        (acknowledge(id, theirs, 4), Reply::Done),
        (remove(id, 2, 1), removed(5, &[1])),
        (acknowledge(id, theirs, 5), Reply::Done),
        (add(id, 2, 1), added(6, &[1])),
    ]);
    assert_eq!(subject.record(id).members[1], member(2, 6, 0, &[(1, 5, true)]));
}

fn who_is_in_is_not_added_and_who_is_out_not_removed(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    let before = subject.record(id);
    subject.check([
        (add(id, 2, 1), Reply::Conflict),
        (remove(id, 3, 1), Reply::Conflict),
        (remove(id, 3, 3), Reply::Conflict),
    ]);
    assert_eq!(subject.record(id), before);
    subject.check_batch([
        (add(id, 3, 1), added(2, &[])),
        (add(id, 3, 1), Reply::Conflict),
        (remove(id, 3, 1), removed(3, &[])),
        (remove(id, 3, 1), Reply::Conflict),
    ]);
    assert_eq!(subject.seqs(id), [1, 2, 3]);
}

fn the_last_member_may_go(subject: &mut Subject<'_>) {
    let id = conversation(1);
    subject.batch(&[register(device(1, 1)), create(id, &[1])]);
    subject.check([(remove(id, 1, 1), removed(2, &[1]))]);
    let record = subject.record(id);
    assert_eq!((record.head, record.members.len()), (Seq(2), 0));
    subject.check([(add(id, 1, 1), added(3, &[1]))]);
    assert_eq!(subject.cursor(id, device(1, 1)), (2, true));
}

fn members_are_told_in_the_order_in_which_they_came(subject: &mut Subject<'_>) {
    let id = conversation(1);
    subject.batch(&[create(id, &[5, 9, 7]), add(id, 8, 5), add(id, 1, 5), remove(id, 7, 5), add(id, 7, 5)]);
    let order: Vec<UserId> = subject.record(id).members.iter().map(|member| member.user).collect();
    let expected = [5, 9, 8, 1, 7].map(user);
    assert_eq!(order, expected);
    let kind = ConversationKind::Group;
    let summary = ConversationSummary { id, kind, members: expected.into(), head: Seq(5) };
    let receipts =
        vec![receipt(5, 0, 0), receipt(9, 0, 0), receipt(8, 0, 0), receipt(1, 0, 0), receipt(7, 0, 0)];
    subject.check([(list(8), Reply::Conversations(vec![ConversationListing { summary, receipts }]))]);
}

fn conversations_are_listed_by_id(subject: &mut Subject<'_>) {
    let ids = [130, 7, 20].map(conversation);
    subject.batch(&ids.map(|id| create(id, &[1, 2])));
    subject.batch(&[create(conversation(3), &[2]), append(ids[0], device(1, 1), 1, &[])]);
    let Reply::Conversations(listed) = subject.one(list(1)) else {
        panic!("no conversations");
    };
    let found: Vec<_> = listed.iter().map(|listing| (listing.summary.id, listing.summary.head.0)).collect();
    assert_eq!(found, [(ids[1], 1), (ids[2], 1), (ids[0], 2)]);
}
