//! The four signature algorithms throng takes, and their names in a token's header (RFC 7518, RFC 8037).

use std::fmt;
use std::str::FromStr;

/// A signature algorithm. Each key has exactly one, fixed when the key is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// HMAC with SHA-256, a secret both sides share.
    Hs256,
    /// Ed25519. The header calls it `EdDSA`; other curves of that name are not taken.
    EdDsa,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
}

impl Algorithm {
    /// All of them, in the order documentation lists them.
    pub const ALL: [Algorithm; 4] = [Algorithm::Hs256, Algorithm::EdDsa, Algorithm::Es256, Algorithm::Rs256];

    /// The value of `alg` in a header, compared byte for byte.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Hs256 => "HS256",
            Algorithm::EdDsa => "EdDSA",
            Algorithm::Es256 => "ES256",
            Algorithm::Rs256 => "RS256",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text names no algorithm throng takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownAlgorithm;

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not one of HS256, EdDSA, ES256, RS256")
    }
}

impl std::error::Error for UnknownAlgorithm {}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    /// Exact: the name is compared, never folded or trimmed.
    fn from_str(text: &str) -> Result<Algorithm, UnknownAlgorithm> {
        Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == text).ok_or(UnknownAlgorithm)
    }
}
