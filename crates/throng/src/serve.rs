//! `throng serve`: the composition of the whole server.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use crate::config::Config;
use crate::keys::{self, KeysError};

/// Why the server could not start, or had to stop.
#[derive(Debug)]
pub enum ServeError {
    /// There is no usable key to check tokens with.
    Keys(KeysError),
    /// This build holds no server yet.
    Unfinished,
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::Keys(error) => error.fmt(f),
            ServeError::Unfinished => f.write_str("this build cannot serve yet"),
        }
    }
}

impl Error for ServeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ServeError::Keys(error) => error.source(),
            ServeError::Unfinished => None,
        }
    }
}

/// Serves until told to stop.
///
/// # Errors
/// When it cannot start, or the world takes something away that it cannot do without.
pub fn run(config: Config) -> Result<ExitCode, ServeError> {
    if config.dev
        && let Some(made) = keys::generate_if_missing(&config).map_err(ServeError::Keys)?
    {
        tracing::info!(file = %made.signing.display(), "made a signing key for development");
    }
    let _keys = keys::verifying_keys(&config).map_err(ServeError::Keys)?;
    let _rules = keys::rules(&config);
    Err(ServeError::Unfinished)
}
