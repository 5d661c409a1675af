//! The checksum in the last eight bytes of every page of the database file.
//!
//! Owns the arithmetic only. Deliberately knows no file.

/// How many bytes at the end of a page hold its checksum.
pub(crate) const CHECKSUM_BYTES: usize = 8;

/// A Fletcher-style sum over 32-bit words as in SQLite's own write-ahead log, begun with the page's place in the file, so that a
/// page that was written to the wrong place or not at all (an old version excepted) does not pass.
fn sum(page: &[u8], offset: u64) -> [u8; CHECKSUM_BYTES] {
    let (mut first, mut second) = (0x7468_726f ^ offset as u32, 0x6e67_7061 ^ (offset >> 32) as u32);
    for pair in page.chunks_exact(8) {
        let (left, right) = pair.split_at(4);
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        first = first.wrapping_add(word(left)).wrapping_add(second);
        second = second.wrapping_add(word(right)).wrapping_add(first);
    }
    let mut bytes = [0; CHECKSUM_BYTES];
    bytes[..4].copy_from_slice(&first.to_le_bytes());
    bytes[4..].copy_from_slice(&second.to_le_bytes());
    bytes
}

/// Writes the checksum of the page that goes to `offset` into its last bytes.
pub(crate) fn seal(page: &mut [u8], offset: u64) {
    let (content, end) = page.split_at_mut(page.len() - CHECKSUM_BYTES);
    end.copy_from_slice(&sum(content, offset));
}

/// Whether a page read from `offset` is as it was written. A page of nothing but zeros is what a file has where it was extended and
/// never written (SQLite does so with pages that were freed before their first commit), and passes.
pub(crate) fn holds(page: &[u8], offset: u64) -> bool {
    let (content, end) = page.split_at(page.len() - CHECKSUM_BYTES);
    sum(content, offset) == *end || page.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Vec<u8> {
        let mut page: Vec<u8> = (0..4096_u32).map(|index| (index * 7 + index / 256) as u8).collect();
        seal(&mut page, 8192);
        page
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let mut page = page();
        assert!(holds(&page, 8192));
        for bit in 0..page.len() * 8 {
            page[bit / 8] ^= 1 << (bit % 8);
            assert!(!holds(&page, 8192), "bit {bit}");
            page[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn a_page_in_the_wrong_place_is_noticed() {
        let page = page();
        assert!(!holds(&page, 0));
        assert!(!holds(&page, 4096));
        assert!(!holds(&page, 8192 + (1 << 32)));
    }

    #[test]
    fn a_page_that_was_cut_off_is_noticed_and_a_hole_is_not() {
        let mut cut = page();
        cut[2048..].fill(0);
        assert!(!holds(&cut, 8192));
        assert!(holds(&[0; 4096], 8192));
    }
}
