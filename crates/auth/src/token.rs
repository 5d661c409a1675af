//! Checking a token: its shape, its key, its signature, its claims, in that order.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::{Span, Wall};

use crate::error::{Malformed, TokenError};
use crate::{Identity, Keys, claims, header};

/// Longest token, in bytes. Real ones have a few hundred; half a request head is more than anybody needs.
pub const TOKEN_BYTES_MAX: usize = 4 * 1024;
/// Longest decoded header. It is read before the signature is known to be good, so it is kept small.
const HEADER_BYTES_MAX: usize = 1024;
/// Longest signature: RSA with 8192 bits.
const SIGNATURE_BYTES_MAX: usize = 1024;
/// Longest decoded claims: what base64 leaves of the longest token.
const CLAIMS_BYTES_MAX: usize = TOKEN_BYTES_MAX / 4 * 3;

/// What a token must say beyond being signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// `aud` must be or contain this.
    pub audience: String,
    /// When set, `iss` must equal this.
    pub issuer: Option<String>,
    /// How far `iat` and `nbf` may lie in the future, for clocks that differ.
    ///
    /// `exp` has none: a socket is closed when its token expires, so a token accepted after that moment would be
    /// thrown out by the next look at the clock, and one rule is easier to reason about than two. A clock
    /// that is seconds off shortens a lifetime of minutes a little, which `refresh` takes care of.
    pub leeway: Span,
    /// How far apart `iat` and `exp` may lie: what a stolen token is worth at most.
    pub lifetime_max: Span,
}

impl Rules {
    /// The default rules for an audience: any issuer, 30 s of leeway, a lifetime of at most 24 hours.
    pub fn for_audience(audience: &str) -> Rules {
        Rules {
            audience: audience.to_owned(),
            issuer: None,
            leeway: Span::seconds(30),
            lifetime_max: Span::seconds(24 * 3600),
        }
    }
}

/// Says who a token speaks for at the time `now`.
///
/// # Errors
/// [`TokenError::Expired`] when nothing is wrong but the time; the other variants say who is to blame for what.
pub fn verify(keys: &Keys, rules: &Rules, token: &str, now: Wall) -> Result<Identity, TokenError> {
    let parts = Parts::split(token)?;
    let mut header = [0; HEADER_BYTES_MAX];
    let key = header::key_for(decode(parts.header, &mut header)?, keys)?;
    let mut signature = [0; SIGNATURE_BYTES_MAX];
    key.check(parts.signed.as_bytes(), decode(parts.signature, &mut signature)?)?;
    let mut claims = [0; CLAIMS_BYTES_MAX];
    claims::judge(decode(parts.claims, &mut claims)?, rules, now)
}

struct Parts<'t> {
    header: &'t str,
    claims: &'t str,
    signature: &'t str,
    /// What the signature is over: header and claims with the dot between them.
    signed: &'t str,
}

impl<'t> Parts<'t> {
    fn split(token: &'t str) -> Result<Parts<'t>, TokenError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenError::Malformed(Malformed::TooLong));
        }
        let parts = || {
            let (signed, signature) = token.rsplit_once('.')?;
            let (header, claims) = signed.split_once('.')?;
            (!claims.contains('.')).then_some(Parts { header, claims, signature, signed })
        };
        parts().ok_or(TokenError::Malformed(Malformed::Parts))
    }
}

/// Decodes a part; padding, other alphabets and left-over bits are refused, so a part has one spelling only.
fn decode<'b>(part: &str, into: &'b mut [u8]) -> Result<&'b [u8], TokenError> {
    match URL_SAFE_NO_PAD.decode_slice(part, into) {
        Ok(length) => Ok(&into[..length]),
        Err(_) => Err(TokenError::Malformed(Malformed::Base64)),
    }
}
