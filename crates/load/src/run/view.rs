//! How a run is going, for whoever watches: a few lines that are drawn again on a terminal, a plain line now and then elsewhere.
//!
//! It goes to standard error, so that the summary on standard output stays free of it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

use super::judge::Step;
use super::plan::Plan;
use super::schedule::{Phase, Schedule};
use super::tally::{Latencies, Tally};

/// How often a line is written where lines stay.
const WRITTEN_EVERY: Duration = Duration::from_secs(5);
/// Signs of a bar.
const BAR: usize = 30;

/// How it is at the end of a second.
pub struct Now<'a> {
    /// Since the run began.
    pub elapsed: Duration,
    /// When its schedule did.
    pub started: Option<Duration>,
    /// What is due when.
    pub schedule: &'a Schedule,
    /// Step, phase and what the step asks for.
    pub place: (u32, Phase, f64),
    /// Connections that stand, and those that are being made.
    pub connections: (usize, usize),
    /// How long the second was.
    pub length: f64,
    /// What came of things within it.
    pub second: &'a Tally,
    /// Within the whole run.
    pub total: &'a Tally,
    /// CPU of the process, 100 is one core.
    pub cpu_pct: f64,
}

/// Where it is shown.
#[derive(Debug)]
pub struct View {
    terminal: bool,
    /// Lines that are drawn and will be drawn again.
    drawn: usize,
    written: Option<Instant>,
    wanted: usize,
    sends: bool,
    steps: usize,
}

impl View {
    /// Nothing is shown yet.
    pub fn new(terminal: bool, plan: &Plan) -> View {
        View {
            terminal,
            drawn: 0,
            written: Some(Instant::now()),
            wanted: plan.connections(),
            sends: plan.kind.sends(),
            steps: plan.steps.len(),
        }
    }

    /// Shows how it is.
    pub fn show(&mut self, now: &Now<'_>) {
        if self.terminal {
            let lines = self.lines(now);
            let mut text = self.back();
            for line in &lines {
                let _ = writeln!(text, "{line}\x1b[K");
            }
            self.drawn = lines.len();
            put(&text);
        } else if self.written.is_none_or(|written| written.elapsed() >= WRITTEN_EVERY) {
            self.written = Some(Instant::now());
            let line = self.line(now);
            self.say(&line);
        }
    }

    /// A line that stays.
    pub fn say(&mut self, line: &str) {
        let back = self.back();
        self.drawn = 0;
        put(&format!("{back}throng: {line}\n"));
    }

    /// How a step that is over went.
    pub fn say_step(&mut self, step: &Step, plan: &Plan) {
        let verdict = match (plan.thresholds.is_empty(), step.held()) {
            (true, _) => "done",
            (false, true) => "held",
            (false, false) => "broken",
        };
        let (latencies, outcomes) = (self.latency(&step.tally), outcomes(&step.tally));
        self.say(&format!(
            "step {} of {} at {}: {verdict}; {latencies}; {outcomes}",
            step.number, self.steps, step.target
        ));
    }

    /// Takes away what is drawn.
    pub fn clear(&mut self) {
        let back = self.back();
        self.drawn = 0;
        put(&back);
    }

    /// To the first of the lines that are drawn, all of which go.
    fn back(&self) -> String {
        if self.drawn == 0 { String::new() } else { format!("\x1b[{}A\x1b[J", self.drawn) }
    }

    fn latency(&self, tally: &Tally) -> String {
        match self.sends {
            true => format!("delivery {}; ack {}", of(&tally.delivery), of(&tally.ack)),
            false => format!("connect {}", of(&tally.connect)),
        }
    }

    /// Which step and phase, and how far it is: a part of it, and of how long.
    fn progress(&self, now: &Now<'_>) -> (String, Option<(f64, Duration)>) {
        let (step, phase, _) = now.place;
        let Some(started) = now.started else { return ("clients are coming in".to_owned(), None) };
        let name = format!("step {step} of {}, {}", self.steps, phase.name());
        if phase == Phase::Drain {
            return ("draining".to_owned(), None);
        }
        let since = now.elapsed.saturating_sub(started);
        let segment =
            now.schedule.segments().iter().find(|segment| segment.step == step && segment.phase == phase);
        let part = segment.filter(|segment| !segment.length.is_zero()).map(|segment| {
            let done = since.saturating_sub(segment.begin).as_secs_f64() / segment.length.as_secs_f64();
            (done.min(1.0), segment.length)
        });
        (name, part)
    }

    fn lines(&self, now: &Now<'_>) -> Vec<String> {
        let (name, part) = self.progress(now);
        let bar = part.map_or(String::new(), |(done, length)| {
            let full = (done * BAR as f64) as usize;
            let (seconds, all) = (done * length.as_secs_f64(), length.as_secs());
            format!("  [{}{}] {seconds:.0} of {all} s", "#".repeat(full), ".".repeat(BAR - full))
        });
        let each_second = |count: u64| count as f64 / now.length;
        let (second, total) = (&now.second.outcomes, now.total);
        let delivered = match self.sends {
            true => format!(", delivered {:.0}", each_second(now.second.delivered)),
            false => String::new(),
        };
        let lost: u64 = total.lost.values().sum();
        vec![
            format!("{name}{bar}  {:.0} s since the start", now.elapsed.as_secs_f64()),
            format!(
                "a second     asked {}, due {:.0}, ok {:.0}{delivered}; {:.0} kB in, {:.0} kB out",
                if self.sends { now.place.2.to_string() } else { "-".to_owned() },
                each_second(second.due),
                each_second(second.ok),
                each_second(now.second.bytes_in) / 1e3,
                each_second(now.second.bytes_out) / 1e3,
            ),
            format!("latency      {}", self.latency(now.second)),
            format!("outcomes     {}", outcomes(total)),
            format!(
                "connections  {} of {}, {} on their way, {lost} lost, {} tries refused, {} failed",
                now.connections.0,
                self.wanted,
                now.connections.1,
                total.attempts.refused(),
                total.attempts.failed()
            ),
            format!(
                "violations   {}; the generator computes {:.0} % of a core",
                total.violations, now.cpu_pct
            ),
        ]
    }

    fn line(&self, now: &Now<'_>) -> String {
        let (name, part) = self.progress(now);
        let part = part.map_or(String::new(), |(done, length)| {
            format!(" {:.0} of {} s", done * length.as_secs_f64(), length.as_secs())
        });
        format!(
            "{name}{part}: {} of {} connected; {:.0} ok a second; {}; {}",
            now.connections.0,
            self.wanted,
            now.second.outcomes.ok as f64 / now.length,
            self.latency(now.second),
            outcomes(now.total)
        )
    }
}

/// Each outcome apart, with names where something was not as it should be.
pub fn outcomes(tally: &Tally) -> String {
    let outcomes = &tally.outcomes;
    let named =
        |count: u64, names: String| if count == 0 { "0".to_owned() } else { format!("{count} ({names})") };
    format!(
        "due {}: ok {}, refused {}, failed {}, not sent {}, open {}",
        outcomes.due,
        outcomes.ok,
        named(outcomes.refused(), outcomes.refusals_text()),
        named(outcomes.failed(), outcomes.failures_text()),
        outcomes.not_sent,
        outcomes.still_open().max(0)
    )
}

fn of(latencies: &Latencies) -> String {
    let ms = |time: Option<Duration>| {
        time.map_or("-".to_owned(), |time| format!("{:.1}", time.as_secs_f64() * 1e3))
    };
    let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|share| ms(latencies.quantile(share)));
    if latencies.count() == 0 {
        "-".to_owned()
    } else {
        format!("p50 {p50}, p95 {p95}, p99 {p99}, max {} ms", ms(latencies.max()))
    }
}

/// A terminal that has gone away is no reason to stop.
fn put(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tally::{Failure, Outcome};
    use protocol::ErrorCode;

    #[test]
    fn the_lines_say_how_it_is() {
        let mut tally = Tally { delivered: 3, bytes_in: 2_000, ..Tally::default() };
        tally.outcomes.due = 6;
        for outcome in [
            Outcome::Ok,
            Outcome::Ok,
            Outcome::Ok,
            Outcome::Refused(ErrorCode::NotMember),
            Outcome::Failed(Failure::Reset),
        ] {
            tally.outcomes.note(outcome);
        }
        tally.delivery.record(Duration::from_micros(1_500));
        let schedule = Schedule::messages(&[4.0, 8.0], Duration::from_secs(10), Duration::from_secs(60));
        let now = Now {
            elapsed: Duration::from_secs(42),
            started: Some(Duration::from_secs(2)),
            schedule: &schedule,
            place: (1, Phase::Hold, 4.0),
            connections: (4, 0),
            length: 1.0,
            second: &tally,
            total: &tally,
            cpu_pct: 7.0,
        };
        let view = View { terminal: true, drawn: 0, written: None, wanted: 4, sends: true, steps: 2 };
        assert_eq!(
            view.lines(&now),
            [
                "step 1 of 2, hold  [###############...............] 30 of 60 s  42 s since the start",
                "a second     asked 4, due 6, ok 3, delivered 3; 2 kB in, 0 kB out",
                "latency      delivery p50 1.5, p95 1.5, p99 1.5, max 1.5 ms; ack -",
                "outcomes     due 6: ok 3, refused 1 (not_member=1), failed 1 (reset=1), not sent 0, open 1",
                "connections  4 of 4, 0 on their way, 0 lost, 0 tries refused, 0 failed",
                "violations   0; the generator computes 7 % of a core",
            ]
        );
        assert_eq!(
            view.line(&now),
            "step 1 of 2, hold 30 of 60 s: 4 of 4 connected; 3 ok a second; delivery p50 1.5, p95 1.5, p99 1.5, max 1.5 ms; ack -; \
             due 6: ok 3, refused 1 (not_member=1), failed 1 (reset=1), not sent 0, open 1"
        );
    }
}
