//! CBOR (RFC 8949), a sequence of items per frame.
//!
//! Owns how values look in CBOR. Deliberately knows no verb. Of the whole format it takes what commands need:
//! integers, byte and text strings, arrays, maps, true and false, all of definite length. Tags and floats are
//! passed over where a client ignores them and refused elsewhere; items of indefinite length are refused, so that
//! the end of an item can be found by counting.

mod reader;
mod writer;

pub(crate) use reader::{Reader, item_end};
pub(crate) use writer::Writer;
