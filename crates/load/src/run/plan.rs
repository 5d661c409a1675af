//! What a run shall do.
//!
//! Owns what can be asked for and what cannot go together. Deliberately knows nothing of how it is carried out.

use std::fmt;
use std::time::Duration;

use protocol::Encoding;

use super::address::Address;
use super::payload::Sizes;
use super::schedule::Schedule;
use super::threshold::{Latency, Metric, Threshold};

/// What the clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// They connect and hold, answering pings.
    Idle,
    /// Pairs: one sends, the other acknowledges.
    Chat,
    /// All connect at once.
    Storm,
    /// An idle crowd some of which go and come back, and pairs that chat and send passing messages.
    Mixed,
}

impl Kind {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Idle => "idle",
            Kind::Chat => "chat",
            Kind::Storm => "storm",
            Kind::Mixed => "mixed",
        }
    }

    /// Whether what is due are messages; otherwise they are connections.
    pub const fn sends(self) -> bool {
        matches!(self, Kind::Chat | Kind::Mixed)
    }

    /// What is due, in the plural.
    pub const fn of_what(self) -> &'static str {
        if self.sends() { "messages" } else { "tries to connect" }
    }
}

/// A run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What the clients do.
    pub kind: Kind,
    /// The server.
    pub address: Address,
    /// Which encoding they speak.
    pub encoding: Encoding,
    /// Pairs that chat: the first users.
    pub pairs: usize,
    /// Users that are connected besides.
    pub crowd: usize,
    /// What each step asks for: messages a second, or connections.
    pub steps: Vec<f64>,
    /// How long each step takes to get there.
    pub ramp: Duration,
    /// How long it stays.
    pub hold: Duration,
    /// What it must keep to.
    pub thresholds: Vec<Threshold>,
    /// Whether the first step that does not ends the run.
    pub abort_on_fail: bool,
    /// How long payloads are.
    pub sizes: Sizes,
    /// How long an answer is waited for.
    pub timeout: Duration,
    /// The share of the crowd that goes each second, and comes back.
    pub churn: f64,
    /// Whether the storm is the one after the server's death.
    pub after_death: bool,
    /// How many threads, if it is not left to the run.
    pub threads: Option<usize>,
    /// The command line, for the record.
    pub command: String,
}

/// What cannot be asked for together.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanError {
    /// More users than there are accounts.
    Accounts(usize, usize),
    /// Nobody to be connected.
    Nobody,
    /// A step that asks for nothing.
    EmptyStep,
    /// Steps of connections that do not grow.
    Shrinking(f64, f64),
    /// The last step asks for more connections than there are users.
    Crowd(f64, usize),
    /// A threshold about what does not happen in this scenario.
    Threshold(String, Kind),
    /// A part of the run that has no length.
    NoHold,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Accounts(wanted, there) => write!(
                f,
                "{wanted} users are needed and there are {there}: seed more, or ask for fewer with --pairs or --connections"
            ),
            PlanError::Nobody => {
                f.write_str("nobody is to be connected: --pairs and --connections must be at least 1")
            }
            PlanError::EmptyStep => f.write_str("a rate or step must be more than 0"),
            PlanError::Shrinking(before, after) => {
                write!(f, "--steps {before},{after}: connections only grow from step to step")
            }
            PlanError::Crowd(step, there) => {
                write!(
                    f,
                    "--steps …,{step}: there are {there} users; the last step cannot ask for more connections"
                )
            }
            PlanError::Threshold(threshold, kind) => write!(
                f,
                "--threshold '{threshold}': no message is sent in `{}`; there are connect, errors and refused",
                kind.name()
            ),
            PlanError::NoHold => f.write_str("--hold must be more than 0"),
        }
    }
}

impl std::error::Error for PlanError {}

impl Plan {
    /// All who are connected.
    pub fn connections(&self) -> usize {
        2 * self.pairs + self.crowd
    }

    /// When everything is due.
    pub fn schedule(&self) -> Schedule {
        match self.kind {
            Kind::Chat | Kind::Mixed => Schedule::messages(&self.steps, self.ramp, self.hold),
            Kind::Idle => Schedule::connections(&self.steps, self.ramp, self.hold),
            Kind::Storm => Schedule::connections(&self.steps, Duration::ZERO, self.hold),
        }
    }

    /// Looks for what cannot be.
    ///
    /// # Errors
    /// The first such thing.
    pub fn check(&self, accounts: usize) -> Result<(), PlanError> {
        let connections = self.connections();
        if connections == 0 || self.kind.sends() && self.pairs == 0 {
            return Err(PlanError::Nobody);
        }
        if connections > accounts {
            return Err(PlanError::Accounts(connections, accounts));
        }
        if self.steps.is_empty() || self.steps.iter().any(|step| *step <= 0.0) {
            return Err(PlanError::EmptyStep);
        }
        if self.hold.is_zero() {
            return Err(PlanError::NoHold);
        }
        if !self.kind.sends() {
            if let Some(pair) = self.steps.windows(2).find(|pair| pair[0] >= pair[1]) {
                return Err(PlanError::Shrinking(pair[0], pair[1]));
            }
            if let Some(last) = self.steps.last().filter(|last| **last > connections as f64) {
                return Err(PlanError::Crowd(*last, connections));
            }
            let of_messages = |threshold: &&Threshold| {
                matches!(threshold.metric, Metric::Latency(Latency::Delivery | Latency::Ack, _))
            };
            if let Some(threshold) = self.thresholds.iter().find(of_messages) {
                return Err(PlanError::Threshold(threshold.to_string(), self.kind));
            }
        }
        Ok(())
    }
}
