//! Whatever is left anywhere is dropped, once.

use std::sync::Arc;

use fabric::{Outbox, Waker, connect};

fn silent(ports: usize) -> Vec<Waker> {
    (0..ports).map(|_| Box::new(|| ()) as Waker).collect()
}

#[test]
fn mail_nobody_took_is_dropped_with_the_last_port() {
    let alive = Arc::new(());
    let mut ports = connect(silent(3), 4);
    let mut outbox = Outbox::new(3, 2);
    for _ in 0..20 {
        outbox.push(1, alive.clone());
        outbox.push(2, alive.clone());
    }
    assert_eq!(outbox.flush(&mut ports[0]), 24, "two rings with four blocks of two took 16");
    assert_eq!(Arc::strong_count(&alive), 1 + 40);
    drop(outbox);
    assert_eq!(Arc::strong_count(&alive), 1 + 16);
    let receiver = ports.pop().unwrap();
    drop(ports);
    assert_eq!(Arc::strong_count(&alive), 1 + 16, "the receiver could still take its share");
    drop(receiver);
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn mail_that_was_taken_is_dropped_by_its_taker() {
    let alive = Arc::new(());
    let mut ports = connect(silent(2), 4);
    // More than once around the ring, so that every slot is used again.
    for _ in 0..10 {
        ports[0].send(1, vec![alive.clone(), alive.clone()]).unwrap();
        let mut taken = Vec::new();
        ports[1].receive(&mut |_, block| taken.push(block), 4);
        assert_eq!(Arc::strong_count(&alive), 3);
        drop(taken);
        assert_eq!(Arc::strong_count(&alive), 1);
    }
}

#[test]
fn a_refused_or_recycled_block_drops_what_it_holds() {
    let alive = Arc::new(());
    let mut ports = connect(silent(2), 1);
    ports[0].send(1, vec![alive.clone()]).unwrap();
    drop(ports[0].send(1, vec![alive.clone()]).unwrap_err());
    assert_eq!(Arc::strong_count(&alive), 2);
    let mut outbox = Outbox::new(2, 1);
    outbox.recycle(vec![alive.clone()]);
    assert_eq!(Arc::strong_count(&alive), 2);
    drop(ports);
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn a_panic_while_receiving_loses_no_other_mail() {
    let mut ports = connect(silent(2), 1);
    ports[0].send(1, vec![1]).unwrap();
    ports[0].send(1, vec![2]).unwrap_err();
    let receiver = &mut ports[1];
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        receiver.receive(&mut |_, _| std::panic::resume_unwind(Box::new("a bad block")), 9)
    }));
    assert!(outcome.is_err());
    receiver.receive(&mut |_, _| (), 9);
    assert!(ports[0].has_mail(), "the one that was refused hears of the room");
    ports[0].send(1, vec![2]).unwrap();
    let mut got = Vec::new();
    ports[1].receive(&mut |_, block| got.extend(block), 9);
    assert_eq!(got, [2]);
}

#[test]
fn wakers_are_dropped_with_the_last_port() {
    let alive = Arc::new(());
    let held = alive.clone();
    let ports = connect::<u8>(vec![Box::new(move || drop(held.clone()))], 1);
    assert_eq!(Arc::strong_count(&alive), 2);
    drop(ports);
    assert_eq!(Arc::strong_count(&alive), 1);
}
