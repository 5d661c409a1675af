//! A token's header: all it may do is name an algorithm and a key. Both are compared, neither chooses.

use serde::de::MapAccess;

use crate::error::{Malformed, TokenError, Untrusted};
use crate::json::{self, Members};
use crate::{Algorithm, Keys, VerifyingKey};

/// Names that would fetch or carry a key, or change the rules (RFC 7515, sections 4.1 and 6; RFC 7797; RFC 7516).
const FORBIDDEN: [&str; 8] = ["jku", "jwk", "x5u", "x5c", "crit", "b64", "enc", "zip"];

#[derive(Default)]
struct Header<'k> {
    /// `None` until `alg` was read; a name that is no algorithm of ours is refused like one that does not match.
    algorithm: Option<Option<Algorithm>>,
    /// What the token's `kid` leads to, looked up while it is read so that it need not be kept.
    named: Option<Option<&'k VerifyingKey>>,
    fault: Option<Untrusted>,
}

struct Reading<'k> {
    keys: &'k Keys,
    header: Header<'k>,
}

impl Members for Reading<'_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let Reading { keys, header } = self;
        // Whatever fails inside these values is the entry's fault; the note is taken back when it did not.
        let before = header.fault.replace(Untrusted::HeaderEntry);
        match name {
            "alg" => header.algorithm = Some(json::text(map, |name| Some(name.parse().ok()))?),
            "kid" => header.named = Some(json::text(map, |kid| Some(keys.named(kid)))?),
            "typ" => json::text(map, |typ| {
                (typ.eq_ignore_ascii_case("JWT") || typ.eq_ignore_ascii_case("at+jwt")).then_some(())
            })?,
            _ => {
                header.fault = before;
                json::skip(map)?;
                if FORBIDDEN.contains(&name) {
                    header.fault = Some(Untrusted::HeaderForbidden);
                }
                return Ok(());
            }
        }
        header.fault = before;
        Ok(())
    }
}

/// The key the header leads to, which is also of the algorithm it names.
pub(crate) fn key_for<'k>(header: &[u8], keys: &'k Keys) -> Result<&'k VerifyingKey, TokenError> {
    let mut reading = Reading { keys, header: Header::default() };
    let read = json::read_object(header, &mut reading);
    let header = reading.header;
    if let Some(fault) = header.fault {
        return Err(TokenError::Untrusted(fault));
    }
    read.map_err(|_| TokenError::Malformed(Malformed::Header))?;
    let algorithm = header.algorithm.ok_or(TokenError::Untrusted(Untrusted::HeaderEntry))?;
    let key = match header.named {
        Some(named) => named.ok_or(TokenError::Untrusted(Untrusted::UnknownKey))?,
        None => keys.unnamed().ok_or(TokenError::Untrusted(Untrusted::AmbiguousKey))?,
    };
    if algorithm != Some(key.algorithm()) {
        return Err(TokenError::Untrusted(Untrusted::AlgorithmMismatch));
    }
    Ok(key)
}
