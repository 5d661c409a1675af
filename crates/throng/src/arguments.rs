//! The command line: what can be asked, and the help that says so.

mod load;

use std::path::PathBuf;

use auth::Algorithm;
use clap::{Args, Parser, Subcommand, ValueEnum};

pub use load::{Load, Scenario, Spoken};

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  it could not be done; the line on standard error says why
  2  the command line or the configuration is wrong";

const EXAMPLES: &str = "\
Examples:
  throng serve --dev                        try it: prints the address of a demo page and two tokens
  throng config init                        write a commented configuration, throng.toml
  throng keys generate                      make the key that signs tokens
  throng serve --config throng.toml         serve
  throng token --user alice --device 1      a token for one device of alice, valid for an hour
  throng load chat --url ws://HOST:PORT --tokens FILE --rate 500
                                            how long messages take when 500 a second are sent
  throng sample --csv sample.csv            write down what the machine does while a load runs
  throng report run.csv sample.csv          make a page of both
  throng seed --users 1000                  users and conversations for a load test

Exit codes:
  0  done
  1  it could not be done; the line on standard error says why
  2  the command line or the configuration is wrong";

/// A messaging server for very large, mostly quiet crowds. One binary, an embedded database.
#[derive(Debug, Parser)]
#[command(name = "throng", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What can be asked.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the server, until SIGTERM or SIGINT.
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Serve),
    /// Make a token for one device of one user, and print it.
    #[command(after_help = TOKEN_EXAMPLES)]
    Token(Token),
    /// Make the key that signs tokens.
    #[command(subcommand)]
    Keys(Keys),
    /// Write, check, show or explain the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Check or back up the database.
    #[command(subcommand)]
    Db(Db),
    /// Drive a server with many clients, check what it promises, and find how much it can do.
    #[command(after_help = load::EXAMPLES)]
    Load(Box<Load>),
    /// Write down what the server's machine does, one row an interval.
    #[command(after_help = crate::sample::help())]
    Sample(Sample),
    /// Make one page of what a load run and a sampler have written.
    #[command(after_help = REPORT_EXAMPLES)]
    Report(Report),
    /// Make users and conversations for a load test, or remove them.
    #[command(after_help = SEED_EXAMPLES)]
    Seed(Seed),
}

const SERVE_EXAMPLES: &str = "\
Every option of the configuration has a default, so none is needed; `throng config docs` explains them all. \
On SIGTERM the server sends its clients away, tells them when to come back, and exits 0 within 30 s.

Examples:
  throng serve --dev
  throng serve --listen 0.0.0.0:8080 --data /var/lib/throng
  THRONG_LOG_FORMAT=json throng serve --config /etc/throng.toml

Exit codes:
  0  stopped as told
  1  it could not be done; the line on standard error says why
  2  the command line or the configuration is wrong";

/// `throng serve`
#[derive(Debug, Args)]
pub struct Serve {
    /// Development: make a key if there is none, print tokens to try, serve a demo page at `/`.
    #[arg(long)]
    pub dev: bool,
    /// Address and port for sockets and HTTP [default: 127.0.0.1:8080].
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// How many shards serve connections [default: one for each core].
    #[arg(long, value_name = "N")]
    pub shards: Option<String>,
    /// Where configuration and data are.
    #[command(flatten)]
    pub place: Place,
}

/// Where configuration and data are: the same for every command that needs them.
#[derive(Debug, Args)]
pub struct Place {
    /// Configuration file in TOML [default: none].
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder of the database and of generated keys [default: ./throng-data].
    #[arg(long, value_name = "DIR")]
    pub data: Option<String>,
}

const TOKEN_EXAMPLES: &str = "\
The key is found as `throng serve` finds it. The token is all that goes to standard output.

Examples:
  throng token --user alice --device 1
  throng token --user f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --device 2 --ttl 10m --config throng.toml
  TOKEN=$(throng token --user bob --device 1)

Exit codes:
  0  printed
  1  it could not be done; the line on standard error says why
  2  there is no key that signs, the server would refuse the token, or the command line is wrong";

/// `throng token`
#[derive(Debug, Args)]
pub struct Token {
    /// The user: a UUID, or any name, which becomes one.
    #[arg(long, value_name = "USER")]
    pub user: String,
    /// The device: a number that is the user's own.
    #[arg(long, value_name = "N")]
    pub device: u32,
    /// How long the token is valid, such as 10m, 1h or 7d.
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub ttl: String,
    /// The session, a UUID or any text of at most 64 bytes [default: a new one].
    #[arg(long, value_name = "SESSION")]
    pub session: Option<String>,
    /// Where configuration and data are.
    #[command(flatten)]
    pub place: Place,
}

/// `throng keys`
#[derive(Debug, Subcommand)]
pub enum Keys {
    /// Make a signing key in the folder `keys` of the data folder; an existing one is never replaced.
    #[command(after_help = GENERATE_EXAMPLES)]
    Generate(Generate),
}

const GENERATE_EXAMPLES: &str = "\
With ed25519 whoever issues tokens has signing.pem, and servers need only verifying.pem. With hs256 both sides share \
one secret; checking is about thirty times cheaper.

Examples:
  throng keys generate
  throng keys generate --algorithm hs256 --data /var/lib/throng

Exit codes:
  0  made
  1  a key exists already, or the files cannot be made
  2  the command line or the configuration is wrong";

/// `throng keys generate`
#[derive(Debug, Args)]
pub struct Generate {
    /// What kind of key.
    #[arg(long, value_enum, default_value = "ed25519")]
    pub algorithm: GeneratedAlgorithm,
    /// Where configuration and data are.
    #[command(flatten)]
    pub place: Place,
}

/// The kinds of keys throng makes.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum GeneratedAlgorithm {
    /// A key pair: a private key that signs, a public one that checks.
    Ed25519,
    /// A secret that does both.
    Hs256,
}

impl From<GeneratedAlgorithm> for Algorithm {
    fn from(algorithm: GeneratedAlgorithm) -> Algorithm {
        match algorithm {
            GeneratedAlgorithm::Ed25519 => Algorithm::EdDsa,
            GeneratedAlgorithm::Hs256 => Algorithm::Hs256,
        }
    }
}

/// `throng config`
#[derive(Debug, Subcommand)]
#[command(after_help = EXIT_CODES)]
pub enum ConfigCommand {
    /// Write a commented configuration file; an existing one is never replaced.
    #[command(after_help = EXIT_CODES)]
    Init {
        /// The file to write.
        #[arg(value_name = "FILE", default_value = "throng.toml")]
        file: PathBuf,
    },
    /// Find mistakes: in the file, the environment, the key files, the data folder, the address.
    #[command(after_help = EXIT_CODES)]
    Check {
        /// Where configuration and data are.
        #[command(flatten)]
        place: Place,
    },
    /// Print the value of every option and where it came from. Secrets are in files of their own and never shown.
    #[command(after_help = EXIT_CODES)]
    Show {
        /// Where configuration and data are.
        #[command(flatten)]
        place: Place,
    },
    /// Print what every option does, in Markdown.
    Docs,
}

const SEED_EXAMPLES: &str = "\
The same numbers make the same accounts everywhere, and what is there already is left alone, so a repetition changes \
nothing. User n is half of direct conversation n/2 and has the phone number +999000000000 + n, a range that no person \
has. It works beside a running server, which goes on serving; --clean needs it stopped. --clean removes the users of \
that range with all that is only theirs, and leaves whoever shares a conversation with somebody else.

Examples:
  throng seed --users 5000 --conversations 2500 --tokens tokens.txt
  throng seed --users 1000 --groups 20 --group-size 50 --seed 7 --data /var/lib/throng
  throng seed --clean

Exit codes:
  0  done
  1  it could not be done; the line on standard error says why
  2  the numbers do not fit together, there is no key for the tokens, or the command line is wrong";

/// `throng seed`
#[derive(Debug, Args)]
pub struct Seed {
    /// How many users, each with one device.
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pub users: u64,
    /// How many direct conversations [default: half as many as users].
    #[arg(long, value_name = "N")]
    pub conversations: Option<u64>,
    /// How many groups.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub groups: u64,
    /// Members of each group.
    #[arg(long, value_name = "M", default_value_t = 10)]
    pub group_size: u64,
    /// What all ids follow from.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Save a token for every device, one a line: user, device, token. Replaces the file.
    #[arg(long, value_name = "FILE")]
    pub tokens: Option<PathBuf>,
    /// How long tokens are valid [default: 7d, or as long as the configuration allows].
    #[arg(long, value_name = "TIME")]
    pub ttl: Option<String>,
    /// Remove what was seeded, instead.
    #[arg(long, conflicts_with_all = ["users", "conversations", "groups", "group_size", "seed", "tokens", "ttl"])]
    pub clean: bool,
    /// Where configuration and data are.
    #[command(flatten)]
    pub place: Place,
}

const CHECK_EXAMPLES: &str = "\
Reads every page and compares checksums, indexes and logs; repairs nothing. Run it as the user the server runs as.

Examples:
  throng db check --data /var/lib/throng
  throng db check /backup/throng-2026-01-31.db

Exit codes:
  0  sound
  1  damaged, or it could not be looked through; the lines on standard error say what was found
  2  the command line or the configuration is wrong";

const BACKUP_EXAMPLES: &str = "\
The copy is of the moment at which it began, and complete when it has its name. Put into an empty folder as throng.db, \
it is the data folder of a server; keys are in files of their own and are not part of it.

Example:
  throng db backup /backup/throng-$(date +%F).db --data /var/lib/throng

Exit codes:
  0  written
  1  it could not be done; the line on standard error says why
  2  the command line or the configuration is wrong";

/// `throng db`
#[derive(Debug, Subcommand)]
#[command(after_help = EXIT_CODES)]
pub enum Db {
    /// Check the whole database for damage, also while the server runs.
    #[command(after_help = CHECK_EXAMPLES)]
    Check {
        /// A backup to check [default: the database of the data folder].
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Where configuration and data are.
        #[command(flatten)]
        place: Place,
    },
    /// Copy the database to a file, also while the server runs; an existing file is never replaced.
    #[command(after_help = BACKUP_EXAMPLES)]
    Backup {
        /// The file to write.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Where configuration and data are.
        #[command(flatten)]
        place: Place,
    },
}

/// `throng sample`
#[derive(Debug, Args)]
pub struct Sample {
    /// The time from row to row, such as 500ms, 2s or 1m; at least 100ms.
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub interval: String,
    /// Where the server is asked for its metrics and its conversations; the server itself, not a proxy.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub url: String,
    /// The server's process [default: the one that the lock file in the data folder names].
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// The file to write; an existing one is never replaced [default: standard output].
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// End by itself after this time [default: when it is stopped].
    #[arg(long = "for", value_name = "TIME")]
    pub duration: Option<String>,
    /// Where configuration and data are.
    #[command(flatten)]
    pub place: Place,
}

const REPORT_EXAMPLES: &str = "\
The page stands alone: it opens from a file, asks no network for anything, prints, and fits a phone. It begins with the \
verdict and the knee, and holds every row of the files. A run that was killed is shown as far as it came.

Examples:
  throng report run.csv -o report.html
  throng report run.csv sample.csv -o report.html

Exit codes:
  0  written
  1  a file cannot be read or written, or is not what it should be; standard error says which
  2  the command line is wrong";

/// `throng report`
#[derive(Debug, Args)]
pub struct Report {
    /// What `throng load --csv` has written.
    #[arg(value_name = "RUN.CSV")]
    pub run: PathBuf,
    /// What `throng sample --csv` has written meanwhile.
    #[arg(value_name = "SAMPLE.CSV")]
    pub sample: Option<PathBuf>,
    /// The page to write; an older report there is replaced, anything else is not.
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub output: PathBuf,
}
