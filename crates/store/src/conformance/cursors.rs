//! Cursors, read marks and the owner's housekeeping.

use model::{ConversationListing, Seq};

use super::*;

super::named_after_functions!(
    a_cursor_only_moves_forward,
    a_cursor_does_not_pass_the_head,
    only_a_device_with_a_cursor_moves,
    many_moves_of_a_batch_end_at_the_furthest,
    a_read_mark_only_moves_forward,
    acknowledging_takes_no_mark_away,
    only_the_named_devices_are_marked,
    settling_moves_unmarks_and_trims,
    what_is_trimmed_is_gone_and_the_head_stays,
    trimming_never_goes_back,
    a_receipt_tells_the_furthest_device_and_no_more_read_than_that,
    receipts_are_those_of_the_members_there_are,
    d8_where_a_device_begins_is_no_acknowledgement,
    receipts_are_listed_up_to_a_number_of_members,
);

const MINE: u8 = 2;

/// Users 1 and 2 in a log of five places.
fn five_places(subject: &mut Subject<'_>) -> ConversationId {
    let id = two_people(subject);
    subject.batch(&[1, 2, 3, 4].map(|number| append(id, device(1, 1), number, &[])));
    id
}

fn a_cursor_only_moves_forward(subject: &mut Subject<'_>) {
    let id = five_places(subject);
    for (seq, at) in [(3, 3), (2, 3), (0, 3), (3, 3), (4, 4), (1, 4)] {
        subject.check([(acknowledge(id, device(MINE, 1), seq), Reply::Done)]);
        assert_eq!(subject.cursor(id, device(MINE, 1)), (at, true));
    }
    subject.batch(&[settle(id, &[(device(MINE, 1), 2)], &[], 0)]);
    assert_eq!(subject.cursor(id, device(MINE, 1)), (4, true));
    assert_eq!(subject.cursor(id, device(1, 1)), (0, true));
}

fn a_cursor_does_not_pass_the_head(subject: &mut Subject<'_>) {
    let id = five_places(subject);
    // The head counts at the moment of the request, not at the end of the batch.
    subject.batch(&[acknowledge(id, device(MINE, 1), 9), append(id, device(1, 1), 9, &[])]);
    assert_eq!(subject.cursor(id, device(MINE, 1)), (5, true));
    subject.batch(&[settle(id, &[(device(MINE, 1), 1 << 40)], &[], 0), append(id, device(1, 1), 10, &[])]);
    assert_eq!(subject.cursor(id, device(MINE, 1)), (6, true));
}

fn only_a_device_with_a_cursor_moves(subject: &mut Subject<'_>) {
    let id = five_places(subject);
    let before = subject.record(id);
    subject.check_batch([
        (acknowledge(id, device(MINE, 2), 3), Reply::Done),
        (acknowledge(id, device(7, 1), 3), Reply::Done),
        (mark_read(id, 7, 3), Reply::Done),
    ]);
    assert_eq!(subject.record(id), before);
    // A device that comes after its acknowledgement in the same batch starts where it must.
    let theirs = device(MINE, 2);
    subject.batch(&[acknowledge(id, theirs, 5), register(theirs), append(id, device(1, 1), 8, &[])]);
    assert_eq!(subject.cursor(id, theirs), (5, true));
    let first = device(8, 1);
    subject.batch(&[add(id, 8, 1), acknowledge(id, first, 7), mark_read(id, 8, 7), register(first)]);
    assert_eq!(subject.cursor(id, first), (6, true));
}

fn many_moves_of_a_batch_end_at_the_furthest(subject: &mut Subject<'_>) {
    let id = five_places(subject);
    let mine = device(MINE, 1);
    let before = subject.one(Request::ListPending { device: mine });
    assert_eq!(before, Reply::Pending(pending(&[(id, 0, 5)])));
    subject.batch(&[2, 5, 3].map(|seq| acknowledge(id, mine, seq)));
    subject.batch(&[3, 1].map(|seq| mark_read(id, MINE, seq)));
    assert_eq!(subject.record(id).members[1], member(MINE, 1, 3, &[(1, 5, true)]));
}

fn a_read_mark_only_moves_forward(subject: &mut Subject<'_>) {
    let id = five_places(subject);
    for (seq, at) in [(2, 2), (1, 2), (4, 4), (0, 4), (99, 5)] {
        subject.check([(mark_read(id, MINE, seq), Reply::Done)]);
        assert_eq!(subject.record(id).members[1].read, Seq(at));
    }
    assert_eq!(subject.record(id).members[0].read, Seq(0));
    assert_eq!(subject.cursor(id, device(MINE, 1)), (0, true));
}

fn acknowledging_takes_no_mark_away(subject: &mut Subject<'_>) {
    let id = five_places(subject);
    let mine = device(MINE, 1);
    subject.check([
        (acknowledge(id, mine, 5), Reply::Done),
        (Request::ListPending { device: mine }, Reply::Pending(pending(&[(id, 5, 5)]))),
        (settle(id, &[], &[mine], 0), Reply::Done),
        (Request::ListPending { device: mine }, Reply::Pending(Vec::new())),
    ]);
}

fn only_the_named_devices_are_marked(subject: &mut Subject<'_>) {
    let id = five_places(subject);
    let (sender, mine, second, stranger) = (device(1, 1), device(MINE, 1), device(MINE, 2), device(7, 1));
    subject.batch(&[register(second), register(stranger)]);
    let all = [sender, mine, second];
    subject.batch(&[settle(id, &all.map(|device| (device, 5)), &all, 0)]);
    subject.check([(append(id, sender, 5, &[second, stranger, device(MINE, 9)]), appended(6))]);
    assert_eq!(all.map(|device| subject.cursor(id, device)), [(5, false), (5, false), (5, true)]);
    assert_eq!(subject.devices(), [(sender, 0), (mine, 0), (second, 1), (stranger, 0)]);
}

fn settling_moves_unmarks_and_trims(subject: &mut Subject<'_>) {
    let id = five_places(subject);
    let (sender, mine) = (device(1, 1), device(MINE, 1));
    subject.check_batch([
        (settle(id, &[(sender, 5), (mine, 3), (device(7, 7), 5)], &[sender, device(7, 7)], 3), Reply::Done),
        (Request::ListPending { device: mine }, Reply::Pending(pending(&[(id, 3, 5)]))),
        (read(id, 0, 9), Reply::Page(vec![message(4, sender, 3), message(5, sender, 4)])),
    ]);
    let record = subject.record(id);
    assert_eq!((record.head, record.trimmed), (Seq(5), Seq(3)));
    assert_eq!(record.members, [member(1, 1, 0, &[(1, 5, false)]), member(MINE, 1, 0, &[(1, 3, true)])]);
    // Nothing to do is nothing done.
    subject.check([(settle(id, &[], &[], 0), Reply::Done), (load(id), Reply::Conversation(Some(record)))]);
}

fn what_is_trimmed_is_gone_and_the_head_stays(subject: &mut Subject<'_>) {
    let id = five_places(subject);
    subject.check([
        (settle(id, &[], &[], 5), Reply::Done),
        (read(id, 0, u64::MAX), Reply::Page(Vec::new())),
        (append(id, device(1, 1), 6, &[]), appended(6)),
        (read(id, 0, u64::MAX), Reply::Page(vec![message(6, device(1, 1), 6)])),
        (read(id, 4, 5), Reply::Page(Vec::new())),
    ]);
    // Trimmed and appended in one batch, and trimmed to the head that the batch made.
    subject.check_batch([
        (append(id, device(1, 1), 7, &[]), appended(7)),
        (settle(id, &[], &[], 7), Reply::Done),
        (append(id, device(1, 1), 8, &[]), appended(8)),
    ]);
    assert_eq!(subject.seqs(id), [8]);
    let record = subject.record(id);
    assert_eq!((record.head, record.trimmed), (Seq(8), Seq(7)));
}

fn trimming_never_goes_back(subject: &mut Subject<'_>) {
    let id = five_places(subject);
    for (trim, kept) in [(3, &[4, 5][..]), (1, &[4, 5]), (3, &[4, 5]), (4, &[5]), (9, &[])] {
        subject.check([(settle(id, &[], &[], trim), Reply::Done)]);
        assert_eq!(subject.seqs(id), kept);
    }
    assert_eq!(subject.record(id).trimmed, Seq(5));
}

/// The receipts of the one conversation `who` is in.
fn receipts(subject: &mut Subject<'_>, who: u8) -> Vec<Receipt> {
    match subject.one(list(who)) {
        Reply::Conversations(mut listed) if listed.len() == 1 => listed.remove(0).receipts,
        other => panic!("not one conversation but {other:?}"),
    }
}

fn a_receipt_tells_the_furthest_device_and_no_more_read_than_that(subject: &mut Subject<'_>) {
    let id = five_places(subject);
    assert_eq!(receipts(subject, MINE), [receipt(1, 0, 0), receipt(MINE, 0, 0)]);
    let second = device(MINE, 2);
    subject.batch(&[register(second), append(id, device(1, 1), 6, &[]), append(id, device(1, 1), 7, &[])]);
    // The list sees what came before it in its batch, and nothing of what comes after.
    let replies = subject.batch(&[
        acknowledge(id, second, 6),
        acknowledge(id, device(MINE, 1), 4),
        mark_read(id, MINE, 5),
        list(1),
        acknowledge(id, second, 7),
        mark_read(id, MINE, 7),
        list(1),
    ]);
    let listed = |reply: &Reply| match reply {
        Reply::Conversations(listed) => listed[0].receipts.clone(),
        other => panic!("no conversations but {other:?}"),
    };
    assert_eq!(listed(&replies[3]), [receipt(1, 0, 0), receipt(MINE, 6, 5)]);
    assert_eq!(listed(&replies[6]), [receipt(1, 0, 0), receipt(MINE, 7, 7)]);
    // Who wrote it all has read it, and acknowledged nothing until it is settled for them.
    subject.batch(&[mark_read(id, 1, 7)]);
    assert_eq!(receipts(subject, MINE)[0], receipt(1, 0, 0));
    subject.batch(&[settle(id, &[(device(1, 1), 6)], &[], 0)]);
    assert_eq!(receipts(subject, MINE)[0], receipt(1, 6, 6));
}

fn receipts_are_those_of_the_members_there_are(subject: &mut Subject<'_>) {
    let id = five_places(subject);
    subject.batch(&[acknowledge(id, device(MINE, 1), 5), mark_read(id, MINE, 5), add(id, 8, 1)]);
    assert_eq!(receipts(subject, 1), [receipt(1, 0, 0), receipt(MINE, 5, 5), receipt(8, 0, 0)]);
    subject.batch(&[remove(id, MINE, 1)]);
    assert_eq!(receipts(subject, 1), [receipt(1, 0, 0), receipt(8, 0, 0)]);
    // Back again by the eighth entry: nothing has been acknowledged, and nothing read.
    subject.batch(&[add(id, MINE, 1)]);
    assert_eq!(receipts(subject, 1), [receipt(1, 0, 0), receipt(8, 0, 0), receipt(MINE, 0, 0)]);
}

fn d8_where_a_device_begins_is_no_acknowledgement(subject: &mut Subject<'_>) {
    let id = five_places(subject);
    let second = device(MINE, 2);
    subject.batch(&[register(second)]);
    assert_eq!(subject.cursor(id, second), (5, true));
    assert_eq!(receipts(subject, 1)[1], receipt(MINE, 0, 0));
    // Something from before it began changes nothing; saying that it has what it begins after does.
    subject.batch(&[acknowledge(id, second, 4)]);
    assert_eq!(receipts(subject, 1)[1], receipt(MINE, 0, 0));
    let of_second = |subject: &mut Subject<'_>| subject.record(id).members[1].devices[1];
    assert!(!of_second(subject).acknowledged);
    subject.batch(&[acknowledge(id, second, 5)]);
    assert_eq!(receipts(subject, 1)[1], receipt(MINE, 5, 0));
    assert!(of_second(subject).acknowledged);
}

fn receipts_are_listed_up_to_a_number_of_members(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    let other = conversation(2);
    subject.batch(&[create(other, &[1, 2, 3]), acknowledge(id, device(2, 1), 1)]);
    let both = [receipt(1, 0, 0), receipt(2, 1, 0)];
    let all = [receipt(1, 0, 0), receipt(2, 0, 0), receipt(3, 0, 0)];
    for (most, of_two, of_three) in [(0, 0, 0), (1, 0, 0), (2, 2, 0), (3, 2, 3), (64, 2, 3)] {
        let request = Request::ListConversations { user: user(1), receipts_members_max: most };
        let Reply::Conversations(listed) = subject.one(request) else { panic!("no conversations") };
        let found = listed.iter().map(|ConversationListing { receipts, .. }| receipts.as_slice());
        assert_eq!(found.collect::<Vec<_>>(), [&both[..of_two], &all[..of_three]], "up to {most} members");
    }
}
