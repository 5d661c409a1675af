//! One pair: what its sender has sent, what its receiver was pushed, and whether the two fit.
//!
//! Owns the promise that is checked: every answered message comes, once, whole and in its place. A message that is pushed again after its
//! receiver came back is part of the promise; within one connection it is not. Deliberately knows no socket and no clock: it is told what
//! happened and says what that means.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use model::{Body, ClientId, ConversationId, Entry, Seq};

use super::payload::Recipe;

/// A broken promise, with the evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where.
    pub conversation: ConversationId,
    /// At which place of the log, if one is known.
    pub seq: Option<Seq>,
    /// What kind of promise.
    pub kind: Broken,
    /// What should have been.
    pub expected: String,
    /// What was.
    pub came: String,
}

/// The promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// A message came with other bytes than it was sent with.
    Corrupted,
    /// A message came before one that is before it in the log.
    OutOfOrder,
    /// A message came twice.
    Doubled,
    /// A message was answered and never came.
    Lost,
    /// A message came that nobody sent, or under another place than its sender was told.
    Misplaced,
}

impl Broken {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Broken::Corrupted => "corrupted",
            Broken::OutOfOrder => "out of order",
            Broken::Doubled => "doubled",
            Broken::Lost => "lost",
            Broken::Misplaced => "misplaced",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: conversation {}", self.kind.name(), self.conversation)?;
        if let Some(seq) = self.seq {
            write!(f, ", seq {seq}")?;
        }
        write!(f, ": expected {}; came: {}", self.expected, self.came)
    }
}

/// How a message stands with its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Sent over the present connection, and not answered.
    Asked,
    /// Its outcome is counted, its answer may still come over the present connection.
    Late,
    /// Its outcome is counted, its answer was lost with its connection; it is to be sent again.
    Unknown,
    /// Stored, at this place.
    Stored(Seq),
    /// The server said no, so it never comes.
    Refused,
}

#[derive(Debug, Clone)]
struct Message {
    due: Duration,
    standing: Standing,
    /// The place under which it was pushed.
    pushed: Option<Seq>,
}

impl Message {
    fn is_settled(&self) -> bool {
        matches!((self.standing, self.pushed), (Standing::Stored(_), Some(_)) | (Standing::Refused, _))
    }
}

/// What an answer meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// It is the outcome of a message that was due then.
    First(Duration),
    /// The outcome was counted before: it came too late, or answers a repeat.
    Counted,
    /// It answers nothing that was asked.
    Nothing,
}

/// What a push meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// A message of this run that was due then.
    Fresh(Duration),
    /// A message that was here before.
    Again,
    /// Something that is not of this run.
    Other,
}

/// One pair.
#[derive(Debug, Clone)]
pub struct Pair {
    conversation: ConversationId,
    number: u32,
    /// The number of the first message in `open`.
    first: u32,
    /// Messages that are not settled, and those behind the first of them.
    open: VecDeque<Message>,
    /// The last place the receiver has stored.
    cursor: Option<Seq>,
    /// The last place that was pushed over the receiver's present connection.
    pushed: Seq,
}

impl Pair {
    /// A pair that has not said anything.
    pub fn new(conversation: ConversationId, number: u32) -> Pair {
        Pair { conversation, number, first: 0, open: VecDeque::new(), cursor: None, pushed: Seq::ZERO }
    }

    /// Its conversation.
    pub fn conversation(&self) -> ConversationId {
        self.conversation
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Messages that are on their way, or whose fate is open.
    pub fn on_the_way(&self) -> usize {
        self.open.iter().filter(|message| !message.is_settled()).count()
    }

    /// A message is sent now; gives back its number.
    pub fn sent(&mut self, due: Duration) -> u32 {
        self.open.push_back(Message { due, standing: Standing::Asked, pushed: None });
        self.first.wrapping_add(self.open.len() as u32 - 1)
    }

    fn message(&mut self, number: u32) -> Option<&mut Message> {
        self.open.get_mut(number.checked_sub(self.first)? as usize)
    }

    /// When a message was due that is not settled.
    pub fn due(&self, number: u32) -> Option<Duration> {
        self.open.get(number.checked_sub(self.first)? as usize).map(|message| message.due)
    }

    fn settle(&mut self) {
        while self.open.front().is_some_and(Message::is_settled) {
            self.open.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    fn violation(&self, seq: Option<Seq>, kind: Broken, expected: String, came: String) -> Violation {
        Violation { conversation: self.conversation, seq, kind, expected, came }
    }

    /// The sender was told that a message is stored at this place.
    pub fn stored(&mut self, number: u32, seq: Seq) -> (Answered, Option<Violation>) {
        let Some(message) = self.message(number) else { return (Answered::Nothing, None) };
        let answered = match message.standing {
            Standing::Asked => Answered::First(message.due),
            Standing::Late | Standing::Unknown => Answered::Counted,
            Standing::Stored(_) | Standing::Refused => return (Answered::Nothing, None),
        };
        message.standing = Standing::Stored(seq);
        let pushed = message.pushed;
        let violation = pushed.filter(|pushed| *pushed != seq).map(|pushed| {
            let expected = format!("message {number} at the place its sender was told, {seq}");
            self.violation(Some(pushed), Broken::Misplaced, expected, format!("it was pushed at {pushed}"))
        });
        self.settle();
        (answered, violation)
    }

    /// The sender was told that a message is refused.
    pub fn refused(&mut self, number: u32) -> Answered {
        let Some(message) = self.message(number) else { return Answered::Nothing };
        let answered = match message.standing {
            Standing::Asked => Answered::First(message.due),
            Standing::Late | Standing::Unknown => Answered::Counted,
            Standing::Stored(_) | Standing::Refused => return Answered::Nothing,
        };
        message.standing = Standing::Refused;
        self.settle();
        answered
    }

    /// The answer to a message was waited for long enough; says whether it had no outcome before.
    pub fn timed_out(&mut self, number: u32) -> bool {
        match self.message(number) {
            Some(message) if message.standing == Standing::Asked => {
                message.standing = Standing::Late;
                true
            }
            _ => false,
        }
    }

    /// The sender's connection is gone. Gives back how many messages had no outcome before: nobody knows what became of them.
    pub fn sender_lost(&mut self) -> usize {
        let mut unanswered = 0;
        for message in &mut self.open {
            unanswered += usize::from(message.standing == Standing::Asked);
            if matches!(message.standing, Standing::Asked | Standing::Late) {
                message.standing = Standing::Unknown;
            }
        }
        unanswered
    }

    /// The sender is back: the messages to be sent again, oldest first.
    pub fn repeats(&self) -> Vec<u32> {
        let first = self.first;
        let unknown =
            self.open.iter().enumerate().filter(|(_, message)| message.standing == Standing::Unknown);
        unknown.map(|(index, _)| first.wrapping_add(index as u32)).collect()
    }

    /// The receiver's connection is gone.
    pub fn receiver_lost(&mut self) {
        self.pushed = Seq::ZERO;
    }

    /// The receiver was pushed an entry of the log. `name` gives the client id that a message has which was due then.
    pub fn pushed(
        &mut self,
        entry: &Entry,
        recipe: &Recipe,
        name: impl Fn(Duration, u32) -> ClientId,
        violations: &mut Vec<Violation>,
    ) -> Pushed {
        let seq = entry.seq;
        let before = violations.len();
        let next = self.cursor.map(Seq::next);
        let is_old = self.cursor.is_some_and(|cursor| seq <= cursor);
        if seq <= self.pushed {
            let (expected, came) = (self.pushed.next(), what_came(entry, recipe));
            let kind = if self.has_come(entry, recipe) { Broken::Doubled } else { Broken::OutOfOrder };
            let expected = format!("seq {expected} next on this connection");
            violations.push(self.violation(Some(seq), kind, expected, came));
        } else if let Some(next) = next.filter(|next| seq > *next) {
            let came = what_came(entry, recipe);
            violations.push(self.violation(Some(seq), Broken::OutOfOrder, format!("seq {next} next"), came));
        }
        self.pushed = self.pushed.max(seq);
        self.cursor = self.cursor.max(Some(seq));
        let Body::Message { client_id, payload, .. } = &entry.body else { return Pushed::Other };
        let Some((_, number)) =
            recipe.named(*client_id).filter(|(pair, _)| *pair == self.number & 0x3fff_ffff)
        else {
            return Pushed::Other;
        };
        let (own, number_of_pair) = (self.number, number);
        let Some(message) = self.message(number) else {
            if number < self.first && is_old {
                return Pushed::Again;
            }
            if violations.len() == before {
                let (kind, expected) = match number < self.first {
                    true => {
                        (Broken::Doubled, format!("no message {number} after it came and was acknowledged"))
                    }
                    false => (Broken::Misplaced, format!("no message {number}, which was not sent yet")),
                };
                violations.push(self.violation(Some(seq), kind, expected, what_came(entry, recipe)));
            }
            return Pushed::Again;
        };
        if name(message.due, number) != *client_id {
            return Pushed::Other;
        }
        if let Some(pushed) = message.pushed {
            if seq != pushed && violations.len() == before {
                let expected = format!("message {number} once, which came at {pushed}");
                violations.push(self.violation(
                    Some(seq),
                    Broken::Doubled,
                    expected,
                    what_came(entry, recipe),
                ));
            }
            return Pushed::Again;
        }
        message.pushed = Some(seq);
        let (due, standing) = (message.due, message.standing);
        if let Some(difference) = recipe.difference(own, number_of_pair, payload) {
            let expected = format!("message {number} as it was sent");
            violations.push(self.violation(Some(seq), Broken::Corrupted, expected, difference));
        }
        match standing {
            Standing::Stored(stored) if stored != seq => {
                let expected = format!("message {number} at the place its sender was told, {stored}");
                violations.push(self.violation(
                    Some(seq),
                    Broken::Misplaced,
                    expected,
                    format!("it was pushed at {seq}"),
                ));
            }
            Standing::Refused => {
                let expected = format!("no message {number}, which was refused");
                violations.push(self.violation(
                    Some(seq),
                    Broken::Misplaced,
                    expected,
                    what_came(entry, recipe),
                ));
            }
            _ => {}
        }
        self.settle();
        Pushed::Fresh(due)
    }

    /// Whether an entry is a message that came before.
    fn has_come(&self, entry: &Entry, recipe: &Recipe) -> bool {
        let Body::Message { client_id, .. } = &entry.body else { return true };
        let Some((_, number)) = recipe.named(*client_id) else { return true };
        match number.checked_sub(self.first) {
            None => true,
            Some(index) => self.open.get(index as usize).is_some_and(|message| message.pushed.is_some()),
        }
    }

    /// It is over. What was answered and never came is lost, if its receiver had the time to be pushed it or was pushed later ones;
    /// otherwise it is only not known. Gives back how many are not known.
    pub fn close(&self, had_time: bool, violations: &mut Vec<Violation>) -> u64 {
        let mut unknown = 0;
        for (index, message) in self.open.iter().enumerate() {
            let (Standing::Stored(seq), None) = (message.standing, message.pushed) else { continue };
            if had_time || self.cursor.is_some_and(|cursor| cursor > seq) {
                let number = self.first.wrapping_add(index as u32);
                let last = self
                    .cursor
                    .map_or("nothing was pushed".to_owned(), |cursor| format!("the last was seq {cursor}"));
                let expected = format!("message {number}, which its sender was told is stored");
                violations.push(self.violation(
                    Some(seq),
                    Broken::Lost,
                    expected,
                    format!("nothing; {last}"),
                ));
            } else {
                unknown += 1;
            }
        }
        unknown
    }
}

/// An entry in the words of a violation.
fn what_came(entry: &Entry, recipe: &Recipe) -> String {
    match &entry.body {
        Body::Change(_) => format!("seq {}, a change of the membership", entry.seq),
        Body::Message { client_id, payload, .. } => {
            let carried =
                recipe.read(payload).map_or("not of this run".to_owned(), |carried| carried.to_string());
            format!("seq {}, client id {client_id} ({carried})", entry.seq)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::chance::Chance;
    use crate::run::payload::Sizes;
    use model::{DeviceId, DeviceKey, Payload, UserId, Wall};

    const RECIPE: Recipe = Recipe { run: 77, sizes: Sizes::Between(40, 60) };

    fn name(due: Duration, number: u32) -> ClientId {
        RECIPE.client_id(1_000_000 + due.as_millis() as u64, 3, number)
    }

    fn due(number: u32) -> Duration {
        Duration::from_millis(u64::from(number) * 10)
    }

    fn entry(seq: u64, number: u32) -> Entry {
        let from = DeviceKey { user: UserId([1; 16]), device: DeviceId(1) };
        let body =
            Body::Message { from, client_id: name(due(number), number), payload: RECIPE.payload(3, number) };
        Entry { seq: Seq(seq), ts: Wall(0), body }
    }

    /// What is done to a pair.
    enum Do {
        Send,
        Stored(u32, u64),
        Refused(u32),
        Push(u64, u32),
        Damaged(u64, u32),
        SenderLost,
        ReceiverLost,
        Repeat,
    }
    use Do::*;

    fn check(steps: &[Do], kinds: &[Broken]) -> Pair {
        let (mut pair, mut violations) = (Pair::new(ConversationId([9; 16]), 3), Vec::new());
        let mut next = 0;
        for step in steps {
            match step {
                Send => {
                    assert_eq!(pair.sent(due(next)), next);
                    next += 1;
                }
                Stored(number, seq) => violations.extend(pair.stored(*number, Seq(*seq)).1),
                Refused(number) => drop(pair.refused(*number)),
                Push(seq, number) => drop(pair.pushed(&entry(*seq, *number), &RECIPE, name, &mut violations)),
                Damaged(seq, number) => {
                    let mut entry = entry(*seq, *number);
                    if let Body::Message { payload, .. } = &mut entry.body {
                        let mut bytes = payload.to_vec();
                        bytes[30] ^= 1;
                        *payload = Payload::from(bytes);
                    }
                    pair.pushed(&entry, &RECIPE, name, &mut violations);
                }
                SenderLost => drop(pair.sender_lost()),
                ReceiverLost => pair.receiver_lost(),
                Repeat => drop(pair.repeats()),
            }
        }
        pair.close(true, &mut violations);
        let found: Vec<Broken> = violations.iter().map(|violation| violation.kind).collect();
        assert_eq!(found, kinds, "{violations:#?}");
        pair
    }

    #[test]
    fn what_keeps_the_promise_is_no_violation() {
        assert!(
            check(&[Send, Stored(0, 5), Push(5, 0), Send, Push(6, 1), Stored(1, 6)], &[]).open.is_empty()
        );
        // A refused one takes no place.
        assert!(check(&[Send, Send, Push(5, 1), Refused(0), Stored(1, 5)], &[]).open.is_empty());
        // Pushed again after coming back.
        assert!(check(&[Send, Push(5, 0), ReceiverLost, Push(5, 0), Stored(0, 5)], &[]).open.is_empty());
        assert!(check(&[Send, Push(5, 0), Stored(0, 5), ReceiverLost, Push(5, 0)], &[]).open.is_empty());
        // The answer was lost, and the message sent again.
        assert!(check(&[Send, SenderLost, Repeat, Stored(0, 5), Push(5, 0)], &[]).open.is_empty());
        // Never answered, so nothing is promised.
        assert_eq!(check(&[Send, SenderLost], &[]).on_the_way(), 1);
    }

    #[test]
    fn each_broken_promise_is_told() {
        check(&[Send, Damaged(5, 0), Stored(0, 5)], &[Broken::Corrupted]);
        check(&[Send, Stored(0, 5)], &[Broken::Lost]);
        check(
            &[Send, Send, Send, Push(5, 0), Push(7, 2), Stored(0, 5), Stored(1, 6), Stored(2, 7)],
            &[Broken::OutOfOrder, Broken::Lost],
        );
        check(
            &[Send, Send, Send, Push(5, 0), Push(7, 2), Push(6, 1)],
            &[Broken::OutOfOrder, Broken::OutOfOrder],
        );
        check(&[Send, Push(5, 0), Push(5, 0)], &[Broken::Doubled]);
        check(&[Send, Push(5, 0), Stored(0, 5), Push(5, 0)], &[Broken::Doubled]);
        check(&[Send, Push(5, 0), Push(6, 0)], &[Broken::Doubled]);
        check(&[Send, Push(5, 0), Stored(0, 5), Push(6, 0)], &[Broken::Doubled]);
        check(&[Send, Push(5, 0), Stored(0, 6)], &[Broken::Misplaced]);
        check(&[Send, Stored(0, 6), Push(5, 0)], &[Broken::Misplaced]);
        check(&[Push(5, 0)], &[Broken::Misplaced]);
        check(&[Send, Send, Refused(1), Push(5, 0), Push(6, 1), Stored(0, 5)], &[Broken::Misplaced]);
    }

    #[test]
    fn the_evidence_names_place_and_message() {
        let (mut pair, mut violations) = (Pair::new(ConversationId([9; 16]), 3), Vec::new());
        pair.sent(due(0));
        pair.sent(due(1));
        pair.pushed(&entry(5, 0), &RECIPE, name, &mut violations);
        pair.pushed(&entry(7, 1), &RECIPE, name, &mut violations);
        assert_eq!(
            violations[0].to_string(),
            format!(
                "out of order: conversation 09090909-0909-0909-0909-090909090909, seq 7: expected seq 6 next; came: seq 7, client id {} \
                 (pair 3 message 1, whole)",
                name(due(1), 1)
            )
        );
    }

    /// A server that keeps its promises is never accused, whatever breaks in between.
    #[test]
    fn an_honest_server_is_not_accused() {
        let seed = std::env::var("THRONG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0xbeef);
        eprintln!("seed {seed}, set THRONG_SEED to repeat");
        for run in 0..300 {
            let mut chance = Chance::new(seed ^ run << 32);
            let (mut pair, mut violations) = (Pair::new(ConversationId([9; 16]), 3), Vec::new());
            // The server: its log of numbers, how far it was pushed and acknowledged, and the answers under way.
            let (mut log, mut shown, mut acknowledged): (Vec<u32>, usize, usize) = (Vec::new(), 0, 0);
            let mut answers: VecDeque<(u32, Option<usize>)> = VecDeque::new();
            let (mut sent, mut outcomes, mut first) = (0, 0, 0);
            let store = |log: &mut Vec<u32>, number: u32| {
                let known = log.iter().position(|stored| *stored == number);
                known.unwrap_or_else(|| {
                    log.push(number);
                    log.len() - 1
                })
            };
            for _ in 0..200 {
                match chance.below(10) {
                    0..4 => {
                        let number = pair.sent(due(sent));
                        sent += 1;
                        let refused = chance.below(10) == 0;
                        let place = (!refused).then(|| store(&mut log, number));
                        answers.push_back((number, place));
                    }
                    4..7 if shown < log.len() => {
                        pair.pushed(&entry(shown as u64 + 2, log[shown]), &RECIPE, name, &mut violations);
                        shown += 1;
                        if chance.below(2) == 0 {
                            acknowledged = shown;
                        }
                    }
                    7 | 8 => {
                        let Some((number, place)) = answers.pop_front() else { continue };
                        let (answered, violation) = match place {
                            Some(place) => pair.stored(number, Seq(place as u64 + 2)),
                            None => (pair.refused(number), None),
                        };
                        violations.extend(violation);
                        first += u32::from(matches!(answered, Answered::First(_)));
                    }
                    9 if chance.below(3) == 0 => {
                        answers.clear();
                        outcomes += pair.sender_lost() as u32;
                        for number in pair.repeats() {
                            answers.push_back((number, Some(store(&mut log, number))));
                        }
                    }
                    9 => {
                        pair.receiver_lost();
                        shown = acknowledged;
                    }
                    _ => {}
                }
            }
            while let Some((number, place)) = answers.pop_front() {
                let answered = match place {
                    Some(place) => pair.stored(number, Seq(place as u64 + 2)).0,
                    None => pair.refused(number),
                };
                first += u32::from(matches!(answered, Answered::First(_)));
            }
            while shown < log.len() {
                pair.pushed(&entry(shown as u64 + 2, log[shown]), &RECIPE, name, &mut violations);
                shown += 1;
            }
            assert_eq!(pair.close(true, &mut violations), 0);
            assert_eq!(violations, [], "run {run} of seed {seed}");
            assert_eq!(first + outcomes, sent, "run {run} of seed {seed}: one outcome each");
            assert!(pair.open.is_empty(), "run {run} of seed {seed}: {pair:?}");
        }
    }
}
