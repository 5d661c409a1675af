//! Keys on disk: those the configuration names, or the one in the data folder.
//!
//! Owns where key files lie and how they are made. What is in them, `auth` knows.

mod generate;

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use auth::{Algorithm, KeyError, Keys, Rules, SigningKey, VerifyingKey, parse_jwks};

use configuration::Config;

pub use generate::{Generated, generate};

/// No key file is longer; a wrong path shall not fill the memory.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Why keys could not be had.
#[derive(Debug)]
pub enum KeysError {
    /// None is configured and none was generated.
    None { data: PathBuf },
    /// Keys of both kinds lie in the data folder, and a token could not say which one it means.
    Several { folder: PathBuf },
    /// A file could not be read.
    Read { path: PathBuf, cause: io::Error },
    /// A file does not hold what it should.
    Content { path: PathBuf, cause: KeyError },
    /// The keys are fine one by one, but not together.
    Set { cause: KeyError },
    /// Only public keys are known.
    CannotSign,
    /// Generating would replace a key.
    Exists { path: PathBuf },
    /// A file or folder could not be made.
    Write { path: PathBuf, cause: io::Error },
    /// The operating system gave no random bytes.
    Random,
}

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeysError::None { data } => write!(
                f,
                "there is no key to check tokens with: run `throng keys generate --data {}`, or name your issuer's \
                 key under `auth.keys` in the configuration",
                data.display()
            ),
            KeysError::Several { folder } => {
                write!(f, "{}: two signing keys lie here; remove the one that is not in use", folder.display())
            }
            KeysError::Read { path, .. } => write!(f, "{}: the key file cannot be read", path.display()),
            KeysError::Content { path, .. } => write!(f, "{}: not a usable key", path.display()),
            KeysError::Set { .. } => f.write_str("`auth.keys` and `auth.jwks` do not fit together"),
            KeysError::CannotSign => f.write_str(
                "none of the configured keys can sign: they are public keys, and tokens come from their owner",
            ),
            KeysError::Exists { path } => {
                write!(f, "{}: a signing key exists already and is not replaced; remove it first", path.display())
            }
            KeysError::Write { path, .. } => write!(f, "{}: cannot be made", path.display()),
            KeysError::Random => f.write_str("the operating system gave no random bytes"),
        }
    }
}

impl Error for KeysError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            KeysError::Read { cause, .. } | KeysError::Write { cause, .. } => Some(cause),
            KeysError::Content { cause, .. } | KeysError::Set { cause } => Some(cause),
            _ => None,
        }
    }
}

/// The keys that tokens may be signed with.
///
/// # Errors
/// [`KeysError::None`] when there are none at all; otherwise the file that is wrong.
pub fn verifying_keys(config: &Config) -> Result<Keys, KeysError> {
    let mut keys = Vec::new();
    if is_configured(config) {
        for key in &config.auth.keys {
            let bytes = read(&key.file)?;
            let made = VerifyingKey::from_file_bytes(key.algorithm, &bytes).map_err(content(&key.file))?;
            keys.push(match &key.kid {
                Some(kid) => made.with_kid(kid),
                None => made,
            });
        }
        if let Some(path) = &config.auth.jwks {
            keys.extend(parse_jwks(&read(path)?).map_err(content(path))?);
        }
    } else {
        keys.push(local_key(&config.data)?.verifying_key());
    }
    Keys::new(keys).map_err(|cause| KeysError::Set { cause })
}

/// A key that makes tokens which [`verifying_keys`] accept.
///
/// # Errors
/// [`KeysError::CannotSign`] when only public keys are configured; otherwise as [`verifying_keys`].
pub fn signing_key(config: &Config) -> Result<SigningKey, KeysError> {
    if !is_configured(config) {
        return local_key(&config.data);
    }
    for key in &config.auth.keys {
        if let Ok(signing) = SigningKey::from_file_bytes(key.algorithm, &read(&key.file)?) {
            return Ok(match &key.kid {
                Some(kid) => signing.with_kid(kid),
                None => signing,
            });
        }
    }
    Err(KeysError::CannotSign)
}

/// What a token must say, as configured.
pub fn rules(config: &Config) -> Rules {
    Rules {
        audience: config.auth.audience.clone(),
        issuer: config.auth.issuer.clone(),
        leeway: config.auth.leeway,
        lifetime_max: config.auth.token_lifetime_max,
    }
}

/// For development: makes a key in the data folder when there is none anywhere.
///
/// # Errors
/// When it cannot be made, or what is there cannot be used.
pub fn generate_if_missing(config: &Config) -> Result<Option<Generated>, KeysError> {
    if is_configured(config) {
        return Ok(None);
    }
    match local_key(&config.data) {
        Ok(_) => Ok(None),
        Err(KeysError::None { .. }) => generate(&config.data, Algorithm::EdDsa).map(Some),
        Err(error) => Err(error),
    }
}

fn is_configured(config: &Config) -> bool {
    !config.auth.keys.is_empty() || config.auth.jwks.is_some()
}

/// The folder of generated keys.
fn folder(data: &Path) -> PathBuf {
    data.join("keys")
}

/// The file of a generated signing key.
fn signing_file(data: &Path, algorithm: Algorithm) -> PathBuf {
    folder(data).join(match algorithm {
        Algorithm::Hs256 => "signing.secret",
        _ => "signing.pem",
    })
}

/// The signing key in the data folder.
fn local_key(data: &Path) -> Result<SigningKey, KeysError> {
    let mut found = None;
    for algorithm in [Algorithm::EdDsa, Algorithm::Hs256] {
        let path = signing_file(data, algorithm);
        let bytes = match read(&path) {
            Ok(bytes) => bytes,
            Err(KeysError::Read { cause, .. }) if cause.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let key = SigningKey::from_file_bytes(algorithm, &bytes).map_err(content(&path))?;
        if found.replace(key).is_some() {
            return Err(KeysError::Several { folder: folder(data) });
        }
    }
    found.ok_or_else(|| KeysError::None { data: data.to_owned() })
}

fn read(path: &Path) -> Result<Vec<u8>, KeysError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    read.map_err(|cause| KeysError::Read { path: path.to_owned(), cause })?;
    Ok(bytes)
}

fn content(path: &Path) -> impl FnOnce(KeyError) -> KeysError + '_ {
    move |cause| KeysError::Content { path: path.to_owned(), cause }
}
