//! What a client makes of what it hears.

use model::limits::{PAYLOAD_BYTES_MAX, WINDOW_BYTES_MAX, WINDOW_MESSAGES_MAX};
use model::{Body, ConversationId, Entry, Mono, Seq};
use protocol::{Command, ErrorCode, Token};
use websocket::Opcode;

use super::{Around, Client, Want, What};
use crate::coverage::Seen;
use crate::link::{Asked, Heard, Link, Said, Wrong};
use crate::names::Named;
use crate::oracle::sent_by;
use crate::violation::{Checked, broken};

/// Bytes that are let pass in one window: the rules keep no room for those of a page that is under way, and estimate those that an
/// acknowledgement takes away.
const BYTES_TOLERATED: usize = 2 * WINDOW_BYTES_MAX;

impl Client {
    /// One thing a client hears on a link.
    pub(super) fn hear(&mut self, link: &mut Link<Want>, heard: Heard, around: &mut Around<'_>) -> Checked {
        let (now, who) = (around.now.mono.0, Named(self.key));
        if let Some(code) = link.farewell
            && !matches!(heard, Heard::Closed(_))
        {
            return broken("protocol", format!("{who} was told {} and then {heard:?}", code.name()));
        }
        if heard.is_pushed() && !link.connected {
            return broken("protocol", format!("{who} hears before its connect is answered: {heard:?}"));
        }
        match heard {
            Heard::Upgraded => self.introduce(link, around),
            Heard::Refused(status) => {
                around.coverage.count(Seen::HandshakesRefused);
                around.trace.line(format_args!("{now} client {who} is refused with {status}"));
                if !matches!(status, 401 | 503) {
                    return broken("protocol", format!("{who} is refused with {status}"));
                }
            }
            Heard::Reply(id, outcome) => return self.hear_reply(link, id, outcome, around),
            Heard::Entry(conversation, entry) => return self.hear_entry(link, conversation, entry, around),
            Heard::Passing(conversation) => {
                around.coverage.count(Seen::Passing);
                around.oracle.changed(conversation, self.key.user)?;
            }
            Heard::Receipt(receipt) => {
                around.coverage.count(Seen::Receipts);
                let (name, user) = (Named(receipt.conversation), Named(receipt.user));
                let (delivered, read) = (receipt.delivered, receipt.read);
                around.trace.line(format_args!(
                    "{now} client {who} ← Push::Receipt {name} {user} delivered {delivered} read {read}"
                ));
                around.oracle.receipt(self.key.user, &receipt)?;
                self.receipts.insert((receipt.conversation, receipt.user), receipt.delivered);
            }
            Heard::Member(conversation) | Heard::NoMember(conversation) => {
                around.oracle.changed(conversation, self.key.user)?;
            }
            Heard::CaughtUp => return self.hear_caught_up(link, around),
            Heard::TokenExpiring => {
                if around.calm || around.random.permille(700) {
                    around.coverage.count(Seen::Refreshes);
                    let (token, ends) = around.token(self.key);
                    self.token_ends = ends;
                    link.request(Command::Refresh { token: Token(token.into()) }, Some(Asked::Refresh));
                    link.frame(around.random);
                }
            }
            Heard::Disconnect(code) => {
                around.trace.line(format_args!("{now} client {who} ← Push::Disconnect {}", code.name()));
                link.farewell = Some(code);
                use protocol::CloseCode;
                match code {
                    CloseCode::SlowConsumer => around.coverage.count(Seen::SlowConsumers),
                    CloseCode::NoPong => around.coverage.count(Seen::NoPong),
                    CloseCode::Unauthorised => around.coverage.count(Seen::TokenExpired),
                    CloseCode::ProtocolError
                    | CloseCode::UnsupportedData
                    | CloseCode::InvalidData
                    | CloseCode::BadMessage => {
                        return broken("protocol", format!("{who} is closed with {}", code.name()));
                    }
                    _ => {}
                }
            }
            Heard::Ping(payload) => {
                if around.calm || around.random.permille(980) {
                    link.control(Opcode::Pong, &payload, around.random);
                }
            }
            Heard::Closed(code) => {
                let expected = link.farewell.map(protocol::CloseCode::code);
                if expected.is_some() && code != expected {
                    return broken(
                        "protocol",
                        format!("{who} is closed with {code:?} and was told {expected:?}"),
                    );
                }
            }
            Heard::Nonsense(what) => return broken("protocol", format!("{who} hears nonsense: {what}")),
        }
        Ok(())
    }

    /// Says who it is.
    fn introduce(&mut self, link: &mut Link<Want>, around: &mut Around<'_>) {
        let token = (!self.habits.bearer).then(|| {
            let (token, ends) = around.token(self.key);
            self.token_ends = ends;
            Token(token.into())
        });
        link.request(Command::Connect { token }, Some(Asked::Connect));
        link.frame(around.random);
        link.introduced = true;
        let (shard, owner) = (around.owner_of(self.key.user), around.partition_of(self.key.user));
        for (conversation, share) in around.oracle.shares(self.key) {
            let heard = around.oracle.heard(shard, owner, conversation);
            link.expected.insert(conversation, (share.start, heard));
        }
    }

    fn hear_reply(
        &mut self,
        link: &mut Link<Want>,
        id: Option<u64>,
        outcome: Result<Said, Wrong>,
        around: &mut Around<'_>,
    ) -> Checked {
        let (now, who) = (around.now.mono.0, Named(self.key));
        match &outcome {
            Ok(said) => around.trace.line(format_args!("{now} client {who} ← Reply {id:?} {}", said.name())),
            Err(wrong) => {
                let (code, message) = (wrong.code.name(), &wrong.message);
                around.trace.line(format_args!("{now} client {who} ← Refusal {id:?} {code}: {message}"));
                match wrong.code {
                    ErrorCode::Overloaded => around.coverage.count(Seen::Overloaded),
                    ErrorCode::RateLimited => around.coverage.count(Seen::RateLimited),
                    ErrorCode::ReadOnly => around.coverage.count(Seen::ReadOnly),
                    ErrorCode::Internal => {
                        return broken("internal", format!("{who} is told of a mistake: {message}"));
                    }
                    _ => {}
                }
            }
        }
        let Some(id) = id else { return self.hear_refusal_without_id(outcome, around) };
        let Some(asked) = link.awaiting.remove(&id) else {
            return broken("protocol", format!("{who} got a second answer to {id}"));
        };
        match (asked, outcome) {
            (Asked::Connect, Ok(Said::Connected)) => {
                if std::mem::replace(&mut link.connected, true) {
                    return broken("protocol", format!("{who} was connected twice on one link"));
                }
            }
            (Asked::Refresh, Ok(Said::Refreshed)) | (Asked::Ping, Ok(Said::Done(_))) => {}
            (Asked::Connect | Asked::Refresh, Err(wrong)) => match wrong.code {
                ErrorCode::Unauthorised | ErrorCode::TokenExpired if around.plan.wall_jumps => {}
                ErrorCode::TokenExpired => {}
                ErrorCode::ReadOnly | ErrorCode::Overloaded | ErrorCode::RateLimited => {}
                code => return broken("protocol", format!("{who} may not connect: {}", code.name())),
            },
            (Asked::Ping, Err(wrong)) if wrong.code == ErrorCode::RateLimited => {}
            (Asked::Other(want), Ok(said)) => return self.hear_answer(link, want, said, around),
            (Asked::Other(want), Err(wrong)) => return self.hear_refusal(want, &wrong, around),
            (asked, outcome) => {
                return broken("protocol", format!("{who} asked {asked:?} and was told {outcome:?}"));
            }
        }
        Ok(())
    }

    /// A `recv` without an id failed; which one is not known, so all are asked again.
    fn hear_refusal_without_id(&mut self, outcome: Result<Said, Wrong>, around: &mut Around<'_>) -> Checked {
        let who = Named(self.key);
        let Err(wrong) = outcome else {
            return broken("protocol", format!("{who} got an answer without an id"));
        };
        match wrong.code {
            code if code.temporary() => {
                self.patient_until = self.patient_until.max(Mono(around.now.mono.0 + wrong.retry_after.0));
                for place in self.places.values_mut() {
                    place.asked = place.acknowledged;
                }
                Ok(())
            }
            ErrorCode::NotMember => Ok(()),
            code => broken(
                "protocol",
                format!("{who} is refused as {}: {} ({})", code.name(), wrong.message, around.now.mono.0),
            ),
        }
    }

    fn hear_answer(
        &mut self,
        link: &mut Link<Want>,
        want: Want,
        said: Said,
        around: &mut Around<'_>,
    ) -> Checked {
        let Want { what, conversation, .. } = want;
        match (what, said) {
            (What::Send(id), Said::Sent(sent)) => {
                around.coverage.count(if sent.duplicate { Seen::Duplicates } else { Seen::Confirmed });
                around.oracle.confirmed(self.key.user, id, conversation, sent.seq, around.store)?;
                self.outbox.retain(|outgoing| outgoing.id != id);
                self.done.push((id, conversation));
                let place = self.places.entry(conversation).or_default();
                place.have.insert(sent.seq);
                place.own.insert(sent.seq);
                place.pass_over_own();
            }
            (What::Reuse(id), Said::Sent(_)) if around.oracle.was_taken_again(self.key.user, id) => {
                around.coverage.count(Seen::TakenAgain);
            }
            (What::Passing, Said::Done(_)) => {}
            (What::Recv(seq), Said::Done(_)) => {
                around.coverage.count(Seen::Acknowledged);
                around.oracle.received(conversation, self.key, seq, around.store)?;
                let place = self.places.entry(conversation).or_default();
                place.acknowledged = place.acknowledged.max(seq);
            }
            (What::Read(seq, _), Said::Done(_)) => {
                around.coverage.count(Seen::Reads);
                let place = self.places.entry(conversation).or_default();
                place.read = place.read.max(seq);
            }
            (What::Sync(after), Said::Page(page)) => {
                around.coverage.count(Seen::Synced);
                around.oracle.synced(self.key.user, conversation, after, &page, around.store)?;
                let place = self.places.entry(conversation).or_default();
                for entry in page.entries {
                    place.have.insert(entry.seq);
                    if place.cursor > Seq::ZERO && entry.seq == place.cursor.next() {
                        place.cursor = entry.seq;
                    }
                }
                place.pass_over_own();
            }
            (what, said) => {
                let (who, wire) = (Named(self.key), link.wire);
                return broken(
                    "protocol",
                    format!("{who} asked {what:?} on {wire} and was told {}", said.name()),
                );
            }
        }
        Ok(())
    }

    fn hear_refusal(&mut self, want: Want, wrong: &Wrong, around: &mut Around<'_>) -> Checked {
        let Want { what, conversation, member_since } = want;
        let (who, name) = (Named(self.key), Named(conversation));
        let wait = Mono(around.now.mono.0 + around.random.between(0, 1_000));
        if wrong.code.temporary() {
            self.patient_until = self.patient_until.max(Mono(around.now.mono.0 + wrong.retry_after.0));
            match what {
                What::Send(id) => {
                    if let Some(outgoing) = self.outbox.iter_mut().find(|outgoing| outgoing.id == id) {
                        (outgoing.under_way, outgoing.not_before) = (false, wait);
                    }
                }
                What::Recv(_) => {
                    let place = self.places.entry(conversation).or_default();
                    place.asked = place.acknowledged;
                }
                _ => {}
            }
            return Ok(());
        }
        match (what, wrong.code) {
            (What::Reuse(_), ErrorCode::ClientIdReused) => around.coverage.count(Seen::ClientIdReused),
            (What::Beyond, ErrorCode::BadRequest) => around.coverage.count(Seen::BeyondHead),
            (what, ErrorCode::NotMember) => {
                around.coverage.count(Seen::NotMember);
                let still = around.oracle.membership(conversation, self.key.user).map(|period| period.start);
                if member_since.is_some() && still == member_since {
                    return broken(
                        "D5",
                        format!("{who} is a member of {name} and refused as none: {what:?}"),
                    );
                }
                match what {
                    What::Send(id) => self.outbox.retain(|outgoing| outgoing.id != id),
                    What::Recv(seq) => {
                        let place = self.places.entry(conversation).or_default();
                        place.acknowledged = place.acknowledged.max(seq);
                    }
                    _ => {}
                }
            }
            // The acknowledgement on its way before it may have been refused.
            (What::Read(_, false), ErrorCode::BadRequest) => {}
            (what, code) => {
                let message = &wrong.message;
                return broken(
                    "protocol",
                    format!("{who} asked {what:?} of {name} and was refused as {}: {message}", code.name()),
                );
            }
        }
        Ok(())
    }

    fn hear_entry(
        &mut self,
        link: &mut Link<Want>,
        conversation: ConversationId,
        entry: Entry,
        around: &mut Around<'_>,
    ) -> Checked {
        let (now, who) = (around.now.mono.0, Named(self.key));
        let place = self.places.entry(conversation).or_default();
        around.trace.line(format_args!(
            "{now} client {who} ← Push::Message {} {}",
            Named(conversation),
            crate::words::Said(&entry)
        ));
        around.coverage.count(Seen::Pushes);
        if entry.seq <= place.cursor {
            around.coverage.count(Seen::PushedAgain);
            if self.habits.acknowledge_again {
                place.asked = place.asked.min(entry.seq.previous());
            }
        }
        if sent_by(&entry, self.key) {
            around.coverage.count(Seen::PushedOwn);
        }
        let last = link.pushed.insert(conversation, entry.seq);
        link.first.entry(conversation).or_insert(entry.seq);
        around.oracle.pushed(self.key, conversation, &entry, place.cursor, last, around.store)?;
        place.have.insert(entry.seq);
        place.cursor = place.cursor.max(entry.seq);
        place.pass_over_own();
        self.check_window(link, around)
    }

    /// At most a window's worth is pushed beyond what the device has acknowledged, or is about to: in messages, and in bytes.
    fn check_window(&self, link: &Link<Want>, around: &mut Around<'_>) -> Checked {
        let (mut messages, mut bytes) = (0, 0);
        for (conversation, pushed) in &link.pushed {
            let Some(share) = around.oracle.share(*conversation, self.key) else { continue };
            let before = link.first.get(conversation).map_or(Seq::ZERO, |first| first.previous());
            let asked = around.oracle.requested(*conversation, self.key);
            let base = asked.max(before).max(share.start).0 as usize;
            let log = around.store.log(*conversation);
            // What it sent itself and follows is passed over.
            let own = log.iter().skip(base).take_while(|entry| sent_by(entry, self.key)).count();
            let first = base + own;
            messages += (pushed.0 as usize).saturating_sub(first);
            let under_way = log.get(first..pushed.0 as usize).unwrap_or_default();
            let others = under_way.iter().filter(|entry| !sent_by(entry, self.key));
            bytes += others.map(payload_bytes).sum::<usize>();
        }
        around.coverage.add(Seen::WindowFull, u64::from(messages == WINDOW_MESSAGES_MAX));
        around.coverage.add(Seen::WindowBytesFull, u64::from(bytes + PAYLOAD_BYTES_MAX > WINDOW_BYTES_MAX));
        if messages > WINDOW_MESSAGES_MAX || bytes > BYTES_TOLERATED && messages > 1 {
            let who = Named(self.key);
            return broken("X1", format!("{messages} messages of {bytes} bytes are under way to {who}"));
        }
        Ok(())
    }

    fn hear_caught_up(&mut self, link: &mut Link<Want>, around: &mut Around<'_>) -> Checked {
        let (now, who) = (around.now.mono.0, Named(self.key));
        around.coverage.count(Seen::CaughtUp);
        around.trace.line(format_args!("{now} client {who} ← Push::CaughtUp"));
        if std::mem::replace(&mut link.caught_up, true) {
            return broken("order", format!("{who} was told twice that it has caught up"));
        }
        for (conversation, (start, head)) in std::mem::take(&mut link.expected) {
            if around.oracle.share(conversation, self.key).is_none_or(|share| share.start != start) {
                continue;
            }
            let cursor = self.places.get(&conversation).map_or(Seq::ZERO, |place| place.cursor).max(start);
            let log = around.store.log(conversation);
            let missing =
                (cursor.0.min(head.0)..head.0).find(|place| !sent_by(&log[*place as usize], self.key));
            if let Some(missing) = missing {
                let (name, missing) = (Named(conversation), missing + 1);
                return broken(
                    "order",
                    format!("{who} was told it has caught up and has not got #{missing} of {name}"),
                );
            }
        }
        Ok(())
    }
}

fn payload_bytes(entry: &Entry) -> usize {
    match &entry.body {
        Body::Message { payload, .. } => payload.len(),
        Body::Change(_) => 0,
    }
}
