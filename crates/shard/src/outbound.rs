//! From effects to frames, within what a connection may have waiting.

use std::borrow::Cow;
use std::num::NonZeroU64;

use domain::{CloseCause, fault};
use model::limits::{OUTBOX_BYTES_MAX, OUTBOX_PASSING_BYTES_MAX};
use model::{Body, ConnectionId, Span};
use protocol::{
    Answer, CloseCode, Connected, ConversationPush, Disconnect, Encoding, ErrorCode, Page, Passing, Push,
    Receipt, Refusal, Sent, Window,
};
use websocket::{FrameBuilder, Opcode};

use crate::connection::Phase;
use crate::counters::Metric;
use crate::event::{Close, Write};
use crate::fault::survived;
use crate::shard::Core;

/// What a client is asked to wait before it repeats something temporary.
const RETRY_AFTER: Span = Span(1_000);

impl Core {
    pub(crate) fn answer(
        &mut self,
        connection: ConnectionId,
        id: Option<NonZeroU64>,
        answer: Result<domain::Answer, domain::Refusal>,
    ) {
        let Some(slot) = self.slot(connection) else { return };
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => {
                self.counters.count(Metric::CommandsRefused);
                return self.reply(slot, id, Err(refusal(why)));
            }
        };
        let answer = match answer {
            domain::Answer::Connected => self.session_stands(slot),
            domain::Answer::Sent { seq, ts, duplicate } => {
                self.counters.count(if duplicate { Metric::Duplicates } else { Metric::Sends });
                Answer::Send(Sent { seq, ts, duplicate })
            }
            domain::Answer::Passed => Answer::SendPassing,
            domain::Answer::Received => Answer::Recv,
            domain::Answer::Read => Answer::Read,
            domain::Answer::Page { .. } if self.piled(slot) > OUTBOX_BYTES_MAX => {
                let why = domain::Refusal::Overloaded("read the pages you have asked for first");
                self.counters.count(Metric::CommandsRefused);
                return self.reply(slot, id, Err(refusal(why)));
            }
            domain::Answer::Page { conversation, entries, head, more } => {
                Answer::Sync(Page { conversation, entries: Cow::Owned(entries), head, more })
            }
            domain::Answer::Conversation { .. } | domain::Answer::Conversations(_) => {
                debug_assert!(false, "no command of the socket asks for conversations");
                return;
            }
        };
        self.reply(slot, id, Ok(answer));
    }

    /// Bytes for a connection that its socket has not taken or not been given yet: of all answers pages alone are large enough to
    /// pass the bound within one turn.
    fn piled(&mut self, slot: u32) -> usize {
        let turn = self.actions.writes.iter().filter(|write| write.slot == slot);
        let turn: usize = turn.map(|write| write.to - write.from).sum();
        turn + self.table.unsent(slot)
    }

    /// The session stands: what was only needed for the opening goes.
    fn session_stands(&mut self, slot: u32) -> Answer<'static> {
        let session = self.table.take_opening(slot).and_then(|opening| opening.session);
        let device = self.table.at(slot).device();
        Answer::Connect(Connected {
            session: session.map_or([0; 16], |session| session.0),
            user: device.user,
            device: device.device,
            server_time: self.now.wall,
            ping: self.settings.ping,
            reconnect: self.window(),
        })
    }

    /// When to come back. While a drain lasts nobody is let in, and its successor listens when it is over.
    fn window(&self) -> Window {
        let (min, max) = self.settings.reconnect;
        let rest = self.sweep.drain_rest(self.now.mono, self.table.live());
        Window { min: Span(rest.0 + min.0), max: Span(rest.0 + max.0) }
    }

    pub(crate) fn push(&mut self, connection: ConnectionId, push: domain::Push) {
        let Some(slot) = self.slot(connection) else { return };
        // A device that is being made known has a session already, so that no entry is missed; of all else it is told what
        // changes after its `connect` was answered.
        if !self.table.stands(slot) {
            return;
        }
        let unsent = self.table.unsent(slot);
        let passing = matches!(push, domain::Push::Passing { .. } | domain::Push::Receipt { .. });
        if passing && unsent > OUTBOX_PASSING_BYTES_MAX {
            return self.counters.count(Metric::Shed);
        }
        let now = self.now.wall;
        let (expected, push) = match &push {
            domain::Push::Entry { conversation, entry } => {
                self.counters.count(Metric::Pushes);
                let len = if let Body::Message { payload, .. } = &entry.body { payload.len() } else { 0 };
                (
                    len / 3 * 4 + 256,
                    Push::Message { conversation: *conversation, entry: Cow::Borrowed(entry) },
                )
            }
            domain::Push::Passing { conversation, from, payload } => {
                self.counters.count(Metric::Passing);
                let passing =
                    Passing { conversation: *conversation, from: *from, ts: now, payload: payload.clone() };
                (payload.len() / 3 * 4 + 200, Push::Passing(passing))
            }
            domain::Push::Receipt { conversation, user, delivered, read } => {
                let receipt =
                    Receipt { conversation: *conversation, user: *user, delivered: *delivered, read: *read };
                (200, Push::Receipt(receipt))
            }
            domain::Push::Conversation { summary, event } => (
                200 + 40 * summary.members.len(),
                Push::Conversation(match event {
                    domain::MembershipEvent::Added => ConversationPush::Added(Cow::Borrowed(&**summary)),
                    domain::MembershipEvent::Changed => ConversationPush::Changed(Cow::Borrowed(&**summary)),
                    domain::MembershipEvent::Removed => ConversationPush::Removed(summary.id),
                }),
            ),
            domain::Push::CaughtUp => (32, Push::CaughtUp),
        };
        fault::point();
        self.push_frame(slot, expected, &push);
    }

    pub(crate) fn push_frame(&mut self, slot: u32, expected: usize, push: &Push<'_>) {
        self.frame(slot, expected, |encoding, out| protocol::encode_push(encoding, out, push));
    }

    /// Puts one frame into the output, unless the connection is closing or far behind with reading.
    pub(crate) fn frame(&mut self, slot: u32, expected: usize, encode: impl FnOnce(Encoding, &mut Vec<u8>)) {
        let connection = self.table.at(slot);
        if !matches!(connection.phase, Phase::Upgraded | Phase::Open) {
            return;
        }
        if self.table.unsent(slot) > OUTBOX_BYTES_MAX {
            return self.close(slot, CloseCode::SlowConsumer, "what was sent is not being read");
        }
        self.frame_anyway(slot, expected, encode);
    }

    fn frame_anyway(&mut self, slot: u32, expected: usize, encode: impl FnOnce(Encoding, &mut Vec<u8>)) {
        let encoding = self.table.at(slot).encoding;
        let opcode = if encoding.is_binary() { Opcode::Binary } else { Opcode::Text };
        let output = &mut self.actions.output;
        let from = output.len();
        let encoded = survived(|| {
            let frame = FrameBuilder::begin(output, opcode, expected, None);
            encode(encoding, output);
            fault::point();
            frame.finish(output);
        });
        if encoded.is_some() {
            return self.write(slot, from);
        }
        // Half a frame is none. This is also the way by which the last word before a close goes, so nothing more is said.
        self.actions.output.truncate(from);
        self.counters.count(Metric::Faults);
        self.shut(slot, Close::Now);
    }

    pub(crate) fn pong(&mut self, slot: u32, payload: &[u8]) {
        // A client that pings without reading gets no pile of pongs.
        if self.table.unsent(slot) <= OUTBOX_PASSING_BYTES_MAX {
            let from = self.actions.output.len();
            websocket::encode_frame(&mut self.actions.output, Opcode::Pong, payload);
            self.write(slot, from);
        }
    }

    pub(crate) fn ping(&mut self, slot: u32) {
        self.counters.count(Metric::Pings);
        let from = self.actions.output.len();
        websocket::encode_frame(&mut self.actions.output, Opcode::Ping, b"");
        self.write(slot, from);
    }

    /// Everything put into the output since `from` goes to this connection.
    pub(crate) fn write(&mut self, slot: u32, from: usize) {
        let to = self.actions.output.len();
        self.counters.add(Metric::BytesOut, (to - from) as u64);
        match self.actions.writes.last_mut() {
            Some(last) if last.slot == slot && last.to == from => last.to = to,
            _ => self.actions.writes.push(Write { slot, from, to }),
        }
    }

    pub(crate) fn close_for(&mut self, connection: ConnectionId, cause: CloseCause) {
        let Some(slot) = self.slot(connection) else { return };
        match cause {
            CloseCause::Replaced => {
                self.close(slot, CloseCode::Replaced, "the same device has connected again")
            }
            CloseCause::Refused(why @ domain::Refusal::Internal(_)) => {
                self.close(slot, CloseCode::Internal, &why.to_string())
            }
            CloseCause::Refused(why) => self.close(slot, CloseCode::Overloaded, &why.to_string()),
        }
    }

    /// Says why and when to come back, then closes.
    pub(crate) fn close(&mut self, slot: u32, code: CloseCode, reason: &str) {
        let connection = self.table.at(slot);
        let upgraded = matches!(connection.phase, Phase::Upgraded | Phase::Open);
        if upgraded {
            let after = if code.comes_back() { self.window() } else { Window::default() };
            let push = Push::Disconnect(Disconnect { code, reason: Cow::Borrowed(reason), after });
            self.frame_anyway(slot, 200, |encoding, out| protocol::encode_push(encoding, out, &push));
            let from = self.actions.output.len();
            websocket::encode_close(&mut self.actions.output, code.code(), reason, None);
            self.write(slot, from);
        }
        self.shut(slot, Close::AfterFlush);
    }

    /// Closes, whatever was said before.
    pub(crate) fn shut(&mut self, slot: u32, how: Close) {
        if self.table.at(slot).phase == Phase::Closing {
            return;
        }
        self.counters.count(Metric::Closed);
        self.gone(slot);
        self.table.at(slot).phase = Phase::Closing;
        self.table.take_opening(slot);
        self.actions.closes.push((slot, how));
    }
}

fn refusal(why: domain::Refusal) -> Refusal<'static> {
    let code = match why {
        domain::Refusal::BadRequest(_) => ErrorCode::BadRequest,
        domain::Refusal::NotMember => ErrorCode::NotMember,
        domain::Refusal::NotFound(_) => ErrorCode::NotFound,
        domain::Refusal::ClientIdReused => ErrorCode::ClientIdReused,
        domain::Refusal::ReadOnly => ErrorCode::ReadOnly,
        domain::Refusal::Overloaded(_) => ErrorCode::Overloaded,
        domain::Refusal::Internal(_) => ErrorCode::Internal,
    };
    let mut refusal = Refusal::new(code, why.to_string());
    if code.temporary() {
        refusal.retry_after = RETRY_AFTER;
    }
    refusal
}
