//! From numbers to places on a chart: axes, round ticks, and how many points are worth drawing.

/// A linear or logarithmic axis of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The least value shown.
    pub low: f64,
    /// The greatest.
    pub high: f64,
    /// Whether equal distances are equal factors.
    pub is_log: bool,
    /// Where lines are drawn, and what stands there.
    pub ticks: Vec<(f64, String)>,
    /// What the ticks are in.
    pub unit: String,
}

/// What an axis measures: it decides in which units the ticks are round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Anything that is counted; says what.
    Count(&'static str),
    /// Milliseconds.
    Latency,
    /// Bytes.
    Bytes,
    /// Hundredths; says of what.
    Percent(&'static str),
}

impl Axis {
    /// An axis from zero for values up to the greatest of these, or a logarithmic one for latencies that differ greatly.
    pub fn covering(values: &[f64], measure: Measure) -> Axis {
        let most = values.iter().copied().fold(0.0, f64::max);
        let least = values.iter().copied().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        match measure {
            Measure::Latency if most / least > 50.0 => Axis::log(least, most),
            _ => Axis::linear(most, measure),
        }
    }

    fn linear(most: f64, measure: Measure) -> Axis {
        let (divisor, unit) = unit(most, measure);
        let most = if most > 0.0 { most / divisor } else { 1.0 };
        let step = round_step(most / 4.0);
        let count = (most / step).ceil().max(1.0) as u32;
        let ticks = (0..=count).map(|at| f64::from(at) * step);
        Axis {
            low: 0.0,
            high: f64::from(count) * step * divisor,
            is_log: false,
            ticks: ticks.map(|tick| (tick * divisor, short(tick, step))).collect(),
            unit,
        }
    }

    fn log(least: f64, most: f64) -> Axis {
        let (first, last) = (least.log10().floor() as i32, most.log10().ceil() as i32);
        let decades = (first..=last).map(|power| 10_f64.powi(power));
        Axis {
            low: 10_f64.powi(first),
            high: 10_f64.powi(last),
            is_log: true,
            ticks: decades.map(|tick| (tick, short(tick, tick))).collect(),
            unit: "ms, each line ten times the one below".into(),
        }
    }

    /// Where a value lies between the low end (0) and the high end (1).
    pub fn share(&self, value: f64) -> f64 {
        let share = match self.is_log {
            true => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        share.clamp(0.0, 1.0)
    }
}

fn unit(most: f64, measure: Measure) -> (f64, String) {
    const KIBI: f64 = 1_024.0;
    let (divisor, unit) = match measure {
        Measure::Count(what) if most >= 2_000_000.0 => return (1e6, format!("million {what}")),
        Measure::Count(what) if most >= 20_000.0 => return (1e3, format!("thousand {what}")),
        Measure::Count(what) => (1.0, what),
        Measure::Percent(of) => return (1.0, format!("% of {of}")),
        Measure::Latency if most >= 2_000.0 => (1_000.0, "s"),
        Measure::Latency => (1.0, "ms"),
        Measure::Bytes if most >= 2.0 * KIBI * KIBI * KIBI => (KIBI * KIBI * KIBI, "GiB"),
        Measure::Bytes if most >= 2.0 * KIBI * KIBI => (KIBI * KIBI, "MiB"),
        Measure::Bytes if most >= 2.0 * KIBI => (KIBI, "KiB"),
        Measure::Bytes => (1.0, "bytes"),
    };
    (divisor, unit.to_owned())
}

/// The next of 1, 2, 5, 10, … that is not smaller.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|factor| factor * power);
    steps.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(10.0 * power)
}

/// A tick with as many decimals as its step needs.
fn short(value: f64, step: f64) -> String {
    let decimals = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{value:.decimals$}")
}

/// Lengths of time that people count in, in seconds.
const TIME_STEPS: [f64; 18] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 10_800.0,
    21_600.0, 43_200.0, 86_400.0,
];

/// Ticks of a time axis from zero to its end, six at most.
pub fn time_ticks(end: f64) -> Vec<(f64, String)> {
    let last = TIME_STEPS[TIME_STEPS.len() - 1];
    let step =
        TIME_STEPS.into_iter().find(|step| end / step <= 6.0).unwrap_or((end / 6.0 / last).ceil() * last);
    let count = (end / step).floor() as u32;
    (0..=count).map(|at| f64::from(at) * step).map(|at| (at, time(at))).collect()
}

/// Seconds as minutes and seconds, or with hours in front.
pub fn time(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    let (hours, minutes, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{rest:02}"),
        _ => format!("{hours}:{minutes:02}:{rest:02}"),
    }
}

/// A point of a line; without a value there is a gap.
pub type Point = (f64, Option<f64>);

/// Groups of points of which the ends, the least, the greatest and a gap are kept.
const GROUPS: usize = 200;

/// Leaves out points that could not be told apart on a chart. The least and the greatest of each group stay, and gaps.
pub fn thinned(points: &[Point]) -> Vec<Point> {
    if points.len() <= 4 * GROUPS {
        return points.to_vec();
    }
    points.chunks(points.len().div_ceil(GROUPS)).flat_map(kept).collect()
}

fn kept(group: &[Point]) -> Vec<Point> {
    let values = || group.iter().enumerate().filter_map(|(at, (_, value))| Some((at, (*value)?)));
    let by_value = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1);
    let mut places: Vec<usize> = [
        Some(0),
        Some(group.len() - 1),
        values().min_by(by_value).map(|(at, _)| at),
        values().max_by(by_value).map(|(at, _)| at),
        group.iter().position(|(_, value)| value.is_none()),
    ]
    .into_iter()
    .flatten()
    .collect();
    places.sort_unstable();
    places.dedup();
    places.into_iter().map(|at| group[at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(most: f64, measure: Measure) -> (Vec<String>, String) {
        let axis = Axis::covering(&[0.0, most], measure);
        assert!(axis.high >= most);
        (axis.ticks.into_iter().map(|(_, text)| text).collect(), axis.unit)
    }

    #[test]
    fn ticks_are_round_in_a_unit_that_people_use() {
        let said = |most, measure| {
            let (ticks, unit) = ticks(most, measure);
            format!("{} {unit}", ticks.join(" "))
        };
        assert_eq!(said(0.0, Measure::Latency), "0.0 0.5 1.0 ms");
        assert_eq!(said(3.7, Measure::Latency), "0 1 2 3 4 ms");
        assert_eq!(said(0.17, Measure::Latency), "0.00 0.05 0.10 0.15 0.20 ms");
        assert_eq!(said(9_000.0, Measure::Latency), "0 5 10 s");
        assert_eq!(said(87.0, Measure::Percent("all cores")), "0 50 100 % of all cores");
        assert_eq!(said(120_000.0, Measure::Count("connections")), "0 50 100 150 thousand connections");
        assert_eq!(said(5.0 * 1_048_576.0, Measure::Bytes), "0 2 4 6 MiB");
    }

    #[test]
    fn latencies_that_differ_greatly_are_shown_by_factors() {
        let axis = Axis::covering(&[0.7, 0.0, 4_000.0], Measure::Latency);
        assert!(axis.is_log);
        assert_eq!((axis.low, axis.high), (0.1, 10_000.0));
        assert_eq!(axis.ticks.len(), 6);
        assert!((axis.share(1.0) - 0.2).abs() < 1e-9);
        // Nothing lies below the axis.
        assert_eq!(axis.share(0.0), 0.0);
        assert!(!Axis::covering(&[1.0, 40.0], Measure::Latency).is_log);
    }

    #[test]
    fn time_has_the_ticks_of_a_clock() {
        let said = |end: f64| time_ticks(end).into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ");
        assert_eq!(said(0.5), "0:00");
        assert_eq!(said(6.0), "0:00 0:01 0:02 0:03 0:04 0:05 0:06");
        assert_eq!(said(215.0), "0:00 1:00 2:00 3:00");
        assert_eq!(said(10_800.0), "0:00 30:00 1:00:00 1:30:00 2:00:00 2:30:00 3:00:00");
        assert!(time_ticks(40.0 * 86_400.0).len() <= 7);
    }

    #[test]
    fn thinning_keeps_extremes_ends_and_gaps() {
        let all: Vec<Point> = (0..10_800)
            .map(|at| {
                let value = match at {
                    5_000 => Some(9_999.0),
                    7_000 => Some(-3.0),
                    8_000 => None,
                    _ => Some(f64::from(at % 7)),
                };
                (f64::from(at), value)
            })
            .collect();
        let thin = thinned(&all);
        assert!(thin.len() <= 1_000, "{}", thin.len());
        for at in [0, 5_000, 7_000, 8_000, 10_799] {
            assert!(thin.contains(&all[at]), "{at}");
        }
        assert!(thin.iter().all(|point| all.contains(point)));
        assert!(thin.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(thinned(&all[..800]), all[..800]);
    }
}
