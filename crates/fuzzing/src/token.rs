//! Any bytes as a token, as header and claims under a good signature, as a key set and as a key file.
//!
//! The first byte chooses. Between header and claims stands the first zero byte: JSON has none.

use std::sync::LazyLock;

use auth::{Algorithm, Keys, Rules, TokenError, VerifyingKey, parse_jwks, verify};
use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::Wall;
use serde_json::{Map, Value};

#[path = "../../auth/tests/it/reference.rs"]
mod reference;

const SECRET: &[u8; 32] = b"a secret of just thirty-two byte";
const NOW: u64 = 1_700_000_060;

static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let key = || VerifyingKey::from_secret(SECRET).expect("long enough");
    Keys::new(vec![key(), key().with_kid("named")]).expect("two keys")
});
static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::for_audience("throng"));

/// See the module.
pub fn token(data: &[u8]) {
    let Some((&choice, data)) = data.split_first() else { return };
    match choice % 8 {
        0 => whole(data),
        1 => drop(parse_jwks(data)),
        2 => Algorithm::ALL
            .into_iter()
            .for_each(|algorithm| drop(VerifyingKey::from_file_bytes(algorithm, data))),
        _ => parts(data),
    }
}

/// Nobody guesses a signature.
fn whole(data: &[u8]) {
    if let Ok(token) = std::str::from_utf8(data) {
        assert!(verify(&KEYS, &RULES, token, Wall(NOW * 1_000)).is_err());
    }
}

fn parts(data: &[u8]) {
    let end = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let (header, claims) = (&data[..end], data.get(end + 1..).unwrap_or_default());
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET), signed.as_bytes());
    let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag));
    let verdict = verify(&KEYS, &RULES, &token, Wall(NOW * 1_000));
    let claims = serde_json::from_slice::<Map<String, Value>>(claims);
    match verdict {
        Ok(_) => assert!(reference::acceptable(&claims.expect("JSON"), NOW)),
        // A client that hears this refreshes; with these claims that must be what helps.
        Err(TokenError::Expired) => {
            let mut claims = claims.expect("JSON");
            let iat = claims["iat"].as_u64().expect("seconds");
            let exp = claims["exp"].as_u64().expect("seconds");
            assert!(exp <= NOW && iat < exp);
            claims.insert("exp".to_owned(), (NOW + 1).into());
            claims.insert("iat".to_owned(), NOW.into());
            assert!(reference::acceptable(&claims, NOW));
        }
        Err(_) => {}
    }
}
