//! Good commands with a few bytes changed: nothing panics, and a frame that is still accepted others can read too.

use protocol::client::encode_request;
use protocol::{Encoding, Request, decode};

use crate::bytes::PAYLOAD_MAX;
use crate::random::Random;
use crate::round_trips::command;

const ROUNDS: usize = 20_000;

/// Bytes that mean something in one of the encodings, so that a change is likely to matter.
const TELLING: &[u8] =
    b"{}[]\",:\\\n\t 01-.eu=\x00\x18\x1b\x40\x5f\x60\x7f\x80\x9f\xa0\xa1\xbf\xc0\xf4\xf8\xff";

fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        let byte = if random.chance(2) {
            TELLING[random.below(TELLING.len() as u64) as usize]
        } else {
            random.next() as u8
        };
        match random.below(4) {
            0 if at < bytes.len() => bytes[at] = byte,
            1 => bytes.insert(at, byte),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 => bytes.truncate(at),
            _ => {}
        }
    }
}

/// How many commands a reader that somebody else wrote finds before it gives up.
fn others_read(encoding: Encoding, frame: &[u8]) -> usize {
    match encoding {
        Encoding::Json => frame
            .split(|byte| *byte == b'\n')
            .filter(|line| {
                serde_json::from_slice::<serde_json::Value>(line).is_ok_and(|value| value.is_object())
            })
            .count(),
        Encoding::Cbor => {
            let mut decoder = minicbor::Decoder::new(frame);
            std::iter::from_fn(|| decoder.skip().ok().filter(|()| decoder.position() <= frame.len())).count()
        }
    }
}

#[test]
fn changed_bytes_are_refused_or_read_alike() {
    let mut random = Random::seeded("changed_bytes_are_refused_or_read_alike");
    let mut accepted = [0; 2];
    for _ in 0..ROUNDS {
        let commands: Vec<_> = (0..=random.below(2)).map(|_| command(&mut random)).collect();
        for encoding in Encoding::ALL {
            let mut frame = Vec::new();
            for command in &commands {
                if !frame.is_empty() {
                    frame.extend_from_slice(encoding.separator());
                }
                let id = protocol::RequestId::new(random.integer());
                encode_request(encoding, &mut frame, &Request { id, command: command.clone() });
            }
            mutate(&mut random, &mut frame);
            let read: Vec<_> = decode(encoding, &frame, PAYLOAD_MAX).collect();
            let good = read.iter().filter(|read| read.is_ok()).count();
            if good == read.len() {
                assert_eq!(good, others_read(encoding, &frame), "{encoding:?}: {}", frame.escape_ascii());
            }
            let fatal = read.iter().position(|read| read.as_ref().is_err_and(|error| error.fatal));
            assert!(fatal.is_none_or(|at| at + 1 == read.len()), "nothing follows a fatal error");
            accepted[usize::from(encoding.is_binary())] += good;
        }
    }
    assert!(accepted.iter().all(|count| *count > 0), "some changes leave a good command");
}
