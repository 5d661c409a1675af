//! Two clocks that are never mixed: [`Mono`] orders and times things, [`Wall`] is only told to people.

use std::ops::{Add, Sub};

/// A length of time in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub u64);

impl Span {
    /// So many seconds.
    pub const fn seconds(seconds: u64) -> Span {
        Span(seconds * 1_000)
    }
}

/// Monotonic milliseconds since the process (or the simulated run) began. Every deadline is one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mono(pub u64);

impl Mono {
    /// How long ago `earlier` was; zero when it is still to come.
    pub const fn since(self, earlier: Mono) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Span> for Mono {
    type Output = Mono;
    fn add(self, span: Span) -> Mono {
        Mono(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Mono {
    type Output = Mono;
    fn sub(self, span: Span) -> Mono {
        Mono(self.0.saturating_sub(span.0))
    }
}

/// Unix time in milliseconds. It may jump; it stamps messages and judges tokens, and never orders or times anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Wall(pub u64);

/// Both clocks, read once per turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// The clock of deadlines.
    pub mono: Mono,
    /// The clock of people.
    pub wall: Wall,
}
