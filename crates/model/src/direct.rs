//! The id of a direct conversation, which follows from its two users.
//!
//! Owns the derivation, so that whoever makes conversations and whoever only knows the users agree. Deliberately knows no store: whether
//! the conversation exists is not its business.

use crate::{ConversationId, UserId};

/// Namespace of direct conversations: `2f6c1b7e-90d4-4c3a-8a51-e7b25d0f9c68`. It never changes, for with it every direct
/// conversation would become another one.
const DIRECT_NAMESPACE: [u8; 16] = 0x2f6c1b7e_90d4_4c3a_8a51_e7b25d0f9c68_u128.to_be_bytes();

/// The direct conversation of two users, the same for both: the UUIDv5 (RFC 9562, section 5.5) in the namespace of direct
/// conversations of the 32 bytes of both ids, the smaller one first.
pub fn direct_id(one: UserId, other: UserId) -> ConversationId {
    let mut sha1 = sha1_smol::Sha1::new();
    sha1.update(&DIRECT_NAMESPACE);
    sha1.update(&one.min(other).0);
    sha1.update(&one.max(other).0);
    let mut id = [0; 16];
    id.copy_from_slice(&sha1.digest().bytes()[..16]);
    id[6] = id[6] & 0x0f | 0x50;
    id[8] = id[8] & 0x3f | 0x80;
    ConversationId(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_has_one_conversation_whoever_asks() {
        let user = |text: &str| text.parse::<UserId>().expect("a UUID");
        let alice = user("b959197e-c92a-5447-9195-94a280f2ac01");
        let other = user("6b1d2c9e-50a4-4a0e-8e39-0a5c7d1f2b33");
        assert_eq!(direct_id(alice, other), direct_id(other, alice));
        // Python: uuid.uuid5 takes text only, so
        // h = hashlib.sha1(namespace.bytes + other.bytes + alice.bytes).digest()[:16]; uuid.UUID(bytes=h, version=5)
        assert_eq!(direct_id(alice, other).to_string(), "4163ecff-4cf5-5c7b-83c3-46ba2b7a5af2");
        assert_ne!(direct_id(alice, other), direct_id(alice, alice));
    }
}
