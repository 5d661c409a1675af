//! `throng load`: from the command line to a run of the load generator, and from its summary to an exit code.
//!
//! Owns how options are read and what signals do. What a run is, the crate `load` knows.

use std::error::Error;
use std::fmt;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use configuration::{Loaded, parse_span};
use load::run::{Address, Ended, Kind, Outputs, Plan, SIZE_MIN, Sizes, Summary, Threshold, conduct};
use load::{Accounts, TokensFile};
use model::UserId;
use model::limits::PAYLOAD_BYTES_MAX;
use protocol::Encoding;
use seeding::Seed;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::arguments::{Load, Place, Scenario, Spoken};
use crate::failure::Failure;
use crate::seed::Minter;

/// A threshold was broken.
const BROKEN: u8 = 99;
/// Somebody ended it: 128 and the number of SIGINT, as shells count.
const INTERRUPTED: u8 = 130;
/// Pairs that chat when nobody says how many.
const PAIRS_MAX: usize = 1_000;
const PAIRS_OF_MIXED_MAX: usize = 100;
/// The share of the crowd that goes each second when nobody says which.
const CHURN: &str = "0.1%";
/// Messages a second when nobody says how many.
const RATE: f64 = 10.0;

/// What is wrong with an option.
#[derive(Debug)]
pub enum OptionError {
    /// It is no length of time.
    Time(&'static str, String),
    /// It is no size of payloads.
    Size(String),
    /// It is no share.
    Share(String),
    /// The option means nothing in this scenario.
    Needless(&'static str, &'static str),
    /// It must be at least 1.
    Threads,
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionError::Time(option, text) => {
                write!(f, "{option} {text}: it must be a length of time such as 500ms, 60s or 5m")
            }
            OptionError::Size(text) => write!(
                f,
                "--size {text}: it must be `chat`, a number of bytes, or a range such as 100..500, from {SIZE_MIN} to {PAYLOAD_BYTES_MAX}"
            ),
            OptionError::Share(text) => {
                write!(f, "--churn {text}: it must be a share such as 0.1%, at most 100%")
            }
            OptionError::Needless(option, scenario) => write!(f, "{option} means nothing in `{scenario}`"),
            OptionError::Threads => f.write_str("--threads must be at least 1"),
        }
    }
}

impl Error for OptionError {}

/// Runs it to its end. The summary goes to standard output by `print`.
///
/// # Errors
/// When an option is wrong, or the run could not be done.
pub fn run(
    arguments: &Load,
    configured: impl FnOnce(&Place) -> Result<Loaded, Failure>,
    print: impl Fn(&str) -> Result<ExitCode, Failure>,
) -> Result<ExitCode, Failure> {
    let accounts: Arc<dyn Accounts> = match &arguments.tokens {
        Some(file) => Arc::new(TokensFile::open(file).map_err(|error| Failure::of(&error))?),
        None => {
            let config = configured(&arguments.place)?.config;
            let minter = Minter::new(&config, Seed(arguments.seed), None);
            let minter = minter.map_err(|error| Failure::misconfigured(&error))?;
            Arc::new(Seeded { minter, users: arguments.users.unwrap_or(0) })
        }
    };
    let plan = plan(arguments, accounts.count())?;
    plan.check(accounts.count()).map_err(Failure::usage)?;
    // Its descriptors are made before any thread parts its descriptor table: a signal may interrupt any of them.
    let asked_to_stop = watch_signals().map_err(|error| Failure::of(&error))?;
    let outputs = Outputs { csv: arguments.csv.clone(), terminal: std::io::stderr().is_terminal() };
    let summary = conduct(plan, accounts, &asked_to_stop, &outputs).map_err(|error| Failure::of(&error))?;
    print(&summary.to_string())?;
    if let Some(path) = &arguments.summary {
        let written = std::fs::write(path, format!("{:#}\n", summary.json()));
        written.map_err(|cause| Failure::of(&Unwritten(path.clone(), cause)))?;
    }
    Ok(ExitCode::from(code(&summary)))
}

/// Users of `throng seed`, whose tokens are made as they are needed.
struct Seeded {
    minter: Minter,
    users: usize,
}

impl Accounts for Seeded {
    fn count(&self) -> usize {
        self.users
    }

    fn user(&self, n: usize) -> Result<UserId, String> {
        Ok(self.minter.user(n as u64))
    }

    fn token(&self, n: usize) -> Result<String, String> {
        Ok(self.minter.token_of(n as u64))
    }
}

/// A file that cannot be written.
#[derive(Debug)]
struct Unwritten(PathBuf, std::io::Error);

impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: cannot be written", self.0.display())
    }
}

impl Error for Unwritten {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.1)
    }
}

fn code(summary: &Summary) -> u8 {
    match summary.ended {
        _ if summary.violated() => 1,
        Ended::Interrupted => INTERRUPTED,
        _ if !summary.thresholds_held() => BROKEN,
        Ended::Finished | Ended::Aborted => 0,
    }
}

fn plan(arguments: &Load, accounts: usize) -> Result<Plan, Failure> {
    let kind = match arguments.scenario {
        Scenario::Idle => Kind::Idle,
        Scenario::Chat => Kind::Chat,
        Scenario::Storm => Kind::Storm,
        Scenario::Mixed => Kind::Mixed,
    };
    needless(arguments, kind).map_err(Failure::usage)?;
    let time = |option, text: &str| time(option, text).map_err(Failure::usage);
    let address = Address::of(&arguments.url).map_err(|error| Failure::misconfigured(&error))?;
    let thresholds = arguments.threshold.iter().map(|text| {
        Threshold::from_str(text)
            .map_err(|error| Failure::usage(format_args!("--threshold '{text}': {error}")))
    });
    let connections = arguments.connections.unwrap_or(accounts);
    let churn = arguments.churn.as_deref().unwrap_or(CHURN);
    let pairs = match kind {
        Kind::Idle | Kind::Storm => 0,
        Kind::Chat => arguments.pairs.unwrap_or((accounts / 2).min(PAIRS_MAX)),
        Kind::Mixed => arguments.pairs.unwrap_or((connections / 2).min(PAIRS_OF_MIXED_MAX)),
    };
    let steps = match (kind.sends(), arguments.steps.as_slice()) {
        (_, steps @ [_, ..]) => steps.to_vec(),
        (false, []) => vec![connections as f64],
        (true, []) => {
            let each = arguments.rate_per_pair.map(|rate| rate * pairs as f64);
            vec![arguments.rate.or(each).unwrap_or(RATE)]
        }
    };
    let crowd = match kind {
        Kind::Chat => 0,
        Kind::Mixed => connections.saturating_sub(2 * pairs),
        // Nobody is there who is never connected.
        Kind::Idle | Kind::Storm => steps.last().map_or(0, |last| connections.min(last.ceil() as usize)),
    };
    let ramp = match (&arguments.ramp, kind) {
        (Some(ramp), _) => time("--ramp", ramp)?,
        (None, Kind::Idle) => Duration::from_secs(10),
        (None, _) if !arguments.steps.is_empty() => Duration::from_secs(10),
        (None, _) => Duration::ZERO,
    };
    Ok(Plan {
        kind,
        address,
        encoding: match arguments.encoding {
            Spoken::Json => Encoding::Json,
            Spoken::Cbor => Encoding::Cbor,
        },
        pairs,
        crowd,
        steps,
        ramp,
        hold: time("--hold", &arguments.hold)?,
        thresholds: thresholds.collect::<Result<_, Failure>>()?,
        abort_on_fail: arguments.abort_on_fail,
        sizes: sizes(&arguments.size)
            .ok_or_else(|| Failure::usage(OptionError::Size(arguments.size.clone())))?,
        timeout: time("--timeout", &arguments.timeout)?.max(Duration::from_millis(1)),
        churn: share(churn).ok_or_else(|| Failure::usage(OptionError::Share(churn.to_owned())))?,
        after_death: arguments.after_death,
        threads: arguments.threads,
        command: std::env::args().map(quoted).collect::<Vec<String>>().join(" "),
    })
}

/// Options that would be ignored.
fn needless(arguments: &Load, kind: Kind) -> Result<(), OptionError> {
    let rates = arguments.rate.is_some() || arguments.rate_per_pair.is_some();
    let given = [
        ("--pairs", arguments.pairs.is_some(), kind.sends()),
        ("--connections", arguments.connections.is_some(), kind != Kind::Chat),
        ("--rate", rates, kind.sends()),
        ("--steps", !arguments.steps.is_empty(), kind != Kind::Storm),
        ("--ramp", arguments.ramp.is_some(), kind != Kind::Storm),
        ("--churn", arguments.churn.is_some(), kind == Kind::Mixed),
        ("--after-death", arguments.after_death, kind == Kind::Storm),
    ];
    if arguments.threads == Some(0) {
        return Err(OptionError::Threads);
    }
    match given.iter().find(|(_, given, means)| *given && !means) {
        Some((option, ..)) => Err(OptionError::Needless(option, kind.name())),
        None => Ok(()),
    }
}

fn time(option: &'static str, text: &str) -> Result<Duration, OptionError> {
    parse_span(text).ok_or_else(|| OptionError::Time(option, text.to_owned()))
}

/// As it would be typed into a shell.
fn quoted(word: String) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./:,=%+@".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

fn sizes(text: &str) -> Option<Sizes> {
    if text == "chat" {
        return Some(Sizes::Chat);
    }
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let (from, to) = (from.parse().ok()?, to.parse().ok()?);
    (SIZE_MIN <= from && from <= to && to <= PAYLOAD_BYTES_MAX).then_some(Sizes::Between(from, to))
}

fn share(text: &str) -> Option<f64> {
    let share = text.strip_suffix('%')?.trim().parse::<f64>().ok()? / 100.0;
    (0.0..=1.0).contains(&share).then_some(share)
}

/// A flag that the first SIGINT or SIGTERM sets; the second ends the process.
fn watch_signals() -> std::io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let signals: [Signal; 2] = {
        let _within = runtime.enter();
        [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?]
    };
    let asked = Arc::clone(&flag);
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || runtime.block_on(obey(signals, &asked)))?;
    Ok(flag)
}

async fn obey([mut interrupt, mut terminate]: [Signal; 2], asked: &AtomicBool) {
    for count in 1.. {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        if count > 1 {
            std::process::exit(i32::from(INTERRUPTED));
        }
        asked.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_a_shell_would_read_them() {
        for (word, shown) in [
            ("--hold", "--hold"),
            ("ws://127.0.0.1:8080", "ws://127.0.0.1:8080"),
            ("delivery p95<50ms", "'delivery p95<50ms'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word.to_owned()), shown);
        }
    }

    #[test]
    fn sizes_and_shares_are_read() {
        assert_eq!(sizes("chat"), Some(Sizes::Chat));
        assert_eq!(sizes("100"), Some(Sizes::Between(100, 100)));
        assert_eq!(sizes("24..65536"), Some(Sizes::Between(24, 65_536)));
        for text in ["23", "100..50", "24..65537", "x", "1..", "", "-5"] {
            assert_eq!(sizes(text), None, "{text}");
        }
        assert_eq!(share("50%"), Some(0.5));
        for text in ["50", "101%", "-1%", "x%", "NaN%"] {
            assert_eq!(share(text), None, "{text}");
        }
    }
}
