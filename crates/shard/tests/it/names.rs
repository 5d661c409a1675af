//! What stands for what in a script: `$alice` for an id, `$now` for a time, `$token alice/1` for a token.

use std::sync::{Arc, LazyLock};

use auth::{Grant, Keys, Rules, SigningKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::{DeviceId, DeviceKey, Now, Span, UserId, Wall};
use protocol::ErrorCode;
use serde_json::{Value, json};

use crate::wire::uuid;

/// When every script begins.
pub const START: Wall = Wall(1_764_500_000_000);
/// How long a token is valid unless the script says otherwise.
const LIFETIME: Span = Span::seconds(3_600);

static SIGNING: LazyLock<SigningKey> = LazyLock::new(|| signing(b"the secret of the tests, 32 bytes"));
static FORGING: LazyLock<SigningKey> = LazyLock::new(|| signing(b"a secret the server knows not of."));

fn signing(secret: &[u8]) -> SigningKey {
    SigningKey::from_secret(secret).expect("long enough")
}

/// The keys the server trusts.
pub fn keys() -> Arc<Keys> {
    Arc::new(Keys::new(vec![SIGNING.verifying_key()]).expect("one key is a set"))
}

/// What else the server asks of a token.
pub fn rules() -> Rules {
    Rules::for_audience("throng")
}

/// The id of a name: its letters, then zeros.
pub fn id(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    let name = name.strip_prefix('$').unwrap_or(name);
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    bytes
}

/// The device that is written as `alice/1`.
pub fn device(text: &str) -> DeviceKey {
    let (user, device) = text.split_once('/').expect("USER/DEVICE");
    DeviceKey { user: UserId(id(user)), device: DeviceId(device.parse().expect("a device is a number")) }
}

/// A token for a device, made now.
pub fn token(device: DeviceKey, now: Now, lifetime: Span) -> String {
    mint(&SIGNING, device, now.wall, lifetime)
}

fn mint(key: &SigningKey, device: DeviceKey, issued_at: Wall, lifetime: Span) -> String {
    let grant = Grant {
        user: &uuid(device.user.0),
        device: device.device.0,
        session: &uuid(id("session")),
        audience: "throng",
        issuer: None,
        issued_at,
        lifetime,
    };
    auth::mint(key, &grant)
}

/// A length of time as scripts write it: `10s` or `250ms`.
pub fn span(text: &str) -> Span {
    let number = |digits: &str| digits.parse().expect("a length of time is a number");
    match text.strip_suffix("ms") {
        Some(digits) => Span(number(digits)),
        None => Span::seconds(number(text.strip_suffix('s').expect("s or ms"))),
    }
}

/// Puts in what the names of a text stand for, for headers.
pub fn in_header(text: &str, now: Now) -> String {
    match text.split_once('$') {
        Some((before, name)) => match stands_for(&format!("${name}"), now) {
            Value::String(value) => format!("{before}{value}"),
            other => panic!("{other} in a header"),
        },
        None => text.to_owned(),
    }
}

/// The objects of a line, with what their names stand for.
pub fn objects(text: &str, now: Now) -> Vec<Value> {
    let read = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    read.map(|value| replaced(value.unwrap_or_else(|error| panic!("{error} in {text}")), now)).collect()
}

fn replaced(value: Value, now: Now) -> Value {
    match value {
        Value::String(text) if text.starts_with('$') => stands_for(&text, now),
        Value::Array(items) => items.into_iter().map(|item| replaced(item, now)).collect(),
        Value::Object(fields) => {
            let field = |(name, value): (String, Value)| match (&*name, value.as_str()) {
                ("error", Some(row)) => (name, error(row)),
                _ => (name, replaced(value, now)),
            };
            Value::Object(fields.into_iter().map(field).collect())
        }
        other => other,
    }
}

fn stands_for(text: &str, now: Now) -> Value {
    let words: Vec<&str> = text[1..].split(' ').collect();
    let token = |key, whose: &str, issued_at, lifetime| mint(key, device(whose), issued_at, lifetime).into();
    match *words {
        ["any"] | ["with", ..] => text.into(),
        ["now"] => now.wall.0.into(),
        ["start"] => START.0.into(),
        ["token", whose] => token(&SIGNING, whose, now.wall, LIFETIME),
        ["token", whose, lifetime] => token(&SIGNING, whose, now.wall, span(lifetime)),
        ["forged", whose] => token(&FORGING, whose, now.wall, LIFETIME),
        ["expired", whose] => token(&SIGNING, whose, Wall(now.wall.0 - 60_000), Span::seconds(60)),
        ["bytes", count] => STANDARD.encode(vec![b'x'; count.parse().expect("a number")]).into(),
        [later] if later.contains('+') => {
            let (from, after) = later.split_once('+').expect("it was just seen");
            let from = if from == "now" { now.wall } else { START };
            (from.0 + span(after).0).into()
        }
        [name] => uuid(id(name)).into(),
        _ => panic!("what is {text}?"),
    }
}

/// The object a refusal with this row of the table is told in. What is said in words is free.
fn error(name: &str) -> Value {
    let row = ErrorCode::ALL.iter().find(|row| row.name() == name).expect("a row of the table");
    let temporary = matches!(row.code() / 1_000, 5) || name == "rate_limited";
    json!({"code": row.code(), "name": name, "message": "$any", "temporary": temporary, "retry_after_ms": "$any"})
}

/// Whether something is as expected, where `$any` expects nothing in particular and `$with word` a text with this word.
pub fn fits(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::String(any), _) if any == "$any" => true,
        (Value::String(expected), Value::String(actual)) => match expected.strip_prefix("$with ") {
            Some(part) => actual.contains(part),
            None => expected == actual,
        },
        (Value::Array(expected), Value::Array(actual)) => {
            expected.len() == actual.len() && expected.iter().zip(actual).all(|(one, other)| fits(one, other))
        }
        (Value::Object(expected), Value::Object(actual)) => {
            expected.len() == actual.len()
                && expected
                    .iter()
                    .all(|(name, value)| actual.get(name).is_some_and(|other| fits(value, other)))
        }
        (expected, actual) => expected == actual,
    }
}
