//! The ids: user by number, phone number, direct conversation, group.

use std::hash::Hasher;
use std::ops::RangeInclusive;

use model::{ConversationId, DeviceId, Phone, UserId, direct_id};
use siphasher::sip128::{Hasher128, SipHasher13};

/// The only device of every seeded user.
pub const DEVICE: DeviceId = DeviceId(1);

/// The phone numbers of seeded users, and of nobody else: the country code 999 belongs to no country (ITU-T E.164, list of assigned country
/// codes), so no person has one.
pub const PHONES: RangeInclusive<Phone> = Phone(999_000_000_000)..=Phone(999_999_999_999);

/// As many as there are phone numbers.
pub const USERS_MAX: u64 = 1_000_000_000;
const _: () = assert!(PHONES.start().0 + USERS_MAX == PHONES.end().0 + 1);

/// The phone number of user `n`, whatever the seed.
pub fn phone(n: u64) -> Phone {
    debug_assert!(n < USERS_MAX);
    Phone(PHONES.start().0 + n)
}

/// What all ids follow from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// User `n`. Greater numbers have greater ids, so that a database is filled from one side.
    pub fn user(self, n: u64) -> UserId {
        UserId(self.id(b"throng seed user", n))
    }

    /// Direct conversation `c`: of the users `2c` and `2c + 1`.
    pub fn direct(self, c: u64) -> ConversationId {
        direct_id(self.user(2 * c), self.user(2 * c + 1))
    }

    /// Group `g`.
    pub fn group(self, g: u64) -> ConversationId {
        ConversationId(self.id(b"throng seed pack", g))
    }

    /// A UUID of version 8 (RFC 9562, section 5.8): 74 bits of a hash of the seed (SipHash-1-3-128 under the key `kind`), then the number in 48
    /// bits.
    fn id(self, kind: &[u8; 16], number: u64) -> [u8; 16] {
        let mut hasher = SipHasher13::new_with_key(kind);
        hasher.write(&self.0.to_le_bytes());
        let mut id = hasher.finish128().as_bytes();
        id[6] = id[6] & 0x0f | 0x80;
        id[8] = id[8] & 0x3f | 0x80;
        id[10..].copy_from_slice(&number.to_be_bytes()[2..]);
        id
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_uuids_of_version_8_in_the_order_of_the_numbers() {
        for seed in [0, 1, u64::MAX].map(Seed) {
            let numbers = [0, 1, 255, 256, 65_536, USERS_MAX - 1];
            let ids = numbers.map(|n| seed.user(n));
            assert!(ids.is_sorted());
            for (n, id) in numbers.into_iter().zip(ids) {
                // RFC 9562: the version is the first digit of the third group, the variant the first two bits of the fourth.
                let text = id.to_string();
                assert!(text[14..].starts_with('8') && "89ab".contains(&text[19..20]), "{text}");
                assert!(text.ends_with(&format!("{n:012x}")), "{text}");
            }
        }
    }

    #[test]
    fn another_seed_or_another_kind_is_another_id() {
        let mut ids = BTreeSet::new();
        for seed in (0..100).map(Seed) {
            ids.extend([seed.user(7).0, seed.user(8).0, seed.group(7).0, seed.group(8).0]);
        }
        assert_eq!(ids.len(), 400);
    }

    #[test]
    fn what_was_derived_once_is_derived_for_ever() {
        // Whoever changes these makes seeded databases and saved tokens strangers to each other.
        // The values come from another implementation of SipHash-1-3-128, in Python, written after the paper.
        assert_eq!(Seed(1).user(0).to_string(), "527b931e-1195-8163-957c-000000000000");
        assert_eq!(Seed(1).group(2).to_string(), "a6788347-6188-8a34-9658-000000000002");
    }

    #[test]
    fn a_direct_conversation_is_the_one_the_server_would_make() {
        let seed = Seed(3);
        assert_eq!(seed.direct(2), direct_id(seed.user(5), seed.user(4)));
    }

    #[test]
    fn phone_numbers_lie_in_the_reserved_range() {
        assert_eq!(phone(0).to_string(), "+999000000000");
        assert_eq!(phone(USERS_MAX - 1), *PHONES.end());
    }
}
