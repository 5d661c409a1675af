//! `throng token`: a token that the server of the same configuration takes.

use std::error::Error;
use std::fmt;
use std::time::SystemTime;

use auth::{Grant, TokenError, mint, verify};
use aws_lc_rs::rand;
use model::{Span, UserId, Wall};

use crate::keys::{self, KeysError};
use configuration::{Config, parse_span};

/// What the token shall say.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The user: a UUID or any name.
    pub user: &'a str,
    /// The device.
    pub device: u32,
    /// How long it is valid, as typed.
    pub ttl: &'a str,
    /// The session; a new one when there is none.
    pub session: Option<&'a str>,
}

/// Why there is no token.
#[derive(Debug)]
pub enum IssueError {
    /// The lifetime asked for is no length of time.
    Lifetime,
    /// There is no key that signs.
    Keys(KeysError),
    /// What was asked for is nothing the server would take.
    Refused(TokenError),
}

impl fmt::Display for IssueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IssueError::Lifetime => f.write_str("--ttl must be a length of time such as 90s, 10m, 1h or 7d"),
            IssueError::Keys(error) => error.fmt(f),
            IssueError::Refused(_) => f.write_str("the server would refuse this token"),
        }
    }
}

impl Error for IssueError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            IssueError::Lifetime => None,
            IssueError::Keys(error) => error.source(),
            IssueError::Refused(error) => Some(error),
        }
    }
}

/// Makes the token and checks it as the server would, so that none leaves here that is of no use.
///
/// # Errors
/// When there is no key, or the request does not fit the rules.
pub fn issue(config: &Config, request: &Request<'_>) -> Result<String, IssueError> {
    let ttl = parse_span(request.ttl).ok_or(IssueError::Lifetime)?;
    let signing = keys::signing_key(config).map_err(IssueError::Keys)?;
    let session = match request.session {
        Some(session) => session.to_owned(),
        None => new_session().map_err(IssueError::Keys)?,
    };
    let now = wall_clock();
    let token = mint(
        &signing,
        &Grant {
            user: request.user,
            device: request.device,
            session: &session,
            audience: &config.auth.audience,
            issuer: config.auth.issuer.as_deref(),
            issued_at: now,
            lifetime: Span(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)),
        },
    );
    let keys = keys::verifying_keys(config).map_err(IssueError::Keys)?;
    verify(&keys, &keys::rules(config), &token, now).map_err(IssueError::Refused)?;
    Ok(token)
}

/// A random UUID (RFC 9562, section 5.4).
fn new_session() -> Result<String, KeysError> {
    let mut bytes = [0; 16];
    rand::fill(&mut bytes).map_err(|_| KeysError::Random)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(UserId(bytes).to_string())
}

/// Now.
pub fn wall_clock() -> Wall {
    let since_1970 = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    Wall(u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX))
}
