//! How a command ends when it does not succeed: lines for standard error, and an exit code.

use std::error::Error;
use std::fmt::Display;
use std::process::ExitCode;

use configuration::Mistake;

/// The command could not do what it was asked.
const FAILED: u8 = 1;
/// The command line or the configuration is wrong: trying again will not help.
const MISUSED: u8 = 2;

/// What went wrong, one thing a line.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    lines: Vec<String>,
}

impl Failure {
    /// An error of the world, with its causes.
    pub fn of(error: &dyn Error) -> Failure {
        Failure { code: FAILED, lines: vec![chain(error)] }
    }

    /// What was looked for and found, one thing a line.
    pub fn found(lines: Vec<String>) -> Failure {
        Failure { code: FAILED, lines }
    }

    /// Something on the command line that cannot be.
    pub fn usage(what: impl Display) -> Failure {
        Failure { code: MISUSED, lines: vec![what.to_string()] }
    }

    /// An error whose remedy lies in the configuration.
    pub fn misconfigured(error: &dyn Error) -> Failure {
        Failure { code: MISUSED, lines: vec![chain(error)] }
    }

    /// All that is wrong with the configuration.
    pub fn mistakes(mistakes: &[Mistake]) -> Failure {
        Failure { code: MISUSED, lines: mistakes.iter().map(Mistake::to_string).collect() }
    }

    /// Tells the person, and the shell.
    pub fn report(&self) -> ExitCode {
        for line in &self.lines {
            say(line);
        }
        ExitCode::from(self.code)
    }
}

/// One line on standard error. Control characters, which a file name may have, are shown and not obeyed.
pub fn say(line: &str) {
    let line: String = line
        .chars()
        .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() })
        .collect();
    eprintln!("throng: {line}");
}

/// An error and its causes in one line. Errors here do not repeat their cause, so the chain is told once, at the edge.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
