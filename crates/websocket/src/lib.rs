//! RFC 6455: bytes to frames and back, for both roles, and the HTTP head that opens a connection.
//!
//! Owns the wire format and its limits. It is sans-IO: bytes and a time go in, events and bytes come out, so the
//! same code runs under the reactor, in the simulator and in a fuzzer. Deliberately knows no user, no encoding of
//! what a message says, no socket, no clock and no random source (a client's mask keys and nonces are arguments).
//!
//! - receiving: [`Receiver::feed`] gives [`Frames`], which yields one [`Event`] after another;
//! - sending: [`encode_frame`], [`FrameBuilder`] (payload written straight into the output), [`encode_close`];
//! - opening, server: [`RequestReader`], [`write_switching_protocols`], [`write_refusal`];
//! - opening, client: [`write_request`], [`ResponseReader`].

#![forbid(unsafe_code)]

mod close;
mod error;
mod frame;
mod mask;
mod receive;
mod send;

mod client;
mod head;
mod key;
mod refusal;
mod request;

pub use client::{HandshakeError, Response, ResponseReader, write_request};
pub use close::{CLOSE_REASON_BYTES_MAX, close_code_allowed};
pub use error::ProtocolError;
pub use frame::{CONTROL_PAYLOAD_BYTES_MAX, FRAME_HEAD_BYTES_MAX, Opcode, Role, Settings};
pub use key::{accept_key, client_key};
pub use receive::{Event, Frames, MessageKind, Pool, Receiver};
pub use refusal::{Refusal, write_refusal};
pub use request::{Progress, RequestReader, Subprotocols, Upgrade, write_switching_protocols};
pub use send::{FrameBuilder, encode_close, encode_frame, encode_head, encode_masked_frame};
