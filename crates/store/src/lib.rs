//! Storage as data: what may be asked of a store, what it answers, and the contract every engine keeps.
//!
//! Owns the vocabulary between the rules and the engines, a reference engine in memory, and the conformance suite
//! that every engine passes. Deliberately knows no engine and nothing of the rules that ask.

pub mod conformance;
mod digest;
mod engine;
mod memory;
mod reply;
mod request;

pub use digest::digest;
pub use engine::{Engine, Fatal};
pub use memory::{MemoryStore, Taken};
pub use reply::{Cleaned, ConversationRecord, DeviceRecord, Imported, MemberRecord, PendingRecord, Reply};
pub use request::{ImportedConversation, ImportedUser, Request};

/// Most client ids one [`Request::ForgetClientIds`] forgets, the oldest first (of one time, the smallest client id): a bound on
/// how long it holds up its batch.
pub const FORGET_MAX: u32 = 4_096;
