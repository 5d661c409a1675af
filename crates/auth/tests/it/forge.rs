//! Tokens a well-behaved issuer would not make, and the rules and times all tests share.

use auth::{Identity, Keys, Rules, TokenError, VerifyingKey, verify};
use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::{Span, Wall};

/// An HS256 secret of the least length.
pub const SECRET: &[u8; 32] = b"a secret of just thirty-two byte";
/// The `iat` of good tokens.
pub const IAT: u64 = 1_700_000_000;
/// A header nothing is wrong with.
pub const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;
/// Claims nothing is wrong with, at any time from `IAT` to an hour later.
pub const CLAIMS: &str = concat!(
    r#"{"sub":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","dev":7,"sid":"laptop","#,
    r#""iat":1700000000,"exp":1700003600,"aud":"throng"}"#
);

/// So many seconds after `IAT`.
pub fn after(seconds: u64) -> Wall {
    Wall((IAT + seconds) * 1_000)
}

pub fn rules() -> Rules {
    Rules {
        audience: "throng".to_owned(),
        issuer: None,
        leeway: Span::seconds(30),
        lifetime_max: Span::seconds(24 * 3600),
    }
}

pub fn keys() -> Keys {
    Keys::new(vec![VerifyingKey::from_secret(SECRET).expect("long enough")]).expect("one key")
}

pub fn base64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Signs whatever is given, as HS256 with this secret.
pub fn signed_with(secret: &[u8], header: impl AsRef<[u8]>, claims: impl AsRef<[u8]>) -> String {
    signed_text(secret, &format!("{}.{}", base64(header), base64(claims)))
}

/// Signs header and claims as they are already encoded, rightly or wrongly.
pub fn signed_text(secret: &[u8], signed: &str) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
    format!("{signed}.{}", base64(tag))
}

pub fn signed(header: impl AsRef<[u8]>, claims: impl AsRef<[u8]>) -> String {
    signed_with(SECRET, header, claims)
}

/// Verifies one minute after `IAT` with the shared key and rules.
pub fn check(token: &str) -> Result<Identity, TokenError> {
    verify(&keys(), &rules(), token, after(60))
}
