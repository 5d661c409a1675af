//! Loom tries every interleaving, and every stale read the memory model allows, of a few small stories.
//!
//! A wake-up that is lost shows as a deadlock, a block that is read before it is written as a data race, a block that
//! is never freed as a leak.

use fabric::{Outbox, Port, Waker, connect};
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Notify};
use loom::thread::{self, Thread};

fn silent() -> Waker {
    Box::new(|| ())
}

fn unpark(thread: Thread) -> Waker {
    Box::new(move || thread.unpark())
}

/// Explores with at most `preemptions` involuntary switches, which is where the search stays finite in time.
fn explore(preemptions: usize, story: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(story);
}

/// Receives until `wanted` items have come, sleeping in between.
fn receive_asleep(port: &mut Port<usize>, wanted: usize) -> Vec<(usize, usize)> {
    let mut got = Vec::new();
    while got.len() < wanted {
        let blocks =
            port.receive(&mut |from, block| got.extend(block.into_iter().map(|item| (from, item))), 1);
        if blocks == 0 && port.prepare_sleep() {
            thread::park();
        }
        port.awake();
    }
    got
}

#[test]
fn a_ring_hands_blocks_over_in_order() {
    explore(6, || {
        let mut ports = connect(vec![silent(), silent()], 2);
        let mut consumer = ports.pop().unwrap();
        let mut producer = ports.pop().unwrap();
        let producing = thread::spawn(move || {
            let mut accepted = 0;
            for number in 0..3 {
                if producer.send(1, vec![number]).is_err() {
                    break;
                }
                accepted += 1;
            }
            accepted
        });
        let mut got = Vec::new();
        for _ in 0..2 {
            consumer.receive(&mut |_, block| got.extend(block), 2);
        }
        let accepted = producing.join().unwrap();
        assert!(accepted >= 2);
        consumer.receive(&mut |_, block| got.extend(block), 4);
        assert_eq!(got, (0..accepted).collect::<Vec<_>>());
    });
}

#[test]
fn a_sleeper_is_woken() {
    explore(8, || {
        let mut ports = connect(vec![silent(), unpark(thread::current())], 2);
        let mut consumer = ports.pop().unwrap();
        let mut producer = ports.pop().unwrap();
        let producing = thread::spawn(move || {
            for number in 0..2 {
                producer.send(1, vec![number]).unwrap();
            }
        });
        assert_eq!(receive_asleep(&mut consumer, 2), [(0, 0), (0, 1)]);
        producing.join().unwrap();
    });
}

#[test]
fn two_producers_send_one_sleep_one_wake_up() {
    explore(4, || {
        let wakes = Arc::new(AtomicUsize::new(0));
        let consumer_thread = thread::current();
        let waker = {
            let wakes = wakes.clone();
            Box::new(move || {
                wakes.fetch_add(1, Ordering::Relaxed);
                consumer_thread.unpark();
            })
        };
        let mut ports = connect(vec![silent(), silent(), waker], 1);
        let mut consumer = ports.pop().unwrap();
        let producing: Vec<_> = ports
            .into_iter()
            .map(|mut producer| {
                thread::spawn(move || {
                    let number = producer.id();
                    producer.send(2, vec![number]).unwrap();
                })
            })
            .collect();
        if consumer.prepare_sleep() {
            thread::park();
        }
        for producing in producing {
            producing.join().unwrap();
        }
        assert!(wakes.load(Ordering::Relaxed) <= 1);
        consumer.awake();
        let mut got = receive_asleep(&mut consumer, 2);
        got.sort();
        assert_eq!(got, [(0, 0), (1, 1)]);
    });
}

#[test]
fn one_that_sleeps_on_a_full_ring_is_woken_by_room() {
    explore(6, || {
        // The waker of the producer is not known before its thread runs, so the producer is the main thread here.
        let mut ports = connect(vec![unpark(thread::current()), silent()], 1);
        let mut consumer = ports.pop().unwrap();
        let mut producer = ports.pop().unwrap();
        let mut outbox = Outbox::new(2, 1);
        outbox.push(1, 0);
        assert_eq!(outbox.flush(&mut producer), 0);
        let consuming = thread::spawn(move || {
            // Not more than one block: the second is taken after the producer is done.
            consumer.receive(&mut |_, block| assert_eq!(block, [0]), 1);
            consumer
        });
        outbox.push(1, 1);
        // The order is the unkind one: the doorbell may be heard between the refusal and the sleep.
        while outbox.flush(&mut producer) > 0 {
            producer.receive(&mut |_, _| panic!("room is not mail"), 1);
            if producer.prepare_sleep() {
                thread::park();
            }
            producer.awake();
        }
        let mut consumer = consuming.join().unwrap();
        consumer.receive(&mut |_, block| assert_eq!(block, [1]), 1);
    });
}

/// Both sleep, and each is the other's alarm clock: neither a wake-up nor a block may go missing on the way there or back.
#[test]
fn two_who_wait_for_each_other_go_on() {
    explore(4, || {
        let alarms = [0, 1].map(|_| Arc::new(Notify::new()));
        let wakers = alarms.iter().map(|alarm| {
            let alarm = alarm.clone();
            Box::new(move || alarm.notify()) as Waker
        });
        let mut ports = connect(wakers.collect(), 1);
        let mut bob = ports.pop().unwrap();
        let mut alice = ports.pop().unwrap();
        let next = |port: &mut Port<usize>, alarm: &Notify| {
            loop {
                let mut got = None;
                port.receive(&mut |_, block| got = block.into_iter().next(), 1);
                match got {
                    Some(number) => return number,
                    None if port.prepare_sleep() => alarm.wait(),
                    None => {}
                }
                port.awake();
            }
        };
        let alarm = alarms[1].clone();
        let answering = thread::spawn(move || {
            let number = next(&mut bob, &alarm);
            bob.send(0, vec![number + 1]).unwrap();
        });
        alice.send(1, vec![7]).unwrap();
        assert_eq!(next(&mut alice, &alarms[0]), 8);
        answering.join().unwrap();
    });
}
