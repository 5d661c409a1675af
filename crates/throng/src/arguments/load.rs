//! The command line of `throng load`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Place;

/// Behind the options.
pub const EXAMPLES: &str = "\
Users come from `throng seed`: either from the file that its --tokens wrote (line n is user n), or by --users and --seed \
with the key of the server, found as `throng token` finds it. Users 2k and 2k+1 are a pair, whose direct conversation must \
be there (`throng seed --conversations`). User 2k sends, user 2k+1 acknowledges.

What is measured. The times at which messages are due are fixed before the run (an open loop), and a latency counts from \
then, also when the generator or the server is behind:
  delivery   due to pushed to the peer
  ack        due to answered, which is after the commit
  connect    begun to `connect` answered

What is counted. Every message (in idle and storm: every try to connect) has one outcome:
  ok         answered
  refused    the server said no; by the name of its error
  failed     timeout (no answer within --timeout), reset or closed_NNNN (it ended first),
             connect (due while its sender had no connection), wrong_answer; in idle also a
             connection that is lost
  not sent   the generator could not begin it within 1 s after it was due, so it was left out
Except in a storm, at most 512 connections are being made at a time; one that waits for that is not due yet. \
A message whose answer was lost is a failure, and is sent again under the same client id when its sender is back, as \
real clients do; that it comes once is checked, but it is not counted twice.

What is checked. Each payload carries pair, number and a checksum; whatever comes damaged, twice, out of order or not at \
all is a violation, shown with its evidence. A message pushed again after a reconnect is none.

Steps. Each step ramps to its load within --ramp and holds it for --hold; thresholds are judged over the hold (for \
connect: over ramp and hold). The knee is the last step before the first that broke one.
  --threshold 'delivery p95<50ms'   delivery, ack, connect: p50 p90 p95 p99 p99.9 max mean; us ms s
  --threshold 'errors<0.1%'         errors (failed), refused, not_sent: share of the due, or count

--csv is written a row a second, whole, so it is complete to the last second whatever ends the run. Ctrl-C ends the run \
within 5 s, with the summary; a second Ctrl-C ends it at once.

Hundreds of thousands of connections need threads with descriptor tables of their own and, towards 127.0.0.1, several \
source addresses; both are chosen by themselves.

Examples:
  throng load chat --url ws://127.0.0.1:8080 --users 2000
  throng load chat --url ws://127.0.0.1:8080 --tokens tokens --rate 500 --hold 1m
  throng load chat --url ws://127.0.0.1:8080 --tokens tokens --steps 250,500,1000 --hold 60s \\
      --ramp 10s --threshold 'delivery p95<50ms' --threshold 'errors<0.1%' --csv run.csv
  throng load idle --url ws://127.0.0.1:8080 --tokens tokens --connections 100000 --hold 5m
  throng load storm --url ws://127.0.0.1:8080 --tokens tokens --after-death --hold 2m
  throng load mixed --url ws://127.0.0.1:8080 --tokens tokens --pairs 100 --rate 100 --churn 0.1%

Exit codes:
  0    done, and every threshold held
  1    the server broke a promise, or the run could not be done; standard error says why
  2    the command line is wrong
  99   a threshold was broken
  130  interrupted";

/// `throng load`
#[derive(Debug, Args)]
pub struct Load {
    /// What the clients do.
    #[arg(value_enum)]
    pub scenario: Scenario,
    /// The server, as ws://HOST:PORT.
    #[arg(long, value_name = "URL")]
    pub url: String,
    /// File with a line `USER-UUID DEVICE TOKEN` for each user.
    #[arg(long, value_name = "FILE", required_unless_present = "users", conflicts_with_all = ["users", "seed"])]
    pub tokens: Option<PathBuf>,
    /// So many users of `throng seed`, with tokens that are made as they are needed.
    #[arg(long, value_name = "N")]
    pub users: Option<usize>,
    /// The --seed they were seeded with.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Where the key that signs their tokens is found.
    #[command(flatten)]
    pub place: Place,
    /// Pairs that chat (chat, mixed) [default: all there are, at most 1000; mixed: at most 100].
    #[arg(long, value_name = "N")]
    pub pairs: Option<usize>,
    /// Connections (idle, storm, mixed: pairs included) [default: all users].
    #[arg(long, value_name = "N")]
    pub connections: Option<usize>,
    /// Messages a second of all pairs together [default: 10 without --steps and --rate-per-pair].
    #[arg(long, value_name = "R", conflicts_with_all = ["rate_per_pair", "steps"])]
    pub rate: Option<f64>,
    /// Messages a second of each pair.
    #[arg(long, value_name = "R", conflicts_with = "steps")]
    pub rate_per_pair: Option<f64>,
    /// Steps one after the other: messages a second (chat, mixed) or connections (idle).
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub steps: Vec<f64>,
    /// How long each step is held; of a storm, how long at most.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub hold: String,
    /// How long it takes to get from one step to the next [default: 10s with --steps, otherwise 0s; idle: 10s].
    #[arg(long, value_name = "TIME")]
    pub ramp: Option<String>,
    /// What must hold; may be given several times.
    #[arg(long, value_name = "THRESHOLD")]
    pub threshold: Vec<String>,
    /// End the run after the first step that breaks a threshold.
    #[arg(long)]
    pub abort_on_fail: bool,
    /// Bytes of a payload: a number, MIN..MAX, or `chat`: 80 to 16384, half of them at most 160.
    #[arg(long, value_name = "SIZE", default_value = "chat")]
    pub size: String,
    /// How long an answer is waited for.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub timeout: String,
    /// Share of the crowd that goes each second and comes back 1 to 5 s later (mixed) [default: 0.1%].
    #[arg(long, value_name = "SHARE")]
    pub churn: Option<String>,
    /// Wait for the server to die, and end when all are back (storm).
    #[arg(long)]
    pub after_death: bool,
    /// What is spoken.
    #[arg(long, value_enum, default_value = "json")]
    pub encoding: Spoken,
    /// Threads that run clients [default: as many as the limit of open files asks for].
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Write a row a second to this file.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the summary as JSON to this file.
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
}

/// What clients can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// Connect and hold, answering pings.
    Idle,
    /// Pairs: one sends, the other acknowledges.
    Chat,
    /// All connect at once, or all come back after the server's death.
    Storm,
    /// An idle crowd of whom some go and come back, chatting pairs, passing messages.
    Mixed,
}

/// The encodings.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Spoken {
    /// throng.v1.json
    Json,
    /// throng.v1.cbor
    Cbor,
}
