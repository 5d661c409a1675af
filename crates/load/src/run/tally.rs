//! What came of it: outcomes, latencies, and sums of both.
//!
//! Every outcome is one of ok, refused, failed and not sent, and what is due has one or is still open. Owns the counting. Deliberately
//! knows nothing of when something is which.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use protocol::ErrorCode;

/// Longest latency that is told apart from longer ones.
const LATENCY_MICROS_MAX: u64 = 3_600_000_000;
/// Significant digits of a latency.
const DIGITS: u8 = 3;

/// How something failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// No answer within the time.
    Timeout,
    /// The connection broke before the answer.
    Reset,
    /// The server closed it before the answer, with this code (1005 stands for none, as in RFC 6455).
    Closed(u16),
    /// There was no connection, and none could be made.
    Connect,
    /// The answer was that of something else.
    WrongAnswer,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Timeout => f.write_str("timeout"),
            Failure::Reset => f.write_str("reset"),
            Failure::Closed(code) => write!(f, "closed_{code}"),
            Failure::Connect => f.write_str("connect"),
            Failure::WrongAnswer => f.write_str("wrong_answer"),
        }
    }
}

/// What came of something that was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Ok,
    /// The server said no.
    Refused(ErrorCode),
    /// It was not done, or nobody knows.
    Failed(Failure),
    /// The generator was too late to begin it.
    NotSent,
}

/// Counts by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// What was due.
    pub due: u64,
    /// Done.
    pub ok: u64,
    /// By the name of the error.
    pub refusals: BTreeMap<&'static str, u64>,
    /// By what happened.
    pub failures: BTreeMap<Failure, u64>,
    /// Never begun.
    pub not_sent: u64,
}

impl Outcomes {
    /// Notes one outcome.
    pub fn note(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Ok => self.ok += 1,
            Outcome::Refused(code) => *self.refusals.entry(code.name()).or_default() += 1,
            Outcome::Failed(failure) => *self.failures.entry(failure).or_default() += 1,
            Outcome::NotSent => self.not_sent += 1,
        }
    }

    /// All that were refused.
    pub fn refused(&self) -> u64 {
        self.refusals.values().sum()
    }

    /// All that failed.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// What has no outcome yet.
    pub fn still_open(&self) -> i64 {
        self.due as i64 - (self.ok + self.refused() + self.failed() + self.not_sent) as i64
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: &Outcomes) {
        self.due += other.due;
        self.ok += other.ok;
        self.not_sent += other.not_sent;
        add(&mut self.refusals, &other.refusals);
        add(&mut self.failures, &other.failures);
    }

    /// The refusals as `name=count`, joined by `;`.
    pub fn refusals_text(&self) -> String {
        joined(&self.refusals)
    }

    /// The failures as `name=count`, joined by `;`.
    pub fn failures_text(&self) -> String {
        joined(&self.failures)
    }
}

/// Counts as `name=count`, joined by `;`, names sorted.
pub fn joined<K: fmt::Display>(counts: &BTreeMap<K, u64>) -> String {
    let mut texts: Vec<String> = counts.iter().map(|(name, count)| format!("{name}={count}")).collect();
    texts.sort();
    texts.join(";")
}

/// Adds counts by name.
pub fn add<K: Ord + Copy>(counts: &mut BTreeMap<K, u64>, others: &BTreeMap<K, u64>) {
    for (name, count) in others {
        *counts.entry(*name).or_default() += count;
    }
}

/// Latencies, exact to three digits. It takes no room until there is one.
#[derive(Debug, Clone, Default)]
pub struct Latencies(Option<Box<Histogram<u32>>>);

impl Latencies {
    /// Notes one.
    pub fn record(&mut self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).min(LATENCY_MICROS_MAX);
        if let Some(histogram) = self.histogram() {
            let recorded = histogram.record(micros);
            debug_assert!(recorded.is_ok(), "it grows by itself");
        }
    }

    fn histogram(&mut self) -> Option<&mut Histogram<u32>> {
        if self.0.is_none() {
            let made = Histogram::new(DIGITS);
            debug_assert!(made.is_ok(), "three digits are a good number of digits");
            self.0 = made.ok().map(Box::new);
        }
        self.0.as_deref_mut()
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: &Latencies) {
        if let (Some(other), Some(histogram)) = (&other.0, self.0.as_deref_mut()) {
            let added = histogram.add(&**other);
            debug_assert!(added.is_ok(), "both grow by themselves");
        } else if self.0.is_none() {
            self.0.clone_from(&other.0);
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.as_ref().map_or(0, |histogram| histogram.len())
    }

    /// The latency that this share of them do not exceed; `None` when there are none.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        self.0.as_ref().map(|histogram| Duration::from_micros(histogram.value_at_quantile(share)))
    }

    /// The greatest.
    pub fn max(&self) -> Option<Duration> {
        self.0.as_ref().map(|histogram| Duration::from_micros(histogram.max()))
    }

    /// The mean.
    pub fn mean(&self) -> Option<Duration> {
        self.0.as_ref().map(|histogram| Duration::from_secs_f64(histogram.mean() / 1e6))
    }
}

/// What came of everything within some time.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Of what the scenario is about: messages, or connections.
    pub outcomes: Outcomes,
    /// Of attempts to connect, whatever the scenario is about.
    pub attempts: Outcomes,
    /// Connections that stood and ended without the client's doing.
    pub lost: BTreeMap<Failure, u64>,
    /// Messages that were pushed to the peer for the first time.
    pub delivered: u64,
    /// Messages that were pushed once more after coming back, which is how it is promised.
    pub delivered_again: u64,
    /// Messages whose answer was lost and which were sent once more.
    pub repeated: u64,
    /// Those of them which the server had already.
    pub repeated_in_vain: u64,
    /// Passing messages sent, and those that arrived.
    pub passing: (u64, u64),
    /// Refusals of what has no outcome of its own, acknowledgements and passing messages, by the name of the error.
    pub others_refused: BTreeMap<&'static str, u64>,
    /// What should never have happened.
    pub violations: u64,
    /// Received.
    pub bytes_in: u64,
    /// Sent.
    pub bytes_out: u64,
    /// Due to pushed.
    pub delivery: Latencies,
    /// Due to answered.
    pub ack: Latencies,
    /// Begun to let in.
    pub connect: Latencies,
    /// Due to begun.
    pub late: Latencies,
}

impl Tally {
    /// Adds that of another time or thread.
    pub fn merge(&mut self, other: &Tally) {
        self.outcomes.merge(&other.outcomes);
        self.attempts.merge(&other.attempts);
        add(&mut self.lost, &other.lost);
        self.delivered += other.delivered;
        self.delivered_again += other.delivered_again;
        self.repeated += other.repeated;
        self.repeated_in_vain += other.repeated_in_vain;
        self.passing.0 += other.passing.0;
        self.passing.1 += other.passing.1;
        add(&mut self.others_refused, &other.others_refused);
        self.violations += other.violations;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.delivery.merge(&other.delivery);
        self.ack.merge(&other.ack);
        self.connect.merge(&other.connect);
        self.late.merge(&other.late);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_add_up() {
        let mut outcomes = Outcomes { due: 9, ..Outcomes::default() };
        for outcome in [
            Outcome::Ok,
            Outcome::Ok,
            Outcome::Refused(ErrorCode::RateLimited),
            Outcome::Refused(ErrorCode::NotMember),
            Outcome::Failed(Failure::Closed(4_501)),
            Outcome::Failed(Failure::Timeout),
            Outcome::Failed(Failure::Timeout),
            Outcome::NotSent,
        ] {
            outcomes.note(outcome);
        }
        assert_eq!((outcomes.ok, outcomes.refused(), outcomes.failed(), outcomes.not_sent), (2, 2, 3, 1));
        assert_eq!(outcomes.still_open(), 1);
        assert_eq!(outcomes.refusals_text(), "not_member=1;rate_limited=1");
        assert_eq!(outcomes.failures_text(), "closed_4501=1;timeout=2");
        let mut twice = outcomes.clone();
        twice.merge(&outcomes);
        assert_eq!((twice.due, twice.failed(), twice.still_open()), (18, 6, 2));
        assert_eq!(twice.failures_text(), "closed_4501=2;timeout=4");
    }

    #[test]
    fn no_latency_is_not_a_latency_of_nothing() {
        let mut latencies = Latencies::default();
        assert_eq!((latencies.quantile(0.99), latencies.max(), latencies.mean()), (None, None, None));
        latencies.merge(&Latencies::default());
        assert_eq!(latencies.quantile(0.5), None);
        for micros in 1..=1_000 {
            latencies.record(Duration::from_micros(micros));
        }
        let mut other = Latencies::default();
        other.record(Duration::from_secs(10_000));
        other.merge(&latencies);
        assert_eq!(latencies.quantile(0.5), Some(Duration::from_micros(500)));
        assert_eq!(latencies.quantile(0.99), Some(Duration::from_micros(990)));
        assert_eq!(latencies.mean(), Some(Duration::from_nanos(500_500)));
        assert_eq!(other.count(), 1_001);
        // More than an hour counts as an hour, within three digits.
        let hour = other.max().expect("one").as_secs_f64();
        assert!((3_600.0..3_604.0).contains(&hour), "{hour}");
    }
}
