//! Any bytes as a request head, whole and a byte at a time; what is accepted is safe to act on.

use websocket::{Progress, RequestReader, ResponseReader, Upgrade};

const PATH: &str = "/v1/socket";

/// See the module.
pub fn upgrade_head(data: &[u8]) {
    let mut whole = RequestReader::new();
    let verdict = whole.advance(data, PATH);
    if let Progress::Upgrade(upgrade) = &verdict {
        check(upgrade, data);
    }
    let mut reader = RequestReader::new();
    let pieces = (1..=data.len())
        .map(|len| reader.advance(&data[..len], PATH))
        .find(|progress| *progress != Progress::Incomplete)
        .unwrap_or(Progress::Incomplete);
    match (&verdict, &pieces) {
        (Progress::Upgrade(whole), Progress::Upgrade(pieces)) => {
            assert_eq!(
                (whole.key, whole.host, whole.head_bytes),
                (pieces.key, pieces.host, pieces.head_bytes)
            );
        }
        (whole, pieces) => assert_eq!(whole, pieces),
    }
    // The same bytes as an answer must not harm a client either.
    let _ = ResponseReader::new().advance(data, b"dGhlIHNhbXBsZSBub25jZQ==");
}

/// Nothing that is written into a response or compared can hold a line end, and the head has been strict.
fn check(upgrade: &Upgrade<'_>, data: &[u8]) {
    assert!(upgrade.head_bytes <= 8 * 1024 && upgrade.head_bytes <= data.len());
    let head = &data[..upgrade.head_bytes];
    assert!(head.starts_with(b"GET /v1/socket") && head.ends_with(b"\r\n\r\n"));
    let lines = head.split(|&byte| byte == b'\n').count();
    assert!(lines <= 64 + 3, "the request line, 64 headers, the empty line and what split leaves behind it");
    assert!(head.iter().all(|&byte| byte >= b' ' || b"\t\r\n".contains(&byte)));
    let plain = |text: &str| text.bytes().all(|byte| (b' '..0x7f).contains(&byte) || byte == b'\t');
    assert!(plain(upgrade.host) && upgrade.origin.is_none_or(plain) && upgrade.bearer.is_none_or(plain));
    assert!(
        upgrade.subprotocols().all(|subprotocol| plain(subprotocol) && !subprotocol.contains([' ', ',']))
    );
}
