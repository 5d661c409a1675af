//! Phone numbers.

use std::fmt;

/// A phone number in the international form of E.164, without the plus sign: at most 15 digits, the first of them no zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Phone(pub u64);

impl Phone {
    /// The greatest number of 15 digits.
    pub const MAX: Phone = Phone(999_999_999_999_999);
}

impl fmt::Display for Phone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{}", self.0)
    }
}
