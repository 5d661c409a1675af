//! What a run must keep to: `delivery p95<50ms`, `errors<0.1%`.
//!
//! Owns how thresholds are written and what they are compared with. Deliberately knows nothing of where the numbers come from.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A latency that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latency {
    /// From when a message was due to when it was pushed to the peer.
    Delivery,
    /// From when a message was due to when its sender was answered.
    Ack,
    /// From when a connection was begun to when `connect` was answered.
    Connect,
}

impl Latency {
    const ALL: [Latency; 3] = [Latency::Delivery, Latency::Ack, Latency::Connect];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Latency::Delivery => "delivery",
            Latency::Ack => "ack",
            Latency::Connect => "connect",
        }
    }
}

/// Which value of a latency is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Statistic {
    /// This share of all values are not greater.
    Quantile(f64),
    /// The greatest.
    Max,
    /// The mean.
    Mean,
}

const STATISTICS: [(&str, Statistic); 7] = [
    ("p50", Statistic::Quantile(0.5)),
    ("p90", Statistic::Quantile(0.9)),
    ("p95", Statistic::Quantile(0.95)),
    ("p99", Statistic::Quantile(0.99)),
    ("p99.9", Statistic::Quantile(0.999)),
    ("max", Statistic::Max),
    ("mean", Statistic::Mean),
];

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// `failed`.
    Errors,
    /// `refused`.
    Refused,
    /// `not_sent`.
    NotSent,
}

impl Counted {
    const ALL: [Counted; 3] = [Counted::Errors, Counted::Refused, Counted::NotSent];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Counted::Errors => "errors",
            Counted::Refused => "refused",
            Counted::NotSent => "not_sent",
        }
    }
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Metric {
    /// A value of a latency.
    Latency(Latency, Statistic),
    /// A count, as it is or as a share of what was due.
    Count(Counted),
}

/// What it is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// A length of time.
    Time(Duration),
    /// A share of what was due; 1 is all of it.
    Share(f64),
    /// A number.
    Count(u64),
}

/// One threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// What is looked at.
    pub metric: Metric,
    /// Whether the bound itself is still within.
    pub inclusive: bool,
    /// What it must stay below.
    pub bound: Bound,
    text: String,
}

/// What a metric was, to be compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measured {
    /// A latency.
    Time(Duration),
    /// So many of so many.
    Count {
        /// How many.
        count: u64,
        /// Of how many.
        due: u64,
    },
    /// Nothing was there to be measured, and that is as it should be.
    Nothing,
    /// Nothing was measured although there should have been something.
    Missing,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Measured::Time(time) => write!(f, "{:.3} ms", time.as_secs_f64() * 1e3),
            Measured::Count { count, due } => {
                let share = if *due == 0 { 0.0 } else { *count as f64 / *due as f64 };
                write!(f, "{count} of {due}, {:.3} %", share * 100.0)
            }
            Measured::Nothing => f.write_str("nothing to measure"),
            Measured::Missing => f.write_str("none came"),
        }
    }
}

impl Threshold {
    /// Whether what was measured is within.
    pub fn holds(&self, measured: Measured) -> bool {
        let within = |value: f64, bound: f64| value < bound || self.inclusive && value == bound;
        match (measured, self.bound) {
            (Measured::Nothing, _) => true,
            (Measured::Time(time), Bound::Time(bound)) => within(time.as_secs_f64(), bound.as_secs_f64()),
            (Measured::Count { count, .. }, Bound::Count(bound)) => within(count as f64, bound as f64),
            (Measured::Count { count: 0, due: 0 }, Bound::Share(bound)) => within(0.0, bound),
            (Measured::Count { count, due }, Bound::Share(bound)) => within(count as f64, bound * due as f64),
            (Measured::Missing | Measured::Time(_) | Measured::Count { .. }, _) => false,
        }
    }
}

impl fmt::Display for Threshold {
    /// As it was given.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why a text is no threshold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThresholdError {
    /// It compares nothing.
    NoComparison,
    /// It asks for more instead of less.
    Greater,
    /// There is no such metric.
    Metric(String),
    /// A latency without saying which value of it.
    NoStatistic(&'static str),
    /// There is no such value of a latency.
    Statistic(String),
    /// A count has no quantiles.
    NeedlessStatistic(&'static str, String),
    /// The bound of a latency is no length of time.
    Time(String),
    /// The bound of a count is neither a share nor a number.
    Share(String),
}

impl fmt::Display for ThresholdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThresholdError::NoComparison => f.write_str(
                "there is no `<` or `<=` in it; write it like 'delivery p95<50ms' or 'errors<0.1%'",
            ),
            ThresholdError::Greater => {
                f.write_str("`>` is not known: a threshold says what must not be reached, with `<` or `<=`")
            }
            ThresholdError::Metric(name) => write!(
                f,
                "there is no metric `{name}`; there are delivery, ack and connect, and errors, refused and not_sent"
            ),
            ThresholdError::NoStatistic(name) => {
                write!(
                    f,
                    "which value of `{name}`? One of p50, p90, p95, p99, p99.9, max and mean, as in '{name} p95<50ms'"
                )
            }
            ThresholdError::Statistic(name) => {
                write!(f, "there is no `{name}`; there are p50, p90, p95, p99, p99.9, max and mean")
            }
            ThresholdError::NeedlessStatistic(name, what) => {
                write!(f, "`{name}` is a count and has no `{what}`; write it like '{name}<0.1%'")
            }
            ThresholdError::Time(text) => {
                write!(f, "`{text}` is no length of time such as 50ms, 1.5s or 800us")
            }
            ThresholdError::Share(text) => {
                write!(f, "`{text}` is neither a share such as 0.1% nor a whole number")
            }
        }
    }
}

impl std::error::Error for ThresholdError {}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Threshold, ThresholdError> {
        if text.contains('>') {
            return Err(ThresholdError::Greater);
        }
        let (left, right) = text.split_once('<').ok_or(ThresholdError::NoComparison)?;
        let (inclusive, right) = match right.strip_prefix('=') {
            Some(rest) => (true, rest.trim()),
            None => (false, right.trim()),
        };
        let mut words = left.split_whitespace();
        let name = words.next().unwrap_or("");
        let statistic = words.collect::<Vec<&str>>().join(" ");
        let metric = metric(name, &statistic)?;
        let bound = match metric {
            Metric::Latency(..) => {
                Bound::Time(time(right).ok_or_else(|| ThresholdError::Time(right.to_owned()))?)
            }
            Metric::Count(_) => share(right).ok_or_else(|| ThresholdError::Share(right.to_owned()))?,
        };
        Ok(Threshold { metric, inclusive, bound, text: text.trim().to_owned() })
    }
}

fn metric(name: &str, statistic: &str) -> Result<Metric, ThresholdError> {
    if let Some(latency) = Latency::ALL.into_iter().find(|latency| latency.name() == name) {
        if statistic.is_empty() {
            return Err(ThresholdError::NoStatistic(latency.name()));
        }
        let found = STATISTICS.iter().find(|(name, _)| *name == statistic);
        let (_, value) = found.ok_or_else(|| ThresholdError::Statistic(statistic.to_owned()))?;
        return Ok(Metric::Latency(latency, *value));
    }
    let counted = Counted::ALL.into_iter().find(|counted| counted.name() == name);
    let counted = counted.ok_or_else(|| ThresholdError::Metric(name.to_owned()))?;
    match statistic {
        "" => Ok(Metric::Count(counted)),
        needless => Err(ThresholdError::NeedlessStatistic(counted.name(), needless.to_owned())),
    }
}

/// A number without sign or exponent.
fn number(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && text.len() <= 15;
    if plain && text.starts_with(|c: char| c.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn time(text: &str) -> Option<Duration> {
    // The longer unit first: `ms` and `us` end in `s` too.
    let (count, unit) = [("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("s", 1.0)]
        .iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?.trim(), seconds)))?;
    Duration::try_from_secs_f64(number(count)? * unit).ok()
}

fn share(text: &str) -> Option<Bound> {
    match text.strip_suffix('%') {
        Some(percent) => number(percent.trim()).map(|percent| Bound::Share(percent / 100.0)),
        None if text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().ok().map(Bound::Count)
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::chance::Chance;

    fn read(text: &str) -> Result<(Metric, bool, Bound), ThresholdError> {
        text.parse().map(|Threshold { metric, inclusive, bound, .. }| (metric, inclusive, bound))
    }

    #[test]
    fn thresholds_are_read() {
        let delivery = |statistic| Metric::Latency(Latency::Delivery, statistic);
        let time = |micros| Bound::Time(Duration::from_micros(micros));
        for (text, expected) in [
            ("delivery p95<50ms", (delivery(Statistic::Quantile(0.95)), false, time(50_000))),
            ("delivery  p99.9  <=  1.5s", (delivery(Statistic::Quantile(0.999)), true, time(1_500_000))),
            ("ack max<800us", (Metric::Latency(Latency::Ack, Statistic::Max), false, time(800))),
            ("connect mean<2s", (Metric::Latency(Latency::Connect, Statistic::Mean), false, time(2_000_000))),
            ("errors<0.1%", (Metric::Count(Counted::Errors), false, Bound::Share(0.001))),
            ("refused<=3", (Metric::Count(Counted::Refused), true, Bound::Count(3))),
            ("not_sent < 1 %", (Metric::Count(Counted::NotSent), false, Bound::Share(0.01))),
        ] {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_threshold_is_named() {
        for (text, said) in [
            (
                "delivery p95",
                "there is no `<` or `<=` in it; write it like 'delivery p95<50ms' or 'errors<0.1%'",
            ),
            (
                "delivery p95>50ms",
                "`>` is not known: a threshold says what must not be reached, with `<` or `<=`",
            ),
            (
                "deliver p95<50ms",
                "there is no metric `deliver`; there are delivery, ack and connect, and errors, refused and not_sent",
            ),
            (
                "<50ms",
                "there is no metric ``; there are delivery, ack and connect, and errors, refused and not_sent",
            ),
            (
                "ack<50ms",
                "which value of `ack`? One of p50, p90, p95, p99, p99.9, max and mean, as in 'ack p95<50ms'",
            ),
            ("ack p42<50ms", "there is no `p42`; there are p50, p90, p95, p99, p99.9, max and mean"),
            ("ack p50 p99<50ms", "there is no `p50 p99`; there are p50, p90, p95, p99, p99.9, max and mean"),
            ("errors p95<1%", "`errors` is a count and has no `p95`; write it like 'errors<0.1%'"),
            ("ack p50<50", "`50` is no length of time such as 50ms, 1.5s or 800us"),
            ("ack p50<-5ms", "`-5ms` is no length of time such as 50ms, 1.5s or 800us"),
            ("ack p50<1%", "`1%` is no length of time such as 50ms, 1.5s or 800us"),
            ("errors<5ms", "`5ms` is neither a share such as 0.1% nor a whole number"),
            ("errors<1.5", "`1.5` is neither a share such as 0.1% nor a whole number"),
            ("errors<", "`` is neither a share such as 0.1% nor a whole number"),
        ] {
            assert_eq!(read(text).map_err(|error| error.to_string()), Err(said.to_owned()), "{text}");
        }
    }

    #[test]
    fn bounds_are_compared() {
        let holds = |text: &str, measured| text.parse::<Threshold>().expect("a threshold").holds(measured);
        let ms = |count| Measured::Time(Duration::from_millis(count));
        assert!(
            holds("ack p50<50ms", ms(49)) && !holds("ack p50<50ms", ms(50)) && holds("ack p50<=50ms", ms(50))
        );
        let of = |count, due| Measured::Count { count, due };
        assert!(
            holds("errors<0.1%", of(0, 1_000))
                && !holds("errors<0.1%", of(1, 1_000))
                && holds("errors<=0.1%", of(1, 1_000))
        );
        assert!(holds("errors<2", of(1, 1)) && !holds("errors<2", of(2, 1_000_000)));
        assert!(holds("errors<0.1%", of(0, 0)), "nothing was due");
        assert!(!holds("ack p50<50ms", Measured::Missing) && holds("connect p50<50ms", Measured::Nothing));
    }

    #[test]
    fn no_text_breaks_the_parser_and_what_is_read_reads_the_same_again() {
        let seed = std::env::var("THRONG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x7e57);
        eprintln!("seed {seed}, set THRONG_SEED to repeat");
        let mut chance = Chance::new(seed);
        let slots: [&[&str]; 5] = [
            &["delivery", "ack", "connect", "errors", "refused", "not_sent"],
            &["", " p50", " p95 ", " p99.9", " max", " mean"],
            &["<", "<=", " < ", ">"],
            &["0", "50", "0.1", "1e9", ".", "-1", "9999999999999999999", "99999999999999"],
            &["", "ms", "s", "us", "µs", "%", "\u{0}", "é"],
        ];
        let mut read = 0;
        for _ in 0..50_000 {
            let mut text = String::new();
            for slot in slots {
                // Now and then a piece of another place, or none.
                let from = if chance.below(10) == 0 { slots[chance.below(5) as usize] } else { slot };
                if chance.below(20) > 0 {
                    text.push_str(from[chance.below(from.len() as u64) as usize]);
                }
            }
            let Ok(threshold) = text.parse::<Threshold>() else { continue };
            read += 1;
            assert_eq!(threshold.to_string().parse().as_ref(), Ok(&threshold), "{text}");
            // Whatever the bound is, less is not worse.
            let zero = match threshold.bound {
                Bound::Time(_) => Measured::Time(Duration::ZERO),
                _ => Measured::Count { count: 0, due: 10 },
            };
            let nothing_is_below =
                matches!(threshold.bound, Bound::Time(Duration::ZERO) | Bound::Count(0) | Bound::Share(0.0));
            assert_eq!(threshold.holds(zero), threshold.inclusive || !nothing_is_below, "{text}");
        }
        assert!(read > 100, "{read} were thresholds");
    }
}
