//! Claims: their types, who a token is for, and its times.

use auth::{Claim, ClaimFault, Rules, SessionId, TokenError, user_id, verify};
use model::{DeviceId, Span, UserId, Wall};
use serde_json::{Value, json};

use crate::forge::{CLAIMS, HEADER, IAT, after, check, keys, rules, signed};

fn good() -> Value {
    serde_json::from_str(CLAIMS).expect("good claims")
}

fn with(name: &str, value: Value) -> String {
    let mut claims = good();
    claims[name] = value;
    claims.to_string()
}

fn without(name: &str) -> String {
    let mut claims = good();
    claims.as_object_mut().expect("an object").remove(name);
    claims.to_string()
}

/// With the value written just so, where `serde_json` would write it otherwise.
fn literally(name: &str, value: &str) -> String {
    let mark = "the place for it";
    with(name, json!(mark)).replace(&format!("\"{mark}\""), value)
}

fn refused(claims: &str, claim: Claim, fault: ClaimFault) {
    assert_eq!(check(&signed(HEADER, claims)), Err(TokenError::Claim(claim, fault)), "{claims}");
}

#[test]
fn a_good_token_says_who_speaks() {
    let identity = check(&signed(HEADER, CLAIMS)).expect("a good token");
    assert_eq!(identity.device.user.to_string(), "f81d4fae-7dec-11d0-a765-00a0c91e6bf6");
    assert_eq!(identity.device.device, DeviceId(7));
    assert_eq!(identity.issued_at, after(0));
    assert_eq!(identity.expires_at, after(3600));
}

#[test]
fn a_claim_that_is_not_there_is_named() {
    for (name, claim) in [
        ("sub", Claim::Sub),
        ("dev", Claim::Dev),
        ("sid", Claim::Sid),
        ("iat", Claim::Iat),
        ("exp", Claim::Exp),
        ("aud", Claim::Aud),
    ] {
        refused(&without(name), claim, ClaimFault::Missing);
    }
}

#[test]
fn a_claim_of_the_wrong_type_is_refused() {
    for (name, claim) in [("iat", Claim::Iat), ("exp", Claim::Exp), ("nbf", Claim::Nbf), ("dev", Claim::Dev)]
    {
        for value in [
            "\"never\"",
            "\"1700003600\"",
            "-1",
            "-0",
            "1e400",
            "-1e400",
            "1e3",
            "1700003600.0",
            "1700003600.5",
            "null",
            "true",
            "[]",
            "{}",
            "18446744073709551616",
            "99999999999999999999999",
        ] {
            refused(&literally(name, value), claim, ClaimFault::Invalid);
        }
    }
    for (name, claim) in [("sub", Claim::Sub), ("sid", Claim::Sid)] {
        for value in ["\"\"", "1", "null", "true", "[\"x\"]", "{}", "\"\\ud800\""] {
            refused(&literally(name, value), claim, ClaimFault::Invalid);
        }
    }
    for value in ["1", "null", "{}", "[1]", "[\"throng\",1]", "[[\"throng\"]]", "true"] {
        refused(&literally("aud", value), Claim::Aud, ClaimFault::Invalid);
    }
}

#[test]
fn numbers_and_texts_have_their_bounds() {
    let taken = |claims: String| check(&signed(HEADER, claims)).expect("within bounds");
    assert_eq!(taken(with("dev", json!(u32::MAX))).device.device, DeviceId(u32::MAX));
    assert_eq!(taken(with("dev", json!(0))).device.device, DeviceId(0));
    refused(&with("dev", json!(1u64 << 32)), Claim::Dev, ClaimFault::Invalid);
    taken(with("sub", json!("x".repeat(255))));
    refused(&with("sub", json!("x".repeat(256))), Claim::Sub, ClaimFault::Invalid);
    taken(with("sid", json!("x".repeat(64))));
    refused(&with("sid", json!("x".repeat(65))), Claim::Sid, ClaimFault::Invalid);
    // Bytes are counted, not characters.
    refused(&with("sid", json!("é".repeat(33))), Claim::Sid, ClaimFault::Invalid);
    refused(&with("exp", json!(253_402_300_800u64)), Claim::Exp, ClaimFault::Invalid);
}

#[test]
fn a_name_that_is_no_uuid_becomes_one() {
    // Made with Python: uuid.uuid5(uuid.UUID("9ea01dcc-…"), "alice"), and likewise for the session.
    let identity = check(&signed(HEADER, with("sub", json!("alice")))).expect("a good token");
    assert_eq!(identity.device.user, user_id("alice"));
    assert_eq!(identity.device.user.to_string(), "b959197e-c92a-5447-9195-94a280f2ac01");
    assert_eq!(identity.session.to_string(), "3094dec5-9510-5dc9-bad0-a1e30abd7c70");

    let uuid = "F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6";
    let identity = check(&signed(HEADER, with("sid", json!(uuid)))).expect("a good token");
    assert_eq!(identity.session, SessionId(uuid.parse::<UserId>().expect("a UUID").0));
}

#[test]
fn a_token_is_for_the_configured_audience() {
    for audience in
        [json!("throng"), json!(["throng"]), json!(["x", "throng", "y"]), json!(["throng", "throng"])]
    {
        assert!(check(&signed(HEADER, with("aud", audience))).is_ok());
    }
    for audience in
        [json!(""), json!("Throng"), json!("throng "), json!("thron"), json!([]), json!(["x", "throngs"])]
    {
        refused(&with("aud", audience), Claim::Aud, ClaimFault::Mismatch);
    }
}

#[test]
fn a_token_is_from_the_configured_issuer() {
    let strict = Rules { issuer: Some("https://a.example".to_owned()), ..rules() };
    let check = |claims: String| verify(&keys(), &strict, &signed(HEADER, claims), after(60)).map(|_| ());
    assert_eq!(check(with("iss", json!("https://a.example"))), Ok(()));
    for (claims, fault) in [
        (without("iss"), ClaimFault::Missing),
        (with("iss", json!("https://a.example/")), ClaimFault::Mismatch),
        (with("iss", json!("https://b.example")), ClaimFault::Mismatch),
        (with("iss", json!(["https://a.example"])), ClaimFault::Invalid),
        (with("iss", json!(null)), ClaimFault::Invalid),
    ] {
        assert_eq!(check(claims), Err(TokenError::Claim(Claim::Iss, fault)));
    }
    // With none configured it does not matter what it says.
    assert!(crate::forge::check(&signed(HEADER, with("iss", json!("anybody")))).is_ok());
}

#[test]
fn a_token_expires_to_the_millisecond() {
    let at = |now: Wall| verify(&keys(), &rules(), &signed(HEADER, CLAIMS), now).map(|_| ());
    assert_eq!(at(Wall(after(3600).0 - 1)), Ok(()));
    assert_eq!(at(after(3600)), Err(TokenError::Expired));
    assert_eq!(at(Wall(u64::MAX)), Err(TokenError::Expired));
}

#[test]
fn clocks_may_differ_by_the_leeway() {
    let at = |claims: &str, now: Wall| verify(&keys(), &rules(), &signed(HEADER, claims), now).map(|_| ());
    assert_eq!(at(CLAIMS, Wall((IAT - 30) * 1_000)), Ok(()));
    assert_eq!(at(CLAIMS, Wall((IAT - 30) * 1_000 - 1)), Err(TokenError::NotYetValid));
    assert_eq!(at(CLAIMS, Wall(0)), Err(TokenError::NotYetValid));
    let later = with("nbf", json!(IAT + 600));
    assert_eq!(at(&later, after(570)), Ok(()));
    assert_eq!(at(&later, after(569)), Err(TokenError::NotYetValid));
}

#[test]
fn a_token_may_not_live_too_long_or_not_at_all() {
    let day = 24 * 3600;
    assert!(check(&signed(HEADER, with("exp", json!(IAT + day)))).is_ok());
    refused(&with("exp", json!(IAT + day + 1)), Claim::Exp, ClaimFault::Lifetime);
    refused(&with("exp", json!(IAT)), Claim::Exp, ClaimFault::Lifetime);
    refused(&with("exp", json!(0)), Claim::Exp, ClaimFault::Lifetime);
    let short = Rules { lifetime_max: Span::seconds(3599), ..rules() };
    assert_eq!(
        verify(&keys(), &short, &signed(HEADER, CLAIMS), after(60)),
        Err(TokenError::Claim(Claim::Exp, ClaimFault::Lifetime))
    );
}

#[test]
fn expired_is_said_only_when_nothing_else_is_wrong() {
    let mut claims = good();
    claims["exp"] = json!(IAT + 1);
    assert_eq!(check(&signed(HEADER, claims.to_string())), Err(TokenError::Expired));
    claims["aud"] = json!("elsewhere");
    refused(&claims.to_string(), Claim::Aud, ClaimFault::Mismatch);
}

#[test]
fn claims_of_others_are_passed_over_within_reason() {
    let nested = |levels: usize| {
        let list = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        literally("realm_access", &list)
    };
    assert!(check(&signed(HEADER, nested(7))).is_ok());
    assert!(check(&signed(HEADER, nested(8))).is_err());
    assert!(check(&signed(HEADER, literally("other", "1e400"))).is_err());
}
