//! Which of the two encodings a connection speaks.

/// How commands, replies and pushes are written on one connection; chosen by its subprotocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Text frames: one or more JSON objects (RFC 8259) separated by `\n`.
    Json,
    /// Binary frames: a CBOR sequence (RFC 8742) of maps.
    Cbor,
}

impl Encoding {
    /// Both of them, the preferred one when a client offers both first.
    pub const ALL: [Encoding; 2] = [Encoding::Json, Encoding::Cbor];

    /// The name in `Sec-WebSocket-Protocol`.
    pub const fn subprotocol(self) -> &'static str {
        match self {
            Encoding::Json => "throng.v1.json",
            Encoding::Cbor => "throng.v1.cbor",
        }
    }

    /// The encoding of a subprotocol; subprotocol names are compared exactly.
    pub fn from_subprotocol(name: &str) -> Option<Encoding> {
        Encoding::ALL.into_iter().find(|encoding| encoding.subprotocol() == name)
    }

    /// Whether its frames are binary ones (otherwise text).
    pub const fn is_binary(self) -> bool {
        matches!(self, Encoding::Cbor)
    }

    /// What stands between two items of one frame.
    pub const fn separator(self) -> &'static [u8] {
        match self {
            Encoding::Json => b"\n",
            Encoding::Cbor => b"",
        }
    }
}
