//! The rules: what a partition decides about conversations and sessions.
//!
//! Owns the order of every log, who may see what, where each device stands, and who is told. It takes an [`Input`] and a time and
//! leaves [`Effects`]; it deliberately knows no bytes, no wire types, no engine, no clock, no thread and no random source.
//!
//! Two kinds of owner live in a partition. The owner of a *conversation* (`chat`) is the only writer of its log and cursors. The owner of
//! a *user* (`sessions`) knows the user's devices and live sessions and what was pushed to each. They speak by mail, which is
//! first-in first-out per pair of partitions.

mod chat;
mod devices;
mod effect;
pub mod fault;
mod input;
mod partition;
mod sessions;
mod users;

pub use effect::{Answer, CloseCause, Effect, Effects, Push, Refusal, Ticket};
pub use input::{Act, Delivery, Input, MembershipEvent, Origin, Subject};
pub use partition::{Counts, Partition, Settings};
pub use sessions::SESSION_BYTES;
pub use users::Users;
