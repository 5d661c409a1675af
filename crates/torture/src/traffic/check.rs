//! What must be true when everything is said and heard.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use model::{ConversationId, Seq};

use super::person::{Origin, Person};
use crate::client::{Client, Heard, PATIENCE};
use crate::server::{Server, token};

type Log = BTreeMap<Seq, Origin>;

/// Every device has seen the same logs: each answered message once, in order, and nothing else.
pub fn agree(people: &[Person]) {
    assert!(
        people.iter().map(|person| person.index).eq(0..people.len() as u64),
        "in the order of their numbers"
    );
    let logs = promised(people);
    for (conversation, log) in &logs {
        // The first entry tells that the conversation was created.
        let gap = log.keys().zip(2..).find(|(seq, place)| seq.0 != *place);
        assert_eq!(gap, None, "the log of {conversation} has a gap before its first, instead of its second");
    }
    for person in people {
        for seat in &person.seats {
            let log = &logs[&seat.talk.id];
            let mut expected = log.iter().filter(|(_, (index, _))| *index != person.index);
            let mut stored = seat.stored.iter();
            loop {
                let (has, promised) = (stored.next(), expected.next().map(|(seq, origin)| (*seq, *origin)));
                let (who, what) = (person.index, seat.talk.id);
                assert_eq!(has.copied(), promised, "{who} has what was promised in {what}, in order, once");
                if has.is_none() {
                    break;
                }
            }
            for (seq, number) in &seat.echoes {
                assert_eq!(seat.answered.get(number), Some(seq), "an echo is what was answered");
            }
            for (member, acknowledged, delivered) in &seat.ahead {
                let user = seat.talk.members[*member].user;
                let own = |index: u64| auth::user_id(&people[index as usize].user) == user;
                let between = acknowledged.0 + 1..=delivered.0;
                assert!(
                    between.into_iter().all(|seq| log.get(&Seq(seq)).is_some_and(|(index, _)| own(*index))),
                    "{user} was told to have {delivered} of {}, and had acknowledged {acknowledged}",
                    seat.talk.id
                );
            }
        }
    }
}

/// What the answers say of the logs.
fn promised(people: &[Person]) -> BTreeMap<ConversationId, Log> {
    let mut logs: BTreeMap<ConversationId, Log> = BTreeMap::new();
    for person in people {
        for seat in &person.seats {
            let log = logs.entry(seat.talk.id).or_default();
            assert!(seat.answered.values().is_sorted(), "{}: what was sent later comes later", person.index);
            for (number, seq) in &seat.answered {
                let before = log.insert(*seq, (person.index, *number));
                assert_eq!(before, None, "{seq} of {} belongs to one message", seat.talk.id);
            }
        }
    }
    logs
}

/// Every cursor is where its device put it: nothing is pushed to a device that comes back, and the list of conversations tells of
/// every member what was acknowledged and read.
pub fn cursors_are_right(server: &Server, people: &[Person]) {
    for person in people {
        let token = token(&person.user, person.device);
        let mut client = Client::open(server.address, &token, person.encoding()).expect("let in");
        loop {
            match client.hear(PATIENCE).expect("the connection stands") {
                Some(Heard::CaughtUp) => break,
                Some(Heard::Receipt(_) | Heard::Other) => {}
                other => panic!("{} has everything and was pushed {other:?}", person.index),
            }
        }
        receipts_are_right(server, person, &token);
        // Whatever is pushed by mistake comes at once.
        if person.index == 0 {
            assert_eq!(client.hear(Duration::from_millis(200)).expect("open"), None);
        }
    }
}

fn receipts_are_right(server: &Server, person: &Person, token: &str) {
    let list = server.conversations(token);
    let all = list["conversations"].as_array().expect("a list");
    assert_eq!(all.len(), person.seats.len(), "{} is in all its conversations", person.index);
    for seat in &person.seats {
        let id = seat.talk.id.to_string();
        let listed = all.iter().find(|listed| listed["id"] == id.as_str()).expect("it is in the list");
        assert_eq!(listed["head"], seat.cursor.0, "{} has {id} to its end", person.index);
        let mut told: Vec<(String, u64, u64)> = Vec::new();
        for receipt in listed["receipts"].as_array().expect("a list") {
            let number = |name: &str| receipt[name].as_u64().expect("a number");
            let user = receipt["user"].as_str().expect("a user").to_owned();
            told.push((user, number("delivered"), number("read")));
        }
        let done = seat.talk.members.iter().map(|member| {
            (member.user.to_string(), member.acknowledged.load(SeqCst), member.read.load(SeqCst))
        });
        let mut done: Vec<(String, u64, u64)> = done.collect();
        told.sort();
        done.sort();
        assert_eq!(told, done, "the receipts of {id} are what the devices said");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::people::Talk;
    use super::super::person::{Number, Seat};
    use super::*;

    /// Alice has sent three messages, at the places 2 to 4, and bob has them.
    fn chatted() -> [Person; 2] {
        let users = ["alice", "bob"].map(str::to_owned);
        let talk = Talk::new(ConversationId([7; 16]), &users, 1);
        let mut number = 0..;
        let mut people = users.map(|user| {
            let index = number.next().expect("without end");
            Person::new(index, user, 1, vec![Seat::new(Arc::clone(&talk), index as usize, index == 0)])
        });
        for message in 0..3 {
            let (seq, message) = (Seq(message + 2), Number(message));
            people[0].seats[0].answered.insert(message, seq);
            people[1].seats[0].stored.push((seq, (0, message)));
        }
        people
    }

    /// Whether a change of what they have seen is noticed.
    fn noticed(change: impl FnOnce(&mut Seat, &mut Seat)) -> bool {
        let [mut alice, mut bob] = chatted();
        change(&mut alice.seats[0], &mut bob.seats[0]);
        let people = [alice, bob];
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| agree(&people))).is_err()
    }

    #[test]
    fn what_is_whole_passes() {
        assert!(!noticed(|_, _| {}));
        assert!(!noticed(|alice, _| alice.echoes.push((Seq(3), Number(1)))));
        // Alice has what she sent herself.
        assert!(!noticed(|_, bob| bob.ahead.push((0, Seq(1), Seq(4)))));
    }

    #[test]
    fn whatever_is_lost_doubled_or_moved_is_noticed() {
        assert!(noticed(|_, bob| bob.stored.truncate(2)), "the last one is lost");
        assert!(noticed(|_, bob| bob.stored.rotate_left(1)), "the first one comes last");
        assert!(noticed(|_, bob| bob.stored.push(bob.stored[2])), "one is doubled");
        assert!(noticed(|_, bob| bob.stored.swap(0, 1)), "two are exchanged");
        assert!(noticed(|_, bob| bob.stored.push((Seq(5), (0, Number(3))))), "one was never answered");
        assert!(noticed(|_, bob| bob.stored[1].1 = (0, Number(2))), "one has another's place");
        let gap = |alice: &mut Seat, bob: &mut Seat| {
            alice.answered.insert(Number(2), Seq(5));
            bob.stored[2].0 = Seq(5);
        };
        assert!(noticed(gap), "there is a gap in the log");
        let place_twice = |alice: &mut Seat, _: &mut Seat| {
            alice.answered.insert(Number(3), Seq(4));
        };
        assert!(noticed(place_twice), "two messages have one place");
        let order = |alice: &mut Seat, bob: &mut Seat| {
            for (number, seq) in [(0, 3), (1, 2)] {
                alice.answered.insert(Number(number), Seq(seq));
                bob.stored[seq as usize - 2].1 = (0, Number(number));
            }
        };
        assert!(noticed(order), "what was sent first comes second");
        assert!(
            noticed(|alice, _| alice.echoes.push((Seq(4), Number(1)))),
            "an echo comes from another place"
        );
        assert!(
            noticed(|alice, _| alice.ahead.push((1, Seq(2), Seq(3)))),
            "a receipt is ahead of its member"
        );
    }
}
