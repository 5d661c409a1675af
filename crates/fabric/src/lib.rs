//! Bounded mail between cores.
//!
//! A fabric joins a fixed number of *ports*, each owned by one thread. From every port to every other leads one
//! bounded ring with a single producer and a single consumer, made when its producer first uses it, so that an
//! unused pair costs one pointer. What travels is a *block*: all that one turn has for one destination, so that the
//! price of an atomic operation is paid per block and not per item. A full ring gives the block back; nothing here
//! ever waits. A producer rings the consumer's doorbell after each block and wakes it only if it sleeps.
//!
//! This crate owns the rings, the doorbells, the sleep protocol, the collecting of a turn's mail ([`Outbox`]) and
//! the gauges of all that. It deliberately does not know what the mail says, what a thread is, how one sleeps or how
//! it is woken: the wake-up of each port is a function handed in by whoever makes the threads.
//!
//! # One turn of a port's owner
//!
//! ```no_run
//! use fabric::{Outbox, connect};
//!
//! let mut ports = connect::<u32>(vec![Box::new(|| ()), Box::new(|| ())], 16);
//! let mut bob = ports.pop().unwrap();
//! let mut alice = ports.pop().unwrap();
//! let mut outbox = Outbox::new(2, 256);
//!
//! outbox.push(bob.id(), 7);
//! assert_eq!(outbox.flush(&mut alice), 0, "nothing was refused by a full ring");
//!
//! let mut seen = Vec::new();
//! bob.receive(&mut |from, mut block| { seen.extend(block.drain(..).map(|item| (from, item))); }, 64);
//! assert_eq!(seen, [(0, 7)]);
//!
//! if bob.prepare_sleep() {
//!     // Wait here for the wake-up (or anything else), at any length: no mail is overlooked.
//! }
//! bob.awake();
//! ```
//!
//! What a full ring refuses stays in the outbox; when there is room again, the doorbell of the port that was refused
//! rings, so that its owner wakes, finds perhaps nothing to receive, and flushes. Every turn flushes, then.
//!
//! A waker that leaves a mark (an eventfd) has its mark removed *before* the next `receive`. A port whose own mail
//! is refused goes on receiving: two ports that stop reading because the other's ring is full would wait for ever.
//!
//! # Checking the memory orderings
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p fabric --release --target-dir target/loom` runs the same rings, doorbells
//! and ports under loom, which tries the interleavings and the stale reads that the memory model allows.
#![allow(unexpected_cfgs, reason = "`--cfg loom` is set by hand when the memory orderings are checked")]

mod port;

mod outbox;

mod gauges;

mod matrix;

mod doorbell;

mod ring;

mod sync;

pub use doorbell::PORTS_MAX;
pub use gauges::{Counts, Gauges};
pub use outbox::Outbox;
pub use port::{Port, Waker, connect};
