//! However a client's bytes are cut, it is told the same and the same has happened: row 26 of the list of attacks.

use model::{ConversationId, Seq};
use shard::Close;

use crate::client::{self, Heard};
use crate::names;
use crate::script::{Run, runs};
use crate::world::HOME;

/// What a client sends: lines of a script in either encoding, and how the connection ends.
struct Stream {
    name: &'static str,
    lines: &'static [&'static str],
    /// How many replies and pushes it gets, `disconnect` among them, and but for those of `connect` when it is closed.
    told: usize,
    /// The code of the close frame.
    code: Option<u16>,
}

const CONNECT: &str = r#"{"id":1,"connect":{"token":"$token alice/1"}}"#;

const STREAMS: [Stream; 10] = [
    Stream {
        name: "a session that goes on",
        lines: &[
            CONNECT,
            r#"{"id":2,"send":{"conv":"$c","client_id":"$m2","payload":"Zm9vYmFy"}} {"id":3,"ping":{}}"#,
            "pong unasked",
            r#"in 3 fragments {"id":4,"recv":{"conv":"$c","seq":2}} {"id":5,"sned":{}} {"id":6,"ping":{}}"#,
            r#"{"id":7,"sync":{"conv":"$c","after":0,"limit":1}} {"ping":{"x":1}}"#,
            r#"{"id":8,"read":{"conv":"$c","seq":2}} {"id":9,"send":{"conv":"$d","passing":true,"payload":""}}"#,
        ],
        told: 11,
        code: None,
    },
    Stream {
        name: "a session that its client ends",
        lines: &[
            CONNECT,
            r#"{"send":{"conv":"$c","client_id":"$m2","payload":"Zm9vYmFy"}} {"id":3,"ping":{}}"#,
            "close 1000",
            r#"{"id":4,"ping":{}}"#,
        ],
        told: 1,
        code: Some(1000),
    },
    Stream {
        name: "not masked",
        lines: &[CONNECT, r#"{"id":2,"ping":{}}"#, "bytes 81 02 7b7d"],
        told: 2,
        code: Some(1002),
    },
    Stream {
        name: "a second beginning in a message that has not ended",
        lines: &[CONNECT, "bytes 01 81 00000000 7b 01 81 00000000 7b"],
        told: 1,
        code: Some(1002),
    },
    Stream {
        name: "text that stops being UTF-8 in its middle",
        lines: &[CONNECT, "bytes 81 8a 00000000 61 f0 90 8d 88 ff 61 61 61 61", r#"{"id":2,"ping":{}}"#],
        told: 1,
        code: Some(1007),
    },
    Stream {
        name: "65 fragments",
        lines: &[CONNECT, "in 65 fragments {\"id\":2,\"ping\":{}}"],
        told: 1,
        code: Some(1008),
    },
    Stream {
        name: "too long",
        lines: &[CONNECT, "bytes 82 ff 0000000000015d59 00000000"],
        told: 1,
        code: Some(1009),
    },
    Stream {
        name: "an impossible length",
        lines: &[CONNECT, "bytes 82 ff ffffffffffffffff 00000000"],
        told: 1,
        code: Some(1002),
    },
    Stream {
        name: "a command before connect",
        lines: &[r#"{"id":2,"sned":{}} {"id":3,"ping":{}}"#, CONNECT],
        told: 2,
        code: Some(4400),
    },
    Stream {
        name: "a token of somebody else's making",
        lines: &[
            r#"{"id":2,"ping":{"x":1}} {"id":1,"connect":{"token":"$forged alice/1"}} {"id":3,"ping":{}}"#,
        ],
        told: 3,
        code: Some(4401),
    },
];

/// What came of a stream, as far as it must not depend on the cuts.
#[derive(Debug, PartialEq)]
struct Outcome {
    /// Replies and pushes. Those that wait for the store come when it answers, so their order among the others is left open.
    told: Vec<String>,
    closes: Vec<Heard>,
    closed: Option<Close>,
    head: Option<Seq>,
}

/// Sends a stream in pieces that end at these places.
fn outcome(run: &mut Run, name: &str, stream: &[u8], cuts: &[usize]) -> Outcome {
    run.world.accept(name, HOME);
    let mut from = 0;
    for to in cuts.iter().copied().chain([stream.len()]) {
        if from < to {
            run.world.feed(name, &stream[from..to]);
        }
        from = to;
    }
    let client = &run.world.clients[name];
    let closed = client.closed;
    let mut outcome = Outcome { told: Vec::new(), closes: Vec::new(), closed, head: None };
    for heard in &client.heard {
        match heard {
            // A session that is made and ended in one read may end before it is told that it was made.
            Heard::Object(object)
                if closed.is_some()
                    && (object.get("connect").is_some() || object.get("caught_up").is_some()) => {}
            Heard::Object(object) => outcome.told.push(object.to_string()),
            Heard::Close(..) => outcome.closes.push(heard.clone()),
            // At most one pong is sent for the pings of one read.
            Heard::Pong(_) | Heard::Upgraded(_) => {}
            other => panic!("{other:?}"),
        }
    }
    outcome.told.sort_unstable();
    let conversation = ConversationId(names::id("c"));
    outcome.head = run.world.store.record(conversation).map(|record| record.head);
    run.world.part(name);
    outcome
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) as usize
}

#[test]
fn a_stream_of_bytes_means_the_same_however_it_is_cut() {
    let seed: u64 = std::env::var("THRONG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(26);
    println!("THRONG_SEED={seed}");
    for mut run in runs(|_| {}).filter(|run| run.world.residents && run.world.shards.len() == 2) {
        let mut random = seed;
        // A first time for everything that is different the second time.
        run.script("alice and bob chat in $c\nalice breaks\nbob breaks");
        for Stream { name, lines, told, code } in &STREAMS {
            let mut stream = client::request(run.world.encoding, &[("Origin", "http://chat.example")]);
            for line in *lines {
                stream.extend(run.bytes(line));
            }
            outcome(&mut run, "first", &stream, &[]);
            let whole = outcome(&mut run, "whole", &stream, &[]);
            let codes: Vec<Option<u16>> = whole
                .closes
                .iter()
                .map(|close| if let Heard::Close(code, _) = close { *code } else { None })
                .collect();
            assert_eq!(codes, Vec::from_iter(code.map(Some)), "{name}: {whole:?}");
            assert_eq!(whole.told.len(), *told, "{name}: {whole:?}");
            let mut check = |cuts: &[usize]| {
                let cut = outcome(&mut run, "cut", &stream, cuts);
                assert_eq!(cut, whole, "{name}, cut at {cuts:?}");
            };
            for cut in 1..stream.len() {
                check(&[cut]);
            }
            check(&Vec::from_iter(1..stream.len()));
            for _ in 0..100 {
                let mut cuts: Vec<usize> =
                    (0..1 + next(&mut random) % 8).map(|_| next(&mut random) % stream.len()).collect();
                cuts.sort_unstable();
                check(&cuts);
            }
        }
    }
}
