//! People who chat in pairs as the protocol page asks of clients, whatever becomes of the server meanwhile: they remember their
//! cursor, ignore what is pushed again, acknowledge after storing, and repeat a send without an answer.
//!
//! Owns what each of them has seen, and the check that the two sides of a pair have seen the same.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use model::{Body, ClientId, ConversationId, Entry, Seq};
use protocol::{Command, Encoding, Sent, Window};

use crate::client::{Client, Heard};
use crate::server::{Server, token};

/// Sends that one person has without an answer at most.
const UNANSWERED_MAX: usize = 6;
/// Entries stored before they are acknowledged, unless nothing comes for a moment.
const UNACKNOWLEDGED_MAX: u64 = 20;
/// From the start of the traffic to its end; only a server that is stuck takes so long.
const TOO_LONG: Duration = Duration::from_secs(180);

/// What all of them go by.
pub struct Traffic {
    address: SocketAddr,
    sending: AtomicBool,
    given_up: AtomicBool,
    answered: AtomicU64,
    end: Instant,
}

/// How far one person is, for the other one of the pair.
#[derive(Default)]
struct Progress {
    answered: AtomicU64,
    settled: AtomicBool,
}

/// A message in somebody's own count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Number(u64);

/// One device of one user, and what it has seen.
pub struct Person {
    index: u64,
    token: String,
    conversation: ConversationId,
    own: Arc<Progress>,
    peer: Arc<Progress>,
    next: Number,
    unanswered: VecDeque<Number>,
    answered: BTreeMap<Number, Seq>,
    /// What the other one sent, in the order in which it came.
    stored: Vec<(Seq, Number)>,
    /// What this one sent and was pushed all the same.
    echoes: Vec<(Seq, Number)>,
    cursor: Seq,
    acknowledged: Seq,
    /// Sends that were repeated.
    pub repeated: u64,
    /// Those that turned out to be on disk already.
    pub duplicates: u64,
    /// What the server said before it closed.
    pub farewells: Vec<(u16, Window)>,
}

/// Makes the others stop when one fails, so that the failure is seen at once.
struct Alarm<'a>(&'a Traffic);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.given_up.store(true, SeqCst);
        }
    }
}

impl Traffic {
    /// Traffic to a server there.
    pub fn new(address: SocketAddr) -> Traffic {
        Traffic {
            address,
            sending: AtomicBool::new(true),
            given_up: AtomicBool::new(false),
            answered: AtomicU64::new(0),
            end: Instant::now() + TOO_LONG,
        }
    }

    /// From now on nothing new is sent; what is without an answer still gets one.
    pub fn stop_sending(&self) {
        self.sending.store(false, SeqCst);
    }

    /// Waits until so many sends more have been answered.
    pub fn await_answers(&self, more: u64) {
        let wanted = self.answered.load(SeqCst) + more;
        while self.answered.load(SeqCst) < wanted {
            self.go_on();
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// How many sends have been answered.
    pub fn answered(&self) -> u64 {
        self.answered.load(SeqCst)
    }

    fn go_on(&self) {
        assert!(!self.given_up.load(SeqCst), "somebody else has failed");
        assert!(Instant::now() < self.end, "the traffic does not come to its end");
    }
}

/// People for so many direct conversations, those of a pair side by side.
pub fn pairs(server: &Server, count: u64) -> Vec<Person> {
    let mut people = Vec::new();
    for pair in 0..count {
        let tokens = ["a", "b"].map(|side| token(&format!("pair {pair} {side}"), 1));
        let conversation = server.direct(&tokens[0], &format!("pair {pair} b"));
        let progress: [Arc<Progress>; 2] = Default::default();
        for (side, token) in tokens.into_iter().enumerate() {
            let (own, peer) = (Arc::clone(&progress[side]), Arc::clone(&progress[1 - side]));
            people.push(Person::new(2 * pair + side as u64, token, conversation, own, peer));
        }
    }
    people
}

/// Lets all of them chat, each on a thread of its own, while `meanwhile` happens to the server; gives them back, with what that
/// returned, when everything is answered and has arrived.
pub fn chat<T>(traffic: &Traffic, people: Vec<Person>, meanwhile: impl FnOnce() -> T) -> (Vec<Person>, T) {
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            people.into_iter().map(|person| scope.spawn(move || person.run(traffic))).collect();
        let alarm = Alarm(traffic);
        let left = meanwhile();
        drop(alarm);
        (threads.into_iter().map(|thread| thread.join().expect("nobody fails")).collect(), left)
    })
}

/// Both of each pair have seen the same log: every answered message once, in order, and nothing else.
pub fn agree(people: &[Person]) {
    for pair in people.chunks(2) {
        let mut log: BTreeMap<Seq, (u64, Number)> = BTreeMap::new();
        for (writer, reader) in [(&pair[0], &pair[1]), (&pair[1], &pair[0])] {
            let answered: Vec<(Seq, Number)> =
                writer.answered.iter().map(|(number, seq)| (*seq, *number)).collect();
            assert!(answered.is_sorted(), "{}: what was sent later comes later", writer.index);
            assert_eq!(reader.stored, answered, "{} has what {} was promised", reader.index, writer.index);
            for (seq, number) in answered {
                let before = log.insert(seq, (writer.index, number));
                assert_eq!(before, None, "{seq} belongs to one message");
            }
            for echo in &writer.echoes {
                assert_eq!(writer.answered.get(&echo.1), Some(&echo.0), "an echo is what was answered");
            }
        }
        // The first entry tells that the conversation was created.
        let places: Vec<u64> = log.keys().map(|seq| seq.0).collect();
        let dense: Vec<u64> = (2..2 + places.len() as u64).collect();
        assert_eq!(places, dense, "the log has no gap");
    }
}

impl Person {
    fn new(
        index: u64,
        token: String,
        conversation: ConversationId,
        own: Arc<Progress>,
        peer: Arc<Progress>,
    ) -> Person {
        Person {
            index,
            token,
            conversation,
            own,
            peer,
            next: Number(0),
            unanswered: VecDeque::new(),
            answered: BTreeMap::new(),
            stored: Vec::new(),
            echoes: Vec::new(),
            cursor: Seq::ZERO,
            acknowledged: Seq::ZERO,
            repeated: 0,
            duplicates: 0,
            farewells: Vec::new(),
        }
    }

    /// Connects again and again until everything is said and heard.
    fn run(mut self, traffic: &Traffic) -> Person {
        let _alarm = Alarm(traffic);
        let encoding = Encoding::ALL[self.index as usize % 2];
        loop {
            traffic.go_on();
            match Client::open(traffic.address, &self.token, encoding) {
                Ok(client) => match self.converse(client, traffic) {
                    Ok(true) => return self,
                    Ok(false) => {}
                    // What the client could not make sense of is no broken connection.
                    Err(error) => assert_ne!(error.kind(), ErrorKind::Other, "{error}"),
                },
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// One connection; true when there is nothing more to say.
    fn converse(&mut self, mut client: Client, traffic: &Traffic) -> io::Result<bool> {
        let mut asked: BTreeMap<u64, Number> = BTreeMap::new();
        for number in self.unanswered.clone() {
            self.repeated += 1;
            asked.insert(client.ask(self.send(number))?, number);
        }
        loop {
            traffic.go_on();
            while traffic.sending.load(SeqCst) && self.unanswered.len() < UNANSWERED_MAX {
                let number = self.next;
                self.next = Number(number.0 + 1);
                self.unanswered.push_back(number);
                asked.insert(client.ask(self.send(number))?, number);
            }
            let heard = client.hear(Duration::from_millis(10))?;
            let quiet = heard.is_none();
            match heard {
                Some(Heard::Sent(id, sent)) => {
                    self.note(asked.remove(&id).expect("an answer to something asked"), sent, traffic);
                }
                Some(Heard::Message(conversation, entry)) => self.store(conversation, &entry),
                Some(Heard::Refused(_, code)) => panic!("{}: refused with {}", self.index, code.name()),
                Some(Heard::Disconnect(code, window)) => self.farewells.push((code, window)),
                Some(Heard::Closed(_)) => return Ok(false),
                Some(Heard::Done(_) | Heard::CaughtUp | Heard::Other) | None => {}
                Some(Heard::Page(..)) => unreachable!("nobody asked for one"),
            }
            if self.cursor.0 >= self.acknowledged.0 + if quiet { 1 } else { UNACKNOWLEDGED_MAX } {
                client.ask(Command::Recv { conversation: self.conversation, seq: self.cursor })?;
                self.acknowledged = self.cursor;
            }
            if self.is_over(traffic) {
                let last = client.ask(Command::Recv { conversation: self.conversation, seq: self.cursor })?;
                client.await_heard(|heard| (heard == Heard::Done(last)).then_some(()));
                return Ok(true);
            }
        }
    }

    fn is_over(&self, traffic: &Traffic) -> bool {
        let settled = !traffic.sending.load(SeqCst) && self.unanswered.is_empty();
        self.own.settled.store(settled, SeqCst);
        settled
            && self.peer.settled.load(SeqCst)
            && self.stored.len() as u64 == self.peer.answered.load(SeqCst)
    }

    fn send(&self, number: Number) -> Command<'static> {
        Command::Send {
            conversation: self.conversation,
            client_id: client_id(self.index, number),
            payload: payload(self.index, number).into(),
        }
    }

    fn note(&mut self, number: Number, sent: Sent, traffic: &Traffic) {
        let before = self.answered.insert(number, sent.seq);
        assert_eq!(before, None, "a send is answered once");
        self.unanswered.retain(|unanswered| *unanswered != number);
        self.duplicates += u64::from(sent.duplicate);
        self.own.answered.fetch_add(1, SeqCst);
        traffic.answered.fetch_add(1, SeqCst);
    }

    fn store(&mut self, conversation: ConversationId, entry: &Entry) {
        assert_eq!(conversation, self.conversation);
        if entry.seq <= self.cursor {
            return;
        }
        self.cursor = entry.seq;
        let Body::Message { client_id: id, payload: bytes, .. } = &entry.body else { return };
        let (index, number) = origin(*id);
        assert_eq!(bytes.bytes(), payload(index, number), "the bytes are those that were sent");
        match index == self.index {
            true => self.echoes.push((entry.seq, number)),
            false => {
                assert_eq!(index, self.index ^ 1, "it comes from the other one of the pair");
                self.stored.push((entry.seq, number));
            }
        }
    }
}

fn client_id(index: u64, number: Number) -> ClientId {
    ClientId((u128::from(index) << 64 | u128::from(number.0)).to_be_bytes())
}

fn origin(id: ClientId) -> (u64, Number) {
    let both = u128::from_be_bytes(id.0);
    ((both >> 64) as u64, Number(both as u64))
}

/// Between 12 bytes and a few hundred, different for each message.
fn payload(index: u64, number: Number) -> Vec<u8> {
    format!("{index}/{} ", number.0).repeat(3 + (number.0 % 40) as usize).into_bytes()
}
