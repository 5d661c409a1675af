//! One verifying key: its material, its algorithm and, if it has one, its name.

use std::fmt;

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hmac;
use aws_lc_rs::rsa::PublicEncryptingKey;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
};

use crate::error::{KeyError, TokenError, Untrusted};
use crate::{Algorithm, SigningKey, pem};

/// Shortest HS256 secret: as long as the hash (RFC 7518, section 3.2).
pub const SECRET_BYTES_MIN: usize = 32;

/// What checks a signature. Its algorithm is part of it; a token has no say.
pub struct VerifyingKey {
    algorithm: Algorithm,
    kid: Option<Box<str>>,
    material: Material,
}

enum Material {
    Secret(Box<hmac::Key>),
    Public(ParsedPublicKey),
}

impl VerifyingKey {
    /// An HS256 secret, the bytes as they are.
    ///
    /// # Errors
    /// When it is shorter than [`SECRET_BYTES_MIN`], or a PEM text: verifying HS256 with a public key would let
    /// everybody sign.
    pub fn from_secret(secret: &[u8]) -> Result<VerifyingKey, KeyError> {
        if pem::looks_like(secret) {
            return Err(KeyError::SecretIsPem);
        }
        if secret.len() < SECRET_BYTES_MIN {
            return Err(KeyError::SecretTooShort { bytes: secret.len() });
        }
        Ok(Self::new(Algorithm::Hs256, Material::Secret(Box::new(hmac::Key::new(hmac::HMAC_SHA256, secret)))))
    }

    /// What a key file holds, for the algorithm the configuration names: a secret, or a public key as PEM.
    ///
    /// A secret that is text loses one line end, which editors and most tools add; a secret with any byte that
    /// is not printable ASCII is taken to the last byte. For EdDSA the private PEM that `throng` itself writes
    /// will do as well.
    ///
    /// # Errors
    /// When the text is no such key.
    pub fn from_file_bytes(algorithm: Algorithm, bytes: &[u8]) -> Result<VerifyingKey, KeyError> {
        match algorithm {
            Algorithm::Hs256 => Self::from_secret(secret_in(bytes)),
            Algorithm::EdDsa if pem::is_private(bytes) => {
                Ok(SigningKey::from_file_bytes(Algorithm::EdDsa, bytes)?.verifying_key())
            }
            _ => Self::from_spki(algorithm, &pem::public_key(bytes)?),
        }
    }

    /// The same key under a name; tokens that carry it as `kid` mean this key.
    pub fn with_kid(mut self, kid: &str) -> VerifyingKey {
        self.kid = Some(kid.into());
        self
    }

    /// Its algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Its name.
    pub fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    fn new(algorithm: Algorithm, material: Material) -> VerifyingKey {
        VerifyingKey { algorithm, kid: None, material }
    }

    /// A SubjectPublicKeyInfo (RFC 5280) of this algorithm.
    pub(crate) fn from_spki(algorithm: Algorithm, der: &[u8]) -> Result<VerifyingKey, KeyError> {
        let wrong_kind = KeyError::WrongKind { algorithm };
        let key = match algorithm {
            Algorithm::Hs256 => return Err(KeyError::SecretIsPem),
            Algorithm::EdDsa => ParsedPublicKey::new(&ED25519, der),
            Algorithm::Es256 => ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, der),
            Algorithm::Rs256 => match ParsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, der) {
                Ok(key) if !rsa_size_is_allowed(&key) => return Err(KeyError::RsaSize),
                parsed => parsed,
            },
        };
        Ok(Self::new(algorithm, Material::Public(key.map_err(|_| wrong_kind)?)))
    }

    /// An Ed25519 public key, its 32 bytes.
    pub(crate) fn from_ed25519(public: &[u8]) -> Result<VerifyingKey, KeyError> {
        match public.len() {
            32 => Self::from_spki(Algorithm::EdDsa, public),
            _ => Err(KeyError::WrongKind { algorithm: Algorithm::EdDsa }),
        }
    }

    /// A point of P-256 by its two coordinates, 32 bytes each.
    pub(crate) fn from_p256(x: &[u8], y: &[u8]) -> Result<VerifyingKey, KeyError> {
        if x.len() != 32 || y.len() != 32 {
            return Err(KeyError::WrongKind { algorithm: Algorithm::Es256 });
        }
        let mut point = [4; 65];
        point[1..33].copy_from_slice(x);
        point[33..].copy_from_slice(y);
        Self::from_spki(Algorithm::Es256, &point)
    }

    /// An RSA key by modulus and exponent, big-endian.
    pub(crate) fn from_rsa(n: &[u8], e: &[u8]) -> Result<VerifyingKey, KeyError> {
        let der = RsaPublicKeyComponents { n, e }
            .as_der()
            .map_err(|_| KeyError::WrongKind { algorithm: Algorithm::Rs256 })?;
        Self::from_spki(Algorithm::Rs256, der.as_ref())
    }

    /// Whether `signature` is this key's over `signed`.
    pub(crate) fn check(&self, signed: &[u8], signature: &[u8]) -> Result<(), TokenError> {
        let checked = match &self.material {
            Material::Secret(secret) => hmac::verify(secret, signed, signature),
            Material::Public(key) => key.verify_sig(signed, signature),
        };
        checked.map_err(|_| TokenError::Untrusted(Untrusted::Signature))
    }
}

/// AWS-LC enforces the range of a modulus only when it verifies; a bad key is better refused at start. The type it
/// has for encryption checks the same range when it is made.
fn rsa_size_is_allowed(key: &ParsedPublicKey) -> bool {
    key.as_der().and_then(|der| PublicEncryptingKey::from_der(der.as_ref()).map_err(|_| Unspecified)).is_ok()
}

/// The secret within the bytes of a file; see [`VerifyingKey::from_file_bytes`].
pub(crate) fn secret_in(bytes: &[u8]) -> &[u8] {
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match line.iter().all(|byte| (b' '..=b'~').contains(byte)) {
        true => line,
        false => bytes,
    }
}

impl fmt::Debug for VerifyingKey {
    /// Says which key it is and nothing of what it is made of (invariant X7).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyingKey({}, {:?})", self.algorithm, self.kid)
    }
}
