//! What the rules say about claims, written down again in the most obvious way. The fuzzer uses it too.

use serde_json::{Map, Value};

/// Whether claims, read by a lenient parser, are right for the audience `throng` at `now`, in seconds, with 30 s of
/// leeway and a lifetime of at most a day.
pub fn acceptable(claims: &Map<String, Value>, now: u64) -> bool {
    let text = |name: &str, most: usize| {
        claims.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty() && text.len() <= most)
    };
    let seconds = |name: &str| claims.get(name).and_then(Value::as_u64).filter(|&s| s <= 253_402_300_799);
    let audience = match claims.get("aud") {
        Some(Value::String(one)) => one == "throng",
        Some(Value::Array(list)) => {
            list.iter().all(Value::is_string) && list.iter().any(|one| one == "throng")
        }
        _ => false,
    };
    let (Some(iat), Some(exp)) = (seconds("iat"), seconds("exp")) else { return false };
    text("sub", 255)
        && text("sid", 64)
        && claims.get("dev").and_then(Value::as_u64).is_some_and(|dev| dev <= u64::from(u32::MAX))
        && audience
        && (!claims.contains_key("nbf") || seconds("nbf").is_some_and(|nbf| nbf <= now + 30))
        && iat <= now + 30
        && exp > iat
        && exp - iat <= 24 * 3600
        && now < exp
}
