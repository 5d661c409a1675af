//! Who is speaking: a token and a time go in, an [`Identity`] or a [`TokenError`] comes out.
//!
//! Owns the verifying [`Keys`], the strict reading of a JSON Web Token (RFC 7519) and the making of tokens for
//! development and tests. Deliberately knows no socket, no HTTP header, no file and no clock: key texts come as
//! bytes and the time as an argument.
//!
//! The tokens are read here and not by a JWT library, because what row 15 of the attack list demands cannot be
//! had from one: the algorithm is a property of the key, header names that would fetch or carry another key
//! are refused and not ignored, a repeated name is an error, numbers are whole seconds, and base64 has one
//! spelling. The cryptography itself is AWS-LC's, all of it. Keys are parsed once, so checking a token neither
//! parses a key nor allocates more than the list of the names it has seen.
//!
//! ```
//! use auth::{Grant, Keys, Rules, SigningKey, mint, verify};
//! use model::{Span, Wall};
//!
//! let signing = SigningKey::ed25519_from_seed(&[7; 32])?;
//! let keys = Keys::new(vec![signing.verifying_key()])?;
//! let rules = Rules::for_audience("throng");
//! let now = Wall(1_700_000_000_000);
//! let token = mint(
//!     &signing,
//!     &Grant {
//!         user: "alice",
//!         device: 1,
//!         session: "laptop",
//!         audience: "throng",
//!         issuer: None,
//!         issued_at: now,
//!         lifetime: Span::seconds(3600),
//!     },
//! );
//! let identity = verify(&keys, &rules, &token, now)?;
//! assert_eq!(identity.device.device.0, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod algorithm;
mod claims;
mod error;
mod header;
mod identity;
mod json;
mod jwks;
mod key;
mod keys;
mod mint;
mod pem;
mod token;

pub use algorithm::Algorithm;
pub use error::{Claim, ClaimFault, KeyError, Malformed, TokenError, Untrusted};
pub use identity::{Identity, SESSION_NAMESPACE, SessionId, USER_NAMESPACE, user_id};
pub use jwks::parse_jwks;
pub use key::{SECRET_BYTES_MIN, VerifyingKey};
pub use keys::{KEYS_MAX, Keys};
pub use mint::{Grant, SigningKey, mint};
pub use token::{Rules, TOKEN_BYTES_MAX, verify};
