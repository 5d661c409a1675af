//! What the numbers mean: which thresholds held, where the knee is, and whether the generator itself was the bottleneck.

use std::time::Duration;

use super::tally::{Latencies, Tally};
use super::threshold::{Counted, Latency, Measured, Metric, Statistic, Threshold};

/// A thread that computes for this share of the time has no room left.
const PINNED_PCT: f64 = 90.0;
/// Sends that begin late by more than this share of what is reported make it a report of the generator.
const LATE_SHARE: f64 = 0.1;

/// A step that was held.
#[derive(Debug, Clone)]
pub struct Step {
    /// From 1.
    pub number: u32,
    /// What it asked for.
    pub target: f64,
    /// How long it was judged.
    pub length: Duration,
    /// What came of things in that time.
    pub tally: Tally,
    /// CPU of the process, 100 is one core.
    pub cpu_pct: f64,
    /// CPU of its busiest thread.
    pub busiest_pct: f64,
    /// What each threshold was compared with, and whether it held.
    pub verdicts: Vec<(Measured, bool)>,
}

impl Step {
    /// Whether all thresholds held.
    pub fn held(&self) -> bool {
        self.verdicts.iter().all(|(_, held)| *held)
    }

    /// Why the numbers say more about the generator than about the server, if they do.
    pub fn bottleneck(&self, sends: bool) -> Option<String> {
        if self.busiest_pct >= PINNED_PCT {
            return Some(format!("a thread of it computed for {:.0} % of the time", self.busiest_pct));
        }
        if self.tally.outcomes.not_sent > 0 {
            return Some(format!("{} were not sent because it was too late", self.tally.outcomes.not_sent));
        }
        let (name, reported) = match sends {
            true => ("delivery", &self.tally.delivery),
            false => ("connect", &self.tally.connect),
        };
        let (late, reported) = (self.tally.late.quantile(0.99)?, reported.quantile(0.99)?);
        (late.as_secs_f64() > LATE_SHARE * reported.as_secs_f64()).then(|| {
            let ms = |time: Duration| time.as_secs_f64() * 1e3;
            format!(
                "what it sent began {:.2} ms late (p99), of a {name} of {:.2} ms (p99)",
                ms(late),
                ms(reported)
            )
        })
    }
}

/// Compares what came of things with the thresholds.
pub fn verdicts(thresholds: &[Threshold], tally: &Tally) -> Vec<(Measured, bool)> {
    let judge = |threshold: &Threshold| {
        let measured = measure(threshold.metric, tally);
        (measured, threshold.holds(measured))
    };
    thresholds.iter().map(judge).collect()
}

fn measure(metric: Metric, tally: &Tally) -> Measured {
    let outcomes = &tally.outcomes;
    match metric {
        Metric::Count(counted) => {
            let count = match counted {
                Counted::Errors => outcomes.failed(),
                Counted::Refused => outcomes.refused(),
                Counted::NotSent => outcomes.not_sent,
            };
            Measured::Count { count, due: outcomes.due }
        }
        Metric::Latency(latency, statistic) => {
            let (latencies, expected) = match latency {
                Latency::Delivery => (&tally.delivery, outcomes.due),
                Latency::Ack => (&tally.ack, outcomes.due),
                Latency::Connect => (&tally.connect, tally.attempts.due),
            };
            match value(latencies, statistic) {
                Some(time) => Measured::Time(time),
                None if expected == 0 => Measured::Nothing,
                None => Measured::Missing,
            }
        }
    }
}

fn value(latencies: &Latencies, statistic: Statistic) -> Option<Duration> {
    match statistic {
        Statistic::Quantile(share) => latencies.quantile(share),
        Statistic::Max => latencies.max(),
        Statistic::Mean => latencies.mean(),
    }
}

/// Where the thresholds stop to hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Knee {
    /// There was nothing to hold, or no step.
    Unknown,
    /// Not even the first step held.
    BelowFirst,
    /// All held: it lies beyond the last step, which asked for this.
    BeyondLast(f64),
    /// The last step that held asked for this, and the next one for that.
    Between(f64, f64),
}

/// Finds the knee: the last step before the first that did not hold.
pub fn knee(steps: &[Step]) -> Knee {
    let Some(last) = steps.last().filter(|step| !step.verdicts.is_empty()) else { return Knee::Unknown };
    match steps.iter().position(|step| !step.held()) {
        None => Knee::BeyondLast(last.target),
        Some(0) => Knee::BelowFirst,
        Some(broken) => Knee::Between(steps[broken - 1].target, steps[broken].target),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tally::{Failure, Outcome};

    fn step(target: f64, delivery_ms: u64) -> Step {
        let mut tally = Tally::default();
        tally.outcomes.due = 1;
        tally.outcomes.note(Outcome::Ok);
        tally.delivery.record(Duration::from_millis(delivery_ms));
        let thresholds = ["delivery p95<50ms".parse().expect("a threshold")];
        let verdicts = verdicts(&thresholds, &tally);
        Step {
            number: 1,
            target,
            length: Duration::from_secs(1),
            tally,
            cpu_pct: 10.0,
            busiest_pct: 10.0,
            verdicts,
        }
    }

    #[test]
    fn the_knee_is_the_last_step_before_the_first_that_broke() {
        assert_eq!(knee(&[]), Knee::Unknown);
        assert_eq!(knee(&[Step { verdicts: Vec::new(), ..step(1.0, 1) }]), Knee::Unknown);
        assert_eq!(knee(&[step(250.0, 60)]), Knee::BelowFirst);
        assert_eq!(knee(&[step(250.0, 10), step(500.0, 20)]), Knee::BeyondLast(500.0));
        assert_eq!(knee(&[step(250.0, 10), step(500.0, 60), step(1_000.0, 10)]), Knee::Between(250.0, 500.0));
    }

    #[test]
    fn a_latency_that_should_have_been_measured_is_broken_when_it_was_not() {
        let thresholds: Vec<Threshold> = ["delivery p95<50ms", "connect max<1s", "errors<50%"]
            .iter()
            .map(|text| text.parse().expect("a threshold"))
            .collect();
        let held =
            |tally: &Tally| verdicts(&thresholds, tally).iter().map(|(_, held)| *held).collect::<Vec<bool>>();
        let mut tally = Tally::default();
        assert_eq!(held(&tally), [true, true, true], "nothing was due");
        tally.outcomes.due = 2;
        tally.outcomes.note(Outcome::Failed(Failure::Timeout));
        assert_eq!(held(&tally), [false, true, false]);
        tally.attempts.due = 1;
        assert_eq!(held(&tally), [false, false, false]);
    }

    #[test]
    fn a_generator_that_is_late_or_pinned_says_so() {
        let quick = step(250.0, 1);
        assert_eq!(quick.bottleneck(true), None);
        let mut late = step(250.0, 1);
        late.tally.late.record(Duration::from_micros(100));
        assert_eq!(late.bottleneck(true), None, "a tenth is not more than a tenth");
        late.tally.late.record(Duration::from_micros(200));
        assert_eq!(
            late.bottleneck(true).as_deref(),
            Some("what it sent began 0.20 ms late (p99), of a delivery of 1.00 ms (p99)")
        );
        let pinned = Step { busiest_pct: 97.0, ..step(250.0, 10) };
        assert_eq!(pinned.bottleneck(true).as_deref(), Some("a thread of it computed for 97 % of the time"));
    }
}
