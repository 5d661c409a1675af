//! When everything is due, fixed before the run begins.
//!
//! An open loop: what is due does not wait for what was asked before. Owns the arithmetic between a time and how much is due by then, and
//! which step and phase a time belongs to. Deliberately knows no clock and nothing of what it is that is due.

use std::time::Duration;

/// A part of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// On the way to the load of the step.
    Ramp,
    /// At that load; what is judged.
    Hold,
    /// Nothing new begins any more.
    Drain,
}

impl Phase {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Ramp => "ramp",
            Phase::Hold => "hold",
            Phase::Drain => "drain",
        }
    }
}

/// A stretch of time in which what is due each second changes evenly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// When it begins.
    pub begin: Duration,
    /// How long it is.
    pub length: Duration,
    /// The step it belongs to, from 1.
    pub step: u32,
    /// And the part of that step.
    pub phase: Phase,
    /// What the step asks for.
    pub target: f64,
    /// Due in the moment in which it begins.
    burst: f64,
    /// Due a second at its beginning.
    from: f64,
    /// Due a second at its end.
    to: f64,
}

impl Segment {
    /// When it is over.
    pub fn end(&self) -> Duration {
        self.begin + self.length
    }

    fn amount(&self) -> f64 {
        self.burst + (self.from + self.to) / 2.0 * self.length.as_secs_f64()
    }

    /// Due in it up to so long after its beginning.
    fn amount_by(&self, since: Duration) -> f64 {
        let (length, since) = (self.length.as_secs_f64(), since.as_secs_f64());
        let slope = if length > 0.0 { (self.to - self.from) / length } else { 0.0 };
        self.burst + since * (self.from + slope * since / 2.0)
    }

    /// How long after its beginning so much of it is due.
    fn since(&self, amount: f64) -> Duration {
        let (amount, length) = (amount - self.burst, self.length.as_secs_f64());
        if amount <= 0.0 || length == 0.0 {
            return Duration::ZERO;
        }
        // from · t + slope · t² / 2 = amount, solved in the form that does not lose digits when the slope is small.
        let slope = (self.to - self.from) / length;
        let root = (self.from * self.from + 2.0 * slope * amount).max(0.0).sqrt();
        Duration::from_secs_f64((2.0 * amount / (self.from + root)).clamp(0.0, length))
    }
}

/// The whole run.
#[derive(Debug, Clone)]
pub struct Schedule {
    segments: Vec<Segment>,
    /// How much is due before each segment.
    before: Vec<f64>,
}

impl Schedule {
    /// Steps of so many messages a second. Within a ramp the rate rises (or falls) evenly to that of its step.
    pub fn messages(steps: &[f64], ramp: Duration, hold: Duration) -> Schedule {
        let mut segments = Vec::new();
        let mut rate = 0.0;
        for target in steps {
            segments.push((Phase::Ramp, ramp, 0.0, rate, *target, *target));
            segments.push((Phase::Hold, hold, 0.0, *target, *target, *target));
            rate = *target;
        }
        Schedule::of(segments)
    }

    /// Steps of so many connections, each more than the one before; a ramp opens those that are new evenly, or at once when it has no
    /// length.
    pub fn connections(steps: &[f64], ramp: Duration, hold: Duration) -> Schedule {
        let mut segments = Vec::new();
        let mut open = 0.0;
        for target in steps {
            let new: f64 = *target - open;
            let (burst, rate) = if ramp.is_zero() { (new, 0.0) } else { (0.0, new / ramp.as_secs_f64()) };
            segments.push((Phase::Ramp, ramp, burst, rate, rate, *target));
            segments.push((Phase::Hold, hold, 0.0, 0.0, 0.0, *target));
            open = *target;
        }
        Schedule::of(segments)
    }

    fn of(parts: Vec<(Phase, Duration, f64, f64, f64, f64)>) -> Schedule {
        let mut schedule = Schedule { segments: Vec::new(), before: Vec::new() };
        let (mut begin, mut before, mut step) = (Duration::ZERO, 0.0, 0);
        for (phase, length, burst, from, to, target) in parts {
            step += u32::from(phase == Phase::Ramp);
            let segment = Segment { begin, length, step, phase, target, burst, from, to };
            schedule.segments.push(segment);
            schedule.before.push(before);
            begin = segment.end();
            before += segment.amount();
        }
        schedule
    }

    /// Its parts, in order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// When it is over.
    pub fn end(&self) -> Duration {
        self.segments.last().map_or(Duration::ZERO, Segment::end)
    }

    /// All that is ever due.
    pub fn total(&self) -> f64 {
        self.due_by(self.end())
    }

    /// How much is due by then.
    pub fn due_by(&self, at: Duration) -> f64 {
        let part = self.segments.iter().rposition(|segment| segment.begin <= at);
        part.map_or(0.0, |part| {
            let segment = &self.segments[part];
            self.before[part] + segment.amount_by((at - segment.begin).min(segment.length))
        })
    }

    /// When so much is due; `None` when it never is.
    pub fn when(&self, amount: f64) -> Option<Duration> {
        let part = self.before.iter().rposition(|before| *before <= amount)?;
        // A hold of connections adds nothing: what is due exactly at its beginning was due before it.
        let part = (0..=part).rev().find(|part| self.segments[*part].amount() > 0.0)?;
        let (segment, within) = (&self.segments[part], amount - self.before[part]);
        (within <= segment.amount()).then(|| segment.begin + segment.since(within))
    }

    /// How many parts have begun by then; what comes after the last segment is one too.
    pub fn parts_begun(&self, at: Duration) -> usize {
        self.segments.partition_point(|segment| segment.begin <= at) + usize::from(at >= self.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(value: f64) -> Duration {
        Duration::from_secs_f64(value)
    }

    #[test]
    fn a_ramp_rises_evenly_and_a_hold_stays() {
        // From 0 to 100 a second within 10 s: 100 · t² / 20; then 100 a second.
        let schedule = Schedule::messages(&[100.0], seconds(10.0), seconds(60.0));
        for (at, due) in
            [(0.0, 0.0), (5.0, 125.0), (10.0, 500.0), (11.0, 600.0), (70.0, 6_500.0), (99.0, 6_500.0)]
        {
            assert!((schedule.due_by(seconds(at)) - due).abs() < 1e-6, "by {at} s");
        }
        assert_eq!(schedule.total(), 6_500.0);
        assert_eq!(schedule.when(125.0), Some(seconds(5.0)));
        assert_eq!(schedule.when(600.0), Some(seconds(11.0)));
        assert_eq!(schedule.when(6_501.0), None);
    }

    #[test]
    fn steps_follow_each_other() {
        let schedule = Schedule::messages(&[250.0, 500.0], seconds(10.0), seconds(60.0));
        let begun = [(0.0, 1), (9.9, 1), (10.0, 2), (69.9, 2), (70.0, 3), (80.0, 4), (140.0, 5), (500.0, 5)];
        for (at, parts) in begun {
            assert_eq!(schedule.parts_begun(seconds(at)), parts, "at {at} s");
        }
        let parts: Vec<(u32, Phase, f64)> =
            schedule.segments().iter().map(|segment| (segment.step, segment.phase, segment.target)).collect();
        let expected = [
            (1, Phase::Ramp, 250.0),
            (1, Phase::Hold, 250.0),
            (2, Phase::Ramp, 500.0),
            (2, Phase::Hold, 500.0),
        ];
        assert_eq!(parts, expected);
        // The second ramp goes from 250 to 500.
        assert!((schedule.due_by(seconds(80.0)) - (1_250.0 + 15_000.0 + 3_750.0)).abs() < 1e-6);
    }

    #[test]
    fn connections_come_within_the_ramp_or_at_once() {
        let slowly = Schedule::connections(&[1_000.0, 3_000.0], seconds(10.0), seconds(60.0));
        assert_eq!(slowly.when(500.0), Some(seconds(5.0)));
        assert_eq!(slowly.when(1_000.5), Some(seconds(70.0025)));
        assert_eq!(slowly.total(), 3_000.0);
        let at_once = Schedule::connections(&[1_000.0], Duration::ZERO, seconds(60.0));
        assert_eq!(at_once.due_by(Duration::ZERO), 1_000.0);
        assert_eq!(at_once.when(0.5), Some(Duration::ZERO));
        assert_eq!(at_once.when(999.5), Some(Duration::ZERO));
        assert_eq!(at_once.when(1_000.5), None);
    }

    #[test]
    fn what_is_due_and_when_agree_on_any_schedule() {
        let mut chance = crate::run::chance::Chance::new(0x0dd5);
        for _ in 0..200 {
            let mut steps: Vec<f64> =
                (0..1 + chance.below(5)).map(|_| 1.0 + chance.below(5_000) as f64).collect();
            let (ramp, hold) = (seconds(chance.below(20) as f64), seconds(1.0 + chance.below(60) as f64));
            let connections = chance.below(2) == 0;
            let schedule = match connections {
                true => {
                    steps.sort_by(f64::total_cmp);
                    Schedule::connections(&steps, ramp, hold)
                }
                false => Schedule::messages(&steps, ramp, hold),
            };
            let (mut last, total) = (Duration::ZERO, schedule.total());
            for part in 0..100 {
                let amount = total * (f64::from(part) + 0.5) / 100.0;
                let at = schedule.when(amount).unwrap_or_else(|| panic!("{amount} of {steps:?}"));
                assert!(at >= last, "{steps:?}: {amount} is due before what was due before it");
                last = at;
                // Nanoseconds and the rates bound what is lost.
                let by = schedule.due_by(at + Duration::from_micros(1));
                assert!(by >= amount - 1e-3, "{steps:?} {ramp:?}: {by} of {amount} by {at:?}");
            }
        }
    }
}
