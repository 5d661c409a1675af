//! Who the clients are: their ids, and the tokens they come with.
//!
//! A run may have a million of them, so nothing is kept for each but a place in a file. Owns the trait and the tokens file. Deliberately
//! knows no key: tokens that are made when they are needed come from whoever has one.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use model::UserId;

/// Users by number, from 0. User `2 k` and user `2 k + 1` are a pair.
pub trait Accounts: Send + Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// The id of one.
    ///
    /// # Errors
    /// Says why it cannot be had.
    fn user(&self, n: usize) -> Result<UserId, String>;

    /// A token for its device.
    ///
    /// # Errors
    /// Says why it cannot be had.
    fn token(&self, n: usize) -> Result<String, String>;
}

/// Why a tokens file cannot be used.
#[derive(Debug)]
pub enum TokensError {
    /// It cannot be read.
    Read(PathBuf, io::Error),
    /// There is nothing in it.
    Empty(PathBuf),
    /// A line is not what it should be.
    Line(PathBuf, usize, &'static str),
}

impl fmt::Display for TokensError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokensError::Read(path, _) => write!(f, "{}: the tokens cannot be read", path.display()),
            TokensError::Empty(path) => write!(f, "{}: there is no token in it", path.display()),
            TokensError::Line(path, line, what) => write!(
                f,
                "{}, line {line}: {what}; a line is `USER-UUID DEVICE TOKEN`, as `throng seed --tokens` writes it",
                path.display()
            ),
        }
    }
}

impl std::error::Error for TokensError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TokensError::Read(_, cause) => Some(cause),
            TokensError::Empty(_) | TokensError::Line(..) => None,
        }
    }
}

/// A file with one line for each user: id, device and token.
#[derive(Debug)]
pub struct TokensFile {
    file: File,
    path: PathBuf,
    /// Where each line begins, and where the last one ends.
    places: Vec<u64>,
}

impl TokensFile {
    /// Looks through the whole file, so that what is wrong with it is told before a run.
    ///
    /// # Errors
    /// When it cannot be read, or a line is not what it should be.
    pub fn open(path: &Path) -> Result<TokensFile, TokensError> {
        let read = |cause| TokensError::Read(path.to_owned(), cause);
        let file = File::open(path).map_err(read)?;
        let mut reader = BufReader::with_capacity(1 << 20, &file);
        let (mut places, mut line, mut at) = (vec![0], Vec::new(), 0);
        loop {
            line.clear();
            let len = reader.read_until(b'\n', &mut line).map_err(read)?;
            if len == 0 {
                break;
            }
            at += len as u64;
            places.push(at);
            let wrong = |what| TokensError::Line(path.to_owned(), places.len() - 1, what);
            let text = std::str::from_utf8(&line).map_err(|_| wrong("it is not UTF-8"))?;
            parse(text).map_err(wrong)?;
        }
        drop(reader);
        if places.len() == 1 {
            return Err(TokensError::Empty(path.to_owned()));
        }
        Ok(TokensFile { file, path: path.to_owned(), places })
    }

    fn line(&self, n: usize) -> Result<(UserId, String), String> {
        let place = self
            .places
            .get(n..n + 2)
            .ok_or_else(|| format!("{} has no line {}", self.path.display(), n + 1))?;
        let mut line = vec![0; (place[1] - place[0]) as usize];
        let read = self.file.read_exact_at(&mut line, place[0]);
        read.map_err(|error| format!("{}, line {}: {error}", self.path.display(), n + 1))?;
        let parsed = std::str::from_utf8(&line).ok().and_then(|text| parse(text).ok());
        let (user, token) =
            parsed.ok_or_else(|| format!("{} was changed during the run", self.path.display()))?;
        Ok((user, token.to_owned()))
    }
}

impl Accounts for TokensFile {
    fn count(&self) -> usize {
        self.places.len() - 1
    }

    fn user(&self, n: usize) -> Result<UserId, String> {
        self.line(n).map(|(user, _)| user)
    }

    fn token(&self, n: usize) -> Result<String, String> {
        self.line(n).map(|(_, token)| token)
    }
}

fn parse(line: &str) -> Result<(UserId, &str), &'static str> {
    let mut words = line.trim_end_matches(['\n', '\r']).split(' ');
    let user = words.next().and_then(|user| user.parse().ok()).ok_or("it does not begin with a UUID")?;
    words
        .next()
        .and_then(|device| device.parse::<u32>().ok())
        .ok_or("there is no device number behind the UUID")?;
    let token =
        words.next().filter(|token| !token.is_empty()).ok_or("there is no token behind the device")?;
    let of_a_token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if !token.bytes().all(of_a_token) {
        return Err("what stands behind the device is no token");
    }
    match words.next() {
        None => Ok((user, token)),
        Some(_) => Err("there is more than three words"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: &str = "b959197e-c92a-5447-9195-94a280f2ac01";

    fn opened(content: &str) -> Result<TokensFile, String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("tokens");
        std::fs::write(&path, content).expect("a file");
        TokensFile::open(&path).map_err(|error| {
            error
                .to_string()
                .replace(&folder.path().display().to_string(), "")
                .trim_start_matches('/')
                .to_owned()
        })
    }

    #[test]
    fn line_n_is_user_n() {
        let other = "6b1d2c9e-50a4-4a0e-8e39-0a5c7d1f2b33";
        let file = opened(&format!("{ALICE} 1 a.b-c.d_e\n{other} 1 x.y.z")).expect("two users");
        assert_eq!(file.count(), 2);
        assert_eq!(file.user(0).expect("the first").to_string(), ALICE);
        assert_eq!(file.user(1).expect("the second").to_string(), other);
        assert_eq!(file.token(0).as_deref(), Ok("a.b-c.d_e"));
        assert_eq!(file.token(1).as_deref(), Ok("x.y.z"));
        assert!(file.token(2).expect_err("no third").ends_with("has no line 3"));
    }

    #[test]
    fn a_line_that_is_wrong_is_named() {
        let good = format!("{ALICE} 1 a.b.c\n");
        let hint = "a line is `USER-UUID DEVICE TOKEN`, as `throng seed --tokens` writes it";
        for (line, said) in [
            ("alice 1 a.b.c", "it does not begin with a UUID"),
            ("", "it does not begin with a UUID"),
            (&format!("{ALICE} one a.b.c"), "there is no device number behind the UUID"),
            (&format!("{ALICE} 1"), "there is no token behind the device"),
            (&format!("{ALICE} 1 a.b.c more"), "there is more than three words"),
            (&format!("{ALICE} 1 a/b"), "what stands behind the device is no token"),
        ] {
            let error = opened(&format!("{good}{line}\n{good}")).expect_err("a mistake");
            assert_eq!(error, format!("tokens, line 2: {said}; {hint}"));
        }
        assert_eq!(opened("").expect_err("nothing"), "tokens: there is no token in it");
    }
}
