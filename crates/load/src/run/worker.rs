//! One thread of a run: its clients, what they do when it is due, and what came of it.
//!
//! Owns who is due and the classes of outcomes. The promise that is checked belongs to `pair`, the times to `schedule`, the sockets to the
//! fleet.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use model::{ConversationId, Entry, Seq};
use protocol::client::Incoming;
use protocol::{Answer, CloseCode, Command, Connected, ErrorCode, Push, Refusal, RequestId, Window};

use super::chance::Chance;
use super::desk::{Desk, EVIDENCE_MAX, Orders};
use super::pair::{Answered, Pair, Pushed, Violation};
use super::payload::Recipe;
use super::plan::{Kind, Plan};
use super::schedule::Schedule;
use super::tally::{Failure, Outcome};
use crate::client::{Ending, Said};
use crate::fleet::{Context, Scenario};

/// Connections that are being made at the same time, all threads together, but in a storm: below what a server lets one address have
/// (1,024), and the usual queue of a listener.
const CONNECTING_MAX: usize = 512;
/// What could not be begun so long after it was due is not sent.
pub const LATE_MAX: Duration = Duration::from_secs(1);
/// The longest window a client draws from, however often it came in vain (docs/protocol.md: up to half a minute).
const WINDOW_MS_MAX: u64 = 30_000;
/// Where no window was given (docs/protocol.md).
const WINDOW_MS: (u32, u32) = (500, 2_000);
/// How long those of the crowd stay away who go and come back.
const AWAY_MS: (u64, u64) = (1_000, 5_000);
/// The id of `connect` is 1; a message has its number and this.
const FIRST_REQUEST: u64 = 2;

/// Which users a thread has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The first of its pairs, and how many.
    pub pairs: (usize, usize),
    /// The first of its crowd among the whole crowd, and how many.
    pub crowd: (usize, usize),
}

impl Share {
    /// The share of thread `index` of so many.
    pub fn of(plan: &Plan, index: usize, threads: usize) -> Share {
        let part = |all: usize| {
            let from = all * index / threads;
            (from, all * (index + 1) / threads - from)
        };
        Share { pairs: part(plan.pairs), crowd: part(plan.crowd) }
    }

    /// How many clients it has.
    pub fn clients(&self) -> usize {
        2 * self.pairs.1 + self.crowd.1
    }

    /// The user that one of its clients is.
    pub fn user(&self, plan: &Plan, client: usize) -> usize {
        match client.checked_sub(2 * self.pairs.1) {
            None => 2 * self.pairs.0 + client,
            Some(of_crowd) => 2 * plan.pairs + self.crowd.0 + of_crowd,
        }
    }
}

/// Where a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// It has not been due yet, or waits to come back.
    Away,
    /// On its way in.
    Door,
    /// Its session stands.
    Inside,
    /// It does not come back.
    Gone,
}

#[derive(Debug, Clone)]
struct Device {
    at: At,
    /// Tries in vain since it was last in.
    tries: u8,
    /// When it is to come back should its connection break, in milliseconds.
    window_ms: (u32, u32),
    /// When it was due to connect, or began to.
    since: Duration,
    /// Why it is gone, if the server said so.
    refused: Option<ErrorCode>,
}

/// What all threads of a run share.
#[derive(Debug)]
pub struct Common {
    /// What shall be done.
    pub plan: Plan,
    /// When.
    pub schedule: Schedule,
    /// What the conductor wants.
    pub orders: Orders,
    /// How messages are made.
    pub recipe: Recipe,
    /// Over how many threads.
    pub threads: usize,
    /// When the run began.
    pub began: Instant,
    /// The wall clock then, for the names of messages.
    pub began_ms: u64,
}

impl Common {
    /// How many connections one thread makes at the same time. What waits for that is not due yet: it waits for the server.
    pub fn connecting_max(&self) -> usize {
        match self.plan.kind {
            Kind::Storm => usize::MAX,
            _ => (CONNECTING_MAX / self.threads).max(16),
        }
    }
}

/// The clients of one thread.
pub struct Worker {
    run: Arc<Common>,
    desk: Arc<Desk>,
    /// How much of what is due is due here.
    part: f64,
    devices: Vec<Device>,
    pairs: Vec<Pair>,
    /// Clients that are on their way in.
    at_door: usize,
    /// When there was last no room for another.
    door_full: Option<Duration>,
    /// How much of it was begun.
    begun: u64,
    /// Whether it was stopped and everything was begun that was due before.
    begun_all: bool,
    /// When the next is due, since the run began.
    next: Option<Duration>,
    /// When answers that are awaited are too late: oldest first.
    deadlines: VecDeque<(Duration, u32, u32)>,
    door_deadlines: VecDeque<(Duration, u32)>,
    /// What is to be acknowledged, by client.
    acknowledgements: Vec<(u32, ConversationId, Seq)>,
    /// The next of the crowd to go, and when.
    next_to_go: (usize, Option<Duration>),
    chance: Chance,
    /// Something without which the thread cannot go on.
    pub fatal: Option<String>,
    /// Why the first client that was turned away was.
    pub first_trouble: Option<String>,
}

impl Worker {
    /// A thread's clients, none of which is connected.
    pub fn new(run: Arc<Common>, desk: Arc<Desk>, share: &Share, conversations: &[ConversationId]) -> Worker {
        let plan = &run.plan;
        let (mine, all) = match plan.kind.sends() {
            true => (share.pairs.1, plan.pairs),
            false => (share.clients(), plan.connections()),
        };
        let away =
            Device { at: At::Away, tries: 0, window_ms: WINDOW_MS, since: Duration::ZERO, refused: None };
        let number = |index: usize| (share.pairs.0 + index) as u32;
        let pairs =
            conversations.iter().enumerate().map(|(index, id)| Pair::new(*id, number(index))).collect();
        Worker {
            part: mine as f64 / all as f64,
            devices: vec![away; share.clients()],
            pairs,
            at_door: 0,
            door_full: None,
            begun: 0,
            begun_all: false,
            next: None,
            deadlines: VecDeque::new(),
            door_deadlines: VecDeque::new(),
            acknowledgements: Vec::new(),
            next_to_go: (0, None),
            chance: Chance::new(run.recipe.run ^ share.pairs.0 as u64 ^ (share.crowd.0 as u64) << 32),
            fatal: None,
            first_trouble: None,
            run,
            desk,
        }
    }

    /// Lets everybody connect who is connected before the schedule begins.
    pub fn open_doors(&mut self, context: &mut Context<'_>) {
        if self.run.plan.kind.sends() {
            for client in 0..self.devices.len() {
                self.devices[client].since = context.now;
                context.connect(client);
            }
        }
    }

    /// Messages on their way between clients that are there, or may be again; `None` while more are to be begun.
    pub fn on_the_way(&self) -> Option<usize> {
        if !self.begun_all {
            return None;
        }
        let here = |client: usize| self.devices[client].at != At::Gone;
        let waiting =
            self.pairs.iter().enumerate().filter(|(index, _)| here(2 * index) && here(2 * index + 1));
        Some(waiting.map(|(_, pair)| pair.on_the_way()).sum())
    }

    /// The last word: what was lost, and how many messages it is not known of.
    pub fn close(&self) -> u64 {
        let (mut violations, mut unknown) = (Vec::new(), 0);
        for (index, pair) in self.pairs.iter().enumerate() {
            let had_time = self.run.orders.had_time() && self.devices[2 * index + 1].at == At::Inside;
            unknown += pair.close(had_time, &mut violations);
        }
        self.accuse(violations);
        unknown
    }

    fn accuse(&self, violations: Vec<Violation>) {
        if violations.is_empty() {
            return;
        }
        let mut books = self.desk.books();
        books.tally.violations += violations.len() as u64;
        let room = EVIDENCE_MAX.saturating_sub(books.violations.len());
        books.violations.extend(violations.into_iter().take(room));
    }

    fn note(&self, outcome: Outcome) {
        self.desk.books().tally.outcomes.note(outcome);
    }

    /// Everything that is due by now.
    fn begin_what_is_due(&mut self, context: &mut Context<'_>) -> Option<Duration> {
        let start = self.run.orders.started()?;
        let stop = self.run.orders.stopped();
        loop {
            let due = match self.next {
                Some(due) => due,
                None => {
                    // In the middle of each one's part, so that threads take turns.
                    let amount = (self.begun as f64 + 0.5) / self.part;
                    let due = start + self.run.schedule.when(amount)?;
                    self.next = Some(due);
                    due
                }
            };
            if stop.is_some_and(|stop| due > stop) {
                return None;
            }
            if due > context.now {
                return Some(due);
            }
            let number = self.begun as usize;
            self.begun += 1;
            self.next = None;
            match self.run.plan.kind.sends() {
                true => self.send(context, number % self.pairs.len(), due),
                false => {
                    if let Some(device) = self.devices.get_mut(number) {
                        device.since = due;
                        context.connect(number);
                    }
                }
            }
        }
    }

    fn send(&mut self, context: &mut Context<'_>, pair: usize, due: Duration) {
        let client = 2 * pair;
        let device = &self.devices[client];
        let late = context.now.saturating_sub(due);
        let desk = Arc::clone(&self.desk);
        let mut books = desk.books();
        let tally = &mut books.tally;
        tally.outcomes.due += 1;
        if late > LATE_MAX {
            return tally.outcomes.note(Outcome::NotSent);
        }
        tally.late.record(late);
        if device.at != At::Inside {
            let outcome = device.refused.map_or(Outcome::Failed(Failure::Connect), Outcome::Refused);
            return tally.outcomes.note(outcome);
        }
        let conversation = self.pairs[pair].conversation();
        if self.run.plan.kind == Kind::Mixed {
            // As a client that tells that somebody is writing.
            let payload = b"somebody is writing".as_slice().into();
            context.request(client, None, Command::SendPassing { conversation, payload });
            tally.passing.0 += 1;
        }
        let number = self.pairs[pair].sent(due);
        self.deadlines.push_back((due + self.run.plan.timeout, pair as u32, number));
        self.ask(context, pair, number, due);
    }

    fn ask(&self, context: &mut Context<'_>, pair: usize, number: u32, due: Duration) {
        let (conversation, name) = (self.pairs[pair].conversation(), self.pairs[pair].number());
        let payload = self.run.recipe.payload(name, number);
        let client_id = self.run.recipe.client_id(self.run.began_ms + due.as_millis() as u64, name, number);
        let command = Command::Send { conversation, client_id, payload };
        context.request(2 * pair, RequestId::new(u64::from(number) + FIRST_REQUEST), command);
    }

    fn give_up_what_is_late(&mut self, context: &mut Context<'_>) {
        while let Some((at, pair, number)) = self.deadlines.front().copied()
            && at <= context.now
        {
            self.deadlines.pop_front();
            if self.pairs[pair as usize].timed_out(number) {
                self.note(Outcome::Failed(Failure::Timeout));
            }
        }
        while let Some((at, client)) = self.door_deadlines.front().copied()
            && at <= context.now
        {
            self.door_deadlines.pop_front();
            let device = &self.devices[client as usize];
            if device.at == At::Door && device.since + self.run.plan.timeout <= context.now {
                context.leave(client as usize, Ending::TimedOut);
            }
        }
    }

    /// One of the crowd goes now and then, and comes back.
    fn let_some_go(&mut self, context: &mut Context<'_>) -> Option<Duration> {
        if self.run.plan.kind != Kind::Mixed {
            return None;
        }
        let crowd = self.devices.len() - 2 * self.pairs.len();
        let each_second = self.run.plan.churn * crowd as f64;
        let started =
            self.run.orders.started().filter(|_| each_second > 0.0 && self.run.orders.stopped().is_none())?;
        loop {
            let at = self.next_to_go.1.unwrap_or(started);
            if at > context.now {
                return Some(at);
            }
            let client = 2 * self.pairs.len() + self.next_to_go.0 % crowd;
            self.next_to_go = (self.next_to_go.0 + 1, Some(at + Duration::from_secs_f64(1.0 / each_second)));
            if self.devices[client].at == At::Inside {
                context.leave(client, Ending::Left);
            }
        }
    }

    fn acknowledge(&mut self, context: &mut Context<'_>) {
        for (client, conversation, seq) in self.acknowledgements.drain(..) {
            if self.devices[client as usize].at == At::Inside {
                context.request(client as usize, None, Command::Recv { conversation, seq });
            }
        }
    }

    fn answered(
        &mut self,
        client: usize,
        now: Duration,
        id: Option<RequestId>,
        outcome: Result<Answer<'_>, Refusal<'_>>,
    ) {
        let number = id
            .and_then(|id| id.get().checked_sub(FIRST_REQUEST))
            .and_then(|number| u32::try_from(number).ok());
        let sender = client.is_multiple_of(2) && client < 2 * self.pairs.len();
        let (Some(number), true) = (number, sender) else {
            // What has no id is answered only when it is refused.
            let name = outcome.err().map_or("an answer to nothing", |refusal| refusal.code.name());
            *self.desk.books().tally.others_refused.entry(name).or_default() += 1;
            return;
        };
        let pair = &mut self.pairs[client / 2];
        let was = match outcome {
            Ok(Answer::Send(sent)) => {
                let (answered, violation) = pair.stored(number, sent.seq);
                self.accuse(violation.into_iter().collect());
                let mut books = self.desk.books();
                match answered {
                    Answered::First(due) => {
                        books.tally.ack.record(now.saturating_sub(due));
                        books.tally.outcomes.note(Outcome::Ok);
                    }
                    Answered::Counted => books.tally.repeated_in_vain += u64::from(sent.duplicate),
                    Answered::Nothing => {}
                }
                answered
            }
            Ok(_) => {
                let answered = pair.refused(number);
                if let Answered::First(_) = answered {
                    self.note(Outcome::Failed(Failure::WrongAnswer));
                }
                answered
            }
            Err(refusal) => {
                let answered = pair.refused(number);
                if let Answered::First(_) = answered {
                    self.note(Outcome::Refused(refusal.code));
                }
                answered
            }
        };
        if was == Answered::Nothing {
            *self.desk.books().tally.others_refused.entry("an answer to nothing").or_default() += 1;
        }
    }

    fn pushed(&mut self, client: usize, now: Duration, conversation: ConversationId, entry: &Entry) {
        let seq = entry.seq;
        match self.acknowledgements.last_mut() {
            Some((last, of, up_to)) if *last == client as u32 && *of == conversation => {
                *up_to = seq.max(*up_to)
            }
            _ => self.acknowledgements.push((client as u32, conversation, seq)),
        }
        let receiver = client < 2 * self.pairs.len() && !client.is_multiple_of(2);
        if !receiver || self.pairs[client / 2].conversation() != conversation {
            return;
        }
        let (recipe, began_ms) = (self.run.recipe, self.run.began_ms);
        let pair = &mut self.pairs[client / 2];
        let number_of_pair = pair.number();
        let name = |due: Duration, number| {
            recipe.client_id(began_ms + due.as_millis() as u64, number_of_pair, number)
        };
        let mut violations = Vec::new();
        let pushed = pair.pushed(entry, &recipe, name, &mut violations);
        let as_promised = violations.is_empty();
        self.accuse(violations);
        let mut books = self.desk.books();
        match pushed {
            Pushed::Fresh(due) => {
                books.tally.delivery.record(now.saturating_sub(due));
                books.tally.delivered += 1;
            }
            Pushed::Again => books.tally.delivered_again += u64::from(as_promised),
            Pushed::Other => {}
        }
    }

    fn over(&mut self, context: &mut Context<'_>, client: usize, ending: &Ending) {
        if let Ending::NoToken(why) = ending {
            self.fatal.get_or_insert_with(|| why.clone());
        }
        let was = self.devices[client].at;
        let outcome = outcome_of(ending);
        if was == At::Door {
            self.leave_door(context.now);
            let trouble = || format!("user {client} of this thread: {ending}");
            self.first_trouble.get_or_insert_with(trouble);
            let mut books = self.desk.books();
            books.tally.attempts.note(outcome);
            if !self.run.plan.kind.sends() {
                books.tally.outcomes.note(outcome);
            }
        } else if was == At::Inside && *ending != Ending::Left {
            self.note_loss(outcome);
        }
        if was == At::Inside && client < 2 * self.pairs.len() {
            let pair = &mut self.pairs[client / 2];
            if client.is_multiple_of(2) {
                let unanswered = pair.sender_lost();
                for _ in 0..unanswered {
                    self.note(outcome);
                }
            } else {
                pair.receiver_lost();
            }
        }
        self.decide_to_come_back(context, client, ending, was == At::Inside);
    }

    /// A connection that stood is gone. Where connections are what it is about, that is a failure, but in the storm after a death it is
    /// the death.
    fn note_loss(&self, outcome: Outcome) {
        let Outcome::Failed(failure) = outcome else { return };
        let mut books = self.desk.books();
        *books.tally.lost.entry(failure).or_default() += 1;
        if !self.run.plan.kind.sends() && !self.run.plan.after_death {
            books.tally.outcomes.due += 1;
            books.tally.outcomes.note(outcome);
        }
    }

    fn decide_to_come_back(
        &mut self,
        context: &mut Context<'_>,
        client: usize,
        ending: &Ending,
        was_inside: bool,
    ) {
        let device = &mut self.devices[client];
        device.at = At::Away;
        let forever = match ending {
            Ending::Refused(code, _) => !code.temporary(),
            Ending::Closed(Some(code), _) => {
                CloseCode::from_code(u64::from(*code)).is_some_and(|code| !code.comes_back())
            }
            Ending::NotUpgraded(status) => matches!(status, 400..=428 | 430..=499),
            Ending::NoToken(_) => true,
            _ => false,
        };
        if forever {
            device.at = At::Gone;
            if let Outcome::Refused(code) = outcome_of(ending) {
                device.refused = Some(code);
            }
            self.desk.given_up.fetch_add(1, Ordering::Relaxed);
            return;
        }
        device.tries = if was_inside { 0 } else { device.tries.saturating_add(1) };
        let (from, to) = match ending {
            Ending::Left => AWAY_MS,
            _ => widened(device.window_ms, device.tries),
        };
        let at = context.now + Duration::from_millis(from + self.chance.below(to.saturating_sub(from) + 1));
        device.since = at;
        context.come_back(client, at);
    }

    fn leave_door(&mut self, now: Duration) {
        if self.at_door >= self.run.connecting_max() {
            self.door_full = Some(now);
        }
        self.at_door -= 1;
    }

    fn set_window(&mut self, client: usize, window: Window) {
        let ms = |span: model::Span| u32::try_from(span.0).unwrap_or(u32::MAX);
        self.devices[client].window_ms = (ms(window.min), ms(window.max));
    }
}

/// The window doubled for each try in vain after the first (docs/protocol.md).
fn widened((from, to): (u32, u32), tries: u8) -> (u64, u64) {
    let doubled = |ms: u32| (u64::from(ms) << tries.min(16)).min(WINDOW_MS_MAX.max(u64::from(ms)));
    (doubled(from), doubled(to).max(doubled(from)))
}

/// What an ending means for what was waiting for an answer.
fn outcome_of(ending: &Ending) -> Outcome {
    match ending {
        Ending::NoToken(_) | Ending::Unreachable(_) => Outcome::Failed(Failure::Connect),
        Ending::NotUpgraded(401) => Outcome::Refused(ErrorCode::Unauthorised),
        Ending::NotUpgraded(404) => Outcome::Refused(ErrorCode::NotFound),
        Ending::NotUpgraded(429) => Outcome::Refused(ErrorCode::RateLimited),
        Ending::NotUpgraded(503) => Outcome::Refused(ErrorCode::Overloaded),
        Ending::NotUpgraded(_) | Ending::Wrong(_) => Outcome::Failed(Failure::WrongAnswer),
        Ending::Refused(code, _) => Outcome::Refused(*code),
        // RFC 6455, section 7.4.1: what stands for a close frame without a code.
        Ending::Closed(code, _) => Outcome::Failed(Failure::Closed(code.unwrap_or(1_005))),
        Ending::Broken | Ending::Left => Outcome::Failed(Failure::Reset),
        Ending::TimedOut => Outcome::Failed(Failure::Timeout),
    }
}

impl Scenario for Worker {
    fn begun(&mut self, context: &mut Context<'_>, client: usize) {
        let device = &mut self.devices[client];
        let waited_for_room = self.door_full.is_some_and(|full| full >= device.since);
        let late = if waited_for_room { None } else { Some(context.now.saturating_sub(device.since)) };
        self.at_door += 1;
        device.at = At::Door;
        device.since = context.now;
        self.door_deadlines.push_back((context.now + self.run.plan.timeout, client as u32));
        let mut books = self.desk.books();
        books.tally.attempts.due += 1;
        if !self.run.plan.kind.sends() {
            let outcomes = &mut books.tally.outcomes;
            outcomes.due += 1;
            match late {
                Some(late) if late > LATE_MAX => {
                    // It was due and was not begun in time; what begins now is another attempt.
                    outcomes.due += 1;
                    outcomes.note(Outcome::NotSent);
                }
                Some(late) => books.tally.late.record(late),
                None => {}
            }
        }
    }

    fn connected(&mut self, context: &mut Context<'_>, client: usize, connected: &Connected) {
        self.set_window(client, connected.reconnect);
        let device = &mut self.devices[client];
        let took = context.now.saturating_sub(device.since);
        device.at = At::Inside;
        device.tries = 0;
        self.leave_door(context.now);
        {
            let mut books = self.desk.books();
            books.tally.connect.record(took);
            books.tally.attempts.note(Outcome::Ok);
            if !self.run.plan.kind.sends() {
                books.tally.outcomes.note(Outcome::Ok);
            }
        }
        if client.is_multiple_of(2) && client < 2 * self.pairs.len() {
            let pair = client / 2;
            for number in self.pairs[pair].repeats() {
                if let Some(due) = self.pairs[pair].due(number) {
                    self.desk.books().tally.repeated += 1;
                    self.ask(context, pair, number, due);
                }
            }
        }
    }

    fn said(&mut self, context: &mut Context<'_>, client: usize, said: Said<'_>) {
        match said {
            Said::Incoming(Incoming::Reply(reply)) => {
                self.answered(client, context.now, reply.id, reply.outcome)
            }
            Said::Incoming(Incoming::Push(Push::Message { conversation, entry })) => {
                self.pushed(client, context.now, conversation, &entry);
            }
            Said::Incoming(Incoming::Push(Push::Passing(_))) => self.desk.books().tally.passing.1 += 1,
            Said::Incoming(Incoming::Push(Push::Disconnect(disconnect))) => {
                if disconnect.code.comes_back() {
                    self.set_window(client, disconnect.after);
                }
            }
            Said::Over(ending) => self.over(context, client, &ending),
            Said::Incoming(_) | Said::Connected(_) | Said::Pinged => {}
        }
    }

    fn turn(&mut self, context: &mut Context<'_>) -> Option<Duration> {
        let since = self.run.orders.started().map(|started| context.now.saturating_sub(started));
        self.desk.books().turn_to(since.map_or(0, |since| self.run.schedule.parts_begun(since)));
        self.acknowledge(context);
        self.give_up_what_is_late(context);
        let stopped = self.run.orders.stopped();
        let due = self.begin_what_is_due(context);
        self.begun_all = stopped.is_some_and(|stop| stop <= context.now);
        let going = self.let_some_go(context);
        [due, going].into_iter().flatten().min()
    }
}
