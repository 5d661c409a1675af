//! Row 15 of the attack list: what people send instead of a token they were given.

use auth::{
    Algorithm, Keys, Malformed, SigningKey, TOKEN_BYTES_MAX, TokenError, Untrusted, VerifyingKey, verify,
};

use crate::forge::{
    CLAIMS, HEADER, SECRET, after, base64, check, keys, rules, signed, signed_text, signed_with,
};

const ED25519_PEM: &[u8] = include_bytes!("../fixtures/ed25519.pub.pem");

fn untrusted(fault: Untrusted) -> Result<auth::Identity, TokenError> {
    Err(TokenError::Untrusted(fault))
}

fn malformed(fault: Malformed) -> Result<auth::Identity, TokenError> {
    Err(TokenError::Malformed(fault))
}

#[test]
fn the_token_the_tricks_start_from_is_good() {
    assert!(check(&signed(HEADER, CLAIMS)).is_ok());
}

#[test]
fn the_header_does_not_choose_the_algorithm() {
    for alg in
        ["none", "None", "NoNe", "NONE", "hs256", "HS256 ", "HS384", "HS512", "EdDSA", "ES256", "PS256", ""]
    {
        let header = format!(r#"{{"alg":"{alg}"}}"#);
        let unsigned = format!("{}.{}.", base64(&header), base64(CLAIMS));
        for token in [signed(&header, CLAIMS), unsigned] {
            assert_eq!(check(&token), untrusted(Untrusted::AlgorithmMismatch), "{alg}");
        }
    }
    for header in ["{}", r#"{"alg":null}"#, r#"{"alg":256}"#, r#"{"alg":["HS256"]}"#, r#"{"typ":"JWT"}"#] {
        assert_eq!(check(&signed(header, CLAIMS)), untrusted(Untrusted::HeaderEntry), "{header}");
    }
}

#[test]
fn an_empty_or_shortened_signature_is_wrong() {
    let token = signed(HEADER, CLAIMS);
    let (body, signature) = token.rsplit_once('.').expect("three parts");
    assert_eq!(check(&format!("{body}.")), untrusted(Untrusted::Signature));
    // 40 characters are 30 whole bytes of the 32.
    assert_eq!(check(&format!("{body}.{}", &signature[..40])), untrusted(Untrusted::Signature));
    assert_eq!(check(&format!("{body}.{}", base64([0; 32]))), untrusted(Untrusted::Signature));
}

#[test]
fn a_public_key_is_no_hs256_secret() {
    let public = VerifyingKey::from_file_bytes(Algorithm::EdDsa, ED25519_PEM).expect("a public key");
    let keys = Keys::new(vec![public]).expect("one key");
    let token = signed_with(ED25519_PEM, HEADER, CLAIMS);
    assert_eq!(verify(&keys, &rules(), &token, after(60)), untrusted(Untrusted::AlgorithmMismatch));
}

#[test]
fn a_header_may_not_bring_or_fetch_a_key_or_change_the_rules() {
    for entry in [
        r#""jku":"https://example.org/keys""#,
        r#""jwk":{"kty":"oct","k":"AAAA"}"#,
        r#""x5u":"https://example.org/certificate""#,
        r#""x5c":["AAAA"]"#,
        r#""crit":["exp"]"#,
        r#""crit":[]"#,
        r#""b64":true"#,
        r#""b64":false"#,
        r#""enc":"A128GCM""#,
        r#""zip":"DEF""#,
        r#""jku":null"#,
    ] {
        let header = format!(r#"{{"alg":"HS256",{entry}}}"#);
        assert_eq!(check(&signed(&header, CLAIMS)), untrusted(Untrusted::HeaderForbidden), "{entry}");
    }
}

#[test]
fn other_header_entries_are_passed_over() {
    for header in [
        r#"{"alg":"HS256"}"#,
        r#"{"alg":"HS256","typ":"jwt"}"#,
        r#"{"typ":"at+jwt","alg":"HS256","x5t":"abc","nonce":1}"#,
        r#"{"\u0061lg":"HS256"}"#,
        r#" { "alg" : "HS256" } "#,
    ] {
        assert!(check(&signed(header, CLAIMS)).is_ok(), "{header}");
    }
    for header in
        [r#"{"alg":"HS256","typ":"JWE"}"#, r#"{"alg":"HS256","typ":1}"#, r#"{"alg":"HS256","kid":1}"#]
    {
        assert_eq!(check(&signed(header, CLAIMS)), untrusted(Untrusted::HeaderEntry), "{header}");
    }
}

#[test]
fn a_repeated_name_is_refused() {
    for header in [r#"{"alg":"none","alg":"HS256"}"#, r#"{"alg":"HS256","a":1,"a":1}"#] {
        assert_eq!(check(&signed(header, CLAIMS)), malformed(Malformed::Header), "{header}");
    }
    let twice = CLAIMS.replacen('{', r#"{"sub":"somebody else","#, 1);
    assert_eq!(check(&signed(HEADER, twice)), malformed(Malformed::Claims));
    let escaped = CLAIMS.replacen('{', r#"{"\u0065xp":9999999999,"#, 1);
    assert_eq!(check(&signed(HEADER, escaped)), malformed(Malformed::Claims));
}

#[test]
fn a_kid_is_looked_up_exactly() {
    let named = |kid| VerifyingKey::from_secret(SECRET).expect("a key").with_kid(kid);
    let other = || VerifyingKey::from_secret(&[9; 32]).expect("a key");
    let keys = Keys::new(vec![other().with_kid("k2"), named("k1"), other()]).expect("three keys");
    let verify = |kid: &str| {
        let header = format!(r#"{{"alg":"HS256","kid":"{kid}"}}"#);
        verify(&keys, &rules(), &signed(&header, CLAIMS), after(60))
    };
    assert!(verify("k1").is_ok());
    assert_eq!(verify("k2"), untrusted(Untrusted::Signature));
    for kid in ["", "K1", "k1 ", "k", "k10", "../k1", "k1\\u0000", "0"] {
        assert_eq!(verify(kid), untrusted(Untrusted::UnknownKey), "{kid}");
    }
}

#[test]
fn without_a_kid_only_one_key_can_be_meant() {
    let key = |kid: Option<&str>, secret: &[u8]| {
        let key = VerifyingKey::from_secret(secret).expect("a key");
        match kid {
            Some(kid) => key.with_kid(kid),
            None => key,
        }
    };
    let token = signed(HEADER, CLAIMS);
    let verify = |keys| verify(&Keys::new(keys).expect("keys"), &rules(), &token, after(60)).map(|_| ());
    assert_eq!(verify(vec![key(Some("only"), SECRET)]), Ok(()));
    assert_eq!(verify(vec![key(Some("a"), &[9; 32]), key(None, SECRET)]), Ok(()));
    assert_eq!(
        verify(vec![key(Some("a"), SECRET), key(Some("b"), &[9; 32])]),
        Err(TokenError::Untrusted(Untrusted::AmbiguousKey))
    );
    // And a named token never falls back to the key without a name.
    let keys = keys();
    let named = signed(r#"{"alg":"HS256","kid":"a"}"#, CLAIMS);
    assert_eq!(auth::verify(&keys, &rules(), &named, after(60)), untrusted(Untrusted::UnknownKey));
}

#[test]
fn a_token_has_three_parts_of_unpadded_base64url() {
    let token = signed(HEADER, CLAIMS);
    let (body, signature) = token.rsplit_once('.').expect("three parts");
    let (header, claims) = body.split_once('.').expect("two parts");
    for text in [
        "",
        "token",
        body,
        &format!("{token}."),
        &format!(".{token}"),
        &format!("{token}.{signature}"),
        &format!("{header}.x.{claims}.{signature}"),
    ] {
        assert_eq!(check(text), malformed(Malformed::Parts), "{text}");
    }
    for text in [
        format!("{token}="),
        format!(" {token}"),
        format!("{token}\n"),
        format!("{header}=.{claims}.{signature}"),
        signed_text(SECRET, &format!("{header}.{claims}==")),
        signed_text(SECRET, &format!("{header}.{claims}\u{fe0f}")),
        format!("Bearer {token}"),
        format!("{body}.{}", signature.replace(['-', '_'], "+")).replacen(header, &format!("{header}/+"), 1),
        format!("{header}.{claims}.é"),
    ] {
        assert_eq!(check(&text), malformed(Malformed::Base64), "{text}");
    }
    // The last of 43 characters carries four bits of the signature and two that must be 0.
    let last = signature.chars().last().expect("not empty");
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let index = alphabet.find(last).expect("of the alphabet");
    let spelled = format!("{body}.{}{}", &signature[..42], &alphabet[index + 1..index + 2]);
    assert_eq!(check(&spelled), malformed(Malformed::Base64));
}

#[test]
fn a_long_token_is_not_even_decoded() {
    let padded = |length: usize| CLAIMS.replacen('{', &format!(r#"{{"x":"{}","#, "y".repeat(length)), 1);
    let longest =
        (0..4000).map(|n| signed(HEADER, padded(n))).take_while(|t| t.len() <= TOKEN_BYTES_MAX).last();
    let longest = longest.expect("one that fits");
    assert!(longest.len() >= TOKEN_BYTES_MAX - 1 && check(&longest).is_ok());
    assert_eq!(check(&signed(HEADER, padded(4000))), malformed(Malformed::TooLong));
    assert_eq!(check(&".".repeat(1 << 20)), malformed(Malformed::TooLong));
    // A header that does not fit the little room it is given.
    let header = format!(r#"{{"alg":"HS256","x":"{}"}}"#, "y".repeat(1024));
    assert_eq!(check(&signed(header, CLAIMS)), malformed(Malformed::Base64));
}

#[test]
fn claims_are_looked_at_only_after_the_signature() {
    let expired = CLAIMS.replace("1700003600", "1700000001");
    assert_eq!(check(&signed(HEADER, &expired)), Err(TokenError::Expired));
    assert_eq!(check(&signed_with(&[9; 32], HEADER, &expired)), untrusted(Untrusted::Signature));
    assert_eq!(check(&signed_with(&[9; 32], HEADER, "not JSON")), untrusted(Untrusted::Signature));
}

#[test]
fn x7_no_error_and_no_debug_form_shows_a_token_or_a_secret() {
    let token = signed(HEADER, CLAIMS.replace("throng", "elsewhere"));
    let said = [
        check(&token).expect_err("for another audience").to_string(),
        format!("{:?}", check(&token)),
        format!("{:?}", keys()),
        format!("{:?}", SigningKey::from_secret(SECRET)),
        format!("{:?}", auth::VerifyingKey::from_secret(&SECRET[..31])),
    ];
    let secret = std::str::from_utf8(SECRET).expect("a text");
    for text in said {
        assert!(!text.contains(secret) && !text.contains(&base64(SECRET)), "{text}");
        assert!(token.split('.').all(|part| !text.contains(part)) && !text.contains("elsewhere"), "{text}");
    }
}
