//! Key files and key sets as others write them, and every mistake in them.

use auth::{
    Algorithm, Grant, KeyError, Keys, Rules, SigningKey, TokenError, VerifyingKey, mint, parse_jwks, verify,
};
use model::{DeviceId, Span, Wall};

use crate::forge::{SECRET, after, rules};

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../fixtures/", $name)).as_slice()
    };
}

fn from_file(algorithm: Algorithm, bytes: &[u8]) -> Result<VerifyingKey, KeyError> {
    VerifyingKey::from_file_bytes(algorithm, bytes)
}

#[test]
fn keys_and_tokens_of_openssl_are_taken() {
    for (algorithm, public, token) in [
        (Algorithm::EdDsa, fixture!("ed25519.pub.pem"), fixture!("ed25519.token")),
        (Algorithm::EdDsa, fixture!("ed25519.pem"), fixture!("ed25519.token")),
        (Algorithm::Es256, fixture!("p256.pub.pem"), fixture!("p256.token")),
        (Algorithm::Rs256, fixture!("rsa2048.pub.pem"), fixture!("rsa2048.token")),
    ] {
        let keys = Keys::new(vec![from_file(algorithm, public).expect("a key")]).expect("one key");
        let token = std::str::from_utf8(token).expect("a text").trim_end();
        let rules = Rules { issuer: Some("https://issuer.example".to_owned()), ..rules() };
        let identity = verify(&keys, &rules, token, after(60)).expect("a good token");
        assert_eq!(identity.device.to_string(), "f81d4fae-7dec-11d0-a765-00a0c91e6bf6/7", "{algorithm}");
        assert_eq!(identity.session.to_string(), "0b54b3ce-51f4-4c25-8b02-3a0f3bde9d10");
        assert_eq!(verify(&keys, &rules, token, after(3600)), Err(TokenError::Expired));
    }
}

#[test]
fn a_key_file_of_another_kind_is_refused() {
    let wrong = |algorithm| KeyError::WrongKind { algorithm };
    for (algorithm, file, fault) in [
        (Algorithm::EdDsa, fixture!("p256.pub.pem"), wrong(Algorithm::EdDsa)),
        (Algorithm::EdDsa, fixture!("rsa2048.pub.pem"), wrong(Algorithm::EdDsa)),
        (Algorithm::EdDsa, fixture!("ed448.pub.pem"), wrong(Algorithm::EdDsa)),
        (Algorithm::Es256, fixture!("ed25519.pub.pem"), wrong(Algorithm::Es256)),
        (Algorithm::Es256, fixture!("p384.pub.pem"), wrong(Algorithm::Es256)),
        (Algorithm::Es256, fixture!("ed25519.pem"), KeyError::Private),
        (Algorithm::Rs256, fixture!("p256.pub.pem"), wrong(Algorithm::Rs256)),
        (Algorithm::Rs256, fixture!("rsa1024.pub.pem"), KeyError::RsaSize),
        (
            Algorithm::Rs256,
            fixture!("rsa2048.pkcs1.pem"),
            KeyError::PemLabel { found: "RSA PUBLIC KEY".to_owned() },
        ),
        (
            Algorithm::Es256,
            fixture!("certificate.pem"),
            KeyError::PemLabel { found: "CERTIFICATE".to_owned() },
        ),
        (Algorithm::Hs256, fixture!("ed25519.pub.pem"), KeyError::SecretIsPem),
        (Algorithm::Hs256, fixture!("ed25519.pem"), KeyError::SecretIsPem),
        (Algorithm::EdDsa, b"", KeyError::NotPem),
        (Algorithm::EdDsa, &[0xff; 100], KeyError::NotPem),
        (Algorithm::EdDsa, b"-----BEGIN PUBLIC KEY-----\nAAAA\n", KeyError::NotPem),
        (Algorithm::EdDsa, b"-----BEGIN PUBLIC KEY-----\n!!!!\n-----END PUBLIC KEY-----\n", KeyError::NotPem),
        (
            Algorithm::EdDsa,
            b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
            wrong(Algorithm::EdDsa),
        ),
    ] {
        assert_eq!(from_file(algorithm, file).expect_err("a bad key"), fault);
    }
    let two = [fixture!("ed25519.pub.pem"), fixture!("ed25519.pub.pem")].concat();
    assert_eq!(from_file(Algorithm::EdDsa, &two).expect_err("two keys"), KeyError::NotPem);
}

#[test]
fn a_text_secret_loses_its_line_end_and_a_binary_one_loses_nothing() {
    let token = |secret: &[u8]| crate::forge::signed_with(secret, crate::forge::HEADER, crate::forge::CLAIMS);
    let check = |file: &[u8], secret: &[u8]| {
        let keys = Keys::new(vec![from_file(Algorithm::Hs256, file).expect("a secret")]).expect("one key");
        assert!(verify(&keys, &rules(), &token(secret), after(60)).is_ok());
    };
    let text = std::str::from_utf8(SECRET).expect("a text");
    check(SECRET, SECRET);
    check(format!("{text}\n").as_bytes(), SECRET);
    check(format!("{text}\r\n").as_bytes(), SECRET);
    let binary = [&[0x80; 31], b"\n".as_slice()].concat();
    check(&binary, &binary);
}

#[test]
fn a_short_secret_is_refused() {
    assert_eq!(
        VerifyingKey::from_secret(&SECRET[..31]).expect_err("short"),
        KeyError::SecretTooShort { bytes: 31 }
    );
    // The line end does not count.
    let file = [&SECRET[..31], b"\n"].concat();
    assert_eq!(
        from_file(Algorithm::Hs256, &file).expect_err("short"),
        KeyError::SecretTooShort { bytes: 31 }
    );
    assert!(SigningKey::from_secret(&SECRET[..31]).is_err());
}

#[test]
fn a_set_of_keys_is_unambiguous() {
    let key = |kid: Option<&str>| {
        let key = VerifyingKey::from_secret(SECRET).expect("a key");
        match kid {
            Some(kid) => key.with_kid(kid),
            None => key,
        }
    };
    let made = |keys| Keys::new(keys).map(|keys| keys.len());
    assert_eq!(made(vec![]), Err(KeyError::Empty));
    assert_eq!(made(vec![key(None), key(Some("a"))]), Ok(2));
    assert_eq!(made(vec![key(None), key(Some("a")), key(None)]), Err(KeyError::SeveralUnnamed));
    assert_eq!(
        made(vec![key(Some("a")), key(Some("b")), key(Some("a"))]),
        Err(KeyError::DuplicateKid { kid: "a".to_owned() })
    );
    assert_eq!(made((0..65).map(|n| key(Some(&n.to_string()))).collect()), Err(KeyError::TooMany));
}

/// The public key of RFC 8037, appendix A.2.
const OKP: &str = r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;

fn jwks(keys: &[&str]) -> Result<Vec<(Algorithm, Option<String>)>, KeyError> {
    let text = format!("{{\"keys\":[{}]}}", keys.join(","));
    let keys = parse_jwks(text.as_bytes())?;
    Ok(keys.iter().map(|key| (key.algorithm(), key.kid().map(str::to_owned))).collect())
}

#[test]
fn a_key_set_yields_what_can_verify_and_passes_over_the_rest() {
    let named = OKP.replace('{', r#"{"kid":"one","use":"sig","alg":"EdDSA","#);
    let keys = jwks(&[
        r#"{"kty":"RSA","alg":"RS512","n":"AAAA","e":"AQAB","kid":"other algorithm"}"#,
        r#"{"kty":"RSA","use":"enc","n":"AAAA","e":"AQAB"}"#,
        r#"{"kty":"RSA","key_ops":["encrypt"],"n":"AAAA","e":"AQAB"}"#,
        r#"{"kty":"EC","crv":"P-384","x":"AAAA","y":"AAAA"}"#,
        r#"{"kty":"OKP","crv":"Ed448","x":"AAAA"}"#,
        r#"{"kty":"AKP","alg":"ML-DSA-44","pub":"AAAA"}"#,
        r#"{"kty":"oct","alg":"HS512","k":"AAAA"}"#,
        &named,
        OKP,
    ]);
    assert_eq!(keys, Ok(vec![(Algorithm::EdDsa, Some("one".to_owned())), (Algorithm::EdDsa, None)]));
}

#[test]
fn a_key_set_with_a_mistake_is_refused_and_the_key_is_named() {
    let wrong = |algorithm| KeyError::WrongKind { algorithm };
    for (key, fault) in [
        (r#"{"kty":"oct","k":"AAAA"}"#, KeyError::JwksSymmetric),
        (r#"{"kty":"oct","alg":"HS256","k":"AAAA"}"#, KeyError::SecretTooShort { bytes: 3 }),
        (r#"{"kty":"oct","alg":"HS256"}"#, KeyError::JwksField),
        (r#"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#, KeyError::RsaSize),
        (r#"{"kty":"RSA","n":"AQAB"}"#, KeyError::JwksField),
        (r#"{"kty":"RSA","n":"","e":""}"#, wrong(Algorithm::Rs256)),
        (r#"{"kty":"EC","crv":"P-256","x":"AQAB","y":"AQAB"}"#, wrong(Algorithm::Es256)),
        (r#"{"kty":"OKP","crv":"Ed25519","x":"AQAB"}"#, wrong(Algorithm::EdDsa)),
        (r#"{"kty":"OKP","crv":"Ed25519","x":"AQA="}"#, KeyError::JwksField),
        (r#"{"kty":"OKP","crv":"Ed25519","x":"AQAB","d":"AQAB"}"#, KeyError::Private),
    ] {
        let fault = KeyError::JwksKey { index: 1, fault: Box::new(fault) };
        assert_eq!(jwks(&[OKP, key]), Err(fault), "{key}");
    }
    // A point that does not lie on the curve: y of RFC 7515 A.3 with another last byte.
    let off_curve = r#"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a4"}"#;
    let fault = KeyError::JwksKey { index: 0, fault: Box::new(wrong(Algorithm::Es256)) };
    assert_eq!(jwks(&[off_curve]), Err(fault));
    assert_eq!(jwks(&[]), Err(KeyError::JwksUnusable));
    for text in ["", "{}", "[]", r#"{"keys":{}}"#, r#"{"keys":[{}]}"#, r#"{"keys":[],"keys":[]}"#] {
        assert_eq!(parse_jwks(text.as_bytes()).map(|_| ()), Err(KeyError::JwksSyntax), "{text}");
    }
}

#[test]
fn what_is_minted_is_taken_and_survives_its_file() {
    let grant = Grant {
        user: "al\"ice",
        device: 3,
        session: "s",
        audience: "throng",
        issuer: Some("me"),
        issued_at: Wall(after(0).0 + 999),
        lifetime: Span::seconds(60),
    };
    for signing in [
        SigningKey::from_secret(SECRET).expect("a secret"),
        SigningKey::ed25519_from_seed(&[5; 32]).expect("a key").with_kid("mine"),
    ] {
        let file = signing.to_file_bytes().expect("its file");
        let again = SigningKey::from_file_bytes(signing.algorithm(), &file).expect("the same key");
        let token = mint(&signing, &grant);
        let kid = token.contains(&crate::forge::base64(r#"{"alg":"EdDSA","typ":"JWT","kid":"mine"}"#));
        assert_eq!(kid, signing.algorithm() == Algorithm::EdDsa);
        let rules = Rules { issuer: Some("me".to_owned()), ..rules() };
        let keys = |key| Keys::new(vec![key]).expect("one key");
        let identity =
            verify(&keys(signing.verifying_key()), &rules, &token, after(1)).expect("a good token");
        assert_eq!(identity.device.device, DeviceId(3));
        assert_eq!(identity.expires_at, after(60));
        // The key read back has no name, and its tokens carry none.
        let token = mint(&again, &grant);
        assert!(verify(&keys(again.verifying_key()), &rules, &token, after(1)).is_ok());
        if let Some(public) = signing.public_pem() {
            let public = from_file(Algorithm::EdDsa, public.as_bytes()).expect("a public key");
            assert!(verify(&keys(public), &rules, &token, after(1)).is_ok());
        }
    }
}

#[test]
fn our_pem_is_openssls_pem() {
    let private = fixture!("ed25519.pem");
    let signing = SigningKey::from_file_bytes(Algorithm::EdDsa, private).expect("a key");
    assert_eq!(signing.to_file_bytes().expect("its file"), private);
    assert_eq!(signing.public_pem().expect("a public key").as_bytes(), fixture!("ed25519.pub.pem"));
}
