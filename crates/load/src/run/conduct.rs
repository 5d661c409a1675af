//! The conductor: starts the threads, lets the steps follow each other, takes the books once a second, and writes them down.
//!
//! Owns the order of a run: 1. probe, 2. threads, 3. everybody comes in, 4. steps, 5. drain, 6. last check. What is due and what came of it
//! the workers know.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use model::{ConversationId, direct_id};

use super::chance::mixed;
use super::csv::{Ended, Row, RowKind, RunCsv};
use super::desk::{Desk, EVIDENCE_MAX, Orders};
use super::judge::{self, Step};
use super::pair::Violation;
use super::payload::Recipe;
use super::plan::{Kind, Plan};
use super::probe::{ProbeError, probe};
use super::schedule::{Phase, Segment};
use super::summary::{Storm, Summary};
use super::tables::{Tables, TooMany};
use super::tally::Tally;
use super::view::{Now, View};
use super::worker::{Common, Share, Worker};
use crate::accounts::Accounts;
use crate::fleet::{Fleet, FleetOptions};
use crate::sample::proc::Proc;

/// How long the last of those who come in may take after the one before.
const COMING_IN_PATIENCE: Duration = Duration::from_secs(20);
/// How long a drain may take after somebody asked the run to stop: with the end of the threads, at most 5 s.
const DRAIN_AFTER_INTERRUPT: Duration = Duration::from_millis(4_500);
/// A drain that goes on as long as messages arrive ends after so many times the time that an answer is waited for.
const DRAIN_TIMEOUTS: u32 = 6;
/// What happens in a thread is in its books so soon.
const NOTICED_WITHIN: Duration = Duration::from_millis(500);
/// Longer than any run.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);
/// How long one nap of the conductor is.
const NAP: Duration = Duration::from_millis(5);

/// Where a run is written to.
#[derive(Debug, Default)]
pub struct Outputs {
    /// A row a second.
    pub csv: Option<PathBuf>,
    /// Whether standard error is a terminal to draw on.
    pub terminal: bool,
}

/// Why there is no run, or no end of it.
#[derive(Debug)]
pub enum RunError {
    /// There is no server that lets anybody in.
    Probe(ProbeError),
    /// The connections do not fit the limit of open files.
    TooMany(TooMany),
    /// The server is elsewhere, and one address has not that many ports.
    Ports(usize, usize),
    /// An account cannot be had.
    Account(String),
    /// The file of the rows cannot be written.
    Csv(PathBuf, io::Error),
    /// A thread of clients could not go on.
    Thread(String),
    /// Not one client came in.
    NobodyIn(Option<String>),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Probe(error) => error.fmt(f),
            RunError::TooMany(error) => error.fmt(f),
            RunError::Ports(wanted, ports) => write!(
                f,
                "{wanted} connections to a server on another machine need {wanted} ports, and this machine has {ports} for one address: \
                 widen net.ipv4.ip_local_port_range, or run several generators on several machines"
            ),
            RunError::Account(why) => write!(f, "an account cannot be had: {why}"),
            RunError::Csv(path, _) => write!(f, "{}: cannot be written", path.display()),
            RunError::Thread(why) => write!(f, "a thread of clients could not go on: {why}"),
            RunError::NobodyIn(why) => {
                write!(
                    f,
                    "not one client came in: {}",
                    why.as_deref().unwrap_or("they got no answer in time")
                )
            }
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RunError::Probe(error) => error.source(),
            RunError::Csv(_, cause) => Some(cause),
            _ => None,
        }
    }
}

/// Carries a plan out. `asked_to_stop` is looked at all the time; when it is set the run drains and ends.
///
/// # Errors
/// When there is no run, or it could not go on.
pub fn conduct(
    plan: Plan,
    accounts: Arc<dyn Accounts>,
    asked_to_stop: &AtomicBool,
    outputs: &Outputs,
) -> Result<Summary, RunError> {
    // 1. Is anybody there?
    let token = accounts.token(0).map_err(RunError::Account)?;
    probe(&plan, &token).map_err(RunError::Probe)?;
    let limit = reactor::raise_descriptor_limit();
    let tables = Tables::spread(plan.connections(), plan.threads, limit, reactor::can_unshare_files());
    let tables = tables.map_err(RunError::TooMany)?;
    let local = plan.address.server.ip().is_loopback() && plan.address.server.is_ipv4();
    if let Some(ports) = ports().filter(|ports| !local && plan.connections() > *ports) {
        return Err(RunError::Ports(plan.connections(), ports));
    }
    // 2. to 6.
    let mut conductor = Conductor::begin(plan, &accounts, tables, outputs)?;
    let ended = conductor.carry_out(asked_to_stop);
    conductor.finish(ended?)
}

/// Ports that one address of this machine has towards one other.
fn ports() -> Option<usize> {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ends = range.split_whitespace().map(|end| end.parse::<usize>().ok());
    let (first, last) = (ends.next()??, ends.next()??);
    Some((last + 1).saturating_sub(first))
}

/// What a thread leaves behind.
struct Left {
    /// Messages of which it is not known whether they would have come.
    unknown: u64,
    first_trouble: Option<String>,
}

struct Thread {
    desk: Arc<Desk>,
    handle: Option<JoinHandle<Result<Left, String>>>,
    /// CPU time it had used when it was last asked.
    cpu_before: u64,
}

struct Conductor {
    common: Arc<Common>,
    threads: Vec<Thread>,
    csv: Option<(PathBuf, RunCsv)>,
    view: View,
    machine: String,
    /// Within the present second.
    second: Tally,
    second_began: Duration,
    cpu_at_second: Duration,
    /// Within each part of the run: before the schedule, its segments, after it.
    parts: Vec<Tally>,
    judged_began: Duration,
    cpu_at_judged: Duration,
    /// CPU of each thread since then, in microseconds.
    thread_cpu: Vec<u64>,
    /// Within the whole run.
    total: Tally,
    steps: Vec<Step>,
    evidence: Vec<Violation>,
    storm: Storm,
    /// Messages of which it is not known whether they would have come.
    unknown: u64,
    place: (u32, Phase, f64),
}

impl Conductor {
    fn begin(
        plan: Plan,
        accounts: &Arc<dyn Accounts>,
        tables: Tables,
        outputs: &Outputs,
    ) -> Result<Conductor, RunError> {
        let (began, began_ms) = (Instant::now(), wall_ms());
        let machine = Proc::of_this_machine().describe();
        let csv = match &outputs.csv {
            None => None,
            Some(path) => {
                let made = RunCsv::create(path, &plan, began_ms, &machine);
                Some((path.clone(), made.map_err(|cause| RunError::Csv(path.clone(), cause))?))
            }
        };
        let run = mixed(began_ms ^ u64::from(std::process::id()) << 44);
        let recipe = Recipe { run, sizes: plan.sizes };
        let schedule = plan.schedule();
        let first = schedule
            .segments()
            .first()
            .map_or((1, Phase::Ramp, 0.0), |first| (first.step, first.phase, first.target));
        let common = Arc::new(Common {
            plan,
            schedule,
            orders: Orders::new(),
            recipe,
            threads: tables.threads,
            began,
            began_ms,
        });
        // Before the schedule, its segments, and after it.
        let parts = vec![Tally::default(); common.schedule.segments().len() + 2];
        let mut threads = Vec::new();
        for index in 0..tables.threads {
            let share = Share::of(&common.plan, index, tables.threads);
            let desk = Arc::new(Desk::default());
            let handle = start_thread(&common, &desk, accounts, share, index, tables)?;
            threads.push(Thread { desk, handle: Some(handle), cpu_before: 0 });
        }
        Ok(Conductor {
            view: View::new(outputs.terminal, &common.plan),
            thread_cpu: vec![0; threads.len()],
            common,
            threads,
            csv,
            machine,
            second: Tally::default(),
            second_began: Duration::ZERO,
            cpu_at_second: own_cpu(),
            parts,
            judged_began: Duration::ZERO,
            cpu_at_judged: own_cpu(),
            total: Tally::default(),
            steps: Vec::new(),
            evidence: Vec::new(),
            storm: Storm::default(),
            unknown: 0,
            place: first,
        })
    }

    fn elapsed(&self) -> Duration {
        self.common.began.elapsed()
    }

    /// Connections that stand, those that are being made, and those who have given up.
    fn connections(&self) -> (usize, usize, usize) {
        let sum = |count: fn(&Desk) -> usize| self.threads.iter().map(|thread| count(&thread.desk)).sum();
        (
            sum(|desk| desk.open.load(Ordering::Relaxed)),
            sum(|desk| desk.connecting.load(Ordering::Relaxed)),
            sum(|desk| desk.given_up.load(Ordering::Relaxed)),
        )
    }

    /// Everybody comes in, the steps follow each other, and what is on its way arrives. Says how that ended.
    fn carry_out(&mut self, asked_to_stop: &AtomicBool) -> Result<Ended, RunError> {
        let stop = || asked_to_stop.load(Ordering::Relaxed);
        let mut ended = if self.common.plan.kind.sends() { self.await_everybody(&stop)? } else { None };
        let start = self.elapsed();
        self.common.orders.start(start);
        let segments = self.common.schedule.segments().to_vec();
        for (index, segment) in segments.iter().enumerate() {
            if ended.is_none() {
                ended = self.pass(index, segment, start, &stop)?;
            }
        }
        self.drain(ended == Some(Ended::Interrupted), &stop)?;
        Ok(ended.unwrap_or(Ended::Finished))
    }

    /// Waits until all clients that can be are in. Those who cannot are told.
    fn await_everybody(&mut self, stop: &impl Fn() -> bool) -> Result<Option<Ended>, RunError> {
        let wanted = self.common.plan.connections();
        let (mut most, mut since) = (0, self.elapsed());
        loop {
            self.nap()?;
            let (open, _, given_up) = self.connections();
            if open > most {
                (most, since) = (open, self.elapsed());
            }
            if open + given_up >= wanted || self.elapsed() > since + COMING_IN_PATIENCE {
                if open == 0 {
                    return Err(RunError::NobodyIn(self.end_threads(false)?.1));
                }
                if open < wanted {
                    self.view.say(&format!(
                        "{open} of {wanted} clients are in; the run begins without the others"
                    ));
                }
                return Ok(None);
            }
            if stop() {
                return Ok(Some(Ended::Interrupted));
            }
        }
    }

    /// Waits for the end of a part of the schedule.
    fn pass(
        &mut self,
        index: usize,
        segment: &Segment,
        start: Duration,
        stop: &impl Fn() -> bool,
    ) -> Result<Option<Ended>, RunError> {
        self.collect();
        self.place = (segment.step, segment.phase, segment.target);
        if segment.phase == Phase::Ramp || self.common.plan.kind.sends() {
            self.judged_began = self.elapsed();
            self.cpu_at_judged = own_cpu();
            self.thread_cpu.fill(0);
        }
        while self.elapsed() < start + segment.end() {
            if stop() {
                return Ok(Some(Ended::Interrupted));
            }
            self.nap()?;
            if self.storm_is_over() {
                break;
            }
        }
        if segment.phase == Phase::Hold {
            self.collect();
            let held = self.end_step(index)?;
            if !held && self.common.plan.abort_on_fail {
                return Ok(Some(Ended::Aborted));
            }
        }
        Ok(None)
    }

    /// What a step is judged by, given the index of its hold: the hold, and of what came before it the connections, which are made before
    /// there are messages.
    fn judged(&self, hold: usize) -> Tally {
        let sends = self.common.plan.kind.sends();
        let mut judged = Tally::default();
        let before = if hold == 1 { 0 } else { hold };
        for part in &self.parts[before..=hold] {
            match sends {
                true => {
                    judged.connect.merge(&part.connect);
                    judged.attempts.merge(&part.attempts);
                }
                false => judged.merge(part),
            }
        }
        let mut hold = self.parts[hold + 1].clone();
        hold.merge(&judged);
        hold
    }

    /// Notes how far a storm is. The storm after a death is over when all are back.
    fn storm_is_over(&mut self) -> bool {
        let plan = &self.common.plan;
        if plan.kind != Kind::Storm {
            return false;
        }
        let (open, _, _) = self.connections();
        let (wanted, now, after_death) = (plan.connections(), self.elapsed(), plan.after_death);
        if self.storm.look(open, wanted, now) {
            self.view.say(match after_death {
                true => "all are in; kill the server and start it again, the run ends when all are back",
                false => "all are in",
            });
        }
        after_death && self.storm.is_over(open, wanted)
    }

    /// Takes the books of all threads.
    fn collect(&mut self) {
        let mut taken = Tally::default();
        for (index, thread) in self.threads.iter_mut().enumerate() {
            let mut books = thread.desk.take();
            for violation in std::mem::take(&mut books.violations) {
                if self.evidence.is_empty() {
                    self.view.say(&format!("VIOLATION, {violation}"));
                }
                if self.evidence.len() < EVIDENCE_MAX {
                    self.evidence.push(violation);
                }
            }
            for (part, tally) in books.parts() {
                taken.merge(&tally);
                self.parts[part].merge(&tally);
            }
            let cpu = thread.desk.cpu_micros.load(Ordering::Relaxed);
            self.thread_cpu[index] += cpu.saturating_sub(thread.cpu_before);
            thread.cpu_before = cpu;
        }
        self.second.merge(&taken);
        self.total.merge(&taken);
    }

    /// Waits a little, and writes down a second that is over.
    fn nap(&mut self) -> Result<(), RunError> {
        std::thread::sleep(NAP);
        if let Some(thread) = self.threads.iter_mut().find(|thread| thread.desk.done.load(Ordering::Relaxed))
        {
            // Nobody told it to end.
            let left = thread.handle.take().map(JoinHandle::join);
            let why = match left {
                Some(Ok(Err(why))) => why,
                Some(Err(_)) => "it panicked".to_owned(),
                _ => "it ended by itself".to_owned(),
            };
            return Err(RunError::Thread(why));
        }
        if self.elapsed() >= self.second_began + Duration::from_secs(1) {
            self.end_second()?;
        }
        Ok(())
    }

    fn end_second(&mut self) -> Result<(), RunError> {
        self.collect();
        let (now, cpu) = (self.elapsed(), own_cpu());
        let length = (now - self.second_began).as_secs_f64().max(1e-3);
        let cpu_pct = (cpu - self.cpu_at_second).as_secs_f64() / length * 100.0;
        let tally = std::mem::take(&mut self.second);
        self.write(RowKind::Second, now, &tally, cpu_pct, &[])?;
        let (open, connecting, _) = self.connections();
        self.view.show(&Now {
            elapsed: now,
            started: self.common.orders.started(),
            schedule: &self.common.schedule,
            place: self.place,
            connections: (open, connecting),
            length,
            second: &tally,
            total: &self.total,
            cpu_pct,
        });
        // Seconds stay where they are, however late this one was written.
        self.second_began = if length < 1.5 { self.second_began + Duration::from_secs(1) } else { now };
        self.cpu_at_second = cpu;
        Ok(())
    }

    fn write(
        &mut self,
        kind: RowKind,
        elapsed: Duration,
        tally: &Tally,
        cpu_pct: f64,
        thresholds: &[bool],
    ) -> Result<(), RunError> {
        let (open, connecting, _) = self.connections();
        let (step, phase, target) = self.place;
        let row = Row {
            kind,
            time_ms: wall_ms(),
            elapsed,
            step,
            phase,
            target,
            connections: (open, connecting),
            tally,
            cpu_pct,
            thresholds,
        };
        match &mut self.csv {
            None => Ok(()),
            Some((path, csv)) => csv.row(&row).map_err(|cause| RunError::Csv(path.clone(), cause)),
        }
    }

    /// Judges the step that was held; says whether all thresholds held.
    fn end_step(&mut self, hold: usize) -> Result<bool, RunError> {
        let now = self.elapsed();
        let length = now - self.judged_began;
        let seconds = length.as_secs_f64().max(1e-3);
        let cpu_pct = (own_cpu() - self.cpu_at_judged).as_secs_f64() / seconds * 100.0;
        let busiest = self.thread_cpu.iter().max().copied().unwrap_or(0);
        let tally = self.judged(hold);
        let verdicts = judge::verdicts(&self.common.plan.thresholds, &tally);
        let held: Vec<bool> = verdicts.iter().map(|(_, held)| *held).collect();
        self.write(RowKind::Step, now, &tally, cpu_pct, &held)?;
        let (number, _, target) = self.place;
        let busiest_pct = busiest as f64 / 1e6 / seconds * 100.0;
        let step = Step { number, target, length, tally, cpu_pct, busiest_pct, verdicts };
        self.view.say_step(&step, &self.common.plan);
        let held = step.held();
        self.steps.push(step);
        Ok(held)
    }

    /// Nothing new is begun; what is on its way arrives, or has had the time to.
    fn drain(&mut self, interrupted: bool, stop: &impl Fn() -> bool) -> Result<(), RunError> {
        self.collect();
        self.place.1 = Phase::Drain;
        let began = self.elapsed();
        let end = self.common.orders.started().map(|start| start + self.common.schedule.end());
        self.common.orders.stop(end.map_or(began, |end| end.min(began)));
        // With the time the threads take to notice that an answer did not come in time.
        let timeout = self.common.plan.timeout + NOTICED_WITHIN;
        let (mut arrived, mut since) = (self.total.delivered, began);
        let mut had_time = !interrupted;
        loop {
            let on_the_way =
                self.threads.iter().map(|thread| thread.desk.on_the_way.load(Ordering::Relaxed)).max();
            let now = self.elapsed();
            if on_the_way.unwrap_or(0) == 0 {
                break;
            }
            if had_time && stop() {
                had_time = false;
            }
            let limit = if had_time { timeout * DRAIN_TIMEOUTS } else { DRAIN_AFTER_INTERRUPT };
            if now >= began + limit || had_time && now >= since + timeout {
                break;
            }
            self.nap()?;
            if self.total.delivered > arrived {
                (arrived, since) = (self.total.delivered, now);
            }
        }
        self.unknown = self.end_threads(had_time)?.0;
        self.end_second()
    }

    /// Ends all threads; gives back of how many messages it is not known what became of them, and the first trouble of a client.
    fn end_threads(&mut self, had_time: bool) -> Result<(u64, Option<String>), RunError> {
        self.common.orders.end(had_time);
        let (mut unknown, mut trouble) = (0, None);
        for thread in &mut self.threads {
            let Some(handle) = thread.handle.take() else { continue };
            let left = handle.join().map_err(|_| RunError::Thread("it panicked".into()))?;
            let left = left.map_err(RunError::Thread)?;
            unknown += left.unknown;
            trouble = trouble.or(left.first_trouble);
        }
        Ok((unknown, trouble))
    }

    fn finish(mut self, ended: Ended) -> Result<Summary, RunError> {
        self.view.clear();
        if let Some((path, csv)) = &mut self.csv {
            csv.end(ended).map_err(|cause| RunError::Csv(path.clone(), cause))?;
        }
        Ok(Summary {
            elapsed: self.elapsed(),
            plan: self.common.plan.clone(),
            machine: std::mem::take(&mut self.machine),
            ended,
            steps: std::mem::take(&mut self.steps),
            total: std::mem::take(&mut self.total),
            evidence: std::mem::take(&mut self.evidence),
            storm: std::mem::take(&mut self.storm),
            unknown: self.unknown,
        })
    }
}

impl Drop for Conductor {
    /// However it ended, no thread goes on.
    fn drop(&mut self) {
        self.common.orders.end(false);
        for thread in &mut self.threads {
            if let Some(handle) = thread.handle.take() {
                let _ = handle.join();
            }
        }
    }
}

fn start_thread(
    common: &Arc<Common>,
    desk: &Arc<Desk>,
    accounts: &Arc<dyn Accounts>,
    share: Share,
    index: usize,
    tables: Tables,
) -> Result<JoinHandle<Result<Left, String>>, RunError> {
    let (common, desk, accounts) = (Arc::clone(common), Arc::clone(desk), Arc::clone(accounts));
    let builder = std::thread::Builder::new().name(format!("clients {index}"));
    let run = move || {
        if tables.apart {
            // SAFETY: what this thread opens it uses and closes itself; the files of the accounts and of the rows were opened before and
            // are not closed while it runs.
            let _ = unsafe { reactor::unshare_files() };
        }
        let left = run_clients(&common, &desk, &accounts, share, index, tables.threads);
        desk.done.store(true, Ordering::Relaxed);
        left
    };
    builder.spawn(run).map_err(|error| RunError::Thread(format!("it could not be started: {error}")))
}

fn run_clients(
    common: &Arc<Common>,
    desk: &Arc<Desk>,
    accounts: &Arc<dyn Accounts>,
    share: Share,
    index: usize,
    threads: usize,
) -> Result<Left, String> {
    let plan = &common.plan;
    let conversation = |pair: usize| -> Result<ConversationId, String> {
        Ok(direct_id(accounts.user(2 * pair)?, accounts.user(2 * pair + 1)?))
    };
    let (first, count) = share.pairs;
    let conversations = (first..first + count).map(conversation).collect::<Result<Vec<_>, String>>()?;
    let options = FleetOptions {
        host: plan.address.host.clone(),
        path: plan.address.path.clone(),
        encoding: plan.encoding,
        connecting_max: common.connecting_max(),
        first_source: index as u16,
        source_stride: threads as u16,
        began: common.began,
        ..FleetOptions::new(plan.address.server)
    };
    let tokens = {
        let (common, accounts) = (Arc::clone(common), Arc::clone(accounts));
        Box::new(move |client| accounts.token(share.user(&common.plan, client)))
    };
    let mut fleet = Fleet::new(options, share.clients(), tokens).map_err(|error| error.to_string())?;
    let mut worker = Worker::new(Arc::clone(common), Arc::clone(desk), &share, &conversations);
    fleet.prompt(|context| worker.open_doors(context));
    let mut looked = Duration::ZERO;
    let publish = |fleet: &mut Fleet, worker: &mut Worker| {
        desk.open.store(fleet.open(), Ordering::Relaxed);
        desk.connecting.store(fleet.connecting(), Ordering::Relaxed);
        let now = common.began.elapsed();
        if now >= looked + Duration::from_millis(20) {
            looked = now;
            let (came, went) = fleet.take_bytes();
            {
                let mut books = desk.books();
                books.tally.bytes_in += came;
                books.tally.bytes_out += went;
            }
            let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            desk.cpu_micros
                .store(cpu.tv_sec as u64 * 1_000_000 + cpu.tv_nsec as u64 / 1_000, Ordering::Relaxed);
            if let Some(on_the_way) = worker.on_the_way() {
                desk.on_the_way.store(on_the_way, Ordering::Relaxed);
            }
        }
        worker.fatal.is_some() || common.orders.has_ended()
    };
    fleet.run(&mut worker, FOR_EVER, publish).map_err(|error| error.to_string())?;
    match worker.fatal.take() {
        Some(why) => Err(why),
        None => Ok(Left { unknown: worker.close(), first_trouble: worker.first_trouble.take() }),
    }
}

/// The CPU time of this process so far.
fn own_cpu() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}

fn wall_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
