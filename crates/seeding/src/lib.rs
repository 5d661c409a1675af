//! Who is made for a load test: users, their direct conversations and groups, all derived from a few numbers.
//!
//! Owns the derivation of every id and the order in which all is made. The same numbers give the same accounts on every machine, so whoever
//! drives a load knows them without asking. Deliberately knows no database, no clock and no token.

mod accounts;
mod plan;

pub use accounts::{DEVICE, PHONES, Seed, USERS_MAX, phone};
pub use plan::{Impossible, Numbers, Plan};
