//! The set of keys a server accepts, and the two ways a token can mean one of them.

use std::fmt;

use crate::VerifyingKey;
use crate::error::KeyError;

/// Most keys in a set. Look-up is a scan, so the set stays small.
pub const KEYS_MAX: usize = 64;

/// The keys a token may be signed with: at least one, no two of one name, at most one without a name.
pub struct Keys(Vec<VerifyingKey>);

impl Keys {
    /// Makes the set.
    ///
    /// # Errors
    /// No key, too many, two of one name, or several without: then a token could not say which one it means.
    pub fn new(keys: Vec<VerifyingKey>) -> Result<Keys, KeyError> {
        if keys.is_empty() {
            return Err(KeyError::Empty);
        }
        if keys.len() > KEYS_MAX {
            return Err(KeyError::TooMany);
        }
        for (index, key) in keys.iter().enumerate() {
            if keys[..index].iter().any(|earlier| earlier.kid() == key.kid()) {
                return Err(match key.kid() {
                    Some(kid) => KeyError::DuplicateKid { kid: kid.to_owned() },
                    None => KeyError::SeveralUnnamed,
                });
            }
        }
        Ok(Keys(keys))
    }

    /// How many there are.
    #[expect(clippy::len_without_is_empty, reason = "a set is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The key of exactly this name.
    pub(crate) fn named(&self, kid: &str) -> Option<&VerifyingKey> {
        self.0.iter().find(|key| key.kid() == Some(kid))
    }

    /// The key meant by a token that names none: the only one, or the only one without a name.
    pub(crate) fn unnamed(&self) -> Option<&VerifyingKey> {
        match self.0.as_slice() {
            [only] => Some(only),
            several => several.iter().find(|key| key.kid().is_none()),
        }
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}
