//! The payload of a close frame: a code and a reason, or nothing.

use crate::ProtocolError;

/// Longest reason in bytes: a control frame's 125 less the code.
pub const CLOSE_REASON_BYTES_MAX: usize = 123;

/// Whether a peer may put this code into a close frame: those RFC 6455 defines for the wire, the ones registered
/// with IANA since (1012–1014), and the ranges of libraries and applications. 1005, 1006 and 1015 are only for
/// reporting locally.
pub fn close_code_allowed(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

/// Takes a close payload apart.
pub(crate) fn parse(payload: &[u8]) -> Result<(Option<u16>, &str), ProtocolError> {
    match payload {
        [] => Ok((None, "")),
        [_] => Err(ProtocolError::TruncatedCloseCode),
        [high, low, reason @ ..] => {
            let code = u16::from_be_bytes([*high, *low]);
            if !close_code_allowed(code) {
                return Err(ProtocolError::InvalidCloseCode(code));
            }
            let reason = std::str::from_utf8(reason).map_err(|_| ProtocolError::InvalidUtf8)?;
            Ok((Some(code), reason))
        }
    }
}

/// The reason cut to what fits a close frame, never inside a character.
pub(crate) fn fitting(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(CLOSE_REASON_BYTES_MAX)]
}
