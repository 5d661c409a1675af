//! Tokens of seeded devices: saved one a line, or two of them shown.

use std::error::Error;
use std::fmt::{self, Write as _};
use std::fs::{OpenOptions, Permissions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use auth::{Grant, SigningKey, TokenError, mint, verify};
use configuration::{Config, parse_span};
use model::{Span, UserId, Wall};
use seeding::{DEVICE, Seed};

use crate::keys::{self, KeysError};
use crate::progress::{Progress, counted};
use crate::token::wall_clock;

/// The session that all of them name: there is nothing more to a session than that a token names it.
const SESSION: &str = "seed";
/// How long a token is valid, unless the server takes only shorter ones.
const LIFETIME: Span = Span::seconds(7 * 24 * 3_600);

/// Why there are no tokens.
#[derive(Debug)]
pub enum TokensError {
    /// The lifetime asked for is no length of time.
    Lifetime,
    /// There is no key that signs.
    Keys(KeysError),
    /// The server would take none of them.
    Refused(TokenError),
    /// The file cannot be written.
    File { file: PathBuf, cause: io::Error },
}

impl TokensError {
    /// Whether the command line or the configuration is to blame.
    pub fn is_misuse(&self) -> bool {
        !matches!(self, TokensError::File { .. })
    }
}

impl fmt::Display for TokensError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokensError::Lifetime => f.write_str("--ttl must be a length of time such as 90s, 10m, 1h or 7d"),
            TokensError::Keys(error) => error.fmt(f),
            TokensError::Refused(_) => f.write_str("the server would refuse these tokens"),
            TokensError::File { file, .. } => write!(f, "{}: the tokens cannot be written", file.display()),
        }
    }
}

impl Error for TokensError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            TokensError::Lifetime => None,
            TokensError::Keys(error) => error.source(),
            TokensError::Refused(error) => Some(error),
            TokensError::File { cause, .. } => Some(cause),
        }
    }
}

/// What makes the tokens of one seed.
pub struct Minter {
    key: SigningKey,
    audience: String,
    issuer: Option<String>,
    seed: Seed,
    issued_at: Wall,
    lifetime: Span,
}

impl Minter {
    /// Finds the key as `throng token` does, and looks whether the server would take what it makes.
    ///
    /// # Errors
    /// When no token would be of use.
    pub fn new(config: &Config, seed: Seed, ttl: Option<&str>) -> Result<Minter, TokensError> {
        let lifetime = match ttl {
            None => LIFETIME.min(config.auth.token_lifetime_max),
            Some(text) => {
                let ttl = parse_span(text).ok_or(TokensError::Lifetime)?;
                Span(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
            }
        };
        let minter = Minter {
            key: keys::signing_key(config).map_err(TokensError::Keys)?,
            audience: config.auth.audience.clone(),
            issuer: config.auth.issuer.clone(),
            seed,
            issued_at: wall_clock(),
            lifetime,
        };
        let keys = keys::verifying_keys(config).map_err(TokensError::Keys)?;
        let first = minter.token(&seed.user(0).to_string());
        verify(&keys, &keys::rules(config), &first, minter.issued_at).map_err(TokensError::Refused)?;
        Ok(minter)
    }

    /// The id of user `n`.
    pub fn user(&self, n: u64) -> UserId {
        self.seed.user(n)
    }

    /// A token for the device of user `n`.
    pub fn token_of(&self, n: u64) -> String {
        self.token(&self.user(n).to_string())
    }

    fn token(&self, user: &str) -> String {
        let grant = Grant {
            user,
            device: DEVICE.0,
            session: SESSION,
            audience: &self.audience,
            issuer: self.issuer.as_deref(),
            issued_at: self.issued_at,
            lifetime: self.lifetime,
        };
        mint(&self.key, &grant)
    }

    /// The line of user `n`: user, device and token.
    fn line(&self, n: u64) -> String {
        let user = self.seed.user(n).to_string();
        let token = self.token(&user);
        format!("{user} {DEVICE} {token}\n")
    }

    /// Writes a line for each of so many users, in the order of their numbers; what the file held before is gone.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, file: &Path, users: u64) -> Result<String, TokensError> {
        let mut progress = Progress::new();
        let mut write = || -> io::Result<()> {
            let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file)?;
            // One that was there before had a mode of its own.
            opened.set_permissions(Permissions::from_mode(0o600))?;
            let mut out = BufWriter::new(opened);
            for n in 0..users {
                out.write_all(self.line(n).as_bytes())?;
                progress.show_with(|| format!("{} tokens", counted(n, users)));
            }
            out.flush()
        };
        write().map_err(|cause| TokensError::File { file: file.to_owned(), cause })?;
        drop(progress);
        Ok(format!("saved {users} tokens in {}, {}\n", file.display(), self.validity()))
    }

    /// The first two, for somebody to try.
    pub fn examples(&self, users: u64) -> String {
        let mut text = String::new();
        if users > 0 {
            let _ = writeln!(text, "user, device and token to try, {}:", self.validity());
        }
        for n in 0..users.min(2) {
            text.push_str(&self.line(n));
        }
        text
    }

    fn validity(&self) -> String {
        let seconds = self.lifetime.0 / 1_000;
        match (seconds % 86_400, seconds % 3_600) {
            (0, _) => format!("valid for {} d", seconds / 86_400),
            (_, 0) => format!("valid for {} h", seconds / 3_600),
            _ => format!("valid for {seconds} s"),
        }
    }
}
