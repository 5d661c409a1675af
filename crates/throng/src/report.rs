//! `throng report`: files in, one page out.
//!
//! Owns what is read and what may be replaced. What the page shows, `load` knows.

use std::error::Error;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use load::report::{self, Input, MARK, TableError};

use crate::arguments::Report;
use crate::progress::bytes;

/// No run is longer: a week of seconds. A wrong path shall not fill the memory.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Why there is no page.
#[derive(Debug)]
pub enum ReportError {
    /// A file cannot be read.
    Read { path: PathBuf, cause: io::Error },
    /// A file is not what it should be.
    Content(TableError),
    /// What lies where the page should go is no report.
    Exists(PathBuf),
    /// The page cannot be written.
    Write { path: PathBuf, cause: io::Error },
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReportError::Read { path, .. } => write!(f, "{} cannot be read", path.display()),
            ReportError::Content(error) => error.fmt(f),
            ReportError::Exists(path) => write!(
                f,
                "{}: exists and is no report, so it is not replaced; name another file with -o",
                path.display()
            ),
            ReportError::Write { path, .. } => write!(f, "{} cannot be written", path.display()),
        }
    }
}

impl Error for ReportError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ReportError::Read { cause, .. } | ReportError::Write { cause, .. } => Some(cause),
            ReportError::Content(_) | ReportError::Exists(_) => None,
        }
    }
}

/// Makes the page and says what was written.
///
/// # Errors
/// When there is no page.
pub fn write(arguments: &Report) -> Result<String, ReportError> {
    let run = read(&arguments.run)?;
    let sample = arguments.sample.as_deref().map(read).transpose()?;
    let (run_name, sample_name) = (name(&arguments.run), arguments.sample.as_deref().map(name));
    let sample = sample_name.as_deref().zip(sample.as_deref());
    let page = report::page(
        Input { file: &run_name, bytes: &run },
        sample.map(|(file, bytes)| Input { file, bytes }),
        env!("CARGO_PKG_VERSION"),
    )
    .map_err(ReportError::Content)?;
    let path = &arguments.output;
    if !may_be_replaced(path) {
        return Err(ReportError::Exists(path.clone()));
    }
    replace(path, page.html.as_bytes()).map_err(|cause| ReportError::Write { path: path.clone(), cause })?;
    Ok(format!("{}\nwrote {}, {}\n", page.verdict, path.display(), bytes(page.html.len() as u64)))
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

fn read(path: &Path) -> Result<Vec<u8>, ReportError> {
    let unreadable = |cause| ReportError::Read { path: path.to_owned(), cause };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    match bytes.len() as u64 > FILE_BYTES_MAX {
        true => Err(unreadable(io::Error::new(ErrorKind::FileTooLarge, "it is longer than any run"))),
        false => Ok(bytes),
    }
}

/// Nothing, or an older report.
fn may_be_replaced(path: &Path) -> bool {
    let mut beginning = vec![0; MARK.len()];
    match File::open(path).and_then(|mut file| file.read_exact(&mut beginning)) {
        Ok(()) => beginning == MARK.as_bytes(),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// Writes it beside and moves it there, so that a page is whole or not there.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let written = File::create(&beside).and_then(|mut file| file.write_all(content));
    let done = written.and_then(|()| fs::rename(&beside, path));
    if done.is_err() {
        let _ = fs::remove_file(&beside);
    }
    done
}
