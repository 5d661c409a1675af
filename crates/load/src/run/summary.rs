//! What a run has shown, in words and as JSON.
//!
//! The first line is about the generator when it was the bottleneck; then come the thresholds, the knee, the steps, every outcome apart,
//! and what was violated.

use std::fmt;
use std::fmt::Write as _;
use std::time::Duration;

use protocol::{CloseCode, ErrorCode};
use serde_json::{Value, json};

use super::csv::Ended;
use super::judge::{Knee, Step, knee};
use super::pair::Violation;
use super::plan::{Kind, Plan};
use super::tally::{Failure, Latencies, Tally, joined};
use super::view::outcomes;

/// How a storm went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Storm {
    /// When all were in for the first time.
    pub all_in: Option<Duration>,
    /// When the first of them was out again.
    pub death: Option<Duration>,
    /// When half were back.
    pub half_back: Option<Duration>,
    /// When all were.
    pub all_back: Option<Duration>,
    /// The fewest that were in since.
    fewest: usize,
}

impl Storm {
    /// Looks how many are in; says whether all are for the first time.
    pub fn look(&mut self, open: usize, wanted: usize, now: Duration) -> bool {
        let first = self.all_in.is_none() && open >= wanted;
        if first {
            self.all_in = Some(now);
            self.fewest = open;
        }
        if self.all_in.is_some() && open < wanted && self.death.is_none() {
            self.death = Some(now);
        }
        if self.death.is_some() && self.all_back.is_none() {
            self.fewest = self.fewest.min(open);
            // Not while they are still dropping out.
            if self.fewest < wanted.div_ceil(2) && 2 * open >= wanted {
                self.half_back.get_or_insert(now);
            }
            if open >= wanted {
                self.all_back = Some(now);
            }
        }
        first
    }

    /// Whether all were in, out and in again.
    pub fn is_over(&self, open: usize, wanted: usize) -> bool {
        self.all_back.is_some() && open >= wanted
    }
}

/// A run that is over.
#[derive(Debug, Clone)]
pub struct Summary {
    /// What it should do.
    pub plan: Plan,
    /// Where it ran.
    pub machine: String,
    /// How it ended.
    pub ended: Ended,
    /// How long it took.
    pub elapsed: Duration,
    /// The steps that were held.
    pub steps: Vec<Step>,
    /// What came of everything.
    pub total: Tally,
    /// The violations, or the first hundred of them.
    pub evidence: Vec<Violation>,
    /// How the storm went, if it was one.
    pub storm: Storm,
    /// Messages that were answered and had not the time to arrive.
    pub unknown: u64,
}

impl Summary {
    /// Whether every threshold held in every step, and there was a step to hold them.
    pub fn thresholds_held(&self) -> bool {
        self.steps.iter().all(Step::held)
    }

    /// Whether the server broke a promise.
    pub fn violated(&self) -> bool {
        self.total.violations > 0
    }

    fn bottlenecks(&self) -> Vec<(u32, String)> {
        let sends = self.plan.kind.sends();
        self.steps.iter().filter_map(|step| Some((step.number, step.bottleneck(sends)?))).collect()
    }

    fn knee_text(&self) -> String {
        let unit = if self.plan.kind.sends() { "messages a second" } else { "connections" };
        match knee(&self.steps) {
            Knee::Unknown if self.plan.thresholds.is_empty() => "unknown: there is no threshold".to_owned(),
            Knee::Unknown => "unknown: no step was held to its end".to_owned(),
            Knee::BelowFirst => {
                let first = self.steps.first().map_or(0.0, |step| step.target);
                format!("below {first} {unit}: already the first step broke a threshold")
            }
            Knee::BeyondLast(target) => format!("beyond {target} {unit}: no step broke a threshold"),
            Knee::Between(held, broke) => format!("{held} {unit}; {broke} broke a threshold"),
        }
    }

    /// What may help, for what was refused most often in such runs.
    fn hints(&self) -> Vec<String> {
        let count = |code: ErrorCode| {
            let of = |refusals: &std::collections::BTreeMap<&'static str, u64>| {
                refusals.get(code.name()).copied().unwrap_or(0)
            };
            of(&self.total.outcomes.refusals)
                + of(&self.total.attempts.refusals)
                + of(&self.total.others_refused)
        };
        let known = [
            (
                ErrorCode::NotMember,
                "the pairs have no conversation: seed them first, with `throng seed` and at least one conversation for every two users",
            ),
            (
                ErrorCode::RateLimited,
                "a connection may send `commands.per_second` (500 unless configured) on average: spread the rate over more --pairs, or raise \
                 THRONG_COMMANDS_PER_SECOND and THRONG_COMMANDS_BURST of the server",
            ),
            (
                ErrorCode::Overloaded,
                "the server had more to do than it could: for many who connect at once see `admission` and \
                 `connections.unauthenticated_per_address_max` of its configuration",
            ),
            (ErrorCode::TokenExpired, "the tokens have expired: make new ones, with a longer --ttl"),
            (ErrorCode::Unauthorised, "the tokens are not signed with the key of this server"),
            (ErrorCode::ReadOnly, "the server cannot store anything: is its disk full?"),
            (
                ErrorCode::TooLarge,
                "the payloads are longer than `messages.payload_bytes_max` of the server: choose a smaller --size",
            ),
        ];
        let expired = self.total.lost.contains_key(&Failure::Closed(CloseCode::Unauthorised.code()));
        let found =
            known.iter().filter(|(code, _)| count(*code) > 0 || *code == ErrorCode::TokenExpired && expired);
        found.map(|(code, hint)| format!("{}: {hint}", code.name())).collect()
    }

    /// The same as JSON, for programs.
    pub fn json(&self) -> Value {
        let step = |step: &Step| {
            json!({
                "step": step.number,
                "target": step.target,
                "seconds": step.length.as_secs_f64(),
                "cpu_pct": step.cpu_pct,
                "busiest_thread_pct": step.busiest_pct,
                "held": step.held(),
                "thresholds": step.verdicts.iter().map(|(measured, held)| {
                    json!({"measured": measured.to_string(), "held": held})
                }).collect::<Vec<Value>>(),
                "bottleneck": step.bottleneck(self.plan.kind.sends()),
                "tally": tally_json(&step.tally),
            })
        };
        let (knee_name, knee_target) = match knee(&self.steps) {
            Knee::Unknown => ("unknown", None),
            Knee::BelowFirst => ("below_first", None),
            Knee::BeyondLast(target) => ("beyond_last", Some(target)),
            Knee::Between(target, _) => ("found", Some(target)),
        };
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        json!({
            "scenario": self.plan.kind.name(),
            "command": self.plan.command,
            "server": self.plan.address.url,
            "machine": self.machine,
            "ended": self.ended.name(),
            "seconds": self.elapsed.as_secs_f64(),
            "thresholds": self.plan.thresholds.iter().map(ToString::to_string).collect::<Vec<String>>(),
            "thresholds_held": self.thresholds_held(),
            "knee": {"is": knee_name, "target": knee_target},
            "generator_was_the_bottleneck": !self.bottlenecks().is_empty(),
            "steps": self.steps.iter().map(step).collect::<Vec<Value>>(),
            "total": tally_json(&self.total),
            "unknown": self.unknown,
            "violations": self.evidence.iter().map(ToString::to_string).collect::<Vec<String>>(),
            "storm": {
                "all_in_s": seconds(self.storm.all_in),
                "first_out_s": seconds(self.storm.death),
                "half_back_s": seconds(self.storm.half_back),
                "all_back_s": seconds(self.storm.all_back),
            },
        })
    }
}

fn tally_json(tally: &Tally) -> Value {
    let ms = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
    let of = |latencies: &Latencies| {
        json!({
            "count": latencies.count(),
            "p50_ms": ms(latencies.quantile(0.5)),
            "p95_ms": ms(latencies.quantile(0.95)),
            "p99_ms": ms(latencies.quantile(0.99)),
            "p99_9_ms": ms(latencies.quantile(0.999)),
            "max_ms": ms(latencies.max()),
            "mean_ms": ms(latencies.mean()),
        })
    };
    let named = |outcomes: &super::tally::Outcomes| {
        let failures: serde_json::Map<String, Value> =
            outcomes.failures.iter().map(|(failure, count)| (failure.to_string(), json!(count))).collect();
        json!({
            "due": outcomes.due,
            "ok": outcomes.ok,
            "refused": outcomes.refused(),
            "failed": outcomes.failed(),
            "not_sent": outcomes.not_sent,
            "open": outcomes.still_open(),
            "refusals": outcomes.refusals,
            "failures": failures,
        })
    };
    json!({
        "outcomes": named(&tally.outcomes),
        "connecting": named(&tally.attempts),
        "lost": tally.lost.iter().map(|(failure, count)| (failure.to_string(), json!(count))).collect::<serde_json::Map<String, Value>>(),
        "delivered": tally.delivered,
        "delivered_again": tally.delivered_again,
        "repeated": tally.repeated,
        "repeated_in_vain": tally.repeated_in_vain,
        "passing_sent": tally.passing.0,
        "passing_arrived": tally.passing.1,
        "others_refused": tally.others_refused,
        "violations": tally.violations,
        "bytes_in": tally.bytes_in,
        "bytes_out": tally.bytes_out,
        "delivery": of(&tally.delivery),
        "ack": of(&tally.ack),
        "connect": of(&tally.connect),
        "late": of(&tally.late),
    })
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (step, why) in self.bottlenecks() {
            writeln!(
                f,
                "THE GENERATOR WAS THE BOTTLENECK in step {step}: {why}. These numbers say little of the server."
            )?;
        }
        self.write_thresholds(f)?;
        writeln!(f, "knee: {}", self.knee_text())?;
        let how = match self.ended {
            Ended::Finished => "",
            Ended::Interrupted => ", interrupted before its end",
            Ended::Aborted => ", ended by the first broken threshold",
        };
        writeln!(
            f,
            "{} against {} for {:.1} s{how}",
            self.plan.kind.name(),
            self.plan.address.url,
            self.elapsed.as_secs_f64()
        )?;
        f.write_str(&self.table())?;
        writeln!(f, "{}: {}", self.plan.kind.of_what(), outcomes(&self.total))?;
        self.write_connections(f)?;
        if self.plan.kind.sends() {
            self.write_messages(f)?;
        }
        if self.plan.kind == Kind::Storm {
            self.write_storm(f)?;
        }
        for hint in self.hints() {
            writeln!(f, "hint, {hint}")?;
        }
        match self.total.violations {
            0 => writeln!(f, "violations: 0"),
            count => {
                writeln!(f, "VIOLATIONS: {count}")?;
                for violation in &self.evidence {
                    writeln!(f, "  {violation}")?;
                }
                Ok(())
            }
        }
    }
}

impl Summary {
    fn write_thresholds(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, threshold) in self.plan.thresholds.iter().enumerate() {
            let broken =
                self.steps.iter().find(|step| step.verdicts.get(index).is_some_and(|(_, held)| !held));
            let verdict = |step: &Step| {
                step.verdicts.get(index).map_or(String::new(), |(measured, _)| measured.to_string())
            };
            match (broken, self.steps.last()) {
                (Some(step), _) => writeln!(
                    f,
                    "broken  {threshold}: {} in step {} ({})",
                    verdict(step),
                    step.number,
                    step.target
                )?,
                (None, Some(last)) => writeln!(f, "held    {threshold}: {} in the last step", verdict(last))?,
                (None, None) => writeln!(f, "open    {threshold}: no step was held to its end")?,
            }
        }
        Ok(())
    }

    /// One line a step.
    fn table(&self) -> String {
        if self.steps.is_empty() {
            return String::new();
        }
        let sends = self.plan.kind.sends();
        let (asked, name) = if sends { ("asked/s", "delivery") } else { ("asked", "connect") };
        let mut text = format!(
            "{:>4} {asked:>9} {:>9} {:>9} {:>8} {:>8} {:>8}  {:>32}  {:>9} {:>9} {:>5}\n",
            "step",
            "due",
            "ok",
            "refused",
            "failed",
            "not sent",
            format!("{name} p50 / p95 / p99 / max ms"),
            "ack p99",
            "late p99",
            "cpu %"
        );
        for step in &self.steps {
            let outcomes = &step.tally.outcomes;
            let latencies = if sends { &step.tally.delivery } else { &step.tally.connect };
            let ms = |time: Option<Duration>| {
                time.map_or("-".to_owned(), |time| format!("{:.1}", time.as_secs_f64() * 1e3))
            };
            let of = [
                latencies.quantile(0.5),
                latencies.quantile(0.95),
                latencies.quantile(0.99),
                latencies.max(),
            ];
            let _ = writeln!(
                text,
                "{:>4} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8}  {:>32}  {:>9} {:>9} {:>5.0}{}",
                step.number,
                step.target,
                outcomes.due,
                outcomes.ok,
                outcomes.refused(),
                outcomes.failed(),
                outcomes.not_sent,
                of.map(ms).join(" / "),
                ms(step.tally.ack.quantile(0.99)),
                ms(step.tally.late.quantile(0.99)),
                step.cpu_pct,
                if self.plan.thresholds.is_empty() {
                    ""
                } else if step.held() {
                    "  held"
                } else {
                    "  broken"
                },
            );
        }
        text
    }

    fn write_connections(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (attempts, lost) = (&self.total.attempts, &self.total.lost);
        write!(
            f,
            "connections: {} wanted; {} tries, {} let in",
            self.plan.connections(),
            attempts.due,
            attempts.ok
        )?;
        for (what, count, names) in [
            ("refused", attempts.refused(), attempts.refusals_text()),
            ("failed", attempts.failed(), attempts.failures_text()),
            ("lost", lost.values().sum(), joined(lost)),
        ] {
            match count {
                0 => write!(f, ", 0 {what}")?,
                count => write!(f, ", {count} {what} ({names})")?,
            }
        }
        writeln!(f)
    }

    fn write_messages(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = &self.total;
        write!(f, "delivered: {}", total.delivered)?;
        if total.delivered_again > 0 {
            write!(f, ", and {} once more after coming back, as promised", total.delivered_again)?;
        }
        if total.repeated > 0 {
            let had = total.repeated_in_vain;
            write!(
                f,
                "; {} whose answer was lost were sent again, {had} of which the server had already",
                total.repeated
            )?;
        }
        if self.unknown > 0 {
            write!(
                f,
                "; {} that were answered had not the time to arrive, or their receiver was away",
                self.unknown
            )?;
        }
        writeln!(f)?;
        if total.passing.0 > 0 {
            writeln!(f, "passing messages: {} sent, {} arrived", total.passing.0, total.passing.1)?;
        }
        if !total.others_refused.is_empty() {
            writeln!(
                f,
                "acknowledgements and the like that were refused: {}",
                joined(&total.others_refused)
            )?;
        }
        Ok(())
    }

    fn write_storm(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Storm { all_in, death, half_back, all_back, .. } = &self.storm;
        let seconds = |time: &Option<Duration>| {
            time.map_or("never".to_owned(), |time| format!("{:.2} s", time.as_secs_f64()))
        };
        writeln!(f, "storm: all in after {}", seconds(all_in))?;
        let Some(death) = death else { return Ok(()) };
        let since = |time: &Option<Duration>| seconds(&time.map(|time| time.saturating_sub(*death)));
        writeln!(
            f,
            "       the first was out after {}; from then on half were back after {}, all after {}",
            seconds(&Some(*death)),
            since(half_back),
            since(all_back)
        )
    }
}
