//! Random streams in random pieces, beside the naive decoder.

use websocket::{Role, Settings};

use crate::random::{Random, for_seeds};
use crate::receive::see_parts;
use crate::reference::decode;

/// Text with characters of every length, so that cuts fall into them.
fn text(random: &mut Random, len: usize) -> Vec<u8> {
    let alphabet = ["a", "é", "€", "\u{10ffff}", "\u{d7ff}", "z"];
    let mut text = String::new();
    while text.len() < len {
        text.push_str(alphabet[random.below(alphabet.len())]);
    }
    text.into_bytes()
}

fn len(random: &mut Random) -> usize {
    match random.below(12) {
        0 => 0,
        1 => *random.pick(&[125, 126, 127, 128]),
        2 => *random.pick(&[65_535, 65_536, 66_000]),
        3 => 200 + random.below(5_000),
        _ => random.below(30),
    }
}

fn push_frame(random: &mut Random, role: Role, out: &mut Vec<u8>, first: u8, payload: &[u8]) {
    out.push(first);
    let mask_bit = if role == Role::Server { 0x80 } else { 0 };
    match payload.len() {
        len @ 0..=125 => out.push(mask_bit | len as u8),
        len @ 126..=65_535 => {
            out.push(mask_bit | 126);
            out.extend((len as u16).to_be_bytes());
        }
        len => {
            out.push(mask_bit | 127);
            out.extend((len as u64).to_be_bytes());
        }
    }
    let mut key = [0; 4];
    if role == Role::Server {
        key = (random.next() as u32).to_ne_bytes();
        out.extend(key);
    }
    out.extend(payload.iter().enumerate().map(|(index, byte)| byte ^ key[index % 4]));
}

/// Some messages, fragmented or not, with control frames anywhere; sometimes damaged, sometimes cut off.
fn stream(random: &mut Random, role: Role) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..1 + random.below(5) {
        let is_text = random.one_in(2);
        let len = len(random);
        let payload = if is_text { text(random, len) } else { vec![random.next() as u8; len] };
        let fragments = 1 + if random.one_in(2) { random.below(6) } else { 0 };
        let mut rest = payload.as_slice();
        for fragment in 0..fragments {
            let last = fragment + 1 == fragments;
            let (now, later) = rest.split_at(if last { rest.len() } else { random.below(rest.len() + 1) });
            rest = later;
            let opcode = if fragment > 0 { 0 } else { 2 - u8::from(is_text) };
            push_frame(random, role, &mut out, opcode | if last { 0x80 } else { 0 }, now);
            if random.one_in(4) {
                let control = *random.pick(&[0x89, 0x8a]);
                let payload = vec![b'c'; random.below(126)];
                push_frame(random, role, &mut out, control, &payload);
            }
        }
    }
    if random.one_in(4) {
        push_frame(random, role, &mut out, 0x88, b"\x0f\xa1because");
    }
    if random.one_in(3) {
        let at = random.below(out.len());
        out[at] ^= 1 << random.below(8);
    }
    if random.one_in(4) {
        let keep = random.below(out.len() + 1);
        out.truncate(keep);
    }
    out
}

fn pieces<'a>(random: &mut Random, mut stream: &'a [u8]) -> Vec<&'a [u8]> {
    let longest = *random.pick(&[1, 3, 20, 1_000, 70_000]);
    // Single bytes of a long stream take long and teach nothing that those of a short one do not.
    let longest = if stream.len() > 5_000 { longest.max(500) } else { longest };
    let mut pieces = Vec::new();
    while !stream.is_empty() {
        let (piece, rest) = stream.split_at((1 + random.below(longest)).min(stream.len()));
        pieces.push(piece);
        stream = rest;
    }
    pieces
}

#[test]
fn every_stream_reads_as_the_naive_decoder_reads_it() {
    for_seeds(1_500, |random| {
        let role = *random.pick(&[Role::Server, Role::Client]);
        let settings = Settings { role, message_bytes_max: 65_600, fragments_max: 4 };
        let stream = stream(random, role);
        let pieces = pieces(random, &stream);
        assert_eq!(see_parts(&settings, pieces), decode(&settings, &stream));
    });
}

#[test]
fn noise_reads_as_the_naive_decoder_reads_it() {
    for_seeds(3_000, |random| {
        let settings = Settings { role: Role::Server, message_bytes_max: 300, fragments_max: 3 };
        // Bytes that are often heads: FIN and an opcode, a mask bit and a short length.
        let stream: Vec<u8> = (0..random.below(80))
            .map(|_| match random.below(3) {
                0 => *random.pick(&[0x00, 0x01, 0x02, 0x80, 0x81, 0x82, 0x88, 0x89, 0x8a]),
                1 => *random.pick(&[0x80, 0x81, 0x82, 0x83, 0xfe, 0xff]),
                _ => random.next() as u8,
            })
            .collect();
        let pieces = pieces(random, &stream);
        assert_eq!(see_parts(&settings, pieces), decode(&settings, &stream));
    });
}
