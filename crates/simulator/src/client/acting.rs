//! What a client does by itself.

use model::{ConversationId, Mono, Payload, Seq, Span};
use protocol::{Command, Token};
use websocket::Opcode;

use super::{Around, Client, Outgoing, Place, Want, What};
use crate::coverage::Seen;
use crate::link::{Asked, Link};
use crate::names::{self, Named};

/// Messages kept that could be repeated wrongly.
const DONE_MAX: usize = 32;

impl Around<'_> {
    /// A fresh token, and the last moment of its validity.
    pub(super) fn token(&self, device: model::DeviceKey) -> (String, model::Wall) {
        let lifetime = if self.calm { Span::seconds(86_400) } else { self.plan.token_life };
        self.tokens.mint(device, self.now.wall, lifetime)
    }

    /// The shard that owns a user.
    pub fn owner_of(&self, user: model::UserId) -> model::ShardId {
        let partition = model::partition_of_user(&self.hash_key, user);
        shard::owner_of(partition, self.shards)
    }

    /// The partition that owns a user.
    pub fn partition_of(&self, user: model::UserId) -> model::PartitionId {
        model::partition_of_user(&self.hash_key, user)
    }
}

impl Place {
    /// What follows directly and was sent by itself it has.
    pub(super) fn pass_over_own(&mut self) {
        if self.cursor == Seq::ZERO {
            return;
        }
        while let Some(first) = self.own.first().copied().filter(|own| *own <= self.cursor.next()) {
            self.cursor = self.cursor.max(first);
            self.own.remove(&first);
        }
    }
}

impl Client {
    /// Acts on its link. Gives it back unless it let it go.
    pub(super) fn act(&mut self, mut link: Link<Want>, around: &mut Around<'_>) -> Option<Link<Want>> {
        if link.introduced && !link.connected && !around.calm && around.random.permille(self.habits.impatient)
        {
            around.coverage.count(Seen::Impatience);
            self.link = Some(link);
            self.connect(around);
            return None;
        }
        if !link.introduced || !(link.connected || self.habits.eager) {
            return Some(link);
        }
        if !around.calm {
            link = self.misfortune(link, around)?;
        }
        if self.patient_until > around.now.mono {
            return Some(link);
        }
        self.acknowledge(&mut link, around);
        if !around.calm {
            self.say_something(around);
            self.do_other_things(&mut link, around);
        }
        self.send_waiting(&mut link, around);
        link.frame(around.random);
        Some(link)
    }

    /// What happens to connections.
    fn misfortune(&mut self, mut link: Link<Want>, around: &mut Around<'_>) -> Option<Link<Want>> {
        let now = around.now.mono;
        if around.random.permille(around.plan.stalls) {
            around.coverage.count(Seen::Stalls);
            link.stalled_until = Mono(
                now.0 + {
                    let most = 300_000 >> around.random.below(6);
                    around.random.between(1, most)
                },
            );
        }
        if !around.random.permille(around.plan.breaks) {
            return Some(link);
        }
        let who = Named(self.key);
        let kind = around.random.below(6);
        if kind == 0 {
            around.trace.line(format_args!("{} client {who} connects beside its connection", now.0));
            around.coverage.count(Seen::Takeovers);
            self.link = Some(link);
            self.connect(around);
            return None;
        }
        around.coverage.count(Seen::Broken);
        around.trace.line(format_args!("{} client {who} ends its connection in way {kind}", now.0));
        match kind {
            1 => {
                link.close(around.random);
                self.older.push(link);
                self.lost(around);
                return None;
            }
            2 => {
                if let Some(wire) = around.wires.get(link.wire) {
                    wire.up_ended = true;
                    wire.forgotten = true;
                }
            }
            // Nobody tells the server.
            3 => {
                if let Some(wire) = around.wires.get(link.wire) {
                    wire.forgotten = true;
                }
            }
            _ => {
                if let Some(wire) = around.wires.get(link.wire) {
                    wire.sever();
                    wire.forgotten = true;
                }
            }
        }
        around.wires.tidy(link.wire);
        self.lost(around);
        None
    }

    /// Says what it has stored.
    fn acknowledge(&mut self, link: &mut Link<Want>, around: &mut Around<'_>) {
        let habits = self.habits;
        for (conversation, place) in &mut self.places {
            let behind = place.cursor.0.saturating_sub(place.asked.0);
            let due = around.calm
                || behind >= habits.acknowledge_every
                || around.random.permille(habits.acknowledge_permille);
            if behind == 0 || !due {
                continue;
            }
            let Some(membership) = around.oracle.membership(*conversation, self.key.user) else { continue };
            if place.cursor <= membership.start {
                continue;
            }
            // The plainest client acknowledges what it was pushed, and nothing else.
            let plain = self.home.is_some() && link.pushed.get(conversation) != Some(&place.cursor);
            if plain || !habits.acknowledge_own && !around.calm && !link.pushed.contains_key(conversation) {
                continue;
            }
            let seq = place.cursor;
            place.asked = seq;
            around.oracle.requesting(*conversation, self.key, seq);
            let want = Want {
                what: What::Recv(seq),
                conversation: *conversation,
                member_since: Some(membership.start),
            };
            let asked = (!habits.silent || around.calm).then_some(Asked::Other(want));
            let (who, name) = (Named(self.key), Named(*conversation));
            around
                .trace
                .line(format_args!("{} client {who} → Command::Recv {name} {seq}", around.now.mono.0));
            link.request(Command::Recv { conversation: *conversation, seq }, asked);
        }
    }

    /// Writes messages, one or many.
    fn say_something(&mut self, around: &mut Around<'_>) {
        let burst = around.random.permille(around.plan.bursts);
        if !burst && (self.outbox.len() > 20 || !around.random.permille(self.habits.talkative)) {
            return;
        }
        let count = if burst { around.random.between(10, around.plan.burst_max) } else { 1 };
        if burst {
            around.coverage.count(Seen::Bursts);
        }
        let Some(conversation) = self.somewhere(around) else { return };
        for _ in 0..count {
            self.write(conversation, around);
        }
    }

    /// Puts a new message into the outbox.
    pub fn write(&mut self, conversation: ConversationId, around: &mut Around<'_>) {
        self.sent += 1;
        let id = names::client_id(self.number, self.sent);
        let payload = payload(around);
        around.oracle.sending(self.key.user, id, conversation, payload.clone());
        self.outbox.push_back(Outgoing {
            id,
            conversation,
            payload,
            under_way: false,
            repeated: false,
            not_before: Mono(0),
        });
    }

    /// A conversation this user is a member of; rarely one it is not.
    fn somewhere(&self, around: &mut Around<'_>) -> Option<ConversationId> {
        if around.random.permille(around.plan.mischief) {
            let all: Vec<ConversationId> = around.store.conversations().collect();
            return around.random.pick(&all).copied();
        }
        let mine: Vec<ConversationId> = around.store.conversations_of(self.key.user).collect();
        around.random.pick(&mine).copied()
    }

    /// Sends what waits in the outbox.
    fn send_waiting(&mut self, link: &mut Link<Want>, around: &mut Around<'_>) {
        let under_way = self.outbox.iter().filter(|outgoing| outgoing.under_way).count();
        let outstanding_max = if around.calm { 1_000 } else { self.habits.outstanding_max };
        let room = outstanding_max.saturating_sub(under_way);
        let now = around.now.mono;
        let waiting =
            self.outbox.iter_mut().filter(|outgoing| !outgoing.under_way && outgoing.not_before <= now);
        for outgoing in waiting.take(room.min(40)) {
            outgoing.under_way = true;
            if outgoing.repeated {
                around.coverage.count(Seen::Resends);
            }
            let conversation = outgoing.conversation;
            let membership = around.oracle.membership(conversation, self.key.user);
            let want = Want {
                what: What::Send(outgoing.id),
                conversation,
                member_since: membership.map(|period| period.start),
            };
            let command =
                Command::Send { conversation, client_id: outgoing.id, payload: outgoing.payload.clone() };
            let who = Named(self.key);
            around.trace.line(format_args!(
                "{} client {who} → Command::Send {} {}",
                now.0,
                Named(conversation),
                Named(outgoing.id)
            ));
            link.request(command, Some(Asked::Other(want)));
            if link.batched() > 8 * 1024 || around.random.below(7) == 0 {
                link.frame(around.random);
            }
        }
    }

    /// Reads, pages, passing messages, and what one should not do.
    fn do_other_things(&mut self, link: &mut Link<Want>, around: &mut Around<'_>) {
        if self.done.len() > DONE_MAX {
            self.done.drain(..DONE_MAX / 2);
        }
        if around.random.permille(around.plan.mischief) {
            self.misbehave(link, around);
        }
        if !around.random.permille(self.habits.talkative / 2) {
            return;
        }
        let Some(conversation) = self.somewhere(around) else { return };
        let member_since = around.oracle.membership(conversation, self.key.user).map(|period| period.start);
        let want = |what| Some(Asked::Other(Want { what, conversation, member_since }));
        match around.random.below(8) {
            0..=2 => {
                let place = self.places.entry(conversation).or_default();
                let sure = around.random.below(2) == 0;
                let seq = if sure { place.acknowledged } else { place.asked };
                if seq > place.read && member_since.is_some_and(|start| seq > start) {
                    link.request(Command::Read { conversation, seq }, want(What::Read(seq, sure)));
                }
            }
            3 | 4 => {
                let cursor = self.places.get(&conversation).map_or(Seq::ZERO, |place| place.cursor);
                let after = if around.random.below(2) == 0 { cursor } else { Seq::ZERO };
                let limit = around.random.between(1, 256) as u32;
                link.request(Command::Sync { conversation, after, limit }, want(What::Sync(after)));
            }
            5 => {
                let payload = payload(around);
                link.request(Command::SendPassing { conversation, payload }, want(What::Passing));
            }
            6 => link.request(Command::Ping, Some(Asked::Ping)),
            _ => {
                let (token, ends) = around.token(self.key);
                self.token_ends = ends;
                around.coverage.count(Seen::Refreshes);
                link.request(Command::Refresh { token: Token(token.into()) }, Some(Asked::Refresh));
                link.frame(around.random);
                link.control(Opcode::Ping, b"?", around.random);
            }
        }
    }

    fn misbehave(&mut self, link: &mut Link<Want>, around: &mut Around<'_>) {
        match around.random.below(3) {
            0 | 1 => {
                let Some((id, conversation)) = around.random.pick(&self.done).copied() else { return };
                let Some(membership) = around.oracle.membership(conversation, self.key.user) else { return };
                let payload = Payload::from(&b"other bytes than before"[..]);
                around.oracle.sending(self.key.user, id, conversation, payload.clone());
                let member_since = Some(membership.start);
                let want = Want { what: What::Reuse(id), conversation, member_since };
                link.request(
                    Command::Send { conversation, client_id: id, payload },
                    Some(Asked::Other(want)),
                );
            }
            _ => {
                let Some(conversation) = self.somewhere(around) else { return };
                let seq = Seq(around.store.log(conversation).len() as u64 + 100_000);
                // A device that is not registered yet has no place there.
                let membership = around.oracle.membership(conversation, self.key.user);
                let member_since = membership.filter(|_| link.connected).map(|period| period.start);
                let want = Want { what: What::Beyond, conversation, member_since };
                link.request(Command::Recv { conversation, seq }, Some(Asked::Other(want)));
            }
        }
    }
}

/// Bytes nobody else sends; mostly short.
fn payload(around: &mut Around<'_>) -> Payload {
    let max = around.plan.payload_max >> around.random.below(6);
    let len = around.random.below(max + 1);
    let mut bytes = around.random.next().to_le_bytes().to_vec();
    bytes.resize(len.max(8), 0x5a);
    Payload::from(bytes)
}
