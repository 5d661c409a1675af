//! What a checker says when something is wrong.

use std::fmt;

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Its id in the design, or a word for one that has none.
    pub invariant: &'static str,
    /// What was seen.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.what)
    }
}

/// What every check returns.
pub type Checked = Result<(), Violation>;

/// An invariant is broken.
pub fn broken<T>(invariant: &'static str, what: impl Into<String>) -> Result<T, Violation> {
    Err(Violation { invariant, what: what.into() })
}
