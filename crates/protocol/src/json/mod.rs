//! JSON (RFC 8259), one command, reply or push per line.
//!
//! Owns how values look in JSON. Deliberately knows no verb.

mod base64;
mod reader;
mod writer;

pub(crate) use reader::Reader;
pub(crate) use writer::Writer;
