//! The two clocks, read once per turn.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use model::{Mono, Now, Wall};

/// Reads both clocks; the monotonic one begins with the process's node.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    began: Instant,
}

impl Clock {
    /// Its monotonic time begins now.
    pub fn start() -> Self {
        Clock { began: Instant::now() }
    }

    /// The time now.
    pub fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        Now { mono: Mono(self.began.elapsed().as_millis() as u64), wall: Wall(wall) }
    }
}
