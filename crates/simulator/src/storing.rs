//! The store thread's part of a run: one batch after the other is gathered, written, synced and answered, and read again at a start.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::{Delivery, Effect, Input, Ticket};
use model::{Body, Entry, Seq, UserId, Wall, partition_of_user};
use shard::owner_of;
use store::{Reply, Request};

use crate::coverage::Seen;
use crate::device::carry_out;
use crate::disk::Batch;
use crate::oracle::Oracle;
use crate::tamper::Mistake;
use crate::violation::{Checked, broken};
use crate::words::Said;
use crate::world::{FORGET_EVERY, World};

impl World {
    /// The store thread goes on: it syncs what it has written, or takes up what has gathered. If told so, it does all there is.
    pub fn commit(&mut self, all: bool) -> Checked {
        if self.disk.failed {
            return Ok(());
        }
        if self.sync_waits > 0 && !all {
            self.sync_waits -= 1;
            return Ok(());
        }
        if self.disk.writing.is_some() {
            self.finish()?;
            if !all {
                return Ok(());
            }
        }
        let batch = self.disk.gather(&mut self.random, all);
        self.take_up(batch)?;
        let at_once = all || self.sync_waits == 0 && self.random.below(2) == 0;
        if at_once { self.finish() } else { Ok(()) }
    }

    /// The store thread has just taken up all there is, and written some of it.
    pub fn begin_commit(&mut self) -> Checked {
        if self.disk.failed || self.disk.writing.is_some() {
            return Ok(());
        }
        let batch = self.disk.gather(&mut self.random, true);
        self.take_up(batch)
    }

    /// Writes a batch, unless there is nothing to write or no room.
    fn take_up(&mut self, mut batch: Batch) -> Checked {
        self.keep_house(&mut batch);
        if batch.requests.is_empty() {
            return Ok(());
        }
        if !batch.requests.iter().any(Request::writes) {
            self.disk.carry_out(&mut batch, false);
            return self.conclude(batch);
        }
        self.disk.writes += 1;
        let no_room = !self.calm && self.plan.full_writes.contains(&self.disk.writes);
        if no_room || self.disk.full {
            self.coverage.add(Seen::FullWrites, u64::from(no_room));
            return self.refuse(batch);
        }
        if !self.calm && self.tamper.strikes(Mistake::AnswersBeforeCommit, &mut self.random) {
            self.answer_early(&mut batch);
            self.sync_waits = 20;
        }
        if self.tamper.mistake() == Mistake::DeliveredBeforeCommit {
            self.deliver_early(&batch);
        }
        self.disk.write(batch);
        Ok(())
    }

    /// Old client ids are forgotten, beside what was asked.
    fn keep_house(&mut self, batch: &mut Batch) {
        if self.now.mono >= self.forget_at {
            self.forget_at = self.now.mono + FORGET_EVERY;
            let before = Wall(self.now.wall.0.saturating_sub(self.plan.idempotency.0));
            self.oracle.forgetting(before);
            batch.requests.push(Request::ForgetClientIds { before });
        }
        if !batch.requests.is_empty() {
            batch.requests.extend(self.tamper.housekeeping(&mut self.random));
        }
    }

    /// There is no room: what would write is refused, what reads is answered.
    fn refuse(&mut self, mut batch: Batch) -> Checked {
        if self.tamper.mistake() == Mistake::FullDiskAcknowledged {
            self.answer_early(&mut batch);
        }
        self.disk.carry_out(&mut batch, true);
        self.conclude(batch)
    }

    /// Syncs what was written; when that went well, it has happened and is answered.
    fn finish(&mut self) -> Checked {
        let Some(mut batch) = self.disk.writing.take() else { return Ok(()) };
        self.disk.syncs += 1;
        if !self.calm && self.plan.failed_syncs.contains(&self.disk.syncs) {
            self.coverage.count(Seen::FailedSyncs);
            self.trace.line(format_args!("{} the sync of {} fails", self.now.mono.0, batch.requests.len()));
            self.disk.fail_sync(&mut self.random);
            if self.tamper.mistake() == Mistake::AnswersAfterFailedSync {
                self.answer_early(&mut batch);
            }
            // The store thread ends the process; the shards go on until it is over.
            self.ends_in = Some(self.random.below(30) as u32);
            return Ok(());
        }
        if self.tamper.mistake() != Mistake::SyncSkipped {
            self.disk.sync();
        }
        self.disk.carry_out(&mut batch, false);
        self.conclude(batch)
    }

    /// A batch was carried out: looks at what it did, and answers it.
    fn conclude(&mut self, mut batch: Batch) -> Checked {
        self.note(&batch);
        self.check_batch(batch.requests.iter().zip(&batch.replies))?;
        for ((_, _, ticket), reply) in batch.from.iter().zip(&mut batch.replies) {
            self.tamper.reply(ticket, reply, &mut self.random);
        }
        self.disk.answer(batch);
        Ok(())
    }

    /// A mistake: answers from what the store would be, and leaves nobody to be answered later.
    fn answer_early(&mut self, batch: &mut Batch) {
        let mut replies = carry_out(&mut self.disk.store.clone(), &batch.requests);
        let from = std::mem::take(&mut batch.from);
        replies.truncate(from.len());
        self.disk.answer(Batch { from, requests: Vec::new(), replies });
    }

    /// A mistake: sends new messages on their way to their devices before they are written.
    fn deliver_early(&mut self, batch: &Batch) {
        let (key, shards) = (self.hash_key(), self.plan.shards);
        let mut heads = BTreeMap::new();
        for (request, (owner, ..)) in batch.requests.iter().zip(&batch.from) {
            let Request::Append { conversation, from, client_id, ts, payload, .. } = request else {
                continue;
            };
            let Some(record) = self.disk.store.record(*conversation) else { continue };
            let body = Body::Message { from: *from, client_id: *client_id, payload: payload.clone() };
            let head = heads.entry(*conversation).or_insert(record.head);
            *head = head.next();
            let entry = Arc::new(Entry { seq: *head, ts: *ts, body });
            let mut routes: BTreeMap<_, Vec<UserId>> = BTreeMap::new();
            for member in &record.members {
                routes.entry(partition_of_user(&key, member.user)).or_default().push(member.user);
            }
            for (to, users) in routes.into_iter().filter(|(to, _)| owner_of(*to, shards) != *owner) {
                let delivery = Delivery {
                    conversation: *conversation,
                    entry: Arc::clone(&entry),
                    users: users[..].into(),
                    except: Some(*from),
                    marked: Vec::new(),
                };
                let effect = Effect::Mail { to, input: Input::Deliver(delivery) };
                self.post.push(*owner, owner_of(to, shards), effect);
            }
        }
    }

    /// The process is gone: whatever the disk kept is found again, and it is what had been promised.
    pub fn recover(&mut self) -> Checked {
        let reading = self.tamper.mistake().reading();
        let was_writing = self.disk.writing.is_some() || self.disk.failed;
        self.disk.crash(&mut self.random);
        let found = match self.disk.recover(reading, &mut self.random) {
            Ok(found) => found,
            // What is wrong for those who were promised something says more.
            Err(violation) => return self.oracle.check_durable(&self.disk.store).and(Err(violation)),
        };
        let survived = !found.survivor.is_empty();
        self.coverage.add(Seen::Survivors, u64::from(survived));
        self.coverage.add(Seen::LostTails, u64::from(was_writing && !survived));
        self.coverage.add(Seen::TornTails, u64::from(found.torn));
        self.coverage.add(Seen::InterruptedRecoveries, u64::from(found.interrupted));
        for (request, reply) in &found.survivor {
            self.trace.line(format_args!(
                "{} survived: {} → {}",
                self.now.mono.0,
                Said(request),
                Said(reply)
            ));
        }
        self.check_batch(found.survivor.iter().map(|(request, reply)| (request, reply)))?;
        self.oracle.check_durable(&self.disk.store)
    }

    fn note(&mut self, batch: &Batch) {
        self.coverage.count(Seen::Commits);
        self.trace.line(format_args!("{} commit of {}", self.now.mono.0, batch.requests.len()));
        for (index, (request, reply)) in batch.requests.iter().zip(&batch.replies).enumerate() {
            self.trace.line(format_args!("{}   {} → {}", self.now.mono.0, Said(request), Said(reply)));
            let seen = match (request, reply) {
                (Request::Settle { .. }, Reply::ReadOnly) => Seen::SettleWaited,
                (_, Reply::ReadOnly) => Seen::DiskFull,
                (Request::LoadConversation { conversation }, _) => match self.loaded.insert(*conversation) {
                    true => Seen::Loads,
                    false => Seen::Reloads,
                },
                (_, Reply::Appended { .. }) => Seen::Sends,
                (_, Reply::MemberAdded { .. }) => Seen::Added,
                (_, Reply::MemberRemoved { .. }) => Seen::Removed,
                (_, Reply::Forgotten(count)) => {
                    self.coverage.add(Seen::Forgotten, u64::from(*count));
                    continue;
                }
                (Request::RegisterDevice { device, .. }, Reply::Registered { fresh: true, .. }) => {
                    match self.disk.store.devices_of(device.user).count() {
                        1 => Seen::Registered,
                        _ => Seen::LateDevices,
                    }
                }
                (Request::Settle { conversation, trim, .. }, _) => {
                    let raced = batch.requests[index..].iter().any(
                        |later| matches!(later, Request::Append { conversation: other, .. } if other == conversation),
                    );
                    self.coverage.add(Seen::SettleRaced, u64::from(raced));
                    self.coverage.add(Seen::Trims, u64::from(*trim > Seq::ZERO));
                    Seen::Settles
                }
                (Request::ReadLog { conversation, .. }, Reply::Page(entries)) => {
                    if let Some((_, _, Ticket::Page { device, .. })) = batch.from.get(index) {
                        let is_member = self.oracle.share(*conversation, *device).is_some();
                        self.coverage.add(Seen::PageAfterRemoval, u64::from(!is_member));
                    }
                    if entries.is_empty() { Seen::PageEmpty } else { Seen::Pages }
                }
                _ => continue,
            };
            self.coverage.count(seen);
        }
    }

    /// What a batch did is what it may do. The store is as after all of it.
    fn check_batch<'a>(&mut self, done: impl Iterator<Item = (&'a Request, &'a Reply)> + Clone) -> Checked {
        let (oracle, store): (&mut Oracle, _) = (&mut self.oracle, &self.disk.store);
        for (request, reply) in done.clone() {
            oracle.committed(request, reply, store)?;
        }
        for (request, _) in done {
            let conversation = match request {
                Request::Append { conversation, .. }
                | Request::Settle { conversation, .. }
                | Request::Acknowledge { conversation, .. }
                | Request::RemoveMember { conversation, .. }
                | Request::AddMember { conversation, .. } => *conversation,
                _ => continue,
            };
            oracle.check_conversation(conversation, store)?;
        }
        if self.random.below(32) == 0
            && let Err(what) = self.disk.store.check()
        {
            return broken("store", what);
        }
        Ok(())
    }
}
