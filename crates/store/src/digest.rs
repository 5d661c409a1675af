//! How a repeat is told from another message under the same client id.

use std::hash::Hasher;

use model::ConversationId;
use siphasher::sip128::{Hasher128, SipHasher13};

/// 128 bits over conversation and payload (SipHash-1-3 with a fixed key). Only a sender's own messages are ever compared, so
/// a sender who finds a collision deceives nobody else.
pub fn digest(conversation: ConversationId, payload: &[u8]) -> [u8; 16] {
    let mut hasher = SipHasher13::new_with_key(b"throng client id");
    hasher.write(&conversation.0);
    hasher.write(payload);
    hasher.finish128().as_bytes()
}
