//! Masking (RFC 6455, section 5.3): XOR with a repeating key of four bytes. Masking and unmasking are the same.

/// Applies `key` to `bytes`, whose first byte is byte number `offset` of the payload.
pub(crate) fn apply(key: [u8; 4], offset: usize, bytes: &mut [u8]) {
    let mut rotated = key;
    rotated.rotate_left(offset % 4);
    let [a, b, c, d] = rotated;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (words, tail) = bytes.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, key) in tail.iter_mut().zip(wide.to_ne_bytes()) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_offset_and_length_equals_the_byte_by_byte_definition() {
        let key = [0x37, 0xfa, 0x21, 0x3d];
        let payload: Vec<u8> = (0..40u8).map(|byte| byte.wrapping_mul(7)).collect();
        for from in 0..payload.len() {
            for to in from..=payload.len() {
                let mut bytes = payload[from..to].to_vec();
                apply(key, from, &mut bytes);
                let expected: Vec<u8> = (from..to).map(|index| payload[index] ^ key[index % 4]).collect();
                assert_eq!(bytes, expected, "{from}..{to}");
            }
        }
    }
}
