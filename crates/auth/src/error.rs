//! What can be wrong with a token or a key, by who is to blame. No variant can hold a piece of a token or a secret.

use std::fmt;

use crate::Algorithm;

/// Why a token was refused.
///
/// Only [`TokenError::Expired`] is answered with `token_expired`; everything else is `unauthorised`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenError {
    /// The sender's fault: this is no token.
    Malformed(Malformed),
    /// Somebody's attempt or a missing key: nobody who holds one of our keys made this token for us.
    Untrusted(Untrusted),
    /// The issuer's fault: properly signed, but a claim is not what it must be.
    Claim(Claim, ClaimFault),
    /// The clocks' fault: `iat` or `nbf` lies further ahead than the leeway.
    NotYetValid,
    /// The holder's fault: right in everything, but too late.
    Expired,
}

/// Which part of a token does not even parse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// Longer than [`crate::TOKEN_BYTES_MAX`].
    TooLong,
    /// Not three parts with dots between them.
    Parts,
    /// A part is not unpadded base64url in its one spelling.
    Base64,
    /// The header is not one flat-enough JSON object without repeated names.
    Header,
    /// The claims are not one flat-enough JSON object without repeated names.
    Claims,
}

/// Why a token is not one of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untrusted {
    /// The header has no usable `alg`, or an entry (`typ`, `kid`) of the wrong type.
    HeaderEntry,
    /// The header names a key or a rule of its own (`jku`, `jwk`, `x5u`, `x5c`, `crit`, `b64`, `enc`, `zip`).
    HeaderForbidden,
    /// No configured key has the token's `kid`.
    UnknownKey,
    /// The token names no key, and there are several it could mean.
    AmbiguousKey,
    /// The token's `alg` is not the algorithm of its key.
    AlgorithmMismatch,
    /// The signature is not that of the key.
    Signature,
}

/// A claim throng reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The user.
    Sub,
    /// The device of the user.
    Dev,
    /// The session.
    Sid,
    /// Issued at.
    Iat,
    /// Expires.
    Exp,
    /// Not before.
    Nbf,
    /// For whom the token is.
    Aud,
    /// Who made it.
    Iss,
}

impl Claim {
    /// Its name in the token.
    pub const fn name(self) -> &'static str {
        match self {
            Claim::Sub => "sub",
            Claim::Dev => "dev",
            Claim::Sid => "sid",
            Claim::Iat => "iat",
            Claim::Exp => "exp",
            Claim::Nbf => "nbf",
            Claim::Aud => "aud",
            Claim::Iss => "iss",
        }
    }

    const fn expected(self) -> &'static str {
        match self {
            Claim::Sub => "a string of 1 to 255 bytes",
            Claim::Dev => "a whole number from 0 to 4294967295",
            Claim::Sid => "a string of 1 to 64 bytes",
            Claim::Iat | Claim::Exp | Claim::Nbf => "whole seconds since 1970",
            Claim::Aud => "a string or a list of strings",
            Claim::Iss => "a string",
        }
    }
}

/// What is wrong with a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimFault {
    /// It must be there and is not.
    Missing,
    /// Of another type, or out of its range.
    Invalid,
    /// The token is for somebody else, or from somebody else.
    Mismatch,
    /// `exp` lies further from `iat` than a token may live, or before it.
    Lifetime,
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenError::Malformed(fault) => fault.fmt(f),
            TokenError::Untrusted(fault) => fault.fmt(f),
            TokenError::Claim(claim, fault) => {
                let name = claim.name();
                match fault {
                    ClaimFault::Missing => write!(f, "the token has no `{name}`"),
                    ClaimFault::Invalid => write!(f, "the token's `{name}` is not {}", claim.expected()),
                    ClaimFault::Mismatch => write!(f, "the token's `{name}` is not the configured one"),
                    ClaimFault::Lifetime => {
                        f.write_str("the token lives longer than tokens may, or not at all")
                    }
                }
            }
            TokenError::NotYetValid => f.write_str("the token is not valid yet"),
            TokenError::Expired => f.write_str("the token has expired"),
        }
    }
}

impl std::error::Error for TokenError {}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Malformed::TooLong => "the token is too long",
            Malformed::Parts => "the token has not three parts",
            Malformed::Base64 => "the token is not unpadded base64url",
            Malformed::Header => "the token's header is not an acceptable JSON object",
            Malformed::Claims => "the token's claims are not an acceptable JSON object",
        })
    }
}

impl fmt::Display for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Untrusted::HeaderEntry => "the token's header lacks `alg` or has an entry of the wrong kind",
            Untrusted::HeaderForbidden => "the token's header has an entry that is not allowed",
            Untrusted::UnknownKey => "the token names a key that is not configured",
            Untrusted::AmbiguousKey => "the token names no key and several are configured",
            Untrusted::AlgorithmMismatch => "the token's algorithm is not that of its key",
            Untrusted::Signature => "the token's signature is wrong",
        })
    }
}

/// Why a key, or a set of keys, cannot be used. Whoever configured it is to blame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyError {
    /// An HS256 secret that could be guessed.
    SecretTooShort {
        /// How long it is.
        bytes: usize,
    },
    /// A PEM text where a secret was expected: whoever knows the public key could sign.
    SecretIsPem,
    /// Not a PEM text with exactly one block.
    NotPem,
    /// A PEM block of another kind than `PUBLIC KEY`.
    PemLabel {
        /// What stands after `BEGIN`.
        found: String,
    },
    /// A private key where only a public one is of use.
    Private,
    /// The key is none of this algorithm.
    WrongKind {
        /// The algorithm the configuration names.
        algorithm: Algorithm,
    },
    /// An RSA modulus outside 2048 to 8192 bits.
    RsaSize,
    /// Not a JSON Web Key Set.
    JwksSyntax,
    /// A key of the set cannot be used.
    JwksKey {
        /// Its place in `keys`, from 0.
        index: usize,
        /// What is wrong with it.
        fault: Box<KeyError>,
    },
    /// A symmetric key that does not say `"alg": "HS256"`.
    JwksSymmetric,
    /// A key that lacks a field, or has one of the wrong kind.
    JwksField,
    /// None of the keys is for verifying with an algorithm throng takes.
    JwksUnusable,
    /// Two keys of one name.
    DuplicateKid {
        /// The name.
        kid: String,
    },
    /// Several keys without a name: a token could not tell which one it means.
    SeveralUnnamed,
    /// More than [`crate::KEYS_MAX`] keys.
    TooMany,
    /// Not a single key.
    Empty,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::SecretTooShort { bytes } => write!(
                f,
                "an HS256 secret needs at least {} bytes, this one has {bytes}",
                crate::SECRET_BYTES_MIN
            ),
            KeyError::SecretIsPem => f.write_str(
                "an HS256 secret was expected, this is a PEM key: name its own algorithm (EdDSA, ES256, RS256)",
            ),
            KeyError::NotPem => f.write_str("not a PEM text with one `-----BEGIN PUBLIC KEY-----` block"),
            KeyError::PemLabel { found } => write!(
                f,
                "a PEM block `{found}` where `PUBLIC KEY` was expected; `openssl pkey -pubout` makes one from a private key"
            ),
            KeyError::Private => f.write_str(
                "a private key where the public one belongs; `openssl pkey -pubout` makes the public one",
            ),
            KeyError::WrongKind { algorithm } => write!(f, "not a key for {algorithm}"),
            KeyError::RsaSize => f.write_str("an RSA key must have 2048 to 8192 bits"),
            KeyError::JwksSyntax => f.write_str("not a JSON Web Key Set (`{\"keys\": [...]}`)"),
            KeyError::JwksKey { index, fault } => write!(f, "key {index} of the set: {fault}"),
            KeyError::JwksSymmetric => {
                f.write_str("a symmetric key (`oct`) is only taken when it says `\"alg\": \"HS256\"`")
            }
            KeyError::JwksField => f.write_str("a field is missing or not base64url"),
            KeyError::JwksUnusable => {
                f.write_str("no key of the set verifies signatures with EdDSA, ES256, RS256 or HS256")
            }
            KeyError::DuplicateKid { kid } => write!(f, "two keys are called `{kid}`"),
            KeyError::SeveralUnnamed => {
                f.write_str("of several keys at most one may be without `kid`; give the others one")
            }
            KeyError::TooMany => write!(f, "more than {} keys", crate::KEYS_MAX),
            KeyError::Empty => f.write_str("no key"),
        }
    }
}

impl std::error::Error for KeyError {}
