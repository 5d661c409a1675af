//! Clients in pairs that come back as the protocol page asks: at a random moment of the last window they were given.
//!
//! Client 2 p sends to client 2 p + 1, the next message when the last one is answered. So message n has place n + 1 in the log, behind
//! the entry that tells of the conversation, and everything can be checked the moment it is seen.

use std::time::Duration;

use load::{Context, Said, Scenario};
use model::{Body, ClientId, ConversationId, Entry, Seq};
use protocol::client::Incoming;
use protocol::{Answer, CloseCode, Command, Connected, Push, Reply, RequestId, Window};

use crate::chance::Chance;

/// Longest window after failures in a row, by the protocol page.
const WINDOW_MAX: Duration = Duration::from_secs(30);

/// How a client came back; times are the fleet's.
#[derive(Debug, Clone)]
pub struct Return {
    /// When it lost its connection.
    pub lost: Duration,
    /// The window it was given, counted from then.
    pub window: (Duration, Duration),
    /// When its session stood again.
    pub back: Duration,
    /// Attempts that failed in between.
    pub failures: u32,
}

/// A client without a connection.
struct Away {
    lost: Duration,
    window: (Duration, Duration),
    failures: u32,
}

#[derive(Default)]
struct Client {
    online: bool,
    /// From the answer to `connect`.
    reconnect: Window,
    /// From the push `disconnect`.
    announced: Option<Window>,
    away: Option<Away>,
    /// The last place it has.
    cursor: Seq,
}

struct Pair {
    conversation: ConversationId,
    /// Messages that were sent, and of them those that were answered: the same, or one less.
    sent: u64,
    answered: u64,
    write_at: Duration,
}

/// All of them, and what they have seen.
pub struct Returning {
    clients: Vec<Client>,
    pairs: Vec<Pair>,
    pause: Duration,
    chance: Chance,
    sending: bool,
    /// Everybody who came back.
    pub returns: Vec<Return>,
    /// Sends that were repeated.
    pub repeated: u64,
    /// What was wrong.
    pub violations: Vec<String>,
}

impl Returning {
    /// Pairs for these conversations; every sender pauses for so long after an answer.
    pub fn new(conversations: Vec<ConversationId>, pause: Duration, mut chance: Chance) -> Returning {
        let mut pair = |conversation| {
            let write_at = Duration::from_millis(chance.between(0, pause.as_millis() as u64));
            Pair { conversation, sent: 0, answered: 0, write_at }
        };
        let pairs: Vec<Pair> = conversations.into_iter().map(&mut pair).collect();
        Returning {
            clients: pairs.iter().flat_map(|_| [Client::default(), Client::default()]).collect(),
            pairs,
            pause,
            chance,
            sending: true,
            returns: Vec::new(),
            repeated: 0,
            violations: Vec::new(),
        }
    }

    /// From now on nothing new is sent.
    pub fn stop(&mut self) {
        self.sending = false;
    }

    /// Messages that were answered.
    pub fn answered(&self) -> u64 {
        self.pairs.iter().map(|pair| pair.answered).sum()
    }

    /// Everything that was sent was answered and has arrived.
    pub fn is_whole(&self) -> bool {
        self.pairs
            .iter()
            .zip(self.clients.chunks(2))
            .all(|(pair, clients)| pair.sent == pair.answered && clients[1].cursor == Seq(pair.answered + 1))
    }

    /// For whoever looks why it does not come to its end.
    pub fn describe(&self) -> String {
        let away = self.clients.iter().filter(|client| !client.online).count();
        let behind = self.pairs.iter().zip(self.clients.chunks(2)).position(|(pair, clients)| {
            pair.sent != pair.answered || clients[1].cursor != Seq(pair.answered + 1)
        });
        let behind = behind.map(|number| {
            let pair = &self.pairs[number];
            let cursor = self.clients[2 * number + 1].cursor;
            format!("pair {number}: {} sent, {} answered, {cursor} arrived", pair.sent, pair.answered)
        });
        format!("{away} are away; {behind:?}")
    }

    /// Every sender whose pause is over says something.
    pub fn write(&mut self, context: &mut Context<'_>) {
        if !self.sending {
            return;
        }
        for number in 0..self.pairs.len() {
            let pair = &mut self.pairs[number];
            if self.clients[2 * number].online && pair.sent == pair.answered && pair.write_at <= context.now {
                pair.sent += 1;
                self.send(context, number);
            }
        }
    }

    /// The last message of a pair, for the first time or again.
    fn send(&self, context: &mut Context<'_>, number: usize) {
        let pair = &self.pairs[number];
        let command = Command::Send {
            conversation: pair.conversation,
            client_id: client_id(number, pair.sent),
            payload: payload(number, pair.sent).into(),
        };
        // 1 is the id of `connect`.
        context.request(2 * number, RequestId::new(pair.sent + 1), command);
    }

    fn over(&mut self, context: &mut Context<'_>, client: usize) {
        let Returning { clients, chance, .. } = self;
        let Client { online, reconnect, announced, away, .. } = &mut clients[client];
        *online = false;
        let away = match away {
            Some(away) => {
                away.failures += 1;
                away
            }
            None => {
                let window = announced.take().unwrap_or(*reconnect);
                let window = [window.min, window.max].map(|end| Duration::from_millis(end.0));
                away.insert(Away { lost: context.now, window: window.into(), failures: 0 })
            }
        };
        let doubled = |end: Duration| match away.failures {
            0 => end,
            failures => (end * 2_u32.pow(failures.min(10))).min(WINDOW_MAX),
        };
        let (from, to) = (doubled(away.window.0), doubled(away.window.1));
        let after = chance.between(from.as_micros() as u64, to.as_micros() as u64);
        context.come_back(client, context.now + Duration::from_micros(after));
    }

    fn answer(&mut self, now: Duration, client: usize, reply: Reply<'_>) {
        let number = client / 2;
        let pair = &mut self.pairs[number];
        match reply.outcome {
            Ok(Answer::Send(sent))
                if pair.sent == pair.answered + 1
                    && reply.id.map(RequestId::get) == Some(pair.sent + 1)
                    && sent.seq == Seq(pair.sent + 1) =>
            {
                pair.answered += 1;
                pair.write_at = now + self.pause;
            }
            outcome => self.violations.push(format!(
                "pair {number}, {} sent and {} answered: an answer {outcome:?}",
                pair.sent, pair.answered
            )),
        }
    }

    fn message(
        &mut self,
        context: &mut Context<'_>,
        client: usize,
        conversation: ConversationId,
        entry: &Entry,
    ) {
        let (number, pair) = (client / 2, &self.pairs[client / 2]);
        let cursor = &mut self.clients[client].cursor;
        // The sender is pushed its own messages after a return, and has a gap where it was not.
        let follows = entry.seq == cursor.next() || (client.is_multiple_of(2) && entry.seq > *cursor);
        let right = match &entry.body {
            Body::Change(_) => entry.seq == Seq(1),
            Body::Message { client_id: id, payload: bytes, .. } => {
                let message = entry.seq.0.saturating_sub(1);
                message <= pair.sent
                    && *id == client_id(number, message)
                    && bytes.bytes() == payload(number, message)
            }
        };
        if !right || conversation != pair.conversation || (entry.seq > *cursor && !follows) {
            let sent = pair.sent;
            self.violations.push(format!(
                "client {client}, which has {cursor} of {sent} messages of {}, is pushed {entry:?} of {conversation}",
                pair.conversation
            ));
            return;
        }
        *cursor = (*cursor).max(entry.seq);
        context.request(client, None, Command::Recv { conversation, seq: *cursor });
    }

    fn incoming(&mut self, context: &mut Context<'_>, client: usize, incoming: Incoming<'_>) {
        match incoming {
            Incoming::Reply(reply) => self.answer(context.now, client, reply),
            Incoming::Push(Push::Message { conversation, entry }) => {
                self.message(context, client, conversation, &entry);
            }
            Incoming::Push(Push::Disconnect(last)) => {
                if last.code != CloseCode::Draining {
                    self.violations.push(format!("client {client} was sent away with {last:?}"));
                }
                self.clients[client].announced = Some(last.after);
            }
            Incoming::Push(_) | Incoming::Unknown => {}
        }
    }
}

impl Scenario for Returning {
    fn connected(&mut self, context: &mut Context<'_>, client: usize, connected: &Connected) {
        let who = &mut self.clients[client];
        who.online = true;
        who.reconnect = connected.reconnect;
        if let Some(Away { lost, window, failures }) = who.away.take() {
            self.returns.push(Return { lost, window, back: context.now, failures });
        }
        let pair = &self.pairs[client / 2];
        if client.is_multiple_of(2) && pair.sent > pair.answered {
            self.repeated += 1;
            self.send(context, client / 2);
        }
    }

    fn said(&mut self, context: &mut Context<'_>, client: usize, said: Said<'_>) {
        match said {
            Said::Incoming(incoming) => self.incoming(context, client, incoming),
            Said::Over(_) => self.over(context, client),
            Said::Connected(_) | Said::Pinged => {}
        }
    }
}

fn client_id(pair: usize, message: u64) -> ClientId {
    ClientId(((pair as u128) << 64 | u128::from(message)).to_be_bytes())
}

fn payload(pair: usize, message: u64) -> Vec<u8> {
    format!("{pair}/{message} ").repeat(1 + (message % 30) as usize).into_bytes()
}
