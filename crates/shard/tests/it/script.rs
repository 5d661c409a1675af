//! Scripts: what clients send and what they hear, line by line, as the protocol's page shows it.
//!
//! A line is one of these; `#` begins a comment. A name is a connection, `→` is what its client sends, `←` what it hears next.
//!
//! ```text
//! NAME opens [with HEADER: VALUE]        NAME connects as USER/DEVICE      alice and bob chat in $CONV
//! NAME → OBJECT …                        one message of these objects, each with `$names` for ids, times and tokens
//! NAME → 100 × OBJECT                    NAME → in 3 fragments OBJECT      NAME → text|binary|ping|pong|close|bytes …
//! NAME ← OBJECT … | ping | pong TEXT     NAME ← refused STATUS             NAME ← nothing
//! NAME ← in any order OBJECT …           NAME ← 100 × OBJECT
//! NAME ← close CODE                      `disconnect` with this code, then a close frame with it
//! NAME ← farewell CODE | gone            only a close frame; not even that
//! NAME sends 2..300 to $CONV             NAME ← 2..257 of $CONV            messages by their place in the log
//! NAME sends 2..9 to $CONV, 65536 bytes each                    NAME ← 2..8 of $CONV, 65536 bytes each
//! NAME breaks | stops reading | reads again
//! wait 10s                               drain within 10s                  store works | is full | waits | lies
//! rest: USER creates group $CONV with $A $B [and 63 others]     rest: USER adds|removes $A to|from $CONV     rest: USER lists
//! rest ← OBJECT
//! json: LINE                             cbor: LINE                        only in that encoding
//! ```
//! At its end nobody may have heard more than the script says.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::{Act, Answer, Input, Origin, Refusal};
use model::{
    ConversationId, ConversationKind, ConversationListing, ConversationSummary, Receipt, ShardId, UserId,
};
use protocol::{Encoding, ErrorCode};
use serde_json::{Value, json};
use shard::Settings;
use websocket::Opcode;

use crate::client::{self, Heard};
use crate::names::{self, fits};
use crate::wire;
use crate::world::{Mood, World};

/// Which codes were told in every run of a script.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Told {
    pub errors: BTreeSet<u16>,
    pub closes: BTreeSet<u16>,
}

impl Heard {
    fn is(&self, expected: &Value) -> bool {
        matches!(self, Heard::Object(object) if fits(expected, object))
    }
}

/// Runs a script in JSON and in CBOR, on one shard and on two.
#[track_caller]
pub fn check(script: &str) -> Told {
    check_with(|_| {}, script)
}

/// The same with other settings.
#[track_caller]
pub fn check_with(adjust: fn(&mut Settings), script: &str) -> Told {
    let mut told: Option<Told> = None;
    for mut run in runs(adjust) {
        run.script(script);
        run.end();
        let told = told.get_or_insert_with(|| run.told.clone());
        told.errors.retain(|code| run.told.errors.contains(code));
        told.closes.retain(|code| run.told.closes.contains(code));
    }
    told.unwrap_or_default()
}

/// A beginning for each encoding, on one shard and on two; for tests that look closer than a script can.
pub fn runs(adjust: fn(&mut Settings)) -> impl Iterator<Item = Run> {
    Encoding::ALL.into_iter().flat_map(move |encoding| {
        [1, 2].into_iter().flat_map(move |shards| {
            [true, false].map(|residents| Run {
                world: World::new(encoding, shards, residents, adjust),
                told: Told::default(),
                line: String::new(),
            })
        })
    })
}

/// A script that is being played.
pub struct Run {
    pub world: World,
    told: Told,
    line: String,
}

/// Two who have heard of each other and acknowledged it.
const CHAT: &str = r#"
    alice connects as alice/1
    alice ← {"caught_up":{}}
    bob connects as bob/1
    bob ← {"caught_up":{}}
    rest: alice creates direct $CONV with $alice $bob
    rest ← {"fresh":true,"conv":"$CONV","kind":"direct","members":["$alice","$bob"],"head":1}
    alice ← {"conversation":{"conv":"$CONV","event":"added","kind":"direct","members":["$alice","$bob"],"head":1}}
    bob ← {"conversation":{"conv":"$CONV","event":"added","kind":"direct","members":["$alice","$bob"],"head":1}}
    alice ← {"message":{"conv":"$CONV","seq":1,"ts":"$now","system":{"event":"created","users":["$alice","$bob"],"by":"$alice"}}}
    bob ← {"message":{"conv":"$CONV","seq":1,"ts":"$now","system":{"event":"created","users":["$alice","$bob"],"by":"$alice"}}}
    alice → {"recv":{"conv":"$CONV","seq":1}}
    bob ← {"receipt":{"conv":"$CONV","user":"$alice","delivered":1,"read":0}}
    bob → {"recv":{"conv":"$CONV","seq":1}}
    alice ← {"receipt":{"conv":"$CONV","user":"$bob","delivered":1,"read":0}}
"#;

impl Run {
    /// Plays some lines.
    pub fn script(&mut self, script: &str) {
        for line in script.lines() {
            let line = line.split(" # ").next().unwrap_or_default().trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            self.line = line.to_owned();
            match (line.strip_prefix("json: "), line.strip_prefix("cbor: ")) {
                (Some(line), _) if self.world.encoding == Encoding::Json => self.step(line),
                (_, Some(line)) if self.world.encoding == Encoding::Cbor => self.step(line),
                (None, None) => self.step(line),
                _ => {}
            }
        }
    }

    /// Nobody has heard more than was written down.
    pub fn end(&mut self) {
        self.line = "(the end)".to_owned();
        let names: Vec<String> = self.world.clients.keys().cloned().collect();
        for name in names {
            self.hears(&name, "nothing");
        }
        assert!(self.world.answers.is_empty(), "{:?} is left", self.world.answers);
        if self.world.mood == Mood::Works {
            self.world.store.check().expect("the store is whole");
        }
    }

    fn fail(&self, what: impl std::fmt::Display) -> ! {
        let shards = self.world.shards.len();
        let what = what.to_string();
        let what = &what[..what.floor_char_boundary(1_000)];
        panic!(
            "{what}\n  in the line: {}\n  run with:    {:?}, {shards} shards, residents: {}",
            self.line, self.world.encoding, self.world.residents
        )
    }

    fn step(&mut self, line: &str) {
        if let Some((name, what)) = line.split_once(" → ") {
            return self.says(name, what);
        }
        if let Some(expected) = line.strip_prefix("rest ← ") {
            return self.rest_hears(expected);
        }
        if let Some((name, what)) = line.split_once(" ← ") {
            return self.hears(name, what);
        }
        if let Some(request) = line.strip_prefix("rest: ") {
            return self.rest(request);
        }
        let words: Vec<&str> = line.split(' ').collect();
        match *words {
            [name, "opens"] => self.opens(name, &[]),
            [name, "opens", "with", header, ..] => {
                let header = header.trim_end_matches(':');
                let (_, value) = line.split_once(": ").expect("HEADER: VALUE");
                let value = names::in_header(value, self.world.now);
                self.opens(name, &[(header, &value)]);
            }
            [name, "connects", "as", device] => self.connects(name, device),
            ["alice", "and", "bob", "chat", "in", conversation] => {
                for line in CHAT.lines().map(str::trim).filter(|line| !line.is_empty()) {
                    self.step(&line.replace("$CONV", conversation));
                }
            }
            [name, "sends", places, "to", conversation] => self.sends(name, places, conversation, None),
            [name, "sends", places, "to", conversation, bytes, "bytes", "each"] => {
                self.sends(name, places, conversation.trim_end_matches(','), Some(bytes));
            }
            [name, "breaks"] => self.world.part(name),
            [name, "stops", "reading"] => self.world.set_reading(name, false),
            [name, "reads", "again"] => self.world.set_reading(name, true),
            ["wait", span] => self.world.wait(names::span(span)),
            ["drain", "within", span] => self.world.drain(names::span(span)),
            ["store", "works"] => {
                self.world.store.set_full(false);
                self.world.set_mood(Mood::Works);
            }
            ["store", "is", "full"] => self.world.store.set_full(true),
            ["store", "waits"] => self.world.set_mood(Mood::Waits),
            ["store", "lies"] => self.world.set_mood(Mood::Lies),
            _ => self.fail("no such line"),
        }
    }

    fn opens(&mut self, name: &str, headers: &[(&str, &str)]) {
        self.world.accept(name, self.world.home);
        let head = client::request(self.world.encoding, headers);
        self.world.feed(name, &head);
        let client = self.world.clients.get_mut(name).expect(name);
        if let Some(Heard::Upgraded(subprotocol)) = client.heard.front() {
            assert_eq!(subprotocol.as_deref(), Some(self.world.encoding.subprotocol()));
            client.heard.pop_front();
        }
    }

    fn connects(&mut self, name: &str, device: &str) {
        let (user, number) = device.split_once('/').expect("USER/DEVICE");
        self.opens(name, &[]);
        self.says(name, &format!(r#"{{"id":1,"connect":{{"token":"$token {device}"}}}}"#));
        let reply = format!(
            r#"{{"id":1,"connect":{{"session":"$session","user":"${user}","device":{number},
                "server_time":"$now","ping_ms":60000,"reconnect_ms":[500,10000]}}}}"#
        );
        self.hears(name, &reply);
    }

    fn says(&mut self, name: &str, what: &str) {
        let bytes = self.bytes(what);
        self.world.feed(name, &bytes);
    }

    /// What a client sends by a line.
    pub fn bytes(&self, what: &str) -> Vec<u8> {
        let encoding = self.world.encoding;
        let (kind, rest) = what.split_once(' ').unwrap_or((what, ""));
        match kind {
            "text" => client::frame(Opcode::Text, true, rest.as_bytes()),
            "binary" => client::frame(Opcode::Binary, true, &hex(rest)),
            "ping" => client::frame(Opcode::Ping, true, rest.as_bytes()),
            "pong" => client::frame(Opcode::Pong, true, rest.as_bytes()),
            "close" => {
                let code: u16 = rest.parse().expect("a code");
                client::frame(Opcode::Close, true, &code.to_be_bytes())
            }
            "bytes" => hex(rest),
            "in" => {
                let (count, rest) = rest.split_once(" fragments ").expect("in N fragments OBJECT");
                let message = wire::encode_all(encoding, &names::objects(rest, self.world.now));
                client::message(encoding, &message, count.parse().expect("a number"))
            }
            _ => {
                let (times, text) = what.split_once(" × ").unwrap_or(("1", what));
                let objects = names::objects(text, self.world.now);
                let objects: Vec<Value> = (0..times.parse().expect("a number"))
                    .flat_map(|_: usize| objects.iter().cloned())
                    .collect();
                client::message(encoding, &wire::encode_all(encoding, &objects), 1)
            }
        }
    }

    fn next(&mut self, name: &str) -> Heard {
        match self.world.clients.get_mut(name) {
            None => self.fail(format!("there is no {name}")),
            Some(client) => match client.heard.pop_front() {
                Some(heard) => heard,
                None => self.fail(format!("{name} heard nothing")),
            },
        }
    }

    fn hears(&mut self, name: &str, what: &str) {
        let words: Vec<&str> = what.split(' ').collect();
        match *words {
            ["nothing"] => {
                let client = &self.world.clients[name];
                if let Some(heard) = client.heard.front() {
                    self.fail(format!("{name} heard {heard:?}, and perhaps more"));
                }
                if client.closed.is_some() {
                    self.fail(format!("{name} was closed"));
                }
            }
            ["gone"] => self.is_closed(name),
            ["in", "any", "order", ..] => {
                let mut expected = names::objects(&what["in any order".len()..], self.world.now);
                while !expected.is_empty() {
                    let heard = self.next(name);
                    let position = expected.iter().position(|one| heard.is(one));
                    match position {
                        Some(position) => _ = expected.remove(position),
                        None => self.fail(format!("{name} heard {heard:?}")),
                    }
                }
            }
            ["ping"] => self.hears_just(name, &Heard::Ping),
            ["pong", text] => self.hears_just(name, &Heard::Pong(text.to_owned())),
            ["refused", status] => {
                self.hears_just(name, &Heard::Refused(status.parse().expect("a status")));
                self.is_closed(name);
            }
            ["close", code] => self.hears_close(name, code.parse().expect("a code"), true),
            ["farewell", code] => self.hears_close(name, code.parse().expect("a code"), false),
            [places, "of", conversation] => self.hears_messages(name, places, conversation, None),
            [places, "of", conversation, bytes, "bytes", "each"] => {
                self.hears_messages(name, places, conversation.trim_end_matches(','), Some(bytes));
            }
            _ => {
                let (times, text) = what.split_once(" × ").unwrap_or(("1", what));
                for _ in 0..times.parse().expect("a number") {
                    for expected in names::objects(text, self.world.now) {
                        self.hears_object(name, &expected);
                    }
                }
            }
        }
    }

    fn hears_just(&mut self, name: &str, expected: &Heard) {
        let heard = self.next(name);
        if heard != *expected {
            self.fail(format!("{name} heard {heard:?}"));
        }
    }

    fn hears_object(&mut self, name: &str, expected: &Value) {
        match self.next(name) {
            Heard::Object(object) if fits(expected, &object) => {
                if let Some(code) = object["error"]["code"].as_u64() {
                    self.told.errors.insert(code as u16);
                }
            }
            Heard::Object(object) => self.fail(format!("{name} heard   {object}\n  instead of {expected}")),
            other => self.fail(format!("{name} heard {other:?} instead of {expected}")),
        }
    }

    /// A close frame, before it `disconnect` with the same code and reason.
    fn hears_close(&mut self, name: &str, code: u16, announced: bool) {
        let mut said = String::new();
        if announced {
            // The rule of the page: 45xx come back and 44xx do not, 4429 excepted.
            let reconnect = code / 100 == 45 || code == 4429;
            let after = match code {
                // From the end of the drain, which a test of its own checks.
                4501 => json!("$any"),
                _ if reconnect => json!([500, 10_000]),
                _ => json!([0, 0]),
            };
            let Heard::Object(object) = self.next(name) else { self.fail("no disconnect") };
            let expected = json!({"disconnect":
                {"code": code, "reason": "$any", "reconnect": reconnect, "after_ms": after}});
            if !fits(&expected, &object) {
                self.fail(format!("{name} heard {object} instead of {expected}"));
            }
            said = object["disconnect"]["reason"].as_str().unwrap_or_default().to_owned();
        }
        match self.next(name) {
            Heard::Close(Some(told), reason) if told == code && said.starts_with(&reason) => {}
            other => self.fail(format!("{name} heard {other:?}")),
        }
        self.told.closes.insert(code);
        self.is_closed(name);
    }

    /// The server has let go of it, and nothing followed.
    fn is_closed(&mut self, name: &str) {
        let client = self.world.clients.get(name).expect(name);
        if client.closed.is_none() {
            self.fail(format!("{name} is still there"));
        }
        if let Some(more) = client.heard.front() {
            self.fail(format!("after its end {name} heard {more:?}"));
        }
        self.world.clients.remove(name);
    }

    /// Messages whose payload is their place in the log, or so many bytes.
    fn sends(&mut self, name: &str, places: &str, conversation: &str, bytes: Option<&str>) {
        for place in range(places) {
            let payload = payload(place, bytes);
            let object = format!(
                r#"{{"send":{{"conv":"{conversation}","client_id":"$m{place}","payload":"{payload}"}}}}"#
            );
            self.says(name, &object);
        }
    }

    fn hears_messages(&mut self, name: &str, places: &str, conversation: &str, bytes: Option<&str>) {
        for place in range(places) {
            let payload = payload(place, bytes);
            let expected = format!(
                r#"{{"message":{{"conv":"{conversation}","seq":{place},"ts":"$any","from":"$any","device":"$any",
                    "client_id":"$m{place}","payload":"{payload}"}}}}"#
            );
            self.hears(name, &expected);
        }
    }

    fn rest(&mut self, request: &str) {
        let words: Vec<&str> = request.split(' ').collect();
        let (by, origin) = (UserId(names::id(words[0])), Origin::Outside { shard: ShardId(0), ticket: 1 });
        let user = |name: &str| UserId(names::id(name));
        let conversation = |name: &str| ConversationId(names::id(name));
        let input = match words[1..] {
            ["creates", kind, name, "with", ref members @ ..] => {
                let kind = if kind == "direct" { ConversationKind::Direct } else { ConversationKind::Group };
                let mut users: Vec<UserId> =
                    members.iter().filter(|name| name.starts_with('$')).map(|name| user(name)).collect();
                if let [.., "and", count, "others"] = *members {
                    let count: usize = count.parse().expect("a number");
                    users.extend((0..count).map(|number| user(&format!("other{number}"))));
                }
                let act = Act::Create { origin, by, kind, members: users };
                Input::Chat { conversation: conversation(name), act }
            }
            ["adds", name, "to", to] => {
                Input::Chat { conversation: conversation(to), act: Act::Add { origin, by, user: user(name) } }
            }
            ["removes", name, "from", from] => Input::Chat {
                conversation: conversation(from),
                act: Act::Remove { origin, by, user: user(name) },
            },
            ["lists"] => Input::ListConversations { origin, user: by },
            _ => self.fail("no such request"),
        };
        self.world.outside(input);
    }

    fn rest_hears(&mut self, expected: &str) {
        let Some(answer) = self.world.answers.pop_front() else { self.fail("there was no answer") };
        let answer = match answer {
            Ok(Answer::Conversation { summary, fresh }) => {
                let mut answer = summary_object(&summary);
                answer["fresh"] = fresh.into();
                answer
            }
            Ok(Answer::Conversations(list)) => list.iter().map(listing_object).collect(),
            Ok(other) => self.fail(format!("{other:?}")),
            Err(refusal) => {
                let code = error_code(refusal);
                self.told.errors.insert(code.code());
                json!({"refused": code.name()})
            }
        };
        for expected in names::objects(expected, self.world.now) {
            if !fits(&expected, &answer) {
                self.fail(format!("the answer was {answer}"));
            }
        }
    }
}

/// The row of the table that a refusal of the rules is told as.
fn error_code(refusal: Refusal) -> ErrorCode {
    match refusal {
        Refusal::BadRequest(_) => ErrorCode::BadRequest,
        Refusal::NotMember => ErrorCode::NotMember,
        Refusal::NotFound(_) => ErrorCode::NotFound,
        Refusal::ClientIdReused => ErrorCode::ClientIdReused,
        Refusal::ReadOnly => ErrorCode::ReadOnly,
        Refusal::Overloaded(_) => ErrorCode::Overloaded,
        Refusal::Internal(_) => ErrorCode::Internal,
    }
}

fn summary_object(summary: &ConversationSummary) -> Value {
    let kind = match summary.kind {
        ConversationKind::Direct => "direct",
        ConversationKind::Group => "group",
    };
    let members: Vec<String> = summary.members.iter().map(|user| wire::uuid(user.0)).collect();
    json!({"conv": wire::uuid(summary.id.0), "kind": kind, "members": members, "head": summary.head.0})
}

fn listing_object(listing: &ConversationListing) -> Value {
    let receipt = |receipt: &Receipt| {
        let user = wire::uuid(receipt.user.0);
        json!({"user": user, "delivered": receipt.delivered.0, "read": receipt.read.0})
    };
    let mut object = summary_object(&listing.summary);
    object["receipts"] = listing.receipts.iter().map(receipt).collect();
    object
}

fn payload(place: u64, bytes: Option<&str>) -> String {
    match bytes {
        Some(count) => format!("$bytes {count}"),
        None => STANDARD.encode(place.to_string()),
    }
}

fn range(places: &str) -> std::ops::RangeInclusive<u64> {
    let (from, to) = places.split_once("..").unwrap_or((places, places));
    from.parse().expect("a place")..=to.parse().expect("a place")
}

fn hex(digits: &str) -> Vec<u8> {
    let digits = digits.replace(' ', "");
    (0..digits.len() / 2)
        .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).expect("hexadecimal digits"))
        .collect()
}
