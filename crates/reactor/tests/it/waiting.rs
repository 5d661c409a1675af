//! Waking, and what a wait reports.

use std::io::Write as _;
use std::time::Duration;

use reactor::{Event, ListenOptions, Read};

use crate::driver::{assert_quiet, connected, next, reactor};

#[test]
fn a_wake_from_another_thread_ends_an_endless_wait() {
    let mut reactor = reactor();
    let waker = reactor.waker().clone();
    let other = std::thread::spawn(move || waker.wake());
    assert_eq!(reactor.wait(None).expect("a wait"), 1);
    assert_eq!(reactor.next_event(), Some(Event::Woken));
    other.join().expect("the other thread");
    assert_quiet(&mut reactor);
}

#[test]
fn a_wake_before_the_wait_is_not_lost_and_many_are_one() {
    let mut reactor = reactor();
    for round in 0..3 {
        for _ in 0..5 {
            reactor.waker().wake();
        }
        assert_eq!(reactor.wait(None).expect("a wait"), 1, "round {round}");
        assert_eq!(reactor.next_event(), Some(Event::Woken));
        assert_eq!(reactor.next_event(), None);
        assert_quiet(&mut reactor);
    }
}

#[test]
fn events_that_were_not_pulled_are_still_there_after_the_next_wait() {
    let (mut reactor, id, mut peer) = connected(&ListenOptions::default());
    reactor.waker().wake();
    assert_eq!(reactor.wait(None).expect("a wait"), 1);
    peer.write_all(b"x").expect("room");
    assert_eq!(reactor.wait(None).expect("no wait"), 1, "the wake is still to be pulled");
    assert_eq!(reactor.next_event(), Some(Event::Woken));
    assert_eq!(next(&mut reactor), Event::Readable(id));
}

#[test]
fn events_of_a_socket_closed_in_the_same_turn_are_not_reported() {
    let (mut reactor, first, mut peer) = connected(&ListenOptions::default());
    peer.write_all(b"x").expect("room");
    assert_eq!(reactor.wait(None).expect("a wait"), 1);
    reactor.close(first);
    assert_eq!(reactor.next_event(), None);
    assert_eq!(reactor.read(first), Read::Closed);
}

#[test]
fn an_idle_socket_wakes_nobody() {
    let (mut reactor, _id, _peer) = connected(&ListenOptions::default());
    assert_eq!(reactor.wait(Some(Duration::from_millis(50))).expect("a wait"), 0);
}
