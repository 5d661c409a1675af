//! JSON Web Key Sets (RFC 7517) as identity providers publish them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

use crate::error::KeyError;
use crate::{Algorithm, VerifyingKey};

#[derive(Deserialize)]
struct Set {
    keys: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
    k: Option<String>,
    d: Option<serde::de::IgnoredAny>,
}

/// The keys of a set that verify signatures with an algorithm throng takes; the others are passed over, as the
/// RFC asks (section 5).
///
/// # Errors
/// When the text is no key set, a key that should be usable is not, or none is left.
pub fn parse_jwks(text: &[u8]) -> Result<Vec<VerifyingKey>, KeyError> {
    let set: Set = serde_json::from_slice(text).map_err(|_| KeyError::JwksSyntax)?;
    let mut keys = Vec::new();
    for (index, entry) in set.keys.iter().enumerate() {
        match entry.verifying_key() {
            Ok(Some(key)) => keys.push(key),
            Ok(None) => {}
            Err(fault) => return Err(KeyError::JwksKey { index, fault: Box::new(fault) }),
        }
    }
    match keys.is_empty() {
        true => Err(KeyError::JwksUnusable),
        false => Ok(keys),
    }
}

impl Entry {
    /// The key, or nothing when it is for something else.
    fn verifying_key(&self) -> Result<Option<VerifyingKey>, KeyError> {
        let Some(algorithm) = self.algorithm()? else { return Ok(None) };
        if self.d.is_some() {
            return Err(KeyError::Private);
        }
        let key = match algorithm {
            Algorithm::Hs256 => VerifyingKey::from_secret(&field(&self.k)?)?,
            Algorithm::EdDsa => VerifyingKey::from_ed25519(&field(&self.x)?)?,
            Algorithm::Es256 => VerifyingKey::from_p256(&field(&self.x)?, &field(&self.y)?)?,
            Algorithm::Rs256 => VerifyingKey::from_rsa(&field(&self.n)?, &field(&self.e)?)?,
        };
        Ok(Some(match &self.kid {
            Some(kid) => key.with_kid(kid),
            None => key,
        }))
    }

    /// The algorithm the key's type, and `alg` when it is there, leave open; `None` when it is not one of ours.
    fn algorithm(&self) -> Result<Option<Algorithm>, KeyError> {
        let for_signatures = self.purpose.as_deref().is_none_or(|purpose| purpose == "sig")
            && self.key_ops.as_ref().is_none_or(|operations| operations.iter().any(|one| one == "verify"));
        if !for_signatures {
            return Ok(None);
        }
        let by_type = match (self.kty.as_str(), self.crv.as_deref()) {
            ("OKP", Some("Ed25519")) => Algorithm::EdDsa,
            ("EC", Some("P-256")) => Algorithm::Es256,
            ("RSA", _) => Algorithm::Rs256,
            ("oct", _) if self.alg.is_none() => return Err(KeyError::JwksSymmetric),
            ("oct", _) => Algorithm::Hs256,
            _ => return Ok(None),
        };
        Ok(self.alg.as_deref().is_none_or(|alg| alg == by_type.name()).then_some(by_type))
    }
}

fn field(value: &Option<String>) -> Result<Vec<u8>, KeyError> {
    let value = value.as_deref().ok_or(KeyError::JwksField)?;
    URL_SAFE_NO_PAD.decode(value).map_err(|_| KeyError::JwksField)
}
