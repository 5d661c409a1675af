//! Many users and conversations at once, and their removal.

use model::Phone;

use super::*;
use crate::{Cleaned, Imported, ImportedConversation, ImportedUser};

super::named_after_functions!(
    what_is_imported_has_nothing_pending,
    what_is_there_is_left_as_it_is,
    a_phone_number_has_one_owner,
    who_is_known_already_gets_a_number_and_no_device,
    a_member_without_a_device_starts_before_the_first_entry,
    an_imported_conversation_goes_on_like_any_other,
    what_is_cleaned_is_gone_and_nothing_else,
    who_shares_a_conversation_with_somebody_else_stays_with_it,
    what_somebody_else_wrote_in_is_kept,
    cleaned_users_can_be_imported_again,
);

fn phone(of: u8) -> Phone {
    Phone(900 + u64::from(of))
}

fn person(number: u8) -> ImportedUser {
    ImportedUser { device: device(number, 1), phone: phone(number) }
}

fn among(number: u8, members: &[u8]) -> ImportedConversation {
    ImportedConversation {
        conversation: conversation(number),
        kind: ConversationKind::Direct,
        members: members.iter().map(|number| user(*number)).collect(),
    }
}

fn import(people: &[u8], conversations: &[ImportedConversation]) -> Request {
    Request::Import {
        users: people.iter().map(|number| person(*number)).collect(),
        conversations: conversations.to_vec(),
        ts: NOON,
    }
}

fn clean(first: u8, last: u8) -> Request {
    Request::Clean { phones: phone(first)..=phone(last) }
}

/// The answer when so many users and conversations were made, and all their devices.
fn made(people: &[u8], conversations: u64) -> Reply {
    Reply::Imported(Imported {
        users: people.len() as u64,
        devices: people.iter().map(|number| device(*number, 1)).collect(),
        conversations,
        ..Imported::default()
    })
}

fn what_is_imported_has_nothing_pending(subject: &mut Subject<'_>) {
    let id = conversation(9);
    subject.check([
        (import(&[1, 2, 3], &[among(9, &[2, 1])]), made(&[1, 2, 3], 1)),
        (Request::ListPending { device: device(1, 1) }, Reply::Pending(Vec::new())),
    ]);
    assert_eq!(subject.devices(), [(device(1, 1), 0), (device(2, 1), 0), (device(3, 1), 0)]);
    let record = subject.record(id);
    assert_eq!((record.kind, record.head, record.trimmed), (ConversationKind::Direct, Seq(1), Seq(0)));
    assert_eq!(record.members, [member(1, 1, 0, &[(1, 1, false)]), member(2, 1, 0, &[(1, 1, false)])]);
    let created = Change::Created { by: user(2), members: vec![user(2), user(1)] };
    assert_eq!(subject.page(id), [change(1, created)]);
    let Reply::Conversations(listed) = subject.one(list(1)) else { panic!("no list") };
    assert_eq!(listed[0].receipts, [receipt(1, 1, 0), receipt(2, 1, 0)]);
}

fn what_is_there_is_left_as_it_is(subject: &mut Subject<'_>) {
    subject.batch(&[import(&[1, 2], &[among(9, &[1, 2])]), append(conversation(9), device(1, 1), 5, &[])]);
    let before = subject.record(conversation(9));
    subject.check([(
        import(&[2, 3, 1], &[among(9, &[3]), among(8, &[3])]),
        Reply::Imported(Imported {
            users: 1,
            users_there: 2,
            devices: vec![device(3, 1)],
            conversations: 1,
            conversations_there: 1,
            ..Imported::default()
        }),
    )]);
    assert_eq!(subject.record(conversation(9)), before);
    // Twice in one request is as good.
    subject.check([(
        import(&[4, 4], &[among(7, &[4]), among(7, &[4])]),
        Reply::Imported(Imported {
            users: 1,
            users_there: 1,
            devices: vec![device(4, 1)],
            conversations: 1,
            conversations_there: 1,
            ..Imported::default()
        }),
    )]);
}

fn a_phone_number_has_one_owner(subject: &mut Subject<'_>) {
    subject.batch(&[import(&[1], &[])]);
    let other = ImportedUser { device: device(2, 1), phone: phone(1) };
    let request = Request::Import { users: vec![other], conversations: Vec::new(), ts: NOON };
    let taken = Reply::Imported(Imported { phones_taken: 1, ..Imported::default() });
    subject.check([(request, taken)]);
    assert_eq!(subject.devices(), [(device(1, 1), 0)]);
    // Somebody with a number keeps it.
    let moved = ImportedUser { device: device(1, 1), phone: phone(5) };
    let request = Request::Import { users: vec![moved], conversations: Vec::new(), ts: NOON };
    subject.check([
        (request, Reply::Imported(Imported { users_there: 1, ..Imported::default() })),
        (clean(5, 5), Reply::Cleaned(Cleaned::default())),
        (clean(1, 1), Reply::Cleaned(Cleaned { users: 1, devices: 1, ..Cleaned::default() })),
    ]);
}

fn who_is_known_already_gets_a_number_and_no_device(subject: &mut Subject<'_>) {
    subject.batch(&[register(device(1, 7)), create(conversation(1), &[2])]);
    subject.check([(import(&[1, 2], &[]), Reply::Imported(Imported { users: 2, ..Imported::default() }))]);
    assert_eq!(subject.devices(), [(device(1, 7), 0)]);
    assert_eq!(subject.record(conversation(1)).members, [member(2, 1, 0, &[])]);
}

fn a_member_without_a_device_starts_before_the_first_entry(subject: &mut Subject<'_>) {
    subject.check([(import(&[1], &[among(9, &[1, 2])]), made(&[1], 1))]);
    let registered = Reply::Registered { fresh: true, conversations: pending(&[(conversation(9), 0, 1)]) };
    subject.check([(register(device(2, 3)), registered)]);
}

fn an_imported_conversation_goes_on_like_any_other(subject: &mut Subject<'_>) {
    let id = conversation(9);
    subject.batch(&[import(&[1, 2], &[among(9, &[1, 2])])]);
    subject.check([
        (append(id, device(1, 1), 5, &[device(2, 1)]), appended(2)),
        (Request::ListPending { device: device(2, 1) }, Reply::Pending(pending(&[(id, 1, 2)]))),
        (acknowledge(id, device(2, 1), 2), Reply::Done),
        (settle(id, &[(device(1, 1), 2)], &[device(2, 1)], 2), Reply::Done),
    ]);
    assert_eq!(subject.cursor(id, device(2, 1)), (2, false));
    assert_eq!(subject.record(id).trimmed, Seq(2));
}

fn what_is_cleaned_is_gone_and_nothing_else(subject: &mut Subject<'_>) {
    let (theirs, others, alone) = (conversation(9), conversation(3), conversation(4));
    subject.batch(&[
        import(&[1, 2, 3], &[among(9, &[1, 2])]),
        register(device(1, 2)),
        register(device(5, 1)),
        create(others, &[5]),
        create(alone, &[3]),
        append(theirs, device(1, 1), 1, &[device(2, 1)]),
        append(theirs, device(2, 1), 2, &[]),
        append(others, device(5, 1), 3, &[]),
        settle(theirs, &[(device(1, 1), 3), (device(1, 2), 3), (device(2, 1), 3)], &[], 1),
    ]);
    let before = (subject.record(others), subject.page(others));
    // Of the log of the pair, the first entry was trimmed.
    let gone = Cleaned {
        users: 3,
        devices: 4,
        client_ids: 2,
        conversations: 2,
        entries: 3,
        members: 3,
        cursors: 4,
        ..Cleaned::default()
    };
    assert_eq!(gone.rows(), 21);
    subject.check([
        (clean(1, 4), Reply::Cleaned(gone)),
        (load(theirs), Reply::Conversation(None)),
        (load(alone), Reply::Conversation(None)),
        (list(1), Reply::Conversations(Vec::new())),
        (Request::ListPending { device: device(1, 2) }, Reply::Pending(Vec::new())),
        (clean(1, 4), Reply::Cleaned(Cleaned::default())),
    ]);
    assert_eq!(subject.devices(), [(device(5, 1), 1)]);
    assert_eq!((subject.record(others), subject.page(others)), before);
    // The client ids of the others are remembered, those of the cleaned are not.
    let repeat = append(others, device(5, 1), 3, &[]);
    let ts = Wall(NOON.0 + 3);
    subject.check([(repeat, Reply::Duplicate { seq: Seq(2), ts })]);
}

fn who_shares_a_conversation_with_somebody_else_stays_with_it(subject: &mut Subject<'_>) {
    let (shared, theirs) = (conversation(3), conversation(9));
    subject.batch(&[
        import(&[1, 2], &[among(9, &[1, 2])]),
        register(device(5, 1)),
        create(shared, &[5, 1]),
        append(shared, device(1, 1), 1, &[]),
        append(theirs, device(1, 1), 2, &[]),
    ]);
    let before = (subject.record(shared), subject.page(shared));
    let cleaned = Cleaned {
        users: 1,
        devices: 1,
        client_ids: 1,
        conversations: 1,
        entries: 2,
        members: 2,
        cursors: 2,
        users_stayed: 1,
        conversations_stayed: 1,
    };
    subject.check([(clean(0, 9), Reply::Cleaned(cleaned)), (load(theirs), Reply::Conversation(None))]);
    assert_eq!((subject.record(shared), subject.page(shared)), before);
    assert_eq!(subject.devices(), [(device(1, 1), 1), (device(5, 1), 1)]);
    // What stays is found again when it is shared no more.
    subject.batch(&[remove(shared, 1, 5)]);
    let cleaned = Cleaned { users: 1, devices: 1, client_ids: 1, ..Cleaned::default() };
    subject.check([(clean(0, 9), Reply::Cleaned(cleaned))]);
    assert_eq!(subject.record(shared).members.len(), 1);
}

fn what_somebody_else_wrote_in_is_kept(subject: &mut Subject<'_>) {
    // An entry of somebody who has left, and a client id of one whose entry is trimmed.
    let (entry, client_id) = (conversation(3), conversation(4));
    subject.batch(&[
        import(&[1], &[]),
        register(device(5, 1)),
        create(entry, &[1, 5]),
        create(client_id, &[1, 5]),
    ]);
    subject.batch(&[
        append(client_id, device(5, 1), 7, &[]),
        remove(client_id, 5, 1),
        settle(client_id, &[(device(1, 1), 3)], &[device(1, 1)], 3),
        remove(entry, 5, 5),
    ]);
    let stayed = Cleaned { users_stayed: 1, conversations_stayed: 2, ..Cleaned::default() };
    subject.check([(clean(0, 9), Reply::Cleaned(stayed))]);
    assert_eq!(subject.seqs(entry), [1, 2]);
    // Both go when that is forgotten.
    subject.batch(&[
        Request::ForgetClientIds { before: Wall(NOON.0 + 8) },
        settle(entry, &[(device(1, 1), 2)], &[device(1, 1)], 2),
    ]);
    let gone =
        Cleaned { users: 1, devices: 1, conversations: 2, members: 2, cursors: 2, ..Cleaned::default() };
    subject.check([(clean(0, 9), Reply::Cleaned(gone))]);
}

fn cleaned_users_can_be_imported_again(subject: &mut Subject<'_>) {
    let request = import(&[1, 2], &[among(9, &[1, 2])]);
    let gone = Cleaned {
        users: 2,
        devices: 2,
        conversations: 1,
        entries: 1,
        members: 2,
        cursors: 2,
        ..Cleaned::default()
    };
    subject.check_batch([
        (request.clone(), made(&[1, 2], 1)),
        (clean(0, 9), Reply::Cleaned(gone)),
        (request, made(&[1, 2], 1)),
        (append(conversation(9), device(1, 1), 1, &[device(2, 1)]), appended(2)),
    ]);
}
