//! Durable messages a second: pairs, each message acknowledged to the sender after the commit and by the receiving device.
//!
//! Closed loop: a sender sends its next message when the receipt for its last one has come, so every message counted has been
//! committed, answered, delivered, acknowledged durably by the other device, and that told to the sender. Client ids ascend, as UUIDv7
//! do.

use std::time::Duration;

use load::{Context, Fleet, FleetOptions, Latencies, Said, Scenario, Server, ServerOptions};
use model::{ClientId, ConversationId, Payload, Seq};
use protocol::client::Incoming;
use protocol::{Answer, Command, Connected, Push, RequestId};

/// Bytes of ciphertext in a message, so that a frame has about the 220 bytes of the echo.
const PAYLOAD_BYTES: usize = 140;

pub fn run(arguments: &[String]) -> Result<(), String> {
    let pairs: usize = super::option(arguments, "--pairs", 1_000)?;
    let rounds: usize = super::option(arguments, "--rounds", 5)?;
    let seconds: u64 = super::option(arguments, "--seconds", 4)?;
    let shards: u16 = super::option(arguments, "--shards", 2)?;
    let window: usize = super::option(arguments, "--window", 1)?;
    let encoding = super::encoding(arguments, "json")?;
    // As many as chat: the same number of sockets, each with one message on its way.
    let echo_connections: usize = super::option(arguments, "--echo-connections", 2 * pairs)?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let settings = vec![
        ("THRONG_CONNECTIONS_UNAUTHENTICATED_PER_ADDRESS_MAX", "8192".to_owned()),
        ("THRONG_COMMANDS_PER_SECOND", "1000".to_owned()),
    ];
    let server = Server::start(&ServerOptions { shards, data: folder.path().to_owned(), settings })?;
    let options = FleetOptions { encoding, ..FleetOptions::new(server.address) };
    let (mut fleet, mut chat) = Chat::connect(&server, options, 0, pairs, window)?;
    println!(
        "{pairs} pairs, {encoding:?}, window {window}, {shards} shards; each round: {seconds} s of chat, {seconds} s of echo"
    );
    let (mut ratios, mut rates, mut echoes, mut tails) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 1..=rounds {
        let (committed, batches, cpu) = numbers(&server)?;
        let own = own_cpu();
        chat.begin(&mut fleet);
        let began = fleet.elapsed();
        fleet
            .run(&mut chat, Duration::from_secs(seconds), |fleet, _| fleet.failures() > 0)
            .map_err(|error| error.to_string())?;
        let time = (fleet.elapsed() - began).as_secs_f64();
        let mut done = std::mem::take(&mut chat.done);
        let drained = chat.finish(&mut fleet)?;
        let own = own_cpu() - own;
        let (committed_after, batches_after, cpu_after) = numbers(&server)?;
        let echo = super::echo::round_trips_per_second(echo_connections, Duration::from_secs(seconds))?;
        let rate = done.count() as f64 / time;
        let (messages, commits) = (committed_after - committed, batches_after - batches);
        println!(
            "round {round}: {rate:.0} messages/s, echo {echo:.0} round trips/s, ratio {:.3}; p50 {:.1} ms, p95 {:.1} ms, p99 {:.1} ms; \
             {:.0} commits/s, {:.0} messages/commit, {:.1} µs CPU a message in the server and {:.1} in the clients ({drained} more after the clock)",
            rate / echo,
            done.quantile(0.5).as_secs_f64() * 1e3,
            done.quantile(0.95).as_secs_f64() * 1e3,
            done.quantile(0.99).as_secs_f64() * 1e3,
            commits / time,
            messages / commits.max(1.0),
            (cpu_after - cpu).as_micros() as f64 / messages.max(1.0),
            own.as_micros() as f64 / messages.max(1.0),
        );
        ratios.push(rate / echo);
        rates.push(rate);
        echoes.push(echo);
        tails.push(done.quantile(0.99).as_secs_f64() * 1e3);
    }
    chat.verify()?;
    super::part("durable messages", super::middle(&mut rates), "a second");
    super::part("p99 of a message's way to the receipt", super::middle(&mut tails), "ms");
    super::part("bare epoll echo", super::middle(&mut echoes), "round trips a second");
    super::verdict("chat", super::middle(&mut ratios), "of the echo rate", false, 0.33);
    Ok(())
}

/// The CPU time of this process so far.
fn own_cpu() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}

fn numbers(server: &Server) -> Result<(f64, f64, Duration), String> {
    let committed = server.metric("throng_messages_committed_total")?;
    let batches = server.metric("throng_store_batches_total")?;
    Ok((committed, batches, server.cpu()?))
}

/// The state of all pairs: client `2 p` sends to client `2 p + 1`.
pub struct Chat {
    pairs: Vec<Pair>,
    window: usize,
    running: bool,
    payload: Payload,
    pub done: Latencies,
    violations: Vec<String>,
    next: u64,
}

struct Pair {
    conversation: ConversationId,
    /// When each message on its way was sent, oldest first.
    sent: std::collections::VecDeque<(u64, Duration)>,
    /// The place of each message that was answered, and when it was sent.
    answered: std::collections::VecDeque<(Seq, Duration)>,
    /// The last place the receiver saw.
    seen: Seq,
    /// The last place that was answered, so that it must not be lost.
    acknowledged: Seq,
    /// How far the receipts say it has got. They take another way than answers and may be first.
    delivered: Seq,
}

impl Chat {
    fn new(conversations: &[ConversationId], window: usize) -> Self {
        let pair = |conversation: &ConversationId| Pair {
            conversation: *conversation,
            sent: Default::default(),
            answered: Default::default(),
            seen: Seq(1),
            acknowledged: Seq::ZERO,
            delivered: Seq::ZERO,
        };
        Chat {
            pairs: conversations.iter().map(pair).collect(),
            window,
            running: false,
            payload: Payload::from(vec![0xa5; PAYLOAD_BYTES]),
            done: Latencies::default(),
            violations: Vec::new(),
            next: 0,
        }
    }

    /// Pairs of users `first` …, connected and with a conversation each.
    pub fn connect(
        server: &Server,
        options: FleetOptions,
        first: usize,
        pairs: usize,
        window: usize,
    ) -> Result<(Fleet, Chat), String> {
        let user = |number: usize| first + number;
        let conversations: Vec<ConversationId> = (0..pairs)
            .map(|pair| server.direct(user(2 * pair), user(2 * pair + 1)))
            .collect::<Result<_, _>>()?;
        let tokens: Vec<String> = (0..2 * pairs).map(|number| server.token(user(number))).collect();
        let mut fleet = Fleet::with_tokens(options, tokens).map_err(|error| error.to_string())?;
        let mut chat = Chat::new(&conversations, window);
        let all = fleet
            .run(&mut chat, Duration::from_secs(60), |fleet, _| {
                fleet.open() == 2 * pairs || fleet.failures() > 0
            })
            .map_err(|error| error.to_string())?;
        if !all || fleet.open() != 2 * pairs {
            return Err(format!("{} of {} connected: {:?}", fleet.open(), 2 * pairs, fleet.failure()));
        }
        Ok((fleet, chat))
    }

    pub fn begin(&mut self, fleet: &mut Fleet) {
        self.running = true;
        let (pairs, window) = (self.pairs.len(), self.window);
        fleet.prompt(|context| {
            for pair in 0..pairs {
                for _ in 0..window {
                    self.send(context, pair);
                }
            }
        });
    }

    /// The server is another one: the pairs come back, and everything that was acknowledged must be there. Says how many messages
    /// that were.
    pub fn look(&self, server: &Server, options: FleetOptions, first: usize) -> Result<u64, String> {
        let count = 2 * self.pairs.len();
        let tokens = (0..count).map(|number| server.token(first + number)).collect();
        let mut fleet = Fleet::with_tokens(options, tokens).map_err(|error| error.to_string())?;
        let mut look =
            Look { seen: self.pairs.iter().map(|pair| pair.seen).collect(), caught_up: 0, violation: None };
        let all = fleet
            .run(&mut look, Duration::from_secs(60), |fleet, look| {
                look.caught_up == count || fleet.failures() > 0
            })
            .map_err(|error| error.to_string())?;
        if let Some(why) = look.violation {
            return Err(why);
        }
        if !all || fleet.failures() > 0 {
            return Err(format!("{} of {count} have caught up: {:?}", look.caught_up, fleet.failure()));
        }
        for (number, (pair, seen)) in self.pairs.iter().zip(&look.seen).enumerate() {
            if *seen < pair.acknowledged {
                return Err(format!(
                    "pair {number}: {} was acknowledged and the receiver has got no further than {seen}",
                    pair.acknowledged
                ));
            }
        }
        Ok(self.pairs.iter().map(|pair| pair.acknowledged.0.saturating_sub(1)).sum())
    }

    /// An error when something was not as promised.
    pub fn verify(&self) -> Result<(), String> {
        match self.violations.first() {
            Some(violation) => Err(format!("{} violations, the first: {violation}", self.violations.len())),
            None => Ok(()),
        }
    }

    /// Whether nothing is on its way.
    fn is_quiet(&self) -> bool {
        self.pairs.iter().all(|pair| pair.sent.is_empty() && pair.answered.is_empty())
    }

    /// Lets no new message start, and waits for those that are on their way.
    pub fn finish(&mut self, fleet: &mut Fleet) -> Result<usize, String> {
        self.running = false;
        let quiet = fleet
            .run(self, Duration::from_secs(20), |fleet, chat| fleet.failures() > 0 || chat.is_quiet())
            .map_err(|error| error.to_string())?;
        if let Some(why) = fleet.failure() {
            return Err(format!("a client was lost: {why}"));
        }
        if !quiet {
            let stuck = self
                .pairs
                .iter()
                .enumerate()
                .filter(|(_, pair)| !pair.sent.is_empty() || !pair.answered.is_empty());
            let told: Vec<String> = stuck
                .map(|(number, pair)| {
                    let (sent, answered) = (pair.sent.len(), pair.answered.front().map(|(seq, _)| seq.0));
                    format!("pair {number}: {sent} without an answer, without a receipt {answered:?}, the receiver has seen {}", pair.seen)
                })
                .collect();
            return Err(format!(
                "{} pairs were not acknowledged within 20 s: {}",
                told.len(),
                told.join("; ")
            ));
        }
        Ok(std::mem::take(&mut self.done).count())
    }

    /// Lets each pair send at the pace, one after the other, for so long. Gives back how long the messages took, those still under
    /// way at the end included.
    pub fn paced(&mut self, fleet: &mut Fleet, pace: Duration, time: Duration) -> Result<Latencies, String> {
        let told = |error: std::io::Error| error.to_string();
        let (began, pairs) = (fleet.elapsed(), self.pairs.len());
        let step = pace / pairs as u32;
        let mut sent = 0;
        while fleet.elapsed() - began < time {
            let due = ((fleet.elapsed() - began).as_nanos() / step.as_nanos().max(1)) as usize;
            if sent < due {
                fleet.prompt(|context| {
                    for number in sent..due {
                        self.send(context, number % pairs);
                    }
                });
                sent = due;
            }
            let next = began + step * (sent as u32 + 1);
            fleet.run(self, time, |fleet, _| fleet.elapsed() >= next).map_err(told)?;
            if let Some(why) = fleet.failure() {
                return Err(format!("a client was lost: {why}"));
            }
        }
        let mut done = std::mem::take(&mut self.done);
        if !fleet.run(self, Duration::from_secs(20), |_, chat| chat.is_quiet()).map_err(told)? {
            return Err("some messages were not acknowledged within 20 s".into());
        }
        done.merge(&std::mem::take(&mut self.done));
        Ok(done)
    }

    fn send(&mut self, context: &mut Context<'_>, pair: usize) {
        self.next += 1;
        let mut client_id = [0; 16];
        client_id[..8].copy_from_slice(&self.next.to_be_bytes());
        client_id[8..].copy_from_slice(&(pair as u64).to_be_bytes());
        self.pairs[pair].sent.push_back((self.next, context.now));
        let command = Command::Send {
            conversation: self.pairs[pair].conversation,
            client_id: ClientId(client_id),
            payload: self.payload.clone(),
        };
        context.request(2 * pair, RequestId::new(self.next), command);
    }

    fn answered(
        &mut self,
        context: &mut Context<'_>,
        id: Option<RequestId>,
        pair: usize,
        outcome: Result<Answer<'_>, protocol::Refusal<'_>>,
    ) {
        let Some((number, at)) = self.pairs[pair].sent.pop_front() else {
            return self.violations.push(format!("pair {pair}: an answer to nothing"));
        };
        match outcome {
            Ok(Answer::Send(sent)) if id.is_some_and(|id| id.get() == number) => {
                self.pairs[pair].acknowledged = self.pairs[pair].acknowledged.max(sent.seq);
                self.pairs[pair].answered.push_back((sent.seq, at));
                self.settle(context, pair);
            }
            other => self.violations.push(format!("pair {pair}: message {number} was answered {other:?}")),
        }
    }

    fn delivered(&mut self, context: &mut Context<'_>, pair: usize, delivered: Seq) {
        self.pairs[pair].delivered = self.pairs[pair].delivered.max(delivered);
        self.settle(context, pair);
    }

    /// Counts what is both answered and acknowledged by the other side, and goes on.
    fn settle(&mut self, context: &mut Context<'_>, pair: usize) {
        while let Some((seq, at)) = self.pairs[pair].answered.front().copied()
            && seq <= self.pairs[pair].delivered
        {
            self.pairs[pair].answered.pop_front();
            self.done.record(context.now - at);
            if self.running {
                self.send(context, pair);
            }
        }
    }

    fn message(&mut self, context: &mut Context<'_>, client: usize, conversation: ConversationId, seq: Seq) {
        let pair = client / 2;
        if client % 2 == 1 {
            let expected = self.pairs[pair].seen.next();
            if seq != expected && seq != Seq(1) {
                self.violations.push(format!("pair {pair}: message {seq} came, {expected} was next"));
            }
            self.pairs[pair].seen = self.pairs[pair].seen.max(seq);
        }
        context.request(client, None, Command::Recv { conversation, seq });
    }
}

impl Scenario for Chat {
    fn connected(&mut self, _: &mut Context<'_>, _: usize, _: &Connected) {}

    fn said(&mut self, context: &mut Context<'_>, client: usize, said: Said<'_>) {
        match said {
            Said::Incoming(Incoming::Reply(reply)) if client.is_multiple_of(2) => {
                self.answered(context, reply.id, client / 2, reply.outcome)
            }
            Said::Incoming(Incoming::Reply(reply)) => {
                self.violations.push(format!("client {client}: {reply:?}"))
            }
            Said::Incoming(Incoming::Push(Push::Message { conversation, entry })) => {
                self.message(context, client, conversation, entry.seq);
            }
            Said::Incoming(Incoming::Push(Push::Receipt(receipt))) if client.is_multiple_of(2) => {
                self.delivered(context, client / 2, receipt.delivered);
            }
            _ => {}
        }
    }
}

/// Receivers that come back and take what is pending.
struct Look {
    /// The last place that each receiver has.
    seen: Vec<Seq>,
    caught_up: usize,
    violation: Option<String>,
}

impl Scenario for Look {
    fn connected(&mut self, _: &mut Context<'_>, _: usize, _: &Connected) {}

    fn said(&mut self, context: &mut Context<'_>, client: usize, said: Said<'_>) {
        match said {
            Said::Incoming(Incoming::Push(Push::Message { conversation, entry })) => {
                let (seen, seq) = (&mut self.seen[client / 2], entry.seq);
                if client % 2 == 1 && seq > *seen {
                    if seq != seen.next() {
                        self.violation = Some(format!("pair {}: {seq} came after {seen}", client / 2));
                    }
                    *seen = seq;
                }
                context.request(client, None, Command::Recv { conversation, seq });
            }
            Said::Incoming(Incoming::Push(Push::CaughtUp)) => self.caught_up += 1,
            _ => {}
        }
    }
}
