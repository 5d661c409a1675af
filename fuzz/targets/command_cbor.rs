//! A binary frame from a client: `protocol::decode` in CBOR, and what the client's side makes of the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::client::{self, encode_request};
use protocol::{Encoding, decode};

const PAYLOAD_BYTES_MAX: usize = 64;

fuzz_target!(|frame: &[u8]| {
    let mut commands = decode(Encoding::Cbor, frame, PAYLOAD_BYTES_MAX);
    let mut items = 0;
    while let Some(read) = commands.next() {
        items += 1;
        match read {
            Ok(request) => {
                let mut written = Vec::new();
                encode_request(Encoding::Cbor, &mut written, &request);
                assert_eq!(decode(Encoding::Cbor, &written, PAYLOAD_BYTES_MAX).next(), Some(Ok(request.clone())));
                // The same meaning in the other encoding.
                written.clear();
                encode_request(Encoding::Json, &mut written, &request);
                assert_eq!(decode(Encoding::Json, &written, PAYLOAD_BYTES_MAX).next(), Some(Ok(request)));
            }
            Err(error) if error.fatal => assert!(commands.next().is_none(), "nothing follows a fatal error"),
            Err(_) => {}
        }
    }
    assert!(items <= frame.len(), "an item takes at least a byte");
    client::decode(Encoding::Cbor, frame).for_each(drop);
});
