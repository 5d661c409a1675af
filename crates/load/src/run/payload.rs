//! What the messages carry: bytes that look like ciphertext, and that whoever receives them can check.
//!
//! Everything follows from the run, the pair and the message's number, so nothing has to be kept of what was sent. A payload begins with a
//! nonce of 8 bytes; behind it, under a key stream made of the nonce, come pair, number and a checksum of all the rest; then as many
//! bytes of the stream as its size asks for. Deliberately knows no conversation and nothing of delivery.

use std::fmt;

use model::{ClientId, Payload};

use super::chance::{Chance, mixed};

/// The smallest payload: nonce, pair, number and checksum.
pub const SIZE_MIN: usize = 24;

/// How long payloads are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// As of people who chat: half are short lines, one in a hundred is a long text or a small thumbnail.
    Chat,
    /// Every length of this range as often as any other; both ends are in it.
    Between(usize, usize),
}

/// The distribution of [`Sizes::Chat`]: so many of a hundred are at most that long, and longer than those before. A ciphertext is some
/// 40 to 100 bytes longer than its text, so nothing is shorter than 80. The mean is 438 bytes.
const CHAT: [(u64, usize); 5] = [(50, 160), (80, 320), (95, 1_024), (99, 4_096), (100, 16_384)];
const CHAT_MIN: usize = 80;

impl Sizes {
    fn draw(self, chance: &mut Chance) -> usize {
        let between = |chance: &mut Chance, from: usize, to: usize| {
            from + chance.below((to - from + 1) as u64) as usize
        };
        match self {
            Sizes::Between(from, to) => between(chance, from, to),
            Sizes::Chat => {
                let (share, mut from) = (chance.below(100), CHAT_MIN);
                for (below, to) in CHAT {
                    if share < below {
                        return between(chance, from, to);
                    }
                    from = to + 1;
                }
                from
            }
        }
    }
}

/// How the payloads and names of a run's messages are made.
#[derive(Debug, Clone, Copy)]
pub struct Recipe {
    /// What tells this run from others.
    pub run: u64,
    /// How long payloads are.
    pub sizes: Sizes,
}

/// What a payload says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carried {
    /// The pair that sent it.
    pub pair: u32,
    /// Its number within the pair.
    pub number: u32,
    /// Whether all its bytes fit its checksum.
    pub whole: bool,
}

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = if self.whole { "whole" } else { "damaged" };
        write!(f, "pair {} message {}, {whole}", self.pair, self.number)
    }
}

impl Recipe {
    /// The payload of a pair's message.
    pub fn payload(&self, pair: u32, number: u32) -> Payload {
        Payload::from(self.bytes(pair, number))
    }

    fn bytes(&self, pair: u32, number: u32) -> Vec<u8> {
        let nonce = mixed(self.run ^ mixed(u64::from(pair) << 32 | u64::from(number)));
        let size = self.sizes.draw(&mut Chance::new(nonce)).max(SIZE_MIN);
        let mut stream = Chance::new(mixed(nonce ^ self.run));
        let mut bytes = Vec::with_capacity(size + 7);
        bytes.extend_from_slice(&nonce.to_le_bytes());
        bytes.extend_from_slice(&(stream.draw() ^ (u64::from(pair) << 32 | u64::from(number))).to_le_bytes());
        let under_checksum = stream.draw();
        bytes.extend_from_slice(&[0; 8]);
        while bytes.len() < size {
            bytes.extend_from_slice(&stream.draw().to_le_bytes());
        }
        bytes.truncate(size);
        let checksum = checksum(&bytes) ^ under_checksum;
        bytes[16..24].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads what a payload says of itself; `None` when it is too short to be one of ours.
    pub fn read(&self, payload: &[u8]) -> Option<Carried> {
        let (nonce, rest) = payload.split_first_chunk::<8>()?;
        let (header, rest) = rest.split_first_chunk::<8>()?;
        let (sum, _) = rest.split_first_chunk::<8>()?;
        let mut stream = Chance::new(mixed(u64::from_le_bytes(*nonce) ^ self.run));
        let header = u64::from_le_bytes(*header) ^ stream.draw();
        let whole = u64::from_le_bytes(*sum) ^ stream.draw() == checksum(payload);
        Some(Carried { pair: (header >> 32) as u32, number: header as u32, whole })
    }

    /// Compares what came with what was sent; the difference in words when there is one.
    pub fn difference(&self, pair: u32, number: u32, came: &[u8]) -> Option<String> {
        let sent = self.bytes(pair, number);
        if sent == came {
            return None;
        }
        let carried =
            self.read(came).map_or("too short to be one of ours".to_owned(), |carried| carried.to_string());
        let first =
            sent.iter().zip(came).position(|(sent, came)| sent != came).unwrap_or(sent.len().min(came.len()));
        Some(format!(
            "{} bytes were sent and {} came, which differ from byte {first} on; what came calls itself: {carried}",
            sent.len(),
            came.len()
        ))
    }

    /// The sender's name for a message: a UUIDv7 (RFC 9562, section 5.7) of the wall clock at which it is due, the run, the pair and the
    /// number. They ascend, as those of real clients do.
    pub fn client_id(&self, due_ms: u64, pair: u32, number: u32) -> ClientId {
        let mut id = [0; 16];
        id[..6].copy_from_slice(&due_ms.to_be_bytes()[2..]);
        id[6..8].copy_from_slice(&(0x7000 | self.run as u16 & 0x0fff).to_be_bytes());
        id[8..12].copy_from_slice(&(0x8000_0000 | pair & 0x3fff_ffff).to_be_bytes());
        id[12..].copy_from_slice(&number.to_be_bytes());
        ClientId(id)
    }

    /// Pair and number of a name, if it may be one of this run.
    pub fn named(&self, client_id: ClientId) -> Option<(u32, u32)> {
        let ClientId(id) = client_id;
        let ours =
            u16::from_be_bytes([id[6], id[7]]) == 0x7000 | self.run as u16 & 0x0fff && id[8] & 0xc0 == 0x80;
        let word = |at: usize| u32::from_be_bytes([id[at], id[at + 1], id[at + 2], id[at + 3]]);
        ours.then(|| (word(8) & 0x3fff_ffff, word(12)))
    }
}

/// Of all bytes but those of the checksum itself.
fn checksum(bytes: &[u8]) -> u64 {
    let mut sum = mixed(bytes.len() as u64);
    for part in [&bytes[..16], &bytes[24..]] {
        for word in part.chunks(8) {
            let mut padded = [0; 8];
            padded[..word.len()].copy_from_slice(word);
            sum = mixed(sum ^ u64::from_le_bytes(padded)).wrapping_add(sum.rotate_left(23));
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECIPE: Recipe = Recipe { run: 0x1234_5678_9abc_def0, sizes: Sizes::Chat };

    #[test]
    fn what_is_sent_is_what_is_expected() {
        for (pair, number) in [(0, 0), (7, 3), (u32::MAX, u32::MAX)] {
            let payload = RECIPE.payload(pair, number);
            assert_eq!(RECIPE.read(&payload), Some(Carried { pair, number, whole: true }));
            assert_eq!(RECIPE.difference(pair, number, &payload), None);
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let recipe = Recipe { sizes: Sizes::Between(97, 97), ..RECIPE };
        let payload = recipe.payload(5, 6);
        for bit in 0..8 * payload.len() {
            let mut bytes = payload.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!recipe.read(&bytes).expect("long enough").whole, "bit {bit}");
            assert!(recipe.difference(5, 6, &bytes).is_some(), "bit {bit}");
        }
        for len in 0..payload.len() {
            assert!(recipe.difference(5, 6, &payload[..len]).is_some(), "cut to {len}");
            assert!(recipe.read(&payload[..len]).is_none_or(|carried| !carried.whole), "cut to {len}");
        }
    }

    #[test]
    fn a_difference_says_what_came_instead() {
        let recipe = Recipe { sizes: Sizes::Between(100, 100), ..RECIPE };
        let other = recipe.payload(5, 7);
        assert_eq!(
            recipe.difference(5, 6, &other).expect("another message"),
            "100 bytes were sent and 100 came, which differ from byte 0 on; what came calls itself: pair 5 message 7, whole"
        );
    }

    #[test]
    fn sizes_keep_to_their_bounds_and_shares() {
        let mut chance = Chance::new(1);
        let sizes: Vec<usize> = (0..20_000).map(|_| Sizes::Chat.draw(&mut chance)).collect();
        let share =
            |at_most: usize| sizes.iter().filter(|size| **size <= at_most).count() * 100 / sizes.len();
        assert!(
            (48..=52).contains(&share(160)) && (78..=82).contains(&share(320)),
            "{} {}",
            share(160),
            share(320)
        );
        assert_eq!((share(79), share(16_384)), (0, 100));
        let drawn: Vec<usize> = (0..1_000).map(|_| Sizes::Between(30, 33).draw(&mut chance)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&30), Some(&33)));
    }

    #[test]
    fn names_ascend_and_name_pair_and_number() {
        let name = RECIPE.client_id(1_764_500_000_000, 9, 77);
        assert_eq!(RECIPE.named(name), Some((9, 77)));
        assert_eq!(&name.to_string()[14..15], "7", "version");
        assert!(name < RECIPE.client_id(1_764_500_000_001, 0, 0));
        let other = Recipe { run: RECIPE.run ^ 1, ..RECIPE };
        assert_eq!(other.named(name), None);
    }
}
