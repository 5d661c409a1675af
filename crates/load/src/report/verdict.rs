//! What a run says in a few sentences: its steps, its knee, whether the generator was what was measured, and how it ended.
//!
//! A function of the file. Owns the rules by which these are judged; the thresholds themselves were judged by the run.

use std::collections::BTreeMap;

use super::grid::{Grid, counts, judgements};

/// The generator began to send later than this share of the latency that it reports: then it measured itself.
const LATE_SHARE_MAX: f64 = 0.1;
/// The share of the machine's cores above which the generator had none left.
const CPU_SHARE_MAX: f64 = 0.95;

/// One step of the load.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Its number, from 1.
    pub number: u64,
    /// What it asked for.
    pub target: Option<f64>,
    /// Its row in the file; none when the run ended before the step did.
    pub row: Option<usize>,
    /// When it was held, in seconds since the start; none when it never was.
    pub held: Option<(f64, f64)>,
    /// For each threshold whether it held; empty while unfinished and without thresholds.
    pub judged: Vec<bool>,
}

impl Step {
    /// Whether all thresholds held; none when that was not judged.
    pub fn holds(&self) -> Option<bool> {
        (!self.judged.is_empty()).then(|| self.judged.iter().all(|held| *held))
    }
}

/// The last load that the server carried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Knee {
    /// Nobody said what is too much.
    NoThresholds,
    /// No step came to its end.
    NoStep,
    /// The first step was too much already; its target.
    Below(Option<f64>),
    /// This step of this target held, and the next one did not.
    At(u64, Option<f64>),
    /// All held: it lies above the target of the last one.
    Above(Option<f64>),
}

/// How many of what.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals {
    /// Messages that were due.
    pub due: f64,
    /// Those that ended well.
    pub ok: f64,
    /// Those the server said no to.
    pub refused: f64,
    /// Those that failed.
    pub failed: f64,
    /// Those the generator could not begin in time.
    pub not_sent: f64,
    /// What contradicts the protocol's promises.
    pub violations: f64,
    /// Refusals by name.
    pub refusals: BTreeMap<String, u64>,
    /// Failures by name.
    pub failures: BTreeMap<String, u64>,
}

/// All of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The steps in their order.
    pub steps: Vec<Step>,
    /// The thresholds, and the numbers of the steps that broke them.
    pub thresholds: Vec<(String, Vec<u64>)>,
    /// The knee.
    pub knee: Knee,
    /// Sums over all seconds.
    pub totals: Totals,
    /// Why the generator was the bottleneck, one reason a sentence.
    pub bottleneck: Vec<String>,
    /// `finished`, `interrupted` or `aborted`; none when the run was killed.
    pub ended: Option<String>,
}

/// Judges a run.
pub fn judge(run: &Grid<'_>) -> Verdict {
    let steps = steps(run);
    let thresholds = run.thresholds().into_iter().enumerate();
    let thresholds: Vec<(String, Vec<u64>)> = thresholds
        .map(|(at, text)| {
            let broken = steps.iter().filter(|step| step.judged.get(at) == Some(&false));
            (text.to_owned(), broken.map(|step| step.number).collect())
        })
        .collect();
    Verdict {
        knee: if thresholds.is_empty() { Knee::NoThresholds } else { knee(&steps) },
        totals: totals(run),
        bottleneck: bottleneck(run, &steps),
        ended: run.table.ended.map(str::to_owned),
        steps,
        thresholds,
    }
}

fn steps(run: &Grid<'_>) -> Vec<Step> {
    let mut steps: BTreeMap<u64, Step> = BTreeMap::new();
    let interval =
        run.table.fact("interval_ms").and_then(|ms| ms.parse::<f64>().ok()).unwrap_or(1_000.0) / 1_000.0;
    for row in 0..run.table.rows.len() {
        let number = run.number(row, "step").unwrap_or(0.0) as u64;
        let target = run.number(row, "target");
        let step =
            steps.entry(number).or_insert(Step { number, target, row: None, held: None, judged: Vec::new() });
        if run.text(row, "kind") == "step" {
            step.row = Some(row);
            step.target = target;
            step.judged = judgements(run.text(row, "thresholds")).unwrap_or_default();
        } else if run.text(row, "phase") == "hold" {
            let end = run.number(row, "elapsed_s").unwrap_or(0.0);
            let begin = step.held.map_or((end - interval).max(0.0), |(begin, _)| begin);
            step.held = Some((begin, end));
        }
    }
    steps.into_values().filter(|step| step.row.is_some() || step.held.is_some()).collect()
}

fn knee(steps: &[Step]) -> Knee {
    let judged: Vec<&Step> = steps.iter().filter(|step| step.holds().is_some()).collect();
    let Some(last) = judged.last() else { return Knee::NoStep };
    match judged.iter().position(|step| step.holds() == Some(false)) {
        None => Knee::Above(last.target),
        Some(0) => Knee::Below(judged[0].target),
        Some(broken) => Knee::At(judged[broken - 1].number, judged[broken - 1].target),
    }
}

fn totals(run: &Grid<'_>) -> Totals {
    let mut totals = Totals::default();
    for row in run.rows_of("second") {
        let number = |name| run.number(row, name).unwrap_or(0.0);
        totals.due += number("due");
        totals.ok += number("ok");
        totals.refused += number("refused");
        totals.failed += number("failed");
        totals.not_sent += number("not_sent");
        totals.violations += number("violations");
        let by_name = [("refusals", &mut totals.refusals), ("failures", &mut totals.failures)];
        for (column, sums) in by_name {
            for (name, count) in counts(run.text(row, column)).unwrap_or_default() {
                *sums.entry(name.to_owned()).or_default() += count;
            }
        }
    }
    totals
}

fn bottleneck(run: &Grid<'_>, steps: &[Step]) -> Vec<String> {
    let cores = run.table.fact("machine").and_then(cores);
    let finished = steps.iter().filter_map(|step| Some((step, step.row?)));
    let mut reasons = Vec::new();
    for (step, row) in finished {
        let latency = ["delivery_p99_ms", "ack_p99_ms", "connect_p99_ms"]
            .into_iter()
            .find_map(|name| run.number(row, name));
        if let (Some(late), Some(latency)) = (run.number(row, "late_p99_ms"), latency)
            && late > LATE_SHARE_MAX * latency
        {
            reasons.push(format!(
                "in step {} it began sends {late} ms late (p99), more than a tenth of the {latency} ms that it reports",
                step.number
            ));
        }
        if let (Some(cpu), Some(cores)) = (run.number(row, "cpu_pct"), cores)
            && cpu > CPU_SHARE_MAX * 100.0 * cores
        {
            reasons.push(format!("in step {} it used {cpu} % of {cores} cores", step.number));
        }
        if let Some(not_sent) = run.number(row, "not_sent").filter(|not_sent| *not_sent > 0.0) {
            reasons
                .push(format!("in step {} it was too late to send {not_sent} messages at all", step.number));
        }
    }
    reasons
}

/// The number before `cpus` in the line about the machine.
fn cores(machine: &str) -> Option<f64> {
    machine.split(',').find_map(|part| {
        let (number, what) = part.trim().split_once(' ')?;
        matches!(what, "cpu" | "cpus").then(|| number.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(number: u64, judged: &[bool]) -> Step {
        Step { number, target: Some(100.0 * number as f64), row: None, held: None, judged: judged.to_vec() }
    }

    #[test]
    fn the_knee_is_the_last_step_before_the_first_that_broke() {
        let (held, broken) = ([true, true], [true, false]);
        assert_eq!(knee(&[]), Knee::NoStep);
        assert_eq!(knee(&[step(1, &[])]), Knee::NoStep);
        assert_eq!(knee(&[step(1, &held), step(2, &held)]), Knee::Above(Some(200.0)));
        assert_eq!(knee(&[step(1, &broken), step(2, &held)]), Knee::Below(Some(100.0)));
        assert_eq!(knee(&[step(1, &held), step(2, &held), step(3, &broken)]), Knee::At(2, Some(200.0)));
        // What held again afterwards held by luck.
        assert_eq!(knee(&[step(1, &held), step(2, &broken), step(3, &held)]), Knee::At(1, Some(100.0)));
        // One that did not come to its end says nothing.
        assert_eq!(knee(&[step(1, &held), step(2, &[])]), Knee::Above(Some(100.0)));
    }

    #[test]
    fn the_cores_of_a_machine_are_read_from_its_line() {
        assert_eq!(cores("2 cpus, Some CPU, 24.0 GiB, Linux 6.18"), Some(2.0));
        assert_eq!(cores("Some 2 cpus"), None);
        let here = std::thread::available_parallelism().ok().map(|cores| cores.get() as f64);
        assert_eq!(cores(&crate::sample::proc::Proc::of_this_machine().describe()), here);
    }
}
