//! What every request may need to know.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use auth::{Keys, Rules, SigningKey};
use model::{Span, Wall};
use node::Handle;

use crate::metrics::Counters;

/// What the HTTP side is told at its start.
pub struct State {
    /// The way to the shards.
    pub handle: Handle,
    /// The keys that make a token one of ours.
    pub keys: Arc<Keys>,
    /// What else a token must say.
    pub rules: Rules,
    /// The server's version, for the metrics.
    pub version: String,
    /// Exact origins whose pages may use the REST interface from a browser. None by default.
    pub origins: Vec<String>,
    /// Set with `--dev`: the page and the requests it needs.
    pub dev: Option<Dev>,
    /// How much is held at once and for how long.
    pub limits: Limits,
}

/// What exists with `--dev` only: whoever can reach the server may be anybody.
pub struct Dev {
    /// Signs the tokens that are given away.
    pub signing: SigningKey,
    /// Their `aud`.
    pub audience: String,
    /// Their `iss`.
    pub issuer: Option<String>,
    /// How long they live.
    pub token_lifetime: Span,
}

/// How much is held at once and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at once; the next one is answered 503. Above half of it no connection is kept after its answer.
    pub connections_max: usize,
    /// The same from one address (IPv6: one /64), so that one cannot keep out all others.
    pub connections_per_address_max: usize,
    /// From the handover, or the answer before, to the end of a request's head. So it is how long an idle connection is kept, too.
    pub head_deadline: Duration,
    /// From the end of the head to the end of the body.
    pub body_deadline: Duration,
    /// From the end of the head to the answer.
    pub answer_deadline: Duration,
    /// A client that takes nothing of an answer for this long is given up.
    pub stall_deadline: Duration,
    /// How long requests under way are waited for at the end.
    pub shutdown_deadline: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections_max: 1_024,
            connections_per_address_max: 512,
            head_deadline: Duration::from_secs(15),
            body_deadline: Duration::from_secs(10),
            answer_deadline: Duration::from_secs(20),
            stall_deadline: Duration::from_secs(20),
            shutdown_deadline: Duration::from_secs(5),
        }
    }
}

/// Longest request body, in bytes. The longest that makes sense, a group of 1,024 members, has about 40 thousand.
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1024;

/// The state as requests share it.
pub(crate) struct Shared {
    pub state: State,
    pub counters: Counters,
    /// When the HTTP side began, in seconds since 1970.
    pub started: f64,
    /// Set once the server ends.
    pub stopping: AtomicBool,
}

impl Shared {
    pub fn new(state: State) -> Shared {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        Shared { state, counters: Counters::default(), started, stopping: AtomicBool::new(false) }
    }
}

/// The time by which tokens are judged.
pub(crate) fn wall() -> Wall {
    Wall(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64))
}
