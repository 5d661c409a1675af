//! One thread looks at every bound: full rings, bounded receiving, fairness, lazily made rings.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fabric::{Counts, Outbox, PORTS_MAX, Port, Waker, connect};

use crate::dice::{Dice, seed};

/// Ports and, for each, how often it was woken.
fn counted<T: Send>(ports: usize, blocks_per_ring: usize) -> (Vec<Port<T>>, Vec<Arc<AtomicUsize>>) {
    let wakes: Vec<_> = (0..ports).map(|_| Arc::new(AtomicUsize::new(0))).collect();
    let waker = |count: &Arc<AtomicUsize>| {
        let count = count.clone();
        Box::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        }) as Waker
    };
    (connect(wakes.iter().map(waker).collect(), blocks_per_ring), wakes)
}

fn quiet<T: Send>(ports: usize, blocks_per_ring: usize) -> Vec<Port<T>> {
    counted(ports, blocks_per_ring).0
}

fn all_of<T: Send>(port: &mut Port<T>, blocks_max: usize) -> Vec<(usize, Vec<T>)> {
    let mut got = Vec::new();
    port.receive(&mut |from, block| got.push((from, block)), blocks_max);
    got
}

fn two<T>(ports: &mut [Port<T>], a: usize, b: usize) -> (&mut Port<T>, &mut Port<T>) {
    let [a, b] = ports.get_disjoint_mut([a, b]).unwrap();
    (a, b)
}

#[test]
fn a_full_ring_gives_the_block_back_and_takes_it_later() {
    let mut ports = quiet::<u8>(2, 4);
    let (a, b) = two(&mut ports, 0, 1);
    for n in 0..4 {
        a.send(1, vec![n]).unwrap();
    }
    assert_eq!(a.send(1, vec![9, 9]), Err(vec![9, 9]));
    assert_eq!(all_of(b, 1), [(0, vec![0])]);
    a.send(1, vec![4]).unwrap();
    assert_eq!(a.send(1, vec![5]), Err(vec![5]));
    assert_eq!(all_of(b, 9), [(0, vec![1]), (0, vec![2]), (0, vec![3]), (0, vec![4])]);
    let counts = a.gauges().read();
    assert_eq!((counts.blocks_sent, counts.items_sent, counts.sends_refused), (5, 5, 2));
    assert_eq!(b.gauges().read(), Counts { blocks_received: 5, items_received: 5, ..Counts::default() });
}

#[test]
fn a_full_ring_does_not_hold_up_others() {
    let mut ports = quiet::<u8>(3, 1);
    ports[0].send(1, vec![1]).unwrap();
    ports[0].send(1, vec![2]).unwrap_err();
    ports[0].send(2, vec![3]).unwrap();
    assert_eq!(all_of(&mut ports[2], 9), [(0, vec![3])]);
}

#[test]
fn an_empty_block_is_no_mail() {
    let mut ports = quiet::<u8>(2, 4);
    ports[0].send(1, Vec::new()).unwrap();
    assert!(!ports[1].has_mail());
    assert_eq!(ports[0].gauges().read(), Counts::default());
}

#[test]
fn what_a_bounded_receive_leaves_counts_as_mail() {
    let mut ports = quiet::<u8>(2, 8);
    let (a, b) = two(&mut ports, 0, 1);
    for n in 0..3 {
        a.send(1, vec![n]).unwrap();
    }
    assert_eq!(all_of(b, 0), []);
    assert!(!b.prepare_sleep());
    assert_eq!(all_of(b, 2).len(), 2);
    assert!(b.has_mail());
    assert!(!b.prepare_sleep(), "a block is left, and nobody will ring for it again");
    assert_eq!(all_of(b, 2), [(0, vec![2])]);
    assert!(!b.has_mail());
    assert!(b.prepare_sleep());
}

#[test]
fn a_busy_ring_takes_turns_with_quiet_ones() {
    // 70 ports, so that the doorbell has two words and the turn passes from one to the other.
    let mut ports = quiet::<usize>(70, 8);
    for from in [1, 66, 68] {
        for n in 0..8 {
            ports[from].send(0, vec![n]).unwrap();
        }
    }
    ports[65].send(0, vec![77]).unwrap();
    let order: Vec<_> = (0..4).flat_map(|_| all_of(&mut ports[0], 2)).map(|(from, _)| from).collect();
    assert_eq!(order, [1, 65, 66, 68, 1, 66, 68, 1]);
    // One that comes late is served before anybody is served twice more.
    ports[2].send(0, vec![0]).unwrap();
    let order: Vec<_> = all_of(&mut ports[0], 3).into_iter().map(|(from, _)| from).collect();
    assert_eq!(order, [2, 66, 68]);
}

#[test]
fn one_wake_up_for_each_sleep_and_none_for_the_waking() {
    let (mut ports, wakes) = counted::<u8>(3, 16);
    let woken = |port: usize| wakes[port].load(Ordering::Relaxed);
    ports[0].send(2, vec![1]).unwrap();
    assert_eq!(woken(2), 0, "it is awake");
    all_of(&mut ports[2], 9);
    for sleeps in 1..4 {
        assert!(ports[2].prepare_sleep());
        for _ in 0..3 {
            ports[0].send(2, vec![1]).unwrap();
            ports[1].send(2, vec![1]).unwrap();
        }
        assert_eq!(woken(2), sleeps);
        ports[2].awake();
        assert!(!ports[2].prepare_sleep(), "there is mail");
        all_of(&mut ports[2], 9);
    }
    assert!(ports[2].prepare_sleep());
    ports[2].awake();
    ports[0].send(2, vec![1]).unwrap();
    assert_eq!(woken(2), 3, "it woke by itself, before the mail came");
    assert_eq!(ports[0].gauges().read().wakes_sent, 3);
    assert_eq!((woken(0), woken(1)), (0, 0));
}

#[test]
fn room_after_a_refusal_rings_the_one_that_was_refused() {
    let (mut ports, wakes) = counted::<u8>(3, 2);
    for n in 0..2 {
        ports[0].send(1, vec![n]).unwrap();
    }
    ports[0].send(1, vec![2]).unwrap_err();
    assert!(ports[0].prepare_sleep());
    assert!(ports[2].prepare_sleep());
    assert_eq!(all_of(&mut ports[1], 1), [(0, vec![0])]);
    assert_eq!(wakes[0].load(Ordering::Relaxed), 1);
    ports[0].awake();
    assert!(ports[0].has_mail());
    assert_eq!(all_of(&mut ports[0], 9), [], "room is not mail");
    assert!(!ports[0].prepare_sleep(), "it should try again first");
    ports[0].send(1, vec![2]).unwrap();
    assert!(ports[0].prepare_sleep());
    assert_eq!(all_of(&mut ports[1], 9), [(0, vec![1]), (0, vec![2])]);
    assert_eq!(wakes[0].load(Ordering::Relaxed), 1, "it was told of room once");
    assert_eq!(wakes[2].load(Ordering::Relaxed), 0, "it never asked");
}

#[test]
fn a_ring_is_made_by_its_first_use() {
    let mut ports = quiet::<u8>(260, 16);
    let rings = |ports: &[Port<u8>]| ports.iter().map(|port| port.gauges().read().rings_made).sum::<u64>();
    assert_eq!(rings(&ports), 0);
    for _ in 0..3 {
        ports[7].send(259, vec![1]).unwrap();
        all_of(&mut ports[259], 9);
    }
    assert_eq!(rings(&ports), 1);
    ports[259].send(7, vec![1]).unwrap();
    assert_eq!(rings(&ports), 2);
}

#[test]
fn a_port_can_write_to_itself() {
    let mut ports = quiet::<u8>(1, 2);
    let mut outbox = Outbox::new(1, 4);
    outbox.push(0, 1);
    assert_eq!(outbox.flush(&mut ports[0]), 0);
    assert!(!ports[0].prepare_sleep());
    assert_eq!(all_of(&mut ports[0], 9), [(0, vec![1])]);
    assert!(ports[0].prepare_sleep());
}

#[test]
fn every_port_up_to_the_most_can_be_reached() {
    let mut ports = quiet::<usize>(PORTS_MAX, 1);
    for port in &mut ports[1..] {
        let id = port.id();
        port.send(0, vec![id]).unwrap();
    }
    let got = all_of(&mut ports[0], PORTS_MAX);
    assert_eq!(got, (1..PORTS_MAX).map(|from| (from, vec![from])).collect::<Vec<_>>());
}

#[test]
#[should_panic(expected = "at most")]
fn more_ports_than_the_most_are_refused() {
    quiet::<u8>(PORTS_MAX + 1, 1);
}

#[test]
#[should_panic(expected = "no such port")]
fn a_port_that_is_not_there_is_a_mistake() {
    let _ = quiet::<u8>(2, 1)[0].send(2, vec![1]);
}

#[test]
fn an_outbox_sends_one_block_for_each_destination() {
    let mut ports = quiet::<u8>(3, 16);
    let mut outbox = Outbox::new(3, 100);
    for n in 0..10 {
        outbox.push(1 + usize::from(n % 2), n);
    }
    assert_eq!(outbox.items(), 10);
    assert_eq!(outbox.flush(&mut ports[0]), 0);
    assert_eq!(outbox.items(), 0);
    assert_eq!(all_of(&mut ports[1], 9), [(0, vec![0, 2, 4, 6, 8])]);
    assert_eq!(all_of(&mut ports[2], 9), [(0, vec![1, 3, 5, 7, 9])]);
}

#[test]
fn an_outbox_keeps_what_is_refused_and_says_how_much() {
    let mut ports = quiet::<u8>(3, 1);
    let mut outbox = Outbox::new(3, 2);
    for n in 0..5 {
        outbox.push(1, n);
    }
    outbox.push(2, 50);
    assert_eq!(outbox.flush(&mut ports[0]), 3, "one block of two for port 1 and all for port 2 are gone");
    assert_eq!(ports[0].gauges().read().items_waiting, 3);
    outbox.push(1, 5);
    assert_eq!(outbox.flush(&mut ports[0]), 4);
    assert_eq!(all_of(&mut ports[2], 9), [(0, vec![50])]);
    assert_eq!(all_of(&mut ports[1], 9), [(0, vec![0, 1])]);
    assert_eq!(outbox.flush(&mut ports[0]), 2);
    assert_eq!(all_of(&mut ports[1], 9), [(0, vec![2, 3])]);
    assert_eq!(outbox.flush(&mut ports[0]), 0);
    assert_eq!(all_of(&mut ports[1], 9), [(0, vec![4, 5])]);
    assert_eq!(ports[0].gauges().read().items_waiting, 0);
}

#[test]
fn an_outbox_wakes_each_sleeper_once() {
    let (mut ports, wakes) = counted::<u8>(3, 16);
    let mut outbox = Outbox::new(3, 1);
    assert!(ports[1].prepare_sleep());
    for n in 0..3 {
        outbox.push(1, n);
        outbox.push(2, n);
    }
    outbox.flush(&mut ports[0]);
    let wakes: Vec<_> = wakes.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    assert_eq!(wakes, [0, 1, 0]);
    assert_eq!(ports[0].gauges().read().wakes_sent, 1);
}

#[test]
fn a_recycled_block_is_used_again() {
    let mut ports = quiet::<u8>(2, 4);
    let mut outbox = Outbox::new(2, 100);
    let block = Vec::with_capacity(64);
    let memory = block.as_ptr();
    outbox.recycle(block);
    for round in 0..3 {
        outbox.push(1, round);
        outbox.flush(&mut ports[0]);
        let (_, block) = all_of(&mut ports[1], 9).pop().unwrap();
        assert_eq!((block.as_ptr(), &block[..]), (memory, &[round][..]));
        outbox.recycle(block);
    }
}

/// Random pushes, flushes and receipts against plain queues.
#[test]
fn an_outbox_agrees_with_plain_queues() {
    let seed = seed();
    for lane in 0..200 {
        let dice = &mut Dice::new(seed, lane);
        let count = 1 + dice.below(6);
        let mut ports = quiet::<u32>(count, 1 << dice.below(3));
        let mut outbox = Outbox::new(count, 1 + dice.below(4));
        let mut sent = vec![VecDeque::new(); count];
        for n in 0..400 {
            match dice.below(10) {
                0..6 => {
                    let to = dice.below(count);
                    outbox.push(to, n);
                    sent[to].push_back(n);
                }
                6..8 => {
                    let waiting = outbox.flush(&mut ports[0]);
                    assert_eq!(waiting, outbox.items());
                }
                _ => check_received(&mut ports[dice.below(count)], &mut outbox, &mut sent, dice.below(4)),
            }
            let travelling: usize = sent.iter().map(VecDeque::len).sum();
            let counts = ports.iter().map(|port| port.gauges().read());
            let in_rings: u64 =
                counts.map(|c| c.items_sent.wrapping_sub(c.items_received)).fold(0, u64::wrapping_add);
            assert_eq!(travelling, outbox.items() + in_rings as usize, "lane {lane}");
        }
        while sent.iter().any(|queue| !queue.is_empty()) {
            outbox.flush(&mut ports[0]);
            for port in &mut ports {
                check_received(port, &mut outbox, &mut sent, 2);
            }
        }
    }
}

fn check_received(
    port: &mut Port<u32>,
    outbox: &mut Outbox<u32>,
    sent: &mut [VecDeque<u32>],
    blocks_max: usize,
) {
    let to = port.id();
    let each = &mut |_, mut block: Vec<u32>| {
        for item in block.drain(..) {
            assert_eq!(Some(item), sent[to].pop_front());
        }
        outbox.recycle(block);
    };
    port.receive(each, blocks_max);
}
