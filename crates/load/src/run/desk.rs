//! Between the threads that run the clients and the one that conducts them: orders one way, books the other.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::pair::Violation;
use super::tally::Tally;

/// Violations of which the evidence is kept; more are only counted.
pub const EVIDENCE_MAX: usize = 100;

/// What the conductor wants.
#[derive(Debug)]
pub struct Orders {
    /// When the schedule begins, in microseconds since the run did; `u64::MAX` while nobody knows.
    start_micros: AtomicU64,
    /// What is due later is not begun any more; `u64::MAX` while everything is.
    stop_micros: AtomicU64,
    ended: AtomicBool,
    /// Whether those who were answered have had the time to be delivered.
    had_time: AtomicBool,
}

impl Orders {
    /// Everybody waits.
    pub fn new() -> Orders {
        Orders {
            start_micros: AtomicU64::new(u64::MAX),
            stop_micros: AtomicU64::new(u64::MAX),
            ended: AtomicBool::new(false),
            had_time: AtomicBool::new(false),
        }
    }

    /// The schedule begins then.
    pub fn start(&self, at: Duration) {
        self.start_micros.store(at.as_micros() as u64, Ordering::Relaxed);
    }

    /// When the schedule begins, if it does.
    pub fn started(&self) -> Option<Duration> {
        let micros = self.start_micros.load(Ordering::Relaxed);
        (micros != u64::MAX).then(|| Duration::from_micros(micros))
    }

    /// What is due later than that is not begun any more.
    pub fn stop(&self, at: Duration) {
        self.stop_micros.store(at.as_micros() as u64, Ordering::Relaxed);
    }

    /// See [`Orders::stop`].
    pub fn stopped(&self) -> Option<Duration> {
        let micros = self.stop_micros.load(Ordering::Relaxed);
        (micros != u64::MAX).then(|| Duration::from_micros(micros))
    }

    /// All threads end.
    pub fn end(&self, had_time: bool) {
        self.had_time.store(had_time, Ordering::Relaxed);
        self.ended.store(true, Ordering::Release);
    }

    /// Whether the threads are to end.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// See [`Orders::end`].
    pub fn had_time(&self) -> bool {
        self.had_time.load(Ordering::Relaxed)
    }
}

/// What a thread has noted since it was last asked, part by part of the run.
#[derive(Debug, Default)]
pub struct Books {
    /// The part that is going on by the clock of the thread, which may be ahead of the conductor's: 0 is before the schedule, 1 its first
    /// segment.
    part: usize,
    /// What came of things within it.
    pub tally: Tally,
    /// Parts that are over.
    over: Vec<(usize, Tally)>,
    /// The evidence of violations.
    pub violations: Vec<Violation>,
}

impl Books {
    /// Another part has begun.
    pub fn turn_to(&mut self, part: usize) {
        if part != self.part {
            let over = std::mem::take(&mut self.tally);
            self.over.push((self.part, over));
            self.part = part;
        }
    }

    /// All parts of which something was noted.
    pub fn parts(self) -> impl Iterator<Item = (usize, Tally)> {
        self.over.into_iter().chain([(self.part, self.tally)])
    }
}

/// One thread's side.
#[derive(Debug)]
pub struct Desk {
    books: Mutex<Books>,
    /// Clients whose session stands.
    pub open: AtomicUsize,
    /// Clients that are connecting.
    pub connecting: AtomicUsize,
    /// Clients that have given up for good.
    pub given_up: AtomicUsize,
    /// Messages on their way, once everything was begun that will be; `usize::MAX` before.
    pub on_the_way: AtomicUsize,
    /// CPU time the thread has used, in microseconds.
    pub cpu_micros: AtomicU64,
    /// The thread is done, well or not.
    pub done: AtomicBool,
}

impl Default for Desk {
    fn default() -> Desk {
        Desk {
            books: Mutex::default(),
            open: AtomicUsize::new(0),
            connecting: AtomicUsize::new(0),
            given_up: AtomicUsize::new(0),
            on_the_way: AtomicUsize::new(usize::MAX),
            cpu_micros: AtomicU64::new(0),
            done: AtomicBool::new(false),
        }
    }
}

impl Desk {
    /// The books, to write into.
    pub fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The books so far; the thread begins new ones.
    pub fn take(&self) -> Books {
        let mut books = self.books();
        let part = books.part;
        std::mem::replace(&mut *books, Books { part, ..Books::default() })
    }
}
