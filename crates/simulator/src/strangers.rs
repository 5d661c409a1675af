//! Those who are no clients: HTTP requests that are to be handed over, and others who upgrade and then speak nonsense.

use model::ShardId;
use protocol::client::encode_request;
use protocol::{Command, Encoding, Request, Token};
use websocket::Opcode;

use crate::coverage::{Coverage, Seen};
use crate::random::Random;
use crate::wires::Wires;

/// What the HTTP side must be handed, to the byte.
pub const HTTP_REQUEST: &[u8] =
    b"GET /v1/conversations HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n\r\n";

/// Somebody connects to a shard, says something, and is not interested in an answer.
pub fn visit(wires: &mut Wires, shard: ShardId, random: &mut Random, coverage: &mut Coverage) {
    let id = wires.open(shard, 4_096);
    let Some(wire) = wires.get(id) else { return };
    wire.forgotten = true;
    if random.below(3) == 0 {
        wire.up.extend_from_slice(HTTP_REQUEST);
        return;
    }
    coverage.count(Seen::Strangers);
    let key = websocket::client_key(random.bytes16());
    websocket::write_request(&mut wire.up, "localhost", "/v1/socket", &key, &["throng.v1.json"], &[]);
    let mask = (random.next() as u32).to_be_bytes();
    match random.below(5) {
        // Says nothing more.
        0 => {}
        1 => {
            let noise: Vec<u8> = (0..random.below(200)).map(|_| random.next() as u8).collect();
            wire.up.extend(noise);
        }
        2 => {
            websocket::encode_masked_frame(&mut wire.up, Opcode::Text, true, mask, b"{\"id\":1,\"ping\":{}}")
        }
        3 => websocket::encode_masked_frame(&mut wire.up, Opcode::Text, true, mask, b"not JSON"),
        _ => {
            let mut command = Vec::new();
            let token = Some(Token("a.forged.token".into()));
            encode_request(
                Encoding::Json,
                &mut command,
                &Request { id: None, command: Command::Connect { token } },
            );
            websocket::encode_masked_frame(&mut wire.up, Opcode::Text, true, mask, &command);
        }
    }
}
