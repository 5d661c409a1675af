//! `throng sample`: the sampler with a token of the server's own, a file, and somebody who may stop it.
//!
//! Owns the command line's words and where rows go. What is sampled and how, `load` knows.

use std::error::Error;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use configuration::{Config, parse_span};
use load::sample::{
    self, BUSY_PERCENT_MAX, Column, Options, SUSTAINED, ServerProcess, TOKEN_USED_FOR, USER, Url,
};
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::Sample;
use crate::failure::{chain, say};
use crate::token;

/// A shorter interval would measure the sampler.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Why nothing was sampled, or no longer.
#[derive(Debug)]
pub enum SampleError {
    /// Something on the command line cannot be; says what.
    Usage(String),
    /// The file exists.
    Exists(PathBuf),
    /// The file, or standard output, cannot be written.
    Write { what: String, cause: io::Error },
    /// Signals cannot be watched.
    System(io::Error),
}

impl fmt::Display for SampleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SampleError::Usage(what) => f.write_str(what),
            SampleError::Exists(path) => write!(
                f,
                "{}: exists already and is not replaced; name another file or remove it first",
                path.display()
            ),
            SampleError::Write { what, .. } => write!(f, "{what} cannot be written"),
            SampleError::System(_) => f.write_str("signals cannot be watched"),
        }
    }
}

impl Error for SampleError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            SampleError::Usage(_) | SampleError::Exists(_) => None,
            SampleError::Write { cause, .. } | SampleError::System(cause) => Some(cause),
        }
    }
}

/// What follows the options in the help: the columns with units and sources, taken from where they are defined.
pub fn help() -> String {
    let columns: String = Column::ALL
        .iter()
        .map(|column| format!("  {} ({})\n      {}\n", column.name(), column.unit(), column.source()))
        .collect();
    format!(
        "\
Run it on the server's machine, as the server's user or as root. Each row is written whole as its interval ends. A source that is \
missing is told at the start and leaves its cells empty, never 0. It warns when the machine is busy (busy and steal above \
{BUSY_PERCENT_MAX} % for {} s) and when the kernel drops connections. Ctrl-C ends it with mean and maximum of what matters.

The token for the call to the API is made with the server's key, found as `throng serve` finds it, for the user `{USER}`.

Columns:
{columns}
Examples:
  throng sample --data /var/lib/throng --csv sample.csv
  throng sample --interval 500ms --for 10m --url http://127.0.0.1:9000 --pid 4711
  throng report run.csv sample.csv -o report.html

Exit codes:
  0  ended as told, by --for or a signal
  1  it could not be done; the line on standard error says why
  2  the command line or the configuration is wrong",
        SUSTAINED.as_secs()
    )
}

/// Samples until the time is over or a signal comes.
///
/// # Errors
/// When the command line cannot be, or rows cannot be written.
pub fn run(arguments: &Sample, config: &Config) -> Result<(), SampleError> {
    let span = |name: &str, text: &str| {
        let wrong =
            || SampleError::Usage(format!("{name} must be a length of time such as 500ms, 2s or 10m"));
        parse_span(text).ok_or_else(wrong)
    };
    let interval = span("--interval", &arguments.interval)?;
    if interval < INTERVAL_MIN {
        let least = INTERVAL_MIN.as_millis();
        return Err(SampleError::Usage(format!("--interval must be at least {least}ms")));
    }
    let duration = arguments.duration.as_deref().map(|text| span("--for", text)).transpose()?;
    if duration.is_some_and(|duration| duration < interval) {
        return Err(SampleError::Usage("--for must be at least as long as --interval".into()));
    }
    let url = Url::parse(&arguments.url).map_err(|error| SampleError::Usage(format!("--url: {error}")))?;
    let process = match arguments.pid {
        Some(pid) => ServerProcess::Number(pid),
        None => ServerProcess::HolderOf(config.data.join("throng.lock")),
    };
    let stop = watch_signals().map_err(SampleError::System)?;
    let (mut output, what) = open(arguments.csv.as_deref())?;
    let options = Options {
        interval,
        duration,
        url,
        process,
        token: &mut || mint(config),
        throng: env!("CARGO_PKG_VERSION"),
        command: &command_line(),
    };
    match sample::run(options, &mut output, &mut |said| say(&format!("warning: {said}")), &stop) {
        Ok(summary) => {
            eprintln!("{summary}");
            Ok(())
        }
        // A reader that has gone away (`| head`) is no failure worth a word.
        Err(cause) if cause.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(cause) => Err(SampleError::Write { what, cause }),
    }
}

fn open(csv: Option<&Path>) -> Result<(Box<dyn Write>, String), SampleError> {
    let Some(path) = csv else { return Ok((Box::new(io::stdout()), "standard output".into())) };
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => Ok((Box::new(file), path.display().to_string())),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(SampleError::Exists(path.to_owned())),
        Err(cause) => Err(SampleError::Write { what: path.display().to_string(), cause }),
    }
}

/// A token that outlives its use, if the configuration lets any live so long.
fn mint(config: &Config) -> Result<String, String> {
    let longest = Duration::from_millis(config.auth.token_lifetime_max.0);
    let ttl = format!("{}ms", (3 * TOKEN_USED_FOR).min(longest).as_millis());
    token::issue(config, &token::Request { user: USER, device: 1, ttl: &ttl, session: None })
        .map_err(|error| chain(&error))
}

/// Something comes from this when the process is asked to end.
fn watch_signals() -> io::Result<mpsc::Receiver<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut terminate, mut interrupt) = {
        let _within = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    let (tell, told) = mpsc::channel();
    thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        });
        let _ = tell.send(());
    })?;
    Ok(told)
}

/// The command line as it could be typed again, on one line.
fn command_line() -> String {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    words
        .enumerate()
        .map(|(at, word)| if at == 0 { program(&word) } else { quoted(&word) })
        .collect::<Vec<_>>()
        .join(" ")
}

/// The program's name without its folder, which says nothing to others.
fn program(path: &str) -> String {
    quoted(Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path))
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let word: String = word.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_typed_again() {
        assert_eq!(quoted("--url"), "--url");
        assert_eq!(quoted("delivery p95<50ms"), "'delivery p95<50ms'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        assert!(!quoted("a\nb").contains('\n'));
        assert_eq!(program("/opt/x/throng"), "throng");
    }
}
