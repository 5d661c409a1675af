//! One device of one user: what it does, and what it has seen.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use model::{Body, ClientId, ConversationId, Entry, Seq};
use protocol::{Command, Encoding, Receipt, Sent, Window};

use super::people::{Member, Talk};
use super::{Alarm, Traffic};
use crate::client::{Client, Heard};
use crate::server::token;

/// Sends that one person has without an answer at most, in one conversation.
const UNANSWERED_MAX: usize = 6;
/// Entries stored before they are acknowledged, unless nothing comes for a moment.
const UNACKNOWLEDGED_MAX: u64 = 20;
/// A server that says nothing for so long is asked whether it is there, and left alone after as long again.
const SILENCE: Duration = Duration::from_secs(2);
/// Longest wait for the answers that open a connection.
const OPENING: Duration = Duration::from_secs(10);

/// A message in somebody's own count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number(pub(super) u64);

/// Who sent a message, and which of theirs it is.
pub type Origin = (u64, Number);

/// One device of one user.
pub struct Person {
    pub(super) index: u64,
    pub(super) user: String,
    pub(super) device: u32,
    pub(super) seats: Vec<Seat>,
    next: Number,
    write_at: Instant,
    settled: bool,
    /// Connections that came about.
    pub connections: u64,
    /// Sends that were repeated.
    pub repeated: u64,
    /// Those that turned out to be on disk already.
    pub duplicates: u64,
    /// Receipts that came.
    pub receipts: u64,
    /// What the server said before it closed.
    pub farewells: Vec<(u16, Window)>,
}

/// Its place in one conversation, and what it has seen from there.
pub struct Seat {
    pub(super) talk: Arc<Talk>,
    member: usize,
    writes: bool,
    unanswered: VecDeque<Number>,
    pub(super) answered: BTreeMap<Number, Seq>,
    /// Places of its own messages beyond the cursor.
    own: BTreeSet<Seq>,
    /// What the others sent, in the order in which it came.
    pub(super) stored: Vec<(Seq, Origin)>,
    /// The last message of each sender.
    last: BTreeMap<u64, Number>,
    /// What it sent itself and was pushed all the same.
    pub(super) echoes: Vec<(Seq, Number)>,
    pub(super) cursor: Seq,
    acknowledged: Seq,
    /// Something was pushed again, so the server does not know that it was acknowledged.
    owed: bool,
    /// The last receipt of each member.
    told: Vec<(Seq, Seq)>,
    /// Receipts of a member that told more than was acknowledged: so far it was, and so far they told.
    pub(super) ahead: Vec<(usize, Seq, Seq)>,
}

/// What it waits for on one connection.
#[derive(Default)]
struct Awaited {
    answers: BTreeMap<u64, (usize, Number)>,
    /// The last acknowledgements of all, when everything is said and heard.
    leave: Option<BTreeSet<u64>>,
}

impl Person {
    pub(super) fn new(index: u64, user: String, device: u32, seats: Vec<Seat>) -> Person {
        Person {
            index,
            user,
            device,
            seats,
            next: Number(0),
            write_at: Instant::now(),
            settled: false,
            connections: 0,
            repeated: 0,
            duplicates: 0,
            receipts: 0,
            farewells: Vec::new(),
        }
    }

    pub(super) fn encoding(&self) -> Encoding {
        Encoding::ALL[self.index as usize % 2]
    }

    /// Connects again and again until everything is said and heard.
    pub(super) fn run(mut self, traffic: &Traffic) -> Person {
        let _alarm = Alarm(traffic);
        loop {
            traffic.go_on(|| self.describe());
            let token = token(&self.user, self.device);
            match Client::open_within(traffic.address, &token, self.encoding(), OPENING) {
                Ok(client) => match self.converse(client, traffic) {
                    Ok(true) => return self,
                    Ok(false) => {}
                    // What the client could not make sense of is no broken connection.
                    Err(error) => assert_ne!(error.kind(), ErrorKind::Other, "{}: {error}", self.index),
                },
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// One connection; true when there is nothing more to say.
    fn converse(&mut self, mut client: Client, traffic: &Traffic) -> io::Result<bool> {
        self.connections += 1;
        let mut awaited = Awaited::default();
        self.repeat(&mut client, &mut awaited, traffic)?;
        let (mut heard_at, mut asked) = (Instant::now(), false);
        loop {
            traffic.go_on(|| self.describe());
            self.write(&mut client, &mut awaited, traffic)?;
            let heard = client.hear(Duration::from_millis(10))?;
            let quiet = heard.is_none();
            if let Some(heard) = heard {
                (heard_at, asked) = (Instant::now(), false);
                if !self.take(heard, &mut awaited, traffic) {
                    return Ok(false);
                }
            } else if heard_at.elapsed() > 2 * SILENCE {
                return Ok(false);
            } else if heard_at.elapsed() > SILENCE && !asked {
                client.ask(Command::Ping)?;
                asked = true;
            }
            self.acknowledge(&mut client, quiet)?;
            if awaited.leave.as_ref().is_some_and(BTreeSet::is_empty) {
                return Ok(true);
            }
            if awaited.leave.is_none() && self.is_over(traffic) {
                awaited.leave = Some(self.acknowledge_all(&mut client)?);
            }
        }
    }

    /// Takes what the server said; false when that was its last word.
    fn take(&mut self, heard: Heard, awaited: &mut Awaited, traffic: &Traffic) -> bool {
        match heard {
            Heard::Sent(id, sent) => {
                let (seat, number) = awaited.answers.remove(&id).expect("an answer to something asked");
                self.note(seat, number, sent, traffic);
            }
            Heard::Message(conversation, entry) => self.store(conversation, &entry, traffic),
            Heard::Receipt(receipt) => self.judge(&receipt),
            Heard::Refused(_, code) => panic!("{}: refused with {}", self.index, code.name()),
            Heard::Disconnect(code, window) => self.farewells.push((code, window)),
            Heard::Closed(_) => return false,
            Heard::Done(id) => {
                if let Some(leave) = &mut awaited.leave {
                    leave.remove(&id);
                }
            }
            Heard::CaughtUp | Heard::Other => {}
            Heard::Page(..) | Heard::Connected(..) => unreachable!("nobody asked for that"),
        }
        true
    }

    fn repeat(&mut self, client: &mut Client, awaited: &mut Awaited, traffic: &Traffic) -> io::Result<()> {
        for (number, seat) in self.seats.iter().enumerate() {
            for message in &seat.unanswered {
                self.repeated += 1;
                let id = client.ask(seat.send(self.index, *message, traffic))?;
                awaited.answers.insert(id, (number, *message));
            }
        }
        Ok(())
    }

    /// Says something new, in one conversation after the other, as long as it may.
    fn write(&mut self, client: &mut Client, awaited: &mut Awaited, traffic: &Traffic) -> io::Result<()> {
        while traffic.sending.load(SeqCst) && Instant::now() >= self.write_at {
            let free = |seat: &Seat| seat.writes && seat.unanswered.len() < UNANSWERED_MAX;
            let from = self.next.0 as usize % self.seats.len();
            let mut order = (from..self.seats.len()).chain(0..from);
            let Some(number) = order.find(|number| free(&self.seats[*number])) else { break };
            let (message, seat) = (self.next, &mut self.seats[number]);
            self.next = Number(message.0 + 1);
            self.write_at = Instant::now() + traffic.pause;
            seat.unanswered.push_back(message);
            let id = client.ask(seat.send(self.index, message, traffic))?;
            awaited.answers.insert(id, (number, message));
        }
        Ok(())
    }

    fn note(&mut self, seat: usize, number: Number, sent: Sent, traffic: &Traffic) {
        let seat = &mut self.seats[seat];
        let before = seat.answered.insert(number, sent.seq);
        assert_eq!(before, None, "a send is answered once");
        seat.unanswered.retain(|unanswered| *unanswered != number);
        seat.own.insert(sent.seq);
        seat.advance(seat.cursor);
        seat.talk.answered.fetch_add(1, SeqCst);
        self.duplicates += u64::from(sent.duplicate);
        traffic.answered.fetch_add(1, SeqCst);
    }

    fn store(&mut self, conversation: ConversationId, entry: &Entry, traffic: &Traffic) {
        let (own, seat) = (self.index, self.seat(conversation));
        if entry.seq <= seat.cursor {
            seat.owed = true;
            return;
        }
        // What lies between is its own: answered, or not yet.
        let known = seat.own.range(..entry.seq).count() as u64;
        let between = entry.seq.0 - seat.cursor.0 - 1;
        assert!(
            between <= known + seat.unanswered.len() as u64,
            "{own}: {} comes after {} in {conversation}, with {known} of its own between them",
            entry.seq,
            seat.cursor
        );
        seat.advance(entry.seq);
        let Body::Message { client_id: id, payload: bytes, .. } = &entry.body else { return };
        let (index, number) = origin(*id);
        assert_eq!(bytes.bytes(), payload(index, number, traffic), "the bytes are those that were sent");
        let before = seat.last.insert(index, number);
        assert!(before < Some(number), "{own}: {index} sent {number:?} before {before:?}, which came first");
        match index == own {
            true => seat.echoes.push((entry.seq, number)),
            false => seat.stored.push((entry.seq, (index, number))),
        }
    }

    /// A receipt never tells more than what was read or acknowledged before, but for a member's own messages, and never less than the
    /// one before it.
    fn judge(&mut self, receipt: &Receipt) {
        self.receipts += 1;
        let (own, seat) = (self.index, self.seat(receipt.conversation));
        let at = seat.talk.members.iter().position(|member| member.user == receipt.user).expect("a member");
        let Member { acknowledged, read, .. } = &seat.talk.members[at];
        let (acknowledged, read) = (Seq(acknowledged.load(SeqCst)), Seq(read.load(SeqCst)));
        if receipt.delivered > acknowledged {
            // Whose those are is known in the end.
            seat.ahead.push((at, acknowledged, receipt.delivered));
        }
        let before = std::mem::replace(&mut seat.told[at], (receipt.delivered, receipt.read));
        let fits = receipt.read <= read && receipt.read <= receipt.delivered;
        let grows = before.0 <= receipt.delivered && before.1 <= receipt.read;
        assert!(
            fits && grows,
            "{own}: {receipt:?} after {before:?}, when {acknowledged} was acknowledged and {read} read"
        );
    }

    fn seat(&mut self, conversation: ConversationId) -> &mut Seat {
        let seat = self.seats.iter_mut().find(|seat| seat.talk.id == conversation);
        seat.unwrap_or_else(|| panic!("{}: no member of {conversation}", self.index))
    }

    fn acknowledge(&mut self, client: &mut Client, quiet: bool) -> io::Result<()> {
        let due = if quiet { 1 } else { UNACKNOWLEDGED_MAX };
        for seat in &mut self.seats {
            if seat.cursor.0 >= seat.acknowledged.0 + due || (quiet && seat.owed) {
                seat.acknowledge(client)?;
                if quiet {
                    seat.read(client)?;
                }
            }
        }
        Ok(())
    }

    fn acknowledge_all(&mut self, client: &mut Client) -> io::Result<BTreeSet<u64>> {
        let mut asked = BTreeSet::new();
        for seat in &mut self.seats {
            asked.insert(seat.acknowledge(client)?);
            asked.extend(seat.read(client)?);
        }
        Ok(asked)
    }

    fn is_over(&mut self, traffic: &Traffic) -> bool {
        let silent =
            !traffic.sending.load(SeqCst) && self.seats.iter().all(|seat| seat.unanswered.is_empty());
        if silent && !self.settled {
            self.settled = true;
            for seat in self.seats.iter().filter(|seat| seat.writes) {
                seat.talk.unsettled.fetch_sub(1, SeqCst);
            }
        }
        let whole = |seat: &Seat| seat.talk.unsettled.load(SeqCst) == 0 && seat.cursor == seat.talk.head();
        silent && self.seats.iter().all(whole)
    }

    /// For whoever looks why it does not come to its end.
    fn describe(&self) -> String {
        let seats = self.seats.iter().map(|seat| {
            format!(
                "{} at {} of {}, {} without an answer",
                seat.talk.id,
                seat.cursor,
                seat.talk.head(),
                seat.unanswered.len()
            )
        });
        let seats: Vec<String> = seats.collect();
        format!("{} ({}/{}): {}", self.index, self.user, self.device, seats.join("; "))
    }
}

impl Seat {
    pub(super) fn new(talk: Arc<Talk>, member: usize, writes: bool) -> Seat {
        Seat {
            member,
            writes,
            unanswered: VecDeque::new(),
            answered: BTreeMap::new(),
            own: BTreeSet::new(),
            stored: Vec::new(),
            last: BTreeMap::new(),
            echoes: Vec::new(),
            cursor: Seq::ZERO,
            acknowledged: Seq::ZERO,
            owed: false,
            told: vec![(Seq::ZERO, Seq::ZERO); talk.members.len()],
            ahead: Vec::new(),
            talk,
        }
    }

    fn send(&self, index: u64, number: Number, traffic: &Traffic) -> Command<'static> {
        Command::Send {
            conversation: self.talk.id,
            client_id: client_id(index, number),
            payload: payload(index, number, traffic).into(),
        }
    }

    /// It has everything up to `seq`, and its own messages that follow.
    fn advance(&mut self, seq: Seq) {
        self.cursor = seq;
        while let Some(first) = self.own.first().copied()
            && first <= self.cursor.next()
        {
            self.own.pop_first();
            self.cursor = self.cursor.max(first);
        }
    }

    /// Returns the id of what it asked.
    fn acknowledge(&mut self, client: &mut Client) -> io::Result<u64> {
        self.talk.members[self.member].acknowledged.fetch_max(self.cursor.0, SeqCst);
        (self.acknowledged, self.owed) = (self.cursor, false);
        client.ask(Command::Recv { conversation: self.talk.id, seq: self.cursor })
    }

    /// Every second member never says so, so that `read` and `delivered` differ.
    fn read(&mut self, client: &mut Client) -> io::Result<Option<u64>> {
        if !self.member.is_multiple_of(2) {
            return Ok(None);
        }
        self.talk.members[self.member].read.fetch_max(self.cursor.0, SeqCst);
        client.ask(Command::Read { conversation: self.talk.id, seq: self.cursor }).map(Some)
    }
}

fn client_id(index: u64, number: Number) -> ClientId {
    ClientId((u128::from(index) << 64 | u128::from(number.0)).to_be_bytes())
}

fn origin(id: ClientId) -> Origin {
    let both = u128::from_be_bytes(id.0);
    ((both >> 64) as u64, Number(both as u64))
}

/// From three words on, different for each message.
fn payload(index: u64, number: Number, traffic: &Traffic) -> Vec<u8> {
    let words = 3 + number.0 % (traffic.words_max - 2);
    format!("{index}/{} ", number.0).repeat(words as usize).into_bytes()
}
