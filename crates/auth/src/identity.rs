//! Who a valid token says is speaking, and how foreign names become ids.

use std::fmt;

use aws_lc_rs::digest;
use model::{DeviceKey, UserId, Wall};

/// Namespace of users whose `sub` is no UUID: the user is the UUIDv5 (RFC 9562, section 5.5) of `sub` in it.
///
/// `9ea01dcc-0b20-4a0e-9d33-1c6f7b2a5d41`. It never changes: with it, every such user would become another one.
pub const USER_NAMESPACE: [u8; 16] =
    [0x9e, 0xa0, 0x1d, 0xcc, 0x0b, 0x20, 0x4a, 0x0e, 0x9d, 0x33, 0x1c, 0x6f, 0x7b, 0x2a, 0x5d, 0x41];

/// Namespace of sessions whose `sid` is no UUID, in the same way: `5d0f3b1e-6c77-4f52-8a8e-f2c94e0b7713`.
pub const SESSION_NAMESPACE: [u8; 16] =
    [0x5d, 0x0f, 0x3b, 0x1e, 0x6c, 0x77, 0x4f, 0x52, 0x8a, 0x8e, 0xf2, 0xc9, 0x4e, 0x0b, 0x77, 0x13];

/// One log-in, as the issuer numbers them: what a revocation names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub [u8; 16]);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&UserId(self.0), f)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Who is speaking, and until when that may be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The user and the device.
    pub device: DeviceKey,
    /// The session.
    pub session: SessionId,
    /// When the token was made, by the issuer's clock.
    pub issued_at: Wall,
    /// When the token stops being valid: the first moment at which it is refused.
    pub expires_at: Wall,
}

/// The user a `sub` means: a UUID as it is, anything else through [`USER_NAMESPACE`].
pub fn user_id(sub: &str) -> UserId {
    sub.parse().unwrap_or_else(|_| UserId(uuid_v5(&USER_NAMESPACE, sub)))
}

/// The session a `sid` means, likewise.
pub(crate) fn session_id(sid: &str) -> SessionId {
    match sid.parse::<UserId>() {
        Ok(uuid) => SessionId(uuid.0),
        Err(_) => SessionId(uuid_v5(&SESSION_NAMESPACE, sid)),
    }
}

/// UUIDv5: the first 16 bytes of SHA-1 over namespace and name, with version and variant put in.
fn uuid_v5(namespace: &[u8; 16], name: &str) -> [u8; 16] {
    let mut hash = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    hash.update(namespace);
    hash.update(name.as_bytes());
    let hash = hash.finish();
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&hash.as_ref()[..16]);
    uuid[6] = uuid[6] & 0x0f | 0x50;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_the_uuids_of_rfc_9562() {
        // RFC 9562, appendix A.4: "www.example.com" in the DNS namespace.
        let dns: UserId = "6ba7b810-9dad-11d1-80b4-00c04fd430c8".parse().expect("a UUID");
        let made = UserId(uuid_v5(&dns.0, "www.example.com"));
        assert_eq!(made.to_string(), "2ed6657d-e927-568b-95e1-2665a8aea6a2");
    }

    #[test]
    fn the_namespaces_are_those_in_the_documentation() {
        assert_eq!(UserId(USER_NAMESPACE).to_string(), "9ea01dcc-0b20-4a0e-9d33-1c6f7b2a5d41");
        assert_eq!(UserId(SESSION_NAMESPACE).to_string(), "5d0f3b1e-6c77-4f52-8a8e-f2c94e0b7713");
    }

    #[test]
    fn a_uuid_is_taken_as_it_is() {
        let text = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";
        assert_eq!(user_id(text).to_string(), text);
        assert_eq!(session_id(text).to_string(), text);
        assert_ne!(user_id("alice").0, session_id("alice").0);
    }
}
