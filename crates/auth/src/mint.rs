//! Making tokens: for `throng token`, for `--dev` and for tests. A server that only verifies never comes here.
//!
//! HS256 and Ed25519 only: both sign without a random source, which this room does not have.

use std::fmt;

use aws_lc_rs::encoding::AsBigEndian;
use aws_lc_rs::hmac;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::{Span, Wall};
use serde::Serialize;

use crate::error::KeyError;
use crate::key::secret_in;
use crate::{Algorithm, VerifyingKey, pem};

/// PKCS#8 (RFC 8410, section 7) up to the 32 bytes of an Ed25519 seed.
const PKCS8_ED25519: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
/// SubjectPublicKeyInfo (RFC 8410, section 4) up to the 32 bytes of an Ed25519 public key.
const SPKI_ED25519: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// What signs tokens.
pub struct SigningKey {
    kid: Option<Box<str>>,
    material: Material,
}

enum Material {
    /// The bytes are kept because the verifying key is made of them.
    Secret(Box<[u8]>),
    Ed25519(Box<Ed25519KeyPair>),
}

impl SigningKey {
    /// An HS256 secret.
    ///
    /// # Errors
    /// As [`VerifyingKey::from_secret`].
    pub fn from_secret(secret: &[u8]) -> Result<SigningKey, KeyError> {
        VerifyingKey::from_secret(secret)?;
        Ok(SigningKey { kid: None, material: Material::Secret(secret.into()) })
    }

    /// The Ed25519 key of 32 random bytes.
    ///
    /// # Errors
    /// None that a caller could cause; AWS-LC may refuse.
    pub fn ed25519_from_seed(seed: &[u8; 32]) -> Result<SigningKey, KeyError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| wrong_kind(Algorithm::EdDsa))?;
        Ok(SigningKey { kid: None, material: Material::Ed25519(Box::new(pair)) })
    }

    /// What a key file holds: a secret, or an Ed25519 private key in PEM (PKCS#8).
    ///
    /// # Errors
    /// When the text is no such key, or the algorithm is one throng does not sign with.
    pub fn from_file_bytes(algorithm: Algorithm, bytes: &[u8]) -> Result<SigningKey, KeyError> {
        match algorithm {
            Algorithm::Hs256 => Self::from_secret(secret_in(bytes)),
            Algorithm::EdDsa => {
                let der = pem::private_key(bytes)?;
                let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der)
                    .map_err(|_| wrong_kind(Algorithm::EdDsa))?;
                Ok(SigningKey { kid: None, material: Material::Ed25519(Box::new(pair)) })
            }
            Algorithm::Es256 | Algorithm::Rs256 => Err(wrong_kind(algorithm)),
        }
    }

    /// The same key under a name, which its tokens will carry as `kid`.
    pub fn with_kid(mut self, kid: &str) -> SigningKey {
        self.kid = Some(kid.into());
        self
    }

    /// Its algorithm.
    pub fn algorithm(&self) -> Algorithm {
        match self.material {
            Material::Secret(_) => Algorithm::Hs256,
            Material::Ed25519(_) => Algorithm::EdDsa,
        }
    }

    /// What checks this key's tokens, under the same name.
    pub fn verifying_key(&self) -> VerifyingKey {
        let key = match &self.material {
            Material::Secret(secret) => VerifyingKey::from_secret(secret),
            Material::Ed25519(pair) => VerifyingKey::from_ed25519(pair.public_key().as_ref()),
        };
        let key = key.expect("the parts of a signing key were checked when it was made");
        match &self.kid {
            Some(kid) => key.with_kid(kid),
            None => key,
        }
    }

    /// The public key as PEM, which may be handed to anybody; a secret has none.
    pub fn public_pem(&self) -> Option<String> {
        match &self.material {
            Material::Secret(_) => None,
            Material::Ed25519(pair) => {
                Some(pem::write_public(&[&SPKI_ED25519, pair.public_key().as_ref()].concat()))
            }
        }
    }

    /// What belongs in the key's file: the secret, or the private key as PEM. [`Self::from_file_bytes`] reads it.
    ///
    /// # Errors
    /// None that a caller could cause; AWS-LC may refuse.
    pub fn to_file_bytes(&self) -> Result<Vec<u8>, KeyError> {
        match &self.material {
            Material::Secret(secret) => Ok(secret.to_vec()),
            Material::Ed25519(pair) => {
                let seed = pair.seed().and_then(|seed| seed.as_be_bytes());
                let seed = seed.map_err(|_| wrong_kind(Algorithm::EdDsa))?;
                Ok(pem::write_private(&[&PKCS8_ED25519, seed.as_ref()].concat()).into_bytes())
            }
        }
    }

    fn sign(&self, signed: &[u8]) -> String {
        match &self.material {
            Material::Secret(secret) => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
                URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed))
            }
            Material::Ed25519(pair) => URL_SAFE_NO_PAD.encode(pair.sign(signed)),
        }
    }
}

fn wrong_kind(algorithm: Algorithm) -> KeyError {
    KeyError::WrongKind { algorithm }
}

impl fmt::Debug for SigningKey {
    /// Says which key it is and nothing of what it is made of (invariant X7).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({}, {:?})", self.algorithm(), self.kid)
    }
}

/// What a new token shall say.
#[derive(Debug, Clone, Copy)]
pub struct Grant<'a> {
    /// `sub`.
    pub user: &'a str,
    /// `dev`.
    pub device: u32,
    /// `sid`.
    pub session: &'a str,
    /// `aud`.
    pub audience: &'a str,
    /// `iss`, left out when there is none.
    pub issuer: Option<&'a str>,
    /// `iat`, cut down to whole seconds.
    pub issued_at: Wall,
    /// How long after `iat` the token expires, cut down to whole seconds.
    pub lifetime: Span,
}

#[derive(Serialize)]
struct Header<'a> {
    alg: &'static str,
    typ: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kid: Option<&'a str>,
}

#[derive(Serialize)]
struct Claims<'a> {
    sub: &'a str,
    dev: u32,
    sid: &'a str,
    iat: u64,
    exp: u64,
    aud: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    iss: Option<&'a str>,
}

/// Makes a token. Whether [`crate::verify`] will take it depends on its rules; nothing is checked here.
pub fn mint(key: &SigningKey, grant: &Grant<'_>) -> String {
    let iat = grant.issued_at.0 / 1_000;
    let header = Header { alg: key.algorithm().name(), typ: "JWT", kid: key.kid.as_deref() };
    let claims = Claims {
        sub: grant.user,
        dev: grant.device,
        sid: grant.session,
        iat,
        exp: iat.saturating_add(grant.lifetime.0 / 1_000),
        aud: grant.audience,
        iss: grant.issuer,
    };
    let signed = format!("{}.{}", part(&header), part(&claims));
    let signature = key.sign(signed.as_bytes());
    format!("{signed}.{signature}")
}

fn part(value: &impl Serialize) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(value).expect("strings and numbers always serialise"))
}
