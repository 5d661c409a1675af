//! A frame from a client: `protocol::decode` in either encoding, and what the client's side makes of the same bytes.

use protocol::client::{self, encode_request};
use protocol::{Encoding, decode};

const PAYLOAD_BYTES_MAX: usize = 64;

/// A text frame.
pub fn command_json(frame: &[u8]) {
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
    let objects = frame.split(|byte| *byte == b'\n').filter(|line| {
        serde_json::from_slice::<serde_json::Value>(line).is_ok_and(|value| value.is_object())
    });
    assert!(good <= objects.count(), "what is accepted is an object to others too");
    client::decode(Encoding::Json, frame).for_each(drop);
}

/// A binary frame.
pub fn command_cbor(frame: &[u8]) {
    let mut commands = decode(Encoding::Cbor, frame, PAYLOAD_BYTES_MAX);
    let mut items = 0;
    while let Some(read) = commands.next() {
        items += 1;
        match read {
            Ok(request) => {
                let mut written = Vec::new();
                encode_request(Encoding::Cbor, &mut written, &request);
                assert_eq!(
                    decode(Encoding::Cbor, &written, PAYLOAD_BYTES_MAX).next(),
                    Some(Ok(request.clone()))
                );
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
}
