//! A text frame from a client: `protocol::decode` in JSON, and what the client's side makes of the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::client::{self, encode_request};
use protocol::{Encoding, decode};

const PAYLOAD_BYTES_MAX: usize = 64;

fuzz_target!(|frame: &[u8]| {
    let mut good = 0;
    for read in decode(Encoding::Json, frame, PAYLOAD_BYTES_MAX) {
        match read {
            Ok(request) => {
                good += 1;
                let mut written = Vec::new();
                encode_request(Encoding::Json, &mut written, &request);
                let mut again = decode(Encoding::Json, &written, PAYLOAD_BYTES_MAX);
                assert_eq!(again.next(), Some(Ok(request)), "what was read can be written and read");
                assert_eq!(again.next(), None);
            }
            Err(error) => assert!(!error.fatal, "a line never spoils the next one"),
        }
    }
    let objects = frame
        .split(|byte| *byte == b'\n')
        .filter(|line| serde_json::from_slice::<serde_json::Value>(line).is_ok_and(|value| value.is_object()));
    assert!(good <= objects.count(), "what is accepted is an object to others too");
    client::decode(Encoding::Json, frame).for_each(drop);
});
