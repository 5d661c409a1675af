//! Who there is and who talks to whom.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use model::{ConversationId, Seq, UserId};
use protocol::Encoding;

use super::person::{Person, Seat};
use crate::client::{Client, Heard};
use crate::server::{Server, token};

/// A conversation, as those who take part in it share it.
pub struct Talk {
    /// Its id.
    pub id: ConversationId,
    /// Messages that were answered, whoever sent them. Two of one person never count as one.
    pub(super) answered: AtomicU64,
    /// Devices that may still send.
    pub(super) unsettled: AtomicU64,
    pub(super) members: Vec<Member>,
}

/// One of them, with what a receipt may tell of them at most.
pub struct Member {
    pub(super) user: UserId,
    /// How far a device has acknowledged; noted before it says so.
    pub(super) acknowledged: AtomicU64,
    /// How far they have read; noted before they say so.
    pub(super) read: AtomicU64,
}

impl Talk {
    pub(super) fn new(id: ConversationId, users: &[String], writers: u64) -> Arc<Talk> {
        let member = |user: &String| Member {
            user: auth::user_id(user),
            acknowledged: AtomicU64::new(0),
            read: AtomicU64::new(0),
        };
        let members = users.iter().map(member).collect();
        Arc::new(Talk { id, answered: AtomicU64::new(0), unsettled: AtomicU64::new(writers), members })
    }

    /// The last place of its log when everybody is settled. The first entry tells that the conversation was created.
    pub(super) fn head(&self) -> Seq {
        Seq(1 + self.answered.load(SeqCst))
    }
}

/// People for so many direct conversations, those of a pair side by side, where both sides send.
pub fn pairs(server: &Server, count: u64) -> Vec<Person> {
    let mut people = Vec::new();
    for pair in 0..count {
        let users = ["a", "b"].map(|side| format!("pair {pair} {side}"));
        let talk = Talk::new(server.direct(&token(&users[0], 1), &users[1]), &users, 2);
        for (side, user) in users.into_iter().enumerate() {
            let seats = vec![Seat::new(Arc::clone(&talk), side, true)];
            people.push(Person::new(2 * pair + side as u64, user, 1, seats));
        }
    }
    people
}

/// So many senders and as many receivers, a multiple of five. Each sender has a direct conversation with a receiver, and five senders
/// with their receivers share a group. Every fifth receiver has two devices.
pub fn crowd(server: &Server, size: u64) -> Vec<Person> {
    assert!(size.is_multiple_of(5), "groups are of five and five");
    let sender = |n: u64| format!("sender {n}");
    let receiver = |n: u64| format!("receiver {n}");
    let devices = |n: u64| if n.is_multiple_of(5) { 1..=2 } else { 1..=1 };
    // A device that comes later begins at the end of each log. These shall get everything, so they are there before.
    for n in 0..size {
        introduce(server, &sender(n), 1);
        devices(n).for_each(|device| introduce(server, &receiver(n), device));
    }
    let direct: Vec<Arc<Talk>> = (0..size)
        .map(|n| Talk::new(server.direct(&token(&sender(n), 1), &receiver(n)), &[sender(n), receiver(n)], 1))
        .collect();
    let groups: Vec<Arc<Talk>> = (0..size / 5)
        .map(|group| {
            let all = group * 5..group * 5 + 5;
            let users: Vec<String> = all.clone().map(sender).chain(all.map(receiver)).collect();
            Talk::new(server.group(&token(&users[0], 1), &users[1..]), &users, 5)
        })
        .collect();
    let seats = |n: u64, side: usize| {
        let (direct, group) = (&direct[n as usize], &groups[n as usize / 5]);
        let in_group = side * 5 + n as usize % 5;
        vec![
            Seat::new(Arc::clone(direct), side, side == 0),
            Seat::new(Arc::clone(group), in_group, side == 0),
        ]
    };
    let mut people = Vec::new();
    for n in 0..size {
        people.push(Person::new(people.len() as u64, sender(n), 1, seats(n, 0)));
        for device in devices(n) {
            people.push(Person::new(people.len() as u64, receiver(n), device, seats(n, 1)));
        }
    }
    people
}

/// Lets the server know a device.
fn introduce(server: &Server, user: &str, device: u32) {
    let mut client = Client::open(server.address, &token(user, device), Encoding::Cbor).expect("let in");
    client.await_heard(|heard| (heard == Heard::CaughtUp).then_some(()));
}
