//! People who chat as the protocol page asks of clients, whatever becomes of the server or of the wire meanwhile: they remember their
//! cursors, ignore what is pushed again but acknowledge it again, acknowledge after storing, and repeat a send without an answer.
//!
//! Owns how long they go on and what all of them go by. Who there is and who talks to whom is in `people`, what one device does and has
//! seen in `person`, what must be true in the end in `check`.

mod check;
mod people;
mod person;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

pub use check::{agree, cursors_are_right};
pub use people::{Talk, crowd, pairs};
pub use person::Person;

/// From the start of the traffic to its end, unless said otherwise; only a server that is stuck takes so long.
const TOO_LONG: Duration = Duration::from_secs(180);

/// What all of them go by.
pub struct Traffic {
    address: SocketAddr,
    pause: Duration,
    words_max: u64,
    sending: AtomicBool,
    given_up: AtomicBool,
    answered: AtomicU64,
    end: Instant,
}

/// Makes the others stop when one fails, so that the failure is seen at once.
struct Alarm<'a>(&'a Traffic);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.given_up.store(true, SeqCst);
        }
    }
}

impl Traffic {
    /// Traffic to a server there, each person as fast as answers come.
    pub fn new(address: SocketAddr) -> Traffic {
        Traffic {
            address,
            pause: Duration::ZERO,
            words_max: 43,
            sending: AtomicBool::new(true),
            given_up: AtomicBool::new(false),
            answered: AtomicU64::new(0),
            end: Instant::now() + TOO_LONG,
        }
    }

    /// It may take so long.
    pub fn lasting(mut self, at_most: Duration) -> Traffic {
        self.end = Instant::now() + at_most;
        self
    }

    /// Everybody pauses for so long after each message.
    pub fn pausing(mut self, pause: Duration) -> Traffic {
        self.pause = pause;
        self
    }

    /// The longest payloads have so many words of 5 to 10 bytes.
    pub fn with_words(mut self, words_max: u64) -> Traffic {
        self.words_max = words_max;
        self
    }

    /// From now on nothing new is sent; what is without an answer still gets one.
    pub fn stop_sending(&self) {
        self.sending.store(false, SeqCst);
    }

    /// Waits until so many sends more have been answered.
    pub fn await_answers(&self, more: u64) {
        let wanted = self.answered.load(SeqCst) + more;
        while self.answered.load(SeqCst) < wanted {
            self.go_on(|| format!("{more} answers are awaited"));
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits for so long, or until somebody fails.
    pub fn wait(&self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.go_on(|| "the harness waits".into());
            let left = end.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }

    /// How many sends have been answered.
    pub fn answered(&self) -> u64 {
        self.answered.load(SeqCst)
    }

    /// Fails when somebody else has, or when it takes too long; then `state` tells what is awaited.
    fn go_on(&self, state: impl FnOnce() -> String) {
        if self.given_up.load(SeqCst) {
            // Without a word: who has failed has said so.
            std::panic::resume_unwind(Box::new("somebody else has failed"));
        }
        assert!(Instant::now() < self.end, "the traffic does not come to its end: {}", state());
    }
}

/// Lets all of them chat, each on a thread of its own, while `meanwhile` happens to the server; gives them back, with what that
/// returned, when everything is answered and has arrived.
pub fn chat<T>(traffic: &Traffic, people: Vec<Person>, meanwhile: impl FnOnce() -> T) -> (Vec<Person>, T) {
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            people.into_iter().map(|person| scope.spawn(move || person.run(traffic))).collect();
        let alarm = Alarm(traffic);
        let left = meanwhile();
        drop(alarm);
        (threads.into_iter().map(|thread| thread.join().expect("nobody fails")).collect(), left)
    })
}
