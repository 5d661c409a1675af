//! What the server answers: the request's id and the verb's result, or why it was refused.

use std::borrow::Cow;

use model::{ConversationId, DeviceId, Entry, Seq, Span, UserId, Wall};

use crate::{ErrorCode, RequestId};

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The request's id. A success without one is not sent; a refusal is.
    pub id: Option<RequestId>,
    /// What came of it.
    pub outcome: Result<Answer<'a>, Refusal<'a>>,
}

/// A verb that was carried out, and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<'a> {
    /// `connect`
    Connect(Connected),
    /// `refresh`
    Refresh {
        /// When the session now ends.
        expires_at: Wall,
    },
    /// `ping`
    Ping,
    /// `send`, durable: committed.
    Send(Sent),
    /// `send` with `passing: true`: handed on.
    SendPassing,
    /// `recv`
    Recv,
    /// `read`
    Read,
    /// `sync`
    Sync(Page<'a>),
}

impl Answer<'_> {
    /// The verb's name on the wire.
    pub const fn verb(&self) -> &'static str {
        match self {
            Answer::Connect(_) => "connect",
            Answer::Refresh { .. } => "refresh",
            Answer::Ping => "ping",
            Answer::Send(_) | Answer::SendPassing => "send",
            Answer::Recv => "recv",
            Answer::Read => "read",
            Answer::Sync(_) => "sync",
        }
    }
}

/// The result of `connect`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connected {
    /// The session's UUID.
    pub session: [u8; 16],
    /// Who this connection is.
    pub user: UserId,
    /// Which of the user's devices.
    pub device: DeviceId,
    /// The server's clock, for showing times only.
    pub server_time: Wall,
    /// A connection quiet for so long is pinged.
    pub ping: Span,
    /// When to come back after the connection breaks without a word.
    pub reconnect: Window,
}

/// The result of a durable `send`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// The message's place in the log.
    pub seq: Seq,
    /// When it was accepted.
    pub ts: Wall,
    /// Whether this answers a repeat; on the wire only when true.
    pub duplicate: bool,
}

/// The result of `sync`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<'a> {
    /// Which log.
    pub conversation: ConversationId,
    /// `messages` on the wire; in the order of the log.
    pub entries: Cow<'a, [Entry]>,
    /// The log's last entry.
    pub head: Seq,
    /// Whether there is more to fetch after the last of these.
    pub more: bool,
}

/// A span of time from which a client picks a random moment to come back, so that not everybody comes at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    /// Not before.
    pub min: Span,
    /// Not after.
    pub max: Span,
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// The row of the table; its name and whether it is temporary follow.
    pub code: ErrorCode,
    /// For the client's programmer; says which field.
    pub message: Cow<'a, str>,
    /// How long to wait before repeating; 0 when that is up to the client.
    pub retry_after: Span,
}

impl<'a> Refusal<'a> {
    /// A refusal that names no time to come back.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'a, str>>) -> Refusal<'a> {
        Refusal { code, message: message.into(), retry_after: Span(0) }
    }
}
