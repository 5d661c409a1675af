//! Real threads that sleep by `park`: nothing is lost, doubled or reordered, and nobody sleeps for ever.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use fabric::{Gauges, Outbox, Port, Waker, connect};

use crate::dice::{Dice, seed};

/// Ports whose owners sleep by `park`, each with the place for its owner's handle and the number of its wake-ups.
struct Parked {
    owner: OnceLock<Thread>,
    wakes: AtomicUsize,
}

fn parked<T: Send>(ports: usize, blocks_per_ring: usize) -> (Vec<Port<T>>, Vec<Arc<Parked>>) {
    let owners: Vec<_> =
        (0..ports).map(|_| Arc::new(Parked { owner: OnceLock::new(), wakes: AtomicUsize::new(0) })).collect();
    let waker = |parked: &Arc<Parked>| {
        let parked = parked.clone();
        Box::new(move || {
            parked.wakes.fetch_add(1, Ordering::Relaxed);
            parked.owner.get().expect("who sleeps has said who it is").unpark();
        }) as Waker
    };
    (connect(owners.iter().map(waker).collect(), blocks_per_ring), owners)
}

/// How long nobody can sleep here unless a wake-up was lost.
const FOR_EVER: Duration = Duration::from_secs(60);

/// Sleeps if it may, and says whether it did.
fn sleep<T: Send>(port: &mut Port<T>) -> bool {
    let may = port.prepare_sleep();
    if may {
        let start = Instant::now();
        thread::park_timeout(FOR_EVER);
        assert!(start.elapsed() < FOR_EVER, "port {} was not woken", port.id());
    }
    port.awake();
    may
}

struct Numbered {
    from: usize,
    number: u32,
}

/// One thread of the crowd: sends `each` numbered items to every port in random order and portions, receives what
/// the others send to it, and sleeps whenever there is nothing to do. Returns how often it announced a sleep.
fn member(mut port: Port<Numbered>, each: u32, dice: &mut Dice) -> usize {
    let ports = port.ports();
    let mut outbox = Outbox::new(ports, 1 + dice.below(8));
    let mut sent = vec![0; ports];
    let mut to_send: Vec<usize> = (0..ports).collect();
    let mut received = vec![0; ports];
    let mut sleeps = 0;
    loop {
        let waiting = outbox.flush(&mut port);
        let blocks_max = 1 + dice.below(8);
        port.receive(
            &mut |from, mut block| {
                for Numbered { from: said, number } in block.drain(..) {
                    assert_eq!((said, number), (from, received[from]));
                    received[from] += 1;
                }
                outbox.recycle(block);
            },
            blocks_max,
        );
        // As a server would: nothing new is taken in while something waits.
        if waiting == 0 && !to_send.is_empty() {
            for _ in 0..dice.below(20) {
                let Some(choice) = (!to_send.is_empty()).then(|| dice.below(to_send.len())) else { break };
                let to = to_send[choice];
                outbox.push(to, Numbered { from: port.id(), number: sent[to] });
                sent[to] += 1;
                if sent[to] == each {
                    to_send.swap_remove(choice);
                }
            }
            continue;
        }
        if to_send.is_empty() && outbox.items() == 0 && received.iter().all(|count| *count == each) {
            return sleeps;
        }
        // Announced, whether it then slept or found mail: a wake-up for an announcement that was taken back may be under way.
        sleep(&mut port);
        sleeps += 1;
    }
}

fn check_crowd(count: usize, blocks_per_ring: usize, each: u32) {
    let seed = seed();
    let (ports, owners) = parked(count, blocks_per_ring);
    let gauges: Vec<Arc<Gauges>> = ports.iter().map(Port::gauges).collect();
    let sleeps: Vec<usize> = thread::scope(|scope| {
        let threads: Vec<_> = ports
            .into_iter()
            .zip(&owners)
            .map(|(port, parked)| {
                scope.spawn(move || {
                    parked.owner.set(thread::current()).unwrap();
                    let dice = &mut Dice::new(seed, port.id());
                    member(port, each, dice)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (parked, sleeps) in owners.iter().zip(&sleeps) {
        assert!(
            parked.wakes.load(Ordering::Relaxed) <= *sleeps,
            "more than one wake-up for an announced sleep"
        );
    }
    let totals = gauges.iter().map(|gauges| gauges.read());
    let (sent, received, wakes) = totals.fold((0, 0, 0), |(sent, received, wakes), counts| {
        (sent + counts.items_sent, received + counts.items_received, wakes + counts.wakes_sent)
    });
    let expected = count as u64 * count as u64 * u64::from(each);
    assert_eq!((sent, received), (expected, expected));
    assert_eq!(
        wakes as usize,
        owners.iter().map(|parked| parked.wakes.load(Ordering::Relaxed)).sum::<usize>()
    );
    println!(
        "{count} ports, rings of {blocks_per_ring}: {} sleeps, {wakes} wake-ups",
        sleeps.iter().sum::<usize>()
    );
}

#[test]
fn a_small_crowd_gets_everything_once_and_in_order() {
    check_crowd(3, 1, 20_000);
}

#[test]
fn a_crowd_gets_everything_once_and_in_order() {
    check_crowd(8, 2, 4_000);
}

#[test]
fn a_crowd_with_two_doorbell_words_gets_everything_once_and_in_order() {
    check_crowd(70, 4, 30);
}

/// Two threads that do nothing but sleep and wake each other: every hand-over is a chance to lose a wake-up.
#[test]
fn no_wake_up_is_lost_between_two_sleepers() {
    const ROUNDS: u32 = 100_000;
    let (ports, owners) = parked::<u32>(2, 1);
    thread::scope(|scope| {
        for (mut port, parked) in ports.into_iter().zip(&owners) {
            scope.spawn(move || {
                parked.owner.set(thread::current()).unwrap();
                let other = 1 - port.id();
                let mut next = port.id() as u32;
                if next == 0 {
                    port.send(other, vec![0]).unwrap();
                    next = 2;
                }
                while next < ROUNDS {
                    let mut got = None;
                    port.receive(&mut |_, block| got = Some(block), 1);
                    match got {
                        Some(mut block) => {
                            assert_eq!(block, [next - 1]);
                            block[0] = next;
                            port.send(other, block).unwrap();
                            next += 2;
                        }
                        None => drop(sleep(&mut port)),
                    }
                }
            });
        }
    });
}
