//! What a peer can do wrong, and the close code that tells it so.

use std::fmt;

/// The peer broke RFC 6455 or a limit; the connection ends with [`ProtocolError::close_code`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolError {
    /// A reserved bit is set, and no extension was negotiated that would give it a meaning.
    ReservedBit,
    /// The opcode is one of 3–7 or 11–15.
    ReservedOpcode(u8),
    /// A client sent a frame without a mask.
    Unmasked,
    /// A server sent a frame with a mask.
    Masked,
    /// The length is not in the shortest encoding that holds it.
    LengthNotMinimal,
    /// The most significant bit of a 64-bit length is set.
    LengthReservedBit,
    /// A control frame without FIN.
    ControlFragmented,
    /// A control frame with more than 125 bytes of payload.
    ControlTooLong,
    /// A continuation frame, but no message has begun.
    UnexpectedContinuation,
    /// A new message began before the FIN of the one before it.
    ExpectedContinuation,
    /// A close payload of one byte: neither empty nor a whole code.
    TruncatedCloseCode,
    /// A close code that must not be sent.
    InvalidCloseCode(u16),
    /// A text message or a close reason that is not UTF-8.
    InvalidUtf8,
    /// The message is longer than the settings allow.
    MessageTooLong,
    /// The message is in more fragments than the settings allow.
    TooManyFragments,
}

impl ProtocolError {
    /// The code to close the connection with (RFC 6455, section 7.4.1).
    pub fn close_code(self) -> u16 {
        match self {
            ProtocolError::InvalidUtf8 => 1007,
            ProtocolError::TooManyFragments => 1008,
            ProtocolError::MessageTooLong => 1009,
            _ => 1002,
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProtocolError::ReservedBit => "reserved bit set",
            ProtocolError::ReservedOpcode(opcode) => return write!(f, "reserved opcode {opcode}"),
            ProtocolError::Unmasked => "client frame without a mask",
            ProtocolError::Masked => "server frame with a mask",
            ProtocolError::LengthNotMinimal => "length not in its shortest encoding",
            ProtocolError::LengthReservedBit => "most significant bit of the length set",
            ProtocolError::ControlFragmented => "fragmented control frame",
            ProtocolError::ControlTooLong => "control frame longer than 125 bytes",
            ProtocolError::UnexpectedContinuation => "continuation of no message",
            ProtocolError::ExpectedContinuation => "new message inside a fragmented one",
            ProtocolError::TruncatedCloseCode => "close payload of one byte",
            ProtocolError::InvalidCloseCode(code) => return write!(f, "close code {code} may not be sent"),
            ProtocolError::InvalidUtf8 => "text that is not UTF-8",
            ProtocolError::MessageTooLong => "message too long",
            ProtocolError::TooManyFragments => "message in too many fragments",
        })
    }
}

impl std::error::Error for ProtocolError {}
