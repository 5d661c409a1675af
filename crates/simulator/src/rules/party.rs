//! A device as the rules see it from outside: its connection, what it was pushed, and what it has.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use model::limits::WINDOW_MESSAGES_MAX;
use model::{ConnectionId, DeviceKey, Entry, Seq, ShardId};

use super::model::{Talk, same};

/// What a device has of a conversation.
#[derive(Debug, Default)]
pub struct Place {
    /// The last entry that was pushed to it.
    pub cursor: Seq,
    /// Everything that was.
    pub have: BTreeSet<Seq>,
}

/// One device.
#[derive(Debug)]
pub struct Party {
    pub key: DeviceKey,
    number: u8,
    connections: u32,
    pub connection: Option<ConnectionId>,
    /// `connect` was answered on this connection, and everything pending pushed.
    pub connected: bool,
    pub caught_up: bool,
    /// It has ever connected.
    pub known: bool,
    pub places: BTreeMap<u8, Place>,
    /// The first and the last entry pushed over this connection, by conversation.
    pushed: BTreeMap<u8, (Seq, Seq)>,
    /// What was pushed after it was stored and before whoever asked for it was answered; and what came behind it.
    early: VecDeque<(u8, Arc<Entry>)>,
}

impl Party {
    pub fn new(key: DeviceKey, number: u8) -> Self {
        Party {
            key,
            number,
            connections: 0,
            connection: None,
            connected: false,
            caught_up: false,
            known: false,
            places: BTreeMap::new(),
            pushed: BTreeMap::new(),
            early: VecDeque::new(),
        }
    }

    /// Opens a connection beside the one it may have.
    pub fn connect(&mut self) -> ConnectionId {
        self.connections += 1;
        let connection =
            ConnectionId { shard: ShardId(0), slot: u32::from(self.number), generation: self.connections };
        self.disconnect();
        self.connection = Some(connection);
        self.known = true;
        connection
    }

    pub fn disconnect(&mut self) {
        (self.connected, self.caught_up) = (false, false);
        self.connection = None;
        self.pushed.clear();
        self.early.clear();
    }

    pub fn cursor(&self, conversation: u8) -> Seq {
        self.places.get(&conversation).map_or(Seq::ZERO, |place| place.cursor)
    }

    /// An entry was pushed over its connection; it is judged when the model has heard of it.
    pub fn push(&mut self, number: u8, entry: &Arc<Entry>, talks: &BTreeMap<u8, Talk>) -> Result<(), String> {
        self.early.push_back((number, Arc::clone(entry)));
        self.judge(talks)
    }

    /// Judges what was pushed, as far as the model has heard of it.
    pub fn judge(&mut self, talks: &BTreeMap<u8, Talk>) -> Result<(), String> {
        while let Some((number, entry)) = self.early.front().cloned() {
            let Some(talk) = talks.get(&number).filter(|talk| talk.head() >= entry.seq) else { break };
            self.early.pop_front();
            self.pushed(number, talk, &entry)?;
        }
        Ok(())
    }

    fn pushed(&mut self, number: u8, talk: &Talk, entry: &Entry) -> Result<(), String> {
        let (seq, who) = (entry.seq, self.key);
        if !self.connected {
            return Err(format!("{who} was pushed #{seq} of c{number} before it was connected"));
        }
        match talk.log.get(seq.previous().0 as usize) {
            Some(mine) if same(mine, entry) => {}
            mine => return Err(format!("{who} was pushed {entry:?} of c{number}, there is {mine:?}")),
        }
        if !talk.may_see(who.user, seq) {
            return Err(format!("{who} was pushed #{seq} of c{number}, and its user was no member then"));
        }
        let last = self.pushed.get(&number).map(|(_, last)| *last);
        if last.is_some_and(|last| seq <= last) {
            return Err(format!("{who} was pushed #{seq} of c{number} after {last:?} on one connection"));
        }
        self.check_gap(number, talk, seq, last)?;
        self.pushed.entry(number).or_insert((seq, seq)).1 = seq;
        let place = self.places.entry(number).or_default();
        place.have.insert(seq);
        place.cursor = place.cursor.max(seq);
        Ok(())
    }

    /// Between what it has and what it is pushed there is nothing that it should get.
    fn check_gap(&self, number: u8, talk: &Talk, seq: Seq, last: Option<Seq>) -> Result<(), String> {
        let Some(period) = talk.member(self.key.user).filter(|period| period.contains(seq)) else {
            return Ok(());
        };
        let start = talk.starts.get(&self.key).copied().unwrap_or(talk.head());
        let from = self.cursor(number).max(last.unwrap_or_default()).max(start).max(period.from.previous());
        for missing in from.0 + 1..seq.0 {
            if !talk.sent_by(Seq(missing), self.key) {
                let who = self.key;
                return Err(format!("{who} was pushed #{seq} of c{number} and has not got #{missing}"));
            }
        }
        Ok(())
    }

    /// X1: no more than a window is under way. `asked` tells how far it has asked its cursors to move.
    pub fn check_window(&self, talks: &BTreeMap<u8, Talk>, asked: impl Fn(u8) -> Seq) -> Result<(), String> {
        let under_way = self.pushed.iter().filter_map(|(number, (first, last))| {
            // What was pushed of an earlier membership nobody will acknowledge.
            let period = talks[number].member(self.key.user)?;
            let base = asked(*number).max(first.previous()).max(period.from.previous());
            let others = (base.0 + 1..=last.0).filter(|seq| !talks[number].sent_by(Seq(*seq), self.key));
            Some(others.count())
        });
        match under_way.sum::<usize>() {
            count if count > WINDOW_MESSAGES_MAX => {
                Err(format!("{count} entries are under way to {}", self.key))
            }
            _ => Ok(()),
        }
    }

    /// D5 at the end: it has all of its share.
    pub fn check_all(&self, number: u8, talk: &Talk) -> Result<(), String> {
        let Some(start) = talk.starts.get(&self.key) else { return Ok(()) };
        if talk.member(self.key.user).is_none() {
            return Ok(());
        }
        let have = self.places.get(&number).map(|place| &place.have);
        for seq in (start.0 + 1..=talk.head().0).map(Seq) {
            if !talk.sent_by(seq, self.key) && !have.is_some_and(|have| have.contains(&seq)) {
                return Err(format!("{} never got #{seq} of c{number}", self.key));
            }
        }
        Ok(())
    }
}
