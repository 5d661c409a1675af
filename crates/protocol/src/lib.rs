//! What is on the wire: requests, replies, pushes, and the one table of error and close codes.
//!
//! Owns the shape of every verb and its two encodings, JSON and CBOR, which are made from the same types by the
//! same code: a verb is described once, over [`read::Source`] and [`write::Sink`], and each encoding only says
//! how a map, a number, a UUID or a payload looks. Deliberately knows no rule (who may do what), no session, and
//! no frame: it is given the bytes inside one WebSocket message and appends the bytes of another.
//!
//! The server's side is [`decode`], [`encode_reply`] and [`encode_push`]; it refuses whatever it does not know.
//! The other side is [`client`]; it ignores what it does not know.

mod encoding;
mod errors;

mod push;
mod reply;
mod request;

mod decode;
mod encode;

mod cbor;
mod json;
mod read;
mod write;

pub mod client;
pub mod docs;

pub use decode::{Commands, DecodeError, decode};
pub use encode::{encode_push, encode_reply, kind_name};
pub use encoding::Encoding;
pub use errors::{CloseCode, ErrorCode};
pub use push::{ConversationPush, Disconnect, Passing, Push, Receipt};
pub use reply::{Answer, Connected, Page, Refusal, Reply, Sent, Window};
pub use request::{Command, INTEGER_MAX, Request, RequestId, Token};
