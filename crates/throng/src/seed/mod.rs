//! `throng seed`: accounts for a load test, written straight into the database, and their removal.
//!
//! Owns who does it: this process, when nobody has the data folder, or else the server that has it. What is made, `seeding` says; how it
//! lies in the database, the engine knows.

mod made;
mod tokens;

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use configuration::Config;
use seeding::{Impossible, Numbers, PHONES, Plan};
use store::{Cleaned, Engine, Fatal, Reply, Request};
use store_sqlite::{OpenError, Options, SqliteStore};

use crate::control::{self, AskError};
use crate::keys::KeysError;
use crate::progress::{Progress, counted};
use crate::token::wall_clock;

pub use made::Made;
pub use tokens::{Minter, TokensError};

/// Users or members in one transaction. Nobody waits between them, so it is as much as pays.
const PEOPLE_PER_TRANSACTION: usize = 50_000;
/// How often the clock of a removal is looked at.
const TICK: Duration = Duration::from_millis(200);

/// What shall be made.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// How much.
    pub numbers: Numbers,
    /// Where the tokens go; two are shown when there is no file.
    pub tokens: Option<&'a Path>,
    /// How long they are valid, as typed.
    pub ttl: Option<&'a str>,
}

/// Why it was not done.
#[derive(Debug)]
pub enum SeedError {
    /// The numbers do not fit together.
    Impossible(Impossible),
    /// There are no tokens.
    Tokens(TokensError),
    /// The database cannot be used.
    Open(OpenError),
    /// The database failed.
    Store(Fatal),
    /// The disk is full.
    Full,
    /// Somebody else has some of the phone numbers.
    PhonesTaken,
    /// The server that has the data folder did not do it.
    Ask(AskError),
    /// A server has the data folder, and what it remembers would outlive what is removed.
    Running { data: PathBuf, pid: Option<u32> },
    /// There is no data folder to remove anything from.
    Missing { data: PathBuf },
}

impl SeedError {
    /// Whether the command line or the configuration is to blame.
    pub fn is_misuse(&self) -> bool {
        match self {
            SeedError::Impossible(_) => true,
            SeedError::Tokens(error) => error.is_misuse(),
            _ => false,
        }
    }
}

impl fmt::Display for SeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SeedError::Impossible(error) => error.fmt(f),
            SeedError::Tokens(error) => error.fmt(f),
            SeedError::Open(error) => error.fmt(f),
            SeedError::Store(error) => error.fmt(f),
            SeedError::Full => {
                f.write_str("the disk is full; what is made stays, and a repetition makes the rest")
            }
            SeedError::PhonesTaken => f.write_str(
                "users of another seed are there and have the phone numbers; use their seed, or `throng seed --clean` first",
            ),
            SeedError::Ask(error) => error.fmt(f),
            SeedError::Running { data, pid } => {
                let who = pid.map_or("another process".to_owned(), |pid| format!("process {pid}"));
                write!(
                    f,
                    "the data directory {} is in use by {who}, which would remember what is removed; stop it, clean, and start \
                     it again",
                    data.display()
                )
            }
            SeedError::Missing { data } => write!(f, "there is no data directory {}", data.display()),
        }
    }
}

impl Error for SeedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            SeedError::Tokens(error) => error.source(),
            SeedError::Open(error) => error.source(),
            SeedError::Store(error) => error.source(),
            SeedError::Ask(error) => error.source(),
            _ => None,
        }
    }
}

/// Makes everything, and says what was made.
///
/// # Errors
/// When it cannot be made at all, or not all of it: then what was made stays.
pub fn seed(config: &Config, wanted: &Wanted<'_>) -> Result<String, SeedError> {
    let plan = Plan::new(wanted.numbers).map_err(SeedError::Impossible)?;
    let minter = match Minter::new(config, plan.seed(), wanted.ttl) {
        Ok(minter) => Some(minter),
        // Without a key there is nothing to try, which is no reason to make nobody.
        Err(TokensError::Keys(KeysError::None { .. } | KeysError::CannotSign)) if wanted.tokens.is_none() => {
            None
        }
        Err(error) => return Err(SeedError::Tokens(error)),
    };
    let began = Instant::now();
    let made = make(config, &plan, began)?;
    if made.phones_taken > 0 {
        return Err(SeedError::PhonesTaken);
    }
    let mut told = made.told(began.elapsed());
    let users = wanted.numbers.users;
    match (minter, wanted.tokens) {
        (Some(minter), Some(file)) => told += &minter.save(file, users).map_err(SeedError::Tokens)?,
        (Some(minter), None) => told += &minter.examples(users),
        (None, _) => told += "there is no key to sign tokens with, so there is none to try\n",
    }
    Ok(told)
}

/// Here, or by the server that has the data folder.
fn make(config: &Config, plan: &Plan, began: Instant) -> Result<Made, SeedError> {
    let numbers = plan.numbers();
    let all = numbers.users + numbers.conversations + numbers.groups;
    let mut progress = Progress::new();
    let mut show = |made: &Made| {
        let done = made.done();
        progress.show_with(|| {
            let rate = done as f64 / began.elapsed().as_secs_f64();
            format!("{} users and conversations, {rate:.0} a second", counted(done, all))
        });
    };
    match open(config) {
        Ok(mut store) => make_here(&mut store, plan, &mut show),
        Err(OpenError::InUse { .. }) => control::ask(&config.data, plan, show).map_err(SeedError::Ask),
        Err(error) => Err(SeedError::Open(error)),
    }
}

fn make_here(store: &mut SqliteStore, plan: &Plan, show: &mut dyn FnMut(&Made)) -> Result<Made, SeedError> {
    let mut made = Made::default();
    for request in plan.requests(PEOPLE_PER_TRANSACTION, wall_clock()) {
        match one(store, request)? {
            Reply::Imported(imported) => made.add(&imported),
            _ => return Err(SeedError::Full),
        }
        show(&made);
        if made.phones_taken > 0 {
            break;
        }
    }
    Ok(made)
}

/// Removes whoever was seeded, and says what was removed and what stayed.
///
/// # Errors
/// When nothing was removed.
pub fn clean(config: &Config) -> Result<String, SeedError> {
    if !config.data.is_dir() {
        return Err(SeedError::Missing { data: config.data.clone() });
    }
    let mut store = open(config).map_err(|error| match error {
        OpenError::InUse { directory, pid } => SeedError::Running { data: directory, pid },
        error => SeedError::Open(error),
    })?;
    // It is one transaction, which does not say how far it is, so the clock has to do.
    let reply = thread::scope(|scope| {
        let (done, is_done) = channel::<()>();
        scope.spawn(move || {
            let (began, mut progress) = (Instant::now(), Progress::new());
            while is_done.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                let seconds = began.elapsed().as_secs();
                progress.show(format_args!("removing, {seconds} s so far"));
            }
        });
        let reply = one(&mut store, Request::Clean { phones: PHONES });
        drop(done);
        reply
    })?;
    match reply {
        Reply::Cleaned(cleaned) => Ok(told(&cleaned)),
        _ => Err(SeedError::Full),
    }
}

fn told(cleaned: &Cleaned) -> String {
    let Cleaned { users, conversations, users_stayed, conversations_stayed, .. } = cleaned;
    let mut text =
        format!("removed {users} users and {conversations} conversations, {} rows in all\n", cleaned.rows());
    if *users_stayed > 0 {
        text += &format!(
            "{users_stayed} users stayed, and {conversations_stayed} conversations of theirs: somebody who was not seeded is in them, or \
             has written there\n"
        );
    }
    text
}

fn open(config: &Config) -> Result<SqliteStore, OpenError> {
    let options = Options { cache_bytes: config.store.cache_bytes, ..Options::default() };
    SqliteStore::open(&config.data, &options)
}

fn one(store: &mut SqliteStore, request: Request) -> Result<Reply, SeedError> {
    let mut replies = Vec::new();
    store.commit(&[request], &mut replies).map_err(SeedError::Store)?;
    Ok(replies.pop().expect("an engine answers every request"))
}
