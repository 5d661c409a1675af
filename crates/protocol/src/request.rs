//! What a client asks, as sent: an id and exactly one verb.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU64;

use model::{ClientId, ConversationId, Payload, Seq};

/// The greatest integer anywhere in the protocol, 2^53 - 1: a client whose only number is a double (JavaScript)
/// holds every integer up to it exactly.
pub const INTEGER_MAX: u64 = (1 << 53) - 1;

/// What the client calls a request, so that it knows the reply: 1 to [`INTEGER_MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(NonZeroU64);

impl RequestId {
    /// The id, if it is in range.
    pub fn new(id: u64) -> Option<RequestId> {
        NonZeroU64::new(id).filter(|id| id.get() <= INTEGER_MAX).map(RequestId)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The number, with its proof that it is not 0.
    pub const fn nonzero(self) -> NonZeroU64 {
        self.0
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A bearer token. Its text is a secret, so it is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token<'a>(pub Cow<'a, str>);

impl fmt::Debug for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(secret)")
    }
}

/// One command of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    /// Without one there is no reply, unless the request fails.
    pub id: Option<RequestId>,
    /// What is asked.
    pub command: Command<'a>,
}

/// A verb with its fields. [`send`](Command::Send) says whether it is the durable or the passing contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command<'a> {
    /// Names the user and device of this connection; once, first.
    Connect {
        /// Left out when the upgrade request carried it.
        token: Option<Token<'a>>,
    },
    /// Extends the session with a fresh token of the same user and device.
    Refresh {
        /// The fresh token.
        token: Token<'a>,
    },
    /// Answered, and nothing else.
    Ping,
    /// A message for the log; answered after the commit.
    Send {
        /// Where to.
        conversation: ConversationId,
        /// What the sender calls this message.
        client_id: ClientId,
        /// The opaque bytes.
        payload: Payload,
    },
    /// `send` with `passing: true`: to the members who are online now, never stored.
    SendPassing {
        /// Where to.
        conversation: ConversationId,
        /// The opaque bytes.
        payload: Payload,
    },
    /// This device has everything up to `seq`, safely on its side.
    Recv {
        /// Which log.
        conversation: ConversationId,
        /// From 1.
        seq: Seq,
    },
    /// This user has read up to `seq`.
    Read {
        /// Which log.
        conversation: ConversationId,
        /// From 1.
        seq: Seq,
    },
    /// A page of what is still kept.
    Sync {
        /// Which log.
        conversation: ConversationId,
        /// The page begins after this place; 0 begins at the first entry.
        after: Seq,
        /// Most entries in the page, 1 to [`model::limits::SYNC_LIMIT_MAX`].
        limit: u32,
    },
}

impl Command<'_> {
    /// The verb's name on the wire.
    pub const fn verb(&self) -> &'static str {
        match self {
            Command::Connect { .. } => "connect",
            Command::Refresh { .. } => "refresh",
            Command::Ping => "ping",
            Command::Send { .. } | Command::SendPassing { .. } => "send",
            Command::Recv { .. } => "recv",
            Command::Read { .. } => "read",
            Command::Sync { .. } => "sync",
        }
    }
}
