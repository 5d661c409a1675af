//! The command's side of the control socket.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::{fmt, time::Duration};

use seeding::Plan;

use super::words::{Answer, LINE_BYTES_MAX, read_answer, write_request};
use super::{Address, NAME};
use crate::seed::Made;

/// Longest silence of a server that is at work: another command may be served before this one.
const SILENCE_MAX: Duration = Duration::from_secs(600);

/// Why the server did not do what was asked.
#[derive(Debug)]
pub enum AskError {
    /// Nobody answers at the socket.
    Unreachable(io::Error),
    /// The server went away in the middle.
    BrokenOff(io::Error),
    /// The server said no.
    Refused(String),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskError::Unreachable(_) => {
                write!(
                    f,
                    "the server that has the data folder does not answer at {NAME} in it; stop it, or see its log"
                )
            }
            AskError::BrokenOff(_) => f.write_str(
                "the server broke off; what it said was made is made, and a repetition makes the rest",
            ),
            AskError::Refused(why) => write!(f, "the server goes no further: {why}"),
        }
    }
}

impl Error for AskError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            AskError::Unreachable(error) | AskError::BrokenOff(error) => Some(error),
            AskError::Refused(_) => None,
        }
    }
}

/// Has the server of a data folder make what a plan says; `each` hears how far it is.
///
/// # Errors
/// When it does not make all of it.
pub fn ask(data: &Path, plan: &Plan, mut each: impl FnMut(&Made)) -> Result<Made, AskError> {
    let connect = || -> io::Result<UnixStream> {
        let mut stream = UnixStream::connect(&Address::of(data)?.path)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        stream.write_all(write_request(plan).as_bytes())?;
        Ok(stream)
    };
    let mut reader = BufReader::new(connect().map_err(AskError::Unreachable)?);
    let mut made = Made::default();
    loop {
        let mut line = String::new();
        let read = reader.by_ref().take(LINE_BYTES_MAX as u64).read_line(&mut line);
        read.map_err(AskError::BrokenOff)?;
        match line.strip_suffix('\n').and_then(read_answer) {
            Some(Answer::Made(so_far)) => {
                made = so_far;
                each(&made);
            }
            Some(Answer::Done) => return Ok(made),
            Some(Answer::Refused(why)) => return Err(AskError::Refused(why)),
            None => return Err(AskError::BrokenOff(io::ErrorKind::UnexpectedEof.into())),
        }
    }
}
