//! What is wrong with a configuration, and where: always one line.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A line of the file, from 1.
    File { path: PathBuf, line: usize },
    /// An environment variable.
    Variable(String),
    /// A command-line flag.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
            Origin::Variable(name) => write!(f, "{name} in the environment"),
            Origin::Flag(name) => f.write_str(name),
        }
    }
}

/// One mistake: its place and a sentence that says what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake(String);

impl Mistake {
    /// A mistake at the place a value came from.
    pub fn at(origin: &Origin, what: impl fmt::Display) -> Mistake {
        Mistake(format!("{origin}: {what}"))
    }

    /// A mistake whose text says where it is.
    pub fn plain(what: impl fmt::Display) -> Mistake {
        Mistake(what.to_string())
    }

    /// A mistake that concerns a whole file or folder.
    pub fn in_file(path: &Path, what: impl fmt::Display) -> Mistake {
        Mistake(format!("{}: {what}", path.display()))
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
