//! The end of a run: nothing goes wrong any more, everybody is online, and everything must come right.

use model::{DeviceKey, Mono, PartitionId, Seq, Span};
use shard::owner_of;

use crate::client::Client;
use crate::coverage::Seen;
use crate::names::Named;
use crate::oracle::sent_by;
use crate::server::Side;
use crate::violation::{Checked, broken};
use crate::world::World;

/// Rounds after which everything must have come right. A round is a turn of everybody.
const ROUNDS_MAX: u32 = 4_000;

impl World {
    /// Lets everything come to rest and then checks what must hold.
    pub fn come_to_rest(&mut self) -> Checked {
        self.calm = true;
        self.trace.line(format_args!("{} from now on nothing goes wrong", self.now.mono.0));
        self.disk.full = false;
        self.post.let_through();
        let crowded = self.plan.connections_max < usize::MAX;
        self.plan.connections_max = usize::MAX;
        if crowded || self.is_draining() || self.disk.failed {
            self.crash()?;
        }
        self.clients.iter_mut().for_each(|client| client.calm_down());
        self.rest()?;
        let online_since = self.now.mono;
        self.last_words()?;
        self.rest()?;
        self.check_receipts(online_since)?;
        self.check_everything()
    }

    /// One more message in every conversation.
    fn last_words(&mut self) -> Checked {
        let conversations: Vec<_> = self.disk.store.conversations().collect();
        for conversation in conversations {
            let member =
                self.clients.iter().position(|client| self.oracle.share(conversation, client.key).is_some());
            if let Some(member) = member {
                let (client, mut around) = self.around(member);
                client.write(conversation, &mut around);
            }
        }
        Ok(())
    }

    /// Everybody acts until there is nothing left to do, over and over with time passing, until nobody wants anything.
    pub fn rest(&mut self) -> Checked {
        let mut quiet = 0;
        for _ in 0..ROUNDS_MAX {
            let busy = self.round()?;
            let content = self.clients.iter().all(|client| client.is_content(&self.oracle));
            if busy || !content {
                quiet = 0;
                self.pass(Span(if busy { 1 } else { 200 }));
            } else {
                quiet += 1;
                self.pass(Span(500));
            }
            // Long enough for everything that waits for quiet to have happened.
            if quiet > 12 {
                return Ok(());
            }
        }
        let who: Vec<String> = self
            .clients
            .iter()
            .filter(|client| !client.is_content(&self.oracle))
            .map(|client| format!("{} ({})", Named(client.key), client.complaint()))
            .collect();
        let (mail, asked, answers) = (self.post.len(), self.disk.asked(), self.disk.under_way());
        broken(
            "D11",
            format!(
                "no rest: {who:?}, {mail} pieces of mail, {asked} asked, {answers} answers, {} outside",
                self.office.waiting()
            ),
        )
    }

    /// A turn of everybody and a commit. Whether the server had something to do.
    pub fn round(&mut self) -> Result<bool, crate::violation::Violation> {
        let mut busy = false;
        for side in 0..self.sides.len() {
            self.turn(side)?;
            busy |= self.disk.asked() + self.disk.under_way() + self.post.len() > 0;
        }
        self.commit(true)?;
        for client in 0..self.clients.len() {
            self.client(client)?;
        }
        Ok(busy)
    }

    fn check_everything(&mut self) -> Checked {
        self.oracle.check_durable(&self.disk.store)?;
        if self.office.waiting() > 0 {
            return broken("office", format!("{} requests were never answered", self.office.waiting()));
        }
        self.check_devices()?;
        let store = &self.disk.store;
        for conversation in store.conversations() {
            let head = Seq(store.log(conversation).len() as u64);
            let name = Named(conversation);
            for (device, cursor) in store.cursors(conversation) {
                if cursor != head {
                    return broken(
                        "D11",
                        format!("{} stands at {cursor} of {head} in {name}", Named(device)),
                    );
                }
            }
            if store.cursors(conversation).next().is_some() && store.trimmed(conversation) != head {
                return broken(
                    "rest",
                    format!("{name} is trimmed to {} of {head}", store.trimmed(conversation)),
                );
            }
        }
        if let Some((device, conversation)) = store.pending().next() {
            return broken("rest", format!("{} is still marked in {}", Named(device), Named(conversation)));
        }
        for (number, side) in self.sides.iter_mut().enumerate() {
            let flights = side.shard.counters().get(shard::Metric::Flights);
            if flights > 0 {
                return broken("rest", format!("shard {number} still has {flights} flights"));
            }
            let partitions = (0..=self.plan.partitions)
                .filter(|partition| owner_of(PartitionId(*partition), self.plan.shards).0 == number as u16);
            if number >= usize::from(self.plan.shards) {
                continue;
            }
            let residents_max = partitions.count() * self.plan.residents_max;
            let residents = side.shard.counters().get(shard::Metric::Conversations);
            if residents > residents_max as u64 {
                return broken(
                    "X1",
                    format!("shard {number} keeps {residents} conversations, not {residents_max}"),
                );
            }
        }
        self.check_reconnect()?;
        // The same from a fresh start.
        self.crash()?;
        self.check_reconnect()
    }

    /// D5: every device has everything of its share.
    fn check_devices(&self) -> Checked {
        let store = &self.disk.store;
        for client in &self.clients {
            for (conversation, share) in self.oracle.shares(client.key) {
                let place = client.places.get(&conversation);
                let log = &store.log(conversation)[share.start.0 as usize..];
                let missing = log.iter().find(|entry| {
                    let has = place.is_some_and(|place| place.have.contains(&entry.seq));
                    !has && !sent_by(entry, client.key)
                });
                if let Some(missing) = missing {
                    let (who, name) = (Named(client.key), Named(conversation));
                    return broken("D5", format!("{who} never got #{} of {name}", missing.seq));
                }
            }
        }
        Ok(())
    }

    /// Whoever was online all the time has heard how far the others are.
    fn check_receipts(&self, online_since: Mono) -> Checked {
        let store = &self.disk.store;
        let stayed = |client: &&Client| client.link.as_ref().is_some_and(|link| link.since <= online_since);
        for client in self.clients.iter().filter(stayed) {
            for (conversation, _) in self.oracle.shares(client.key) {
                let log = store.log(conversation);
                let (Some(record), Some(last)) = (store.record(conversation), log.last()) else { continue };
                if record.members.len() > self.plan.receipts_members_max {
                    continue;
                }
                // Who sent the last message has it without having received it.
                let others = record.members.iter().filter(|member| {
                    let sent_it = member
                        .devices
                        .iter()
                        .any(|device| sent_by(last, DeviceKey { user: member.user, device: device.device }));
                    member.user != client.key.user && !sent_it
                });
                for other in others {
                    let heard = client.receipts.get(&(conversation, other.user)).copied();
                    if heard != Some(last.seq) {
                        let (who, name, user) = (Named(client.key), Named(conversation), Named(other.user));
                        return broken(
                            "rest",
                            format!("{who} has heard {heard:?} of {user} in {name}, all have {}", last.seq),
                        );
                    }
                }
            }
        }
        Ok(())
    }

    /// Known devices with nothing pending come back, and nothing is asked of the store.
    fn check_reconnect(&mut self) -> Checked {
        for client in 0..self.clients.len() {
            let (client, mut around) = self.around(client);
            client.connect(&mut around);
        }
        for _ in 0..400 {
            for side in 0..self.sides.len() {
                self.turn(side)?;
            }
            // A partition that has begun anew does not know any more for whom nothing is pending.
            if self.disk.asked() > 0 && self.sides.iter().all(Side::unharmed) {
                return broken("rest", format!("a known device asked the store: {}", self.disk.describe()));
            }
            self.commit(true)?;
            for client in 0..self.clients.len() {
                self.client(client)?;
            }
            if self.clients.iter().all(|client| client.is_content(&self.oracle)) {
                self.coverage.add(Seen::ConnectsWithoutQuery, self.clients.len() as u64);
                return Ok(());
            }
            self.pass(Span(50));
        }
        let missing = self.clients.iter().find(|client| !client.is_content(&self.oracle));
        let missing = missing.map(|client| format!("{}: {}", Named(client.key), client.complaint()));
        broken("rest", format!("did not come back: {missing:?}"))
    }
}
