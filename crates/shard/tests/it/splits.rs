//! However a client's bytes are cut, it is told the same and the same has happened: row 26 of the list of attacks.
//!
//! The bytes are in `tests/streams`, each file with where it comes from and what must be told.

use std::fs;
use std::path::Path;

use model::ConversationId;
use protocol::Encoding;
use serde_json::Value;
use shard::Close;

use crate::client::Heard;
use crate::names::{self, fits};
use crate::script::{Run, runs};
use crate::world::{HOME, Mood};

/// One file of `tests/streams`: remarks (`#`), then lines of a word and what it says, then `bytes` and the bytes, in
/// lines that mean nothing, with `\r`, `\n`, `\\` and `\xNN` for what cannot be seen.
struct Stream {
    name: String,
    /// The subprotocol that is offered.
    speaks: Encoding,
    /// Replies and pushes, in any order, but for those of `connect` when the connection ends: a session that is made
    /// and ended in one read may end before it is told that it was made.
    told: Vec<String>,
    /// What the pings say; at most one pong is sent for the pings of one read, and it is for the last of them.
    pings: Vec<String>,
    ends: String,
    bytes: Vec<u8>,
}

impl Stream {
    fn read(path: &Path) -> Stream {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(path).expect("a readable file");
        let (about, bytes) = text.split_once("\nbytes\n").expect("`bytes` on a line of its own");
        let (mut speaks, mut told, mut pings, mut ends) = (None, Vec::new(), Vec::new(), None);
        for line in about.lines().filter(|line| !line.starts_with('#')) {
            let (word, rest) = line.split_once(' ').expect("a word and what it says");
            match word {
                "speaks" => speaks = Encoding::from_subprotocol(&format!("throng.v1.{rest}")),
                "told" => told.push(rest.to_owned()),
                "ping" => pings.push(rest.to_owned()),
                "ends" => ends = Some(rest.to_owned()),
                _ => panic!("{name}: what is `{word}`?"),
            }
        }
        let (speaks, ends) = (speaks.expect("speaks json or cbor"), ends.expect("ends …"));
        Stream { bytes: unescaped(bytes), name, speaks, told, pings, ends }
    }

    fn all() -> Vec<Stream> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
        let mut paths: Vec<_> = fs::read_dir(folder)
            .expect("the folder of streams")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        paths.sort();
        paths.iter().map(|path| Stream::read(path)).collect()
    }
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let (byte, after) = match (first, after) {
            (b'\n', _) => (None, after),
            (b'\\', [b'x', high, low, after @ ..]) => {
                let digits = [*high, *low].map(char::from);
                let digit = |digit: char| digit.to_digit(16).expect("a hexadecimal digit") as u8;
                (Some(digit(digits[0]) << 4 | digit(digits[1])), after)
            }
            (b'\\', [escape, after @ ..]) => match escape {
                b'r' => (Some(b'\r'), after),
                b'n' => (Some(b'\n'), after),
                b'\\' => (Some(b'\\'), after),
                _ => panic!("no such escape: \\{}", char::from(*escape)),
            },
            (byte, _) => (Some(*byte), after),
        };
        bytes.extend(byte);
        rest = after;
    }
    bytes
}

/// What came of a stream.
#[derive(Debug, PartialEq)]
struct Outcome {
    /// Replies that the connection's shard gives by itself, in order.
    at_once: Vec<Value>,
    /// Replies and pushes of owners, who do not wait for each other.
    by_owners: Vec<String>,
    ends: String,
    closed: Option<Close>,
    /// The conversation as it is stored afterwards.
    stored: String,
}

/// Sends a stream in pieces that end at these places; the pongs are looked at here.
fn outcome(run: &mut Run, name: &str, stream: &Stream, cuts: &[usize]) -> Outcome {
    // What waits for the store is told when all has come, so that an end does not come sooner for some of it.
    run.world.set_mood(Mood::Waits);
    run.world.accept(name, HOME);
    let mut from = 0;
    for to in cuts.iter().copied().chain([stream.bytes.len()]) {
        if from < to {
            run.world.feed(name, &stream.bytes[from..to]);
        }
        from = to;
    }
    run.world.set_mood(Mood::Works);
    let client = run.world.clients.get_mut(name).expect(name);
    let closed = client.closed;
    let (mut at_once, mut by_owners) = (Vec::new(), Vec::new());
    let (mut pongs, mut ends) = (Vec::new(), None);
    for heard in client.heard.drain(..) {
        match heard {
            Heard::Object(object)
                if closed.is_some()
                    && (object.get("connect").is_some() || object.get("caught_up").is_some()) => {}
            Heard::Object(object) if is_told_at_once(&object) => at_once.push(object),
            Heard::Object(object) => by_owners.push(object.to_string()),
            Heard::Pong(text) => pongs.push(text),
            Heard::Upgraded(subprotocol) => {
                assert_eq!(subprotocol.as_deref(), Some(stream.speaks.subprotocol()), "{}", stream.name);
            }
            Heard::Refused(status) => ends = Some(format!("status {status}")),
            Heard::Close(Some(code), reason) => ends = Some(format!("close {code} {reason}")),
            other => panic!("{}: {other:?}", stream.name),
        }
    }
    check_pongs(stream, &pongs, closed.is_some());
    if let Some((_, bytes)) = run.world.handed_over.pop() {
        assert!(stream.bytes.starts_with(&bytes), "{}: other bytes were handed over", stream.name);
        ends = Some("handed over".to_owned());
    }
    let conversation = ConversationId(names::id("c"));
    by_owners.sort_unstable();
    let stored = format!("{:?}", run.world.store.record(conversation));
    run.world.part(name);
    Outcome { at_once, by_owners, ends: ends.unwrap_or("open".to_owned()), closed, stored }
}

/// Whether no owner of a user or conversation was asked.
fn is_told_at_once(object: &Value) -> bool {
    let word = |word| object.get(word).is_some();
    word("ping")
        || word("refresh")
        || word("disconnect")
        || word("error") && object["error"]["name"] != "not_member"
}

/// Pongs answer pings, in their order, the last one among them unless the connection ended.
fn check_pongs(stream: &Stream, pongs: &[String], over: bool) {
    let mut pings = stream.pings.iter();
    let answers = pongs.iter().all(|pong| pings.any(|ping| ping == pong));
    let last = over || pongs.last() == stream.pings.last();
    assert!(answers && last, "{}: {pongs:?} in answer to {:?}", stream.name, stream.pings);
}

/// What must come of a stream in one piece, as its file says.
fn check_whole(run: &Run, stream: &Stream, outcome: &Outcome) {
    let name = &stream.name;
    let by_owners = outcome.by_owners.iter().map(|text| serde_json::from_str(text).expect("it was JSON"));
    let mut told: Vec<Value> = outcome.at_once.iter().cloned().chain(by_owners).collect();
    for expected in &stream.told {
        for expected in names::objects(expected, run.world.now) {
            let position = told.iter().position(|object| fits(&expected, object));
            let position = position.unwrap_or_else(|| panic!("{name}: {expected} is not among {told:?}"));
            told.remove(position);
        }
    }
    assert_eq!(told, [Value::Null; 0], "{name}: more was told than its file says");
    let (kind, code) = stream.ends.split_once(' ').unwrap_or((&stream.ends, ""));
    let ends = match kind {
        // A `farewell` is a close frame that no `disconnect` precedes, which `told` says.
        "close" | "farewell" => outcome.ends.starts_with(&format!("close {code} ")),
        _ => outcome.ends == stream.ends,
    };
    assert!(ends, "{name}: it ended as `{}`", outcome.ends);
    let is_over = kind != "open" && kind != "handed";
    assert_eq!(outcome.closed, is_over.then_some(Close::AfterFlush), "{name}");
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) as usize
}

/// Random places to cut at, most often few.
fn cuts(random: &mut u64, len: usize) -> Vec<usize> {
    let count = 1 + next(random) % [3, 9, 33][next(random) % 3];
    let mut cuts: Vec<usize> = (0..count).map(|_| next(random) % len).collect();
    cuts.sort_unstable();
    cuts
}

#[test]
fn a_stream_of_bytes_means_the_same_however_it_is_cut() {
    let seed: u64 = std::env::var("THRONG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(26);
    println!("THRONG_SEED={seed}");
    let mut random = seed;
    let streams = Stream::all();
    assert!(streams.len() > 50, "the streams are there");
    for stream in &streams {
        let of_its_encoding = |run: &Run| run.world.encoding == stream.speaks && run.world.residents;
        for mut run in runs(|_| {}).filter(of_its_encoding) {
            let owners_elsewhere = run.world.shards.len() > 1;
            // A first time for everything that is different the second time.
            run.script("alice and bob chat in $c\nalice breaks\nbob breaks");
            outcome(&mut run, "first", stream, &[]);
            let whole = outcome(&mut run, "whole", stream, &[]);
            check_whole(&run, stream, &whole);
            let mut check = |cuts: &[usize]| {
                let cut = outcome(&mut run, "cut", stream, cuts);
                assert_eq!(cut, whole, "{}, cut at {cuts:?}", stream.name);
            };
            if owners_elsewhere {
                (1..stream.bytes.len()).for_each(|cut| check(&[cut]));
            }
            check(&Vec::from_iter(1..stream.bytes.len()));
            (0..50).for_each(|_| check(&cuts(&mut random, stream.bytes.len())));
        }
    }
}
