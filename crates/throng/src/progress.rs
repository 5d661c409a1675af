//! How far something is, for whoever waits: a line that is drawn again on a terminal, plain lines now and then elsewhere.
//!
//! It goes to standard error, so that what is printed stays free of it.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::failure::say;

/// How often a terminal's line is drawn again.
const DRAWN_EVERY: Duration = Duration::from_millis(100);
/// How often a line is written where lines stay. What is over sooner says nothing.
const WRITTEN_EVERY: Duration = Duration::from_secs(10);
/// Signs of a bar.
const BAR: u64 = 30;

/// The line of one task.
pub struct Progress {
    terminal: bool,
    shown: Option<Instant>,
    drawn: bool,
}

impl Progress {
    /// For whatever standard error is.
    pub fn new() -> Progress {
        let terminal = std::io::stderr().is_terminal();
        // On a terminal the first line is drawn at once.
        Progress { terminal, shown: (!terminal).then(Instant::now), drawn: false }
    }

    /// Says how far it is, if it is time to.
    pub fn show(&mut self, what: impl Display) {
        self.show_with(|| what);
    }

    /// The same, for whoever asks so often that the words are only made when they are said.
    pub fn show_with<T: Display>(&mut self, what: impl FnOnce() -> T) {
        let every = if self.terminal { DRAWN_EVERY } else { WRITTEN_EVERY };
        if self.shown.is_some_and(|shown| shown.elapsed() < every) {
            return;
        }
        self.shown = Some(Instant::now());
        let what = what();
        if self.terminal {
            self.drawn = true;
            let _ = write!(std::io::stderr(), "\r{what}\x1b[K");
        } else {
            say(&what.to_string());
        }
    }
}

impl Drop for Progress {
    /// Leaves a terminal as it was.
    fn drop(&mut self) {
        if self.drawn {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// A bar, and how much of how many bytes.
pub fn bar(done: u64, all: u64) -> String {
    format!("{} of {}", share(done, all), bytes(all))
}

/// A bar, and how much of how many things.
pub fn counted(done: u64, all: u64) -> String {
    format!("{} of {all}", share(done, all))
}

fn share(done: u64, all: u64) -> String {
    let share =
        |of: u64| (u128::from(done) * u128::from(of)).checked_div(u128::from(all)).unwrap_or(0) as usize;
    let full = share(BAR).min(BAR as usize);
    let (full_signs, empty) = ("#".repeat(full), ".".repeat(BAR as usize - full));
    format!("[{full_signs}{empty}] {:3} %", share(100).min(100))
}

/// A number of bytes for people, in powers of 1024 (IEC 80000-13).
pub fn bytes(count: u64) -> String {
    let mut value = count as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1_000.0 {
            return if unit == "B" { format!("{count} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1_024.0;
    }
    format!("{value:.1} TiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_fills_with_what_is_done() {
        assert_eq!(bar(0, 2_097_152), "[..............................]   0 % of 2.0 MiB");
        assert_eq!(bar(1_048_576, 2_097_152), "[###############...............]  50 % of 2.0 MiB");
        assert_eq!(bar(2_097_152, 2_097_152), "[##############################] 100 % of 2.0 MiB");
        assert_eq!(counted(1_875, 7_500), "[#######.......................]  25 % of 7500");
        assert_eq!(bar(0, 0), "[..............................]   0 % of 0 B");
        // A database may grow while it is copied.
        assert_eq!(bar(3, 2), "[##############################] 100 % of 2 B");
    }

    #[test]
    fn bytes_are_told_in_the_unit_that_fits() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_536), "1.5 KiB");
        assert_eq!(bytes(64 << 20), "64.0 MiB");
        assert_eq!(bytes(5 << 40), "5.0 TiB");
    }
}
