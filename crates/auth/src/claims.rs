//! A token's claims: read with their types, compared with what is configured, judged against the time.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

use model::{DeviceId, DeviceKey, UserId, Wall};

use crate::error::{Claim, ClaimFault, Malformed, TokenError};
use crate::identity::{SessionId, session_id, user_id};
use crate::json::{self, Members};
use crate::{Identity, Rules};

const SUB_BYTES_MAX: usize = 255;
const SID_BYTES_MAX: usize = 64;
/// The last second of the year 9999 (RFC 3339): later times are mistakes, and milliseconds of them still fit.
const SECONDS_MAX: u64 = 253_402_300_799;

/// The claims as they stand in the token; which of them must be there is asked afterwards.
#[derive(Default)]
struct Claims {
    user: Option<UserId>,
    device: Option<u32>,
    session: Option<SessionId>,
    issued_at: Option<u64>,
    expires_at: Option<u64>,
    not_before: Option<u64>,
    audience_matches: Option<bool>,
    issuer_matches: Option<bool>,
}

struct Reading<'r> {
    rules: &'r Rules,
    claims: Claims,
    /// The claim being read: to blame when reading ends there.
    current: Option<Claim>,
}

impl Members for Reading<'_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let claims = &mut self.claims;
        self.current = claim_called(name);
        match self.current {
            Some(Claim::Sub) => {
                claims.user = Some(json::text(map, |sub| within(sub, SUB_BYTES_MAX).map(user_id))?);
            }
            Some(Claim::Dev) => claims.device = Some(map.next_value()?),
            Some(Claim::Sid) => {
                claims.session = Some(json::text(map, |sid| within(sid, SID_BYTES_MAX).map(session_id))?);
            }
            Some(Claim::Iat) => claims.issued_at = Some(seconds(map)?),
            Some(Claim::Exp) => claims.expires_at = Some(seconds(map)?),
            Some(Claim::Nbf) => claims.not_before = Some(seconds(map)?),
            Some(Claim::Aud) => {
                claims.audience_matches = Some(map.next_value_seed(Audience(&self.rules.audience))?);
            }
            Some(Claim::Iss) => match &self.rules.issuer {
                Some(issuer) => claims.issuer_matches = Some(json::text(map, |iss| Some(iss == issuer))?),
                None => json::skip(map)?,
            },
            None => json::skip(map)?,
        }
        self.current = None;
        Ok(())
    }
}

fn claim_called(name: &str) -> Option<Claim> {
    Some(match name {
        "sub" => Claim::Sub,
        "dev" => Claim::Dev,
        "sid" => Claim::Sid,
        "iat" => Claim::Iat,
        "exp" => Claim::Exp,
        "nbf" => Claim::Nbf,
        "aud" => Claim::Aud,
        "iss" => Claim::Iss,
        _ => return None,
    })
}

fn within(text: &str, bytes_max: usize) -> Option<&str> {
    (1..=bytes_max).contains(&text.len()).then_some(text)
}

/// A NumericDate, but whole: fractions, exponents, strings and negative numbers are refused.
fn seconds<'de, A: MapAccess<'de>>(map: &mut A) -> Result<u64, A::Error> {
    let seconds: u64 = map.next_value()?;
    if seconds > SECONDS_MAX {
        return Err(A::Error::custom("too far in the future"));
    }
    Ok(seconds)
}

/// Whether an `aud`, a string or a list of strings, contains this one.
struct Audience<'r>(&'r str);

impl<'de> DeserializeSeed<'de> for Audience<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<bool, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Audience<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of strings")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<bool, E> {
        Ok(text == self.0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some(same) = list.next_element_seed(Entry(self.0))? {
            found |= same;
        }
        Ok(found)
    }
}

/// One entry of a list of audiences.
struct Entry<'r>(&'r str);

impl<'de> DeserializeSeed<'de> for Entry<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<bool, D::Error> {
        struct Same<'r>(&'r str);
        impl Visitor<'_> for Same<'_> {
            type Value = bool;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<bool, E> {
                Ok(text == self.0)
            }
        }
        reader.deserialize_str(Same(self.0))
    }
}

/// Reads the claims of a token whose signature has been checked, and judges them.
///
/// Expiry is looked at last: `token_expired` tells a client that refreshing will help, so it must be true.
pub(crate) fn judge(claims: &[u8], rules: &Rules, now: Wall) -> Result<Identity, TokenError> {
    let mut reading = Reading { rules, claims: Claims::default(), current: None };
    if json::read_object(claims, &mut reading).is_err() {
        return Err(match reading.current {
            Some(claim) => TokenError::Claim(claim, ClaimFault::Invalid),
            None => TokenError::Malformed(Malformed::Claims),
        });
    }
    let claims = reading.claims;
    let user = required(Claim::Sub, claims.user)?;
    let device = required(Claim::Dev, claims.device)?;
    let session = required(Claim::Sid, claims.session)?;
    let issued_at = milliseconds(required(Claim::Iat, claims.issued_at)?);
    let expires_at = milliseconds(required(Claim::Exp, claims.expires_at)?);
    matching(Claim::Aud, claims.audience_matches)?;
    if rules.issuer.is_some() {
        matching(Claim::Iss, claims.issuer_matches)?;
    }
    let lifetime = expires_at.0.saturating_sub(issued_at.0);
    if lifetime == 0 || lifetime > rules.lifetime_max.0 {
        return Err(TokenError::Claim(Claim::Exp, ClaimFault::Lifetime));
    }
    let latest_start = now.0.saturating_add(rules.leeway.0);
    if issued_at.0 > latest_start || claims.not_before.is_some_and(|nbf| milliseconds(nbf).0 > latest_start) {
        return Err(TokenError::NotYetValid);
    }
    if now >= expires_at {
        return Err(TokenError::Expired);
    }
    Ok(Identity { device: DeviceKey { user, device: DeviceId(device) }, session, issued_at, expires_at })
}

fn required<T>(claim: Claim, value: Option<T>) -> Result<T, TokenError> {
    value.ok_or(TokenError::Claim(claim, ClaimFault::Missing))
}

fn matching(claim: Claim, matches: Option<bool>) -> Result<(), TokenError> {
    match required(claim, matches)? {
        true => Ok(()),
        false => Err(TokenError::Claim(claim, ClaimFault::Mismatch)),
    }
}

fn milliseconds(seconds: u64) -> Wall {
    Wall(seconds * 1_000)
}

// The greatest second fits in milliseconds, so the multiplication above cannot overflow.
const _: () = assert!(SECONDS_MAX < u64::MAX / 1_000);
