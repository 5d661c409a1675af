//! The client's side of the same types: for tests and the load generator.
//!
//! Writes requests, reads replies and pushes. Fields and pushes it does not know are passed over, as every client
//! must do so that the server can grow.

mod decode;
mod encode;

pub use decode::{Incoming, Items, Unreadable, decode};
pub use encode::encode_request;
