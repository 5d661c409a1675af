//! Logs: their beginning, order, pages and bytes.

use model::{Body, Change, ConversationKind, DeviceKey, Payload, Seq, Wall};

use super::*;

super::named_after_functions!(
    an_empty_batch_is_answered_by_nothing,
    what_was_never_made_is_not_there,
    a_conversation_begins_with_its_creation,
    creating_again_changes_nothing,
    a_direct_conversation_stays_direct,
    messages_get_dense_places_in_the_order_of_the_batch,
    each_request_sees_what_those_before_it_did,
    conversations_do_not_mix,
    a_page_is_bounded_by_places,
    a_page_is_bounded_by_count,
    a_page_is_bounded_by_bytes,
    changes_weigh_nothing_in_a_page,
    payloads_come_back_as_they_were,
    places_and_times_may_be_extreme,
    one_bad_request_harms_no_other,
);

fn an_empty_batch_is_answered_by_nothing(subject: &mut Subject<'_>) {
    assert_eq!(subject.batch(&[]), []);
}

fn what_was_never_made_is_not_there(subject: &mut Subject<'_>) {
    let nowhere = conversation(9);
    subject.check([
        (load(nowhere), Reply::Conversation(None)),
        (read(nowhere, 0, u64::MAX), Reply::Page(Vec::new())),
        (Request::ListPending { device: device(1, 1) }, Reply::Pending(Vec::new())),
        (list(1), Reply::Conversations(Vec::new())),
        (Request::ForgetClientIds { before: Wall(u64::MAX) }, Reply::Forgotten(0)),
        (append(nowhere, device(1, 1), 1, &[device(1, 1)]), Reply::Conflict),
        (add(nowhere, 1, 2), Reply::Conflict),
        (remove(nowhere, 1, 2), Reply::Conflict),
        (acknowledge(nowhere, device(1, 1), 1), Reply::Conflict),
        (mark_read(nowhere, 1, 1), Reply::Conflict),
        (settle(nowhere, &[(device(1, 1), 1)], &[device(1, 1)], 1), Reply::Conflict),
        (load(nowhere), Reply::Conversation(None)),
    ]);
    assert_eq!(subject.devices(), []);
}

fn a_conversation_begins_with_its_creation(subject: &mut Subject<'_>) {
    let id = conversation(1);
    subject.batch(&[register(device(2, 7)), register(device(2, 3)), register(device(1, 1))]);
    let record = ConversationRecord {
        kind: ConversationKind::Group,
        head: Seq(1),
        trimmed: Seq(0),
        members: vec![
            member(1, 1, 0, &[(1, 0, true)]),
            member(2, 1, 0, &[(3, 0, true), (7, 0, true)]),
            member(3, 1, 0, &[]),
        ],
    };
    // The entry names the members as they were given; the record orders those who came together by id.
    subject.check([
        (create(id, &[3, 1, 2]), Reply::Created { fresh: true, record: record.clone() }),
        (load(id), Reply::Conversation(Some(record))),
    ]);
    let created = Change::Created { by: user(3), members: vec![user(3), user(1), user(2)] };
    assert_eq!(subject.page(id), [change(1, created)]);
    let everywhere = Reply::Pending(pending(&[(id, 0, 1)]));
    subject.check(
        [device(1, 1), device(2, 3), device(2, 7)]
            .map(|device| (Request::ListPending { device }, everywhere.clone())),
    );
}

fn creating_again_changes_nothing(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    subject.batch(&[append(id, device(1, 1), 1, &[]), acknowledge(id, device(2, 1), 2)]);
    let record = subject.record(id);
    let again = Request::CreateConversation {
        conversation: id,
        kind: ConversationKind::Direct,
        by: user(5),
        members: vec![user(5), user(6)],
        ts: Wall(1),
    };
    subject.check([
        (again, Reply::Created { fresh: false, record: record.clone() }),
        (load(id), Reply::Conversation(Some(record))),
        (list(5), Reply::Conversations(Vec::new())),
    ]);
    assert_eq!(subject.seqs(id), [1, 2]);
    // Twice in one batch is the same as twice.
    let other = conversation(2);
    let replies = subject.batch(&[create(other, &[1]), create(other, &[2])]);
    let fresh: Vec<bool> = replies
        .iter()
        .map(|reply| matches!(reply, Reply::Created { fresh: true, record } if record.members.len() == 1))
        .collect();
    assert_eq!(fresh, [true, false]);
    assert_eq!(subject.record(other).members, [member(1, 1, 0, &[(1, 0, true)])]);
}

fn a_direct_conversation_stays_direct(subject: &mut Subject<'_>) {
    let id = conversation(1);
    let members = vec![user(1), user(2)];
    let kind = ConversationKind::Direct;
    let made = subject.one(Request::CreateConversation {
        conversation: id,
        kind,
        by: user(2),
        members: members.clone(),
        ts: NOON,
    });
    let record = subject.record(id);
    assert_eq!(record.kind, kind);
    assert_eq!(made, Reply::Created { fresh: true, record });
    let summary = model::ConversationSummary { id, kind, members: members.into(), head: Seq(1) };
    let receipts = vec![receipt(1, 0, 0), receipt(2, 0, 0)];
    subject.check([(list(1), Reply::Conversations(vec![model::ConversationListing { summary, receipts }]))]);
}

fn messages_get_dense_places_in_the_order_of_the_batch(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    subject.check_batch([
        (append(id, device(1, 1), 10, &[]), appended(2)),
        (append(id, device(2, 1), 20, &[]), appended(3)),
        (append(id, device(1, 1), 11, &[]), appended(4)),
    ]);
    subject.check([(append(id, device(2, 1), 21, &[]), appended(5))]);
    assert_eq!(
        subject.page(id)[1..],
        [
            message(2, device(1, 1), 10),
            message(3, device(2, 1), 20),
            message(4, device(1, 1), 11),
            message(5, device(2, 1), 21),
        ]
    );
    assert_eq!(subject.record(id).head, Seq(5));
}

fn each_request_sees_what_those_before_it_did(subject: &mut Subject<'_>) {
    let (id, sender, receiver) = (conversation(1), device(1, 1), device(2, 1));
    let replies = subject.batch(&[
        register(sender),
        create(id, &[1, 2]),
        append(id, sender, 1, &[]),
        read(id, 1, 9),
        register(receiver),
        append(id, sender, 2, &[receiver]),
        acknowledge(id, receiver, 2),
        Request::ListPending { device: receiver },
        acknowledge(id, receiver, 3),
        Request::ListPending { device: receiver },
        mark_read(id, 2, 2),
        load(id),
        add(id, 3, 1),
        remove(id, 2, 1),
        Request::ListPending { device: receiver },
        load(id),
    ]);
    assert_eq!(replies[3], Reply::Page(vec![message(2, sender, 1)]));
    assert_eq!(replies[7], Reply::Pending(pending(&[(id, 2, 3)])));
    assert_eq!(replies[9], Reply::Pending(pending(&[(id, 3, 3)])));
    let Reply::Conversation(Some(record)) = &replies[11] else { panic!("{:?}", replies[11]) };
    assert_eq!(record.members[1], member(2, 1, 2, &[(1, 3, true)]));
    assert_eq!(replies[14], Reply::Pending(Vec::new()));
    let Reply::Conversation(Some(record)) = &replies[15] else { panic!("{:?}", replies[15]) };
    assert_eq!((record.head, record.members.len()), (Seq(5), 2));
    assert_eq!(Reply::Conversation(Some(subject.record(id))), replies[15]);
}

fn conversations_do_not_mix(subject: &mut Subject<'_>) {
    let (first, second) = (conversation(1), conversation(2));
    let sender = device(1, 1);
    subject.check_batch([
        (append(first, sender, 1, &[]), Reply::Conflict),
        (register(sender), Reply::Registered { fresh: true, conversations: Vec::new() }),
    ]);
    subject.batch(&[create(first, &[1]), create(second, &[1])]);
    subject.check_batch([
        (append(first, sender, 1, &[]), appended(2)),
        (append(second, sender, 2, &[]), appended(2)),
        (append(first, sender, 3, &[]), appended(3)),
        (acknowledge(first, sender, 3), Reply::Done),
        (settle(first, &[], &[sender], 3), Reply::Done),
    ]);
    assert_eq!(subject.seqs(first), [0; 0]);
    assert_eq!(subject.page(second)[1..], [message(2, sender, 2)]);
    assert_eq!(subject.cursor(second, sender), (0, true));
    assert_eq!(subject.cursor(first, sender), (3, false));
}

/// A log of 1 (the creation), then messages numbered as their place.
fn log_of(subject: &mut Subject<'_>, head: u32, length: usize) -> ConversationId {
    let id = two_people(subject);
    let batch: Vec<Request> = (2..=head)
        .map(|number| Request::Append {
            conversation: id,
            from: device(1, 1),
            client_id: client_id(number),
            ts: NOON,
            payload: Payload::from(vec![number as u8; length]),
            mark: Vec::new(),
        })
        .collect();
    subject.batch(&batch);
    id
}

fn seqs_of(reply: Reply) -> Vec<u64> {
    match reply {
        Reply::Page(page) => page.iter().map(|entry| entry.seq.0).collect(),
        other => panic!("no page but {other:?}"),
    }
}

fn a_page_is_bounded_by_places(subject: &mut Subject<'_>) {
    let id = log_of(subject, 6, 1);
    for (after, up_to, expected) in [
        (0, 6, &[1, 2, 3, 4, 5, 6][..]),
        (0, 3, &[1, 2, 3]),
        (3, 6, &[4, 5, 6]),
        (2, 4, &[3, 4]),
        (5, 100, &[6]),
        (6, 100, &[]),
        (4, 4, &[]),
        (5, 2, &[]),
        (0, 0, &[]),
        (1 << 32, 1 << 33, &[]),
        (u64::MAX, u64::MAX, &[]),
        (u64::MAX - 1, u64::MAX, &[]),
    ] {
        assert_eq!(seqs_of(subject.one(read(id, after, up_to))), expected, "{after} < seq ≤ {up_to}");
    }
}

fn read_within(conversation: ConversationId, limit: u32, bytes_max: usize) -> Request {
    Request::ReadLog { conversation, after: Seq(1), up_to: Seq(u64::MAX), limit, bytes_max }
}

fn a_page_is_bounded_by_count(subject: &mut Subject<'_>) {
    let id = log_of(subject, 5, 1);
    for (limit, expected) in
        [(0, &[][..]), (1, &[2]), (3, &[2, 3, 4]), (4, &[2, 3, 4, 5]), (9, &[2, 3, 4, 5])]
    {
        assert_eq!(seqs_of(subject.one(read_within(id, limit, usize::MAX))), expected, "limit {limit}");
    }
}

fn a_page_is_bounded_by_bytes(subject: &mut Subject<'_>) {
    let id = log_of(subject, 5, 100);
    for (bytes_max, expected) in [
        (0, &[2][..]),
        (99, &[2]),
        (100, &[2]),
        (199, &[2]),
        (200, &[2, 3]),
        (399, &[2, 3, 4]),
        (400, &[2, 3, 4, 5]),
        (usize::MAX, &[2, 3, 4, 5]),
    ] {
        assert_eq!(seqs_of(subject.one(read_within(id, u32::MAX, bytes_max))), expected, "{bytes_max} bytes");
    }
}

fn changes_weigh_nothing_in_a_page(subject: &mut Subject<'_>) {
    let id = log_of(subject, 2, 100);
    subject.batch(&[add(id, 3, 1), append(id, device(1, 1), 50, &[])]);
    assert_eq!(seqs_of(subject.one(read_within(id, u32::MAX, 100))), [2, 3]);
    assert_eq!(seqs_of(subject.one(read_within(id, u32::MAX, 104))), [2, 3, 4]);
}

fn payloads_come_back_as_they_were(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    let every_byte: Vec<u8> = (0..=255).collect();
    let long: Vec<u8> = (0..65_536_u32).map(|index| (index.wrapping_mul(31) >> 3) as u8).collect();
    let payloads =
        [Vec::new(), vec![0], every_byte, vec![0xff; 1_500], long, b"\0'; DROP TABLE log; --".to_vec()];
    let batch: Vec<Request> = (0..)
        .zip(&payloads)
        .map(|(number, payload)| Request::Append {
            conversation: id,
            from: device(1, 1),
            client_id: client_id(number),
            ts: NOON,
            payload: Payload::from(&payload[..]),
            mark: Vec::new(),
        })
        .collect();
    subject.batch(&batch);
    let page = subject.page(id);
    let bodies: Vec<&[u8]> = page
        .iter()
        .filter_map(|entry| match &entry.body {
            Body::Message { payload, .. } => Some(payload.bytes()),
            Body::Change(_) => None,
        })
        .collect();
    assert_eq!(bodies.len(), payloads.len());
    for (found, sent) in bodies.iter().zip(&payloads) {
        assert!(found == sent, "a payload of {} bytes came back otherwise", sent.len());
    }
    // A repeat is recognised by its bytes, whatever their number.
    let again = subject.batch(&batch);
    assert!(again.iter().all(|reply| matches!(reply, Reply::Duplicate { ts: NOON, .. })), "{again:?}");
}

fn places_and_times_may_be_extreme(subject: &mut Subject<'_>) {
    let last = DeviceKey { user: model::UserId([0xff; 16]), device: model::DeviceId(u32::MAX) };
    let first = DeviceKey { user: model::UserId([0; 16]), device: model::DeviceId(0) };
    let id = ConversationId([0xff; 16]);
    let at = |ts| Request::Append {
        conversation: id,
        from: last,
        client_id: client_id_at(ts),
        ts: Wall(ts),
        payload: Payload::from(&[][..]),
        mark: vec![first, last],
    };
    subject.batch(&[
        Request::RegisterDevice { device: last, ts: Wall(u64::MAX) },
        Request::RegisterDevice { device: first, ts: Wall(0) },
        Request::CreateConversation {
            conversation: id,
            kind: ConversationKind::Direct,
            by: last.user,
            members: vec![last.user, first.user],
            ts: Wall(u64::MAX),
        },
        at(0),
        at(u64::MAX),
        at(1 << 63),
        at((1 << 63) - 1),
    ]);
    let times: Vec<u64> = subject.page(id).iter().map(|entry| entry.ts.0).collect();
    assert_eq!(times, [u64::MAX, 0, u64::MAX, 1 << 63, (1 << 63) - 1]);
    subject.check([
        (at(u64::MAX), Reply::Duplicate { seq: Seq(3), ts: Wall(u64::MAX) }),
        // Nothing moves past the head.
        (acknowledge(id, last, u64::MAX), Reply::Done),
        (Request::MarkRead { conversation: id, user: first.user, seq: Seq(u64::MAX) }, Reply::Done),
        (Request::ListPending { device: last }, Reply::Pending(pending(&[(id, 5, 5)]))),
        (settle(id, &[(first, 1 << 63)], &[], u64::MAX), Reply::Done),
        (Request::ListPending { device: first }, Reply::Pending(pending(&[(id, 5, 5)]))),
    ]);
    let record = subject.record(id);
    assert_eq!((record.head, record.trimmed, record.members[0].read), (Seq(5), Seq(5), Seq(5)));
}

fn one_bad_request_harms_no_other(subject: &mut Subject<'_>) {
    let id = two_people(subject);
    subject.check_batch([
        (append(id, device(1, 1), 1, &[]), appended(2)),
        (append(conversation(9), device(1, 1), 2, &[]), Reply::Conflict),
        (add(id, 1, 2), Reply::Conflict),
        (remove(id, 7, 1), Reply::Conflict),
        (append(id, device(1, 1), 2, &[]), appended(3)),
    ]);
    assert_eq!(subject.seqs(id), [1, 2, 3]);
}
