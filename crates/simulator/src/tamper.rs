//! Mistakes made on purpose, to see whether the checkers notice: each is a rule of the server broken from outside, where its mail, its
//! requests and its replies pass.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::{Effect, Input, Origin, Push, Ticket};
use model::{
    Body, ConnectionId, ConversationId, DeviceKey, Entry, PartitionId, Payload, Seq, ShardId, Span, UserId,
    Wall,
};
use shard::Ask;
use store::{Reply, Request};

use crate::device::Reading;
use crate::plan::Plan;
use crate::random::Random;

/// What is made wrong in a run; nothing, normally.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mistake {
    /// Nothing.
    #[default]
    None,
    /// Replies go out before the batch is durable, and a crash loses it.
    AnswersBeforeCommit,
    /// A new entry does not reach the owner of some user.
    DeliveryLost,
    /// An entry is pushed twice.
    PushedTwice,
    /// Entries are pushed in the wrong order.
    PushedOutOfOrder,
    /// A message is stored without the pending marks it should bring.
    MarksForgotten,
    /// Who was removed still gets what comes.
    RemovedStillServed,
    /// A page leaves out an entry.
    PageWithGap,
    /// Bytes are changed on the way.
    PayloadChanged,
    /// A receipt says more than is true.
    ReceiptTooFar,
    /// A cursor moves further than the device said.
    CursorTooFar,
    /// An acknowledgement is answered and not stored.
    CursorNotStored,
    /// The log is trimmed beyond what everybody has.
    TrimmedTooFar,
    /// The list of what is pending is empty.
    NothingPending,
    /// A repeat is answered with another place.
    DuplicateElsewhere,
    /// Marks are never taken away.
    NeverUnmarked,
    /// A reused client id is taken for a repeat.
    ReuseTaken,
    /// Repeats are not recognised any more.
    RepeatsTakenAgain,
    /// What was pushed over an old connection of a device and not acknowledged is not pushed over its new one.
    WindowTailLost,
    /// Nothing is synced.
    SyncSkipped,
    /// What is for a connection reaches the next one that has its slot.
    SlotReused,
    /// New entries are on their way to devices before they are durable.
    DeliveredBeforeCommit,
    /// Some of what is for a shard's partitions reaches another shard that takes itself for their owner.
    TwoWriters,
    /// After a sync has failed, its batch is answered and the process goes on.
    AnswersAfterFailedSync,
    /// What a full disk does not take is answered as if it did.
    FullDiskAcknowledged,
    /// Recovery takes the beginning of a batch whose end is missing.
    TornBatchTaken,
    /// Recovery takes what the image has already once more from the log.
    RecoveredTwice,
}

impl Mistake {
    /// All of them.
    pub const ALL: &'static [Mistake] = &[
        Mistake::AnswersBeforeCommit,
        Mistake::DeliveryLost,
        Mistake::PushedTwice,
        Mistake::PushedOutOfOrder,
        Mistake::MarksForgotten,
        Mistake::RemovedStillServed,
        Mistake::PageWithGap,
        Mistake::PayloadChanged,
        Mistake::ReceiptTooFar,
        Mistake::CursorTooFar,
        Mistake::CursorNotStored,
        Mistake::TrimmedTooFar,
        Mistake::NothingPending,
        Mistake::DuplicateElsewhere,
        Mistake::NeverUnmarked,
        Mistake::ReuseTaken,
        Mistake::RepeatsTakenAgain,
        Mistake::WindowTailLost,
        Mistake::SyncSkipped,
        Mistake::SlotReused,
        Mistake::DeliveredBeforeCommit,
        Mistake::TwoWriters,
        Mistake::AnswersAfterFailedSync,
        Mistake::FullDiskAcknowledged,
        Mistake::TornBatchTaken,
        Mistake::RecoveredTwice,
    ];

    /// Makes sure that a run has what the mistake needs to be made.
    pub(crate) fn arrange(self, plan: &mut Plan) {
        if self == Mistake::None {
            return;
        }
        // What stays within a shard cannot be tampered with.
        plan.shards = plan.shards.max(2);
        match self {
            Mistake::AnswersAfterFailedSync => plan.failed_syncs = vec![5, 20, 60],
            Mistake::FullDiskAcknowledged => plan.full_writes = (3..200).step_by(5).collect(),
            // Mail has to be so slow that its connection is gone before.
            Mistake::SlotReused => {
                (plan.holds, plan.hold_max) = (100, Span(1_500));
                (plan.breaks, plan.sleepers) = (40, 0);
            }
            Mistake::AnswersBeforeCommit
            | Mistake::SyncSkipped
            | Mistake::TornBatchTaken
            | Mistake::RecoveredTwice => plan.crashes = (1..8).map(|part| part * plan.steps / 8).collect(),
            _ => {}
        }
    }

    /// How recovery reads the log.
    pub(crate) fn reading(self) -> Reading {
        match self {
            Mistake::TornBatchTaken => Reading::TornToo,
            Mistake::RecoveredTwice => Reading::FromTheStart,
            _ => Reading::Soundly,
        }
    }
}

/// Makes mistakes, now and then.
#[derive(Debug, Default)]
pub struct Tamper {
    mistake: Mistake,
    /// Everybody to whom something of a conversation was delivered, by the owner of the users.
    served: BTreeMap<(ConversationId, PartitionId), Vec<UserId>>,
    /// A push that waits to be overtaken.
    overtaken: Option<(ShardId, Effect)>,
    /// The latest connection in each slot, and whose it is.
    tenants: BTreeMap<(ShardId, u32), (ConnectionId, DeviceKey)>,
    /// The last entry pushed to each device.
    pushed: BTreeMap<(DeviceKey, ConversationId), Seq>,
}

impl Tamper {
    /// Makes this one.
    pub fn new(mistake: Mistake) -> Self {
        Tamper { mistake, ..Tamper::default() }
    }

    /// Which one it is.
    pub fn mistake(&self) -> Mistake {
        self.mistake
    }

    /// Whether it is made this time.
    pub fn strikes(&self, mistake: Mistake, random: &mut Random) -> bool {
        self.mistake == mistake && random.below(8) == 0
    }

    /// A piece of mail on its way to another shard; `spare` is the queue of a shard that should not be there.
    pub fn mail(
        &mut self,
        to: ShardId,
        spare: ShardId,
        effect: Effect,
        random: &mut Random,
        send: &mut dyn FnMut(ShardId, Effect),
    ) {
        if self.mistake == Mistake::None {
            return send(to, effect);
        }
        self.watch(&effect);
        let strikes = random.below(8) == 0;
        match (effect, self.mistake) {
            (Effect::Mail { input: Input::Deliver(_), .. }, Mistake::DeliveryLost) if strikes => {}
            (
                Effect::Mail { to: owner, input: Input::Deliver(mut delivery) },
                Mistake::RemovedStillServed,
            ) => {
                let served = self.served.entry((delivery.conversation, owner)).or_default();
                served.extend(delivery.users.iter());
                served.sort_unstable();
                served.dedup();
                delivery.users = served[..].into();
                send(to, Effect::Mail { to: owner, input: Input::Deliver(delivery) });
            }
            (
                Effect::Mail {
                    to: owner,
                    input: Input::Receipt { conversation, user, delivered, read, users, except },
                },
                Mistake::ReceiptTooFar,
            ) if strikes => {
                let delivered = delivered.next();
                let input = Input::Receipt { conversation, user, delivered, read, users, except };
                send(to, Effect::Mail { to: owner, input });
            }
            (effect @ Effect::Mail { input: Input::Chat { .. }, .. }, Mistake::TwoWriters)
                if to == ShardId(0) && strikes =>
            {
                send(spare, effect);
            }
            (effect, Mistake::SlotReused) => send(to, self.readdressed(effect)),
            (Effect::Push { connection, push: Push::Entry { conversation, entry } }, mistake) if strikes => {
                let push = |entry| Effect::Push { connection, push: Push::Entry { conversation, entry } };
                match mistake {
                    Mistake::PushedTwice => {
                        send(to, push(Arc::clone(&entry)));
                        send(to, push(entry));
                    }
                    Mistake::PushedOutOfOrder if self.overtaken.is_none() => {
                        self.overtaken = Some((to, push(entry)));
                    }
                    Mistake::PayloadChanged => send(to, push(Arc::new(changed(&entry)))),
                    _ => send(to, push(entry)),
                }
            }
            (effect, _) => send(to, effect),
        }
        if strikes && let Some((to, late)) = self.overtaken.take_if(|_| random.below(2) == 0) {
            send(to, late);
        }
    }

    /// Remembers who has which slot, and what was pushed to whom.
    fn watch(&mut self, effect: &Effect) {
        match effect {
            Effect::Mail { input: Input::Connect { connection, device, .. }, .. } => {
                self.tenants.insert((connection.shard, connection.slot), (*connection, *device));
            }
            Effect::Push { connection, push: Push::Entry { conversation, entry } } => {
                let tenant = self.tenants.get(&(connection.shard, connection.slot));
                if let Some((_, device)) = tenant.filter(|(tenant, _)| tenant == connection) {
                    self.pushed.insert((*device, *conversation), entry.seq);
                }
            }
            _ => {}
        }
    }

    /// The process was started again, and all slots are free.
    pub fn restarted(&mut self) {
        self.tenants.clear();
    }

    /// The same effect for whoever has the slot now.
    fn readdressed(&self, mut effect: Effect) -> Effect {
        if let Effect::Push { connection, .. }
        | Effect::Close { connection, .. }
        | Effect::Answer { origin: Origin::Connection { connection, .. }, .. } = &mut effect
            && let Some((tenant, _)) = self.tenants.get(&(connection.shard, connection.slot))
            && tenant.generation > connection.generation
        {
            *connection = *tenant;
        }
        effect
    }

    /// A request on its way to the store.
    pub fn ask(&mut self, mut ask: Ask, random: &mut Random) -> Ask {
        if self.mistake == Mistake::None || random.below(8) > 0 {
            return ask;
        }
        match (&mut ask.request, self.mistake) {
            (Request::Append { mark, .. }, Mistake::MarksForgotten) => mark.clear(),
            (Request::Acknowledge { seq, .. }, Mistake::CursorTooFar) => *seq = seq.next(),
            (Request::Acknowledge { seq, .. }, Mistake::CursorNotStored) => *seq = Seq::ZERO,
            (Request::Settle { trim, .. }, Mistake::TrimmedTooFar) => *trim = Seq(trim.0 + 2),
            (Request::Settle { unmark, .. }, Mistake::NeverUnmarked) => unmark.clear(),
            _ => {}
        }
        ask
    }

    /// What the store does beside what it was asked.
    pub fn housekeeping(&self, random: &mut Random) -> Option<Request> {
        let strikes = self.strikes(Mistake::RepeatsTakenAgain, random);
        strikes.then_some(Request::ForgetClientIds { before: Wall(u64::MAX) })
    }

    /// A reply on its way back.
    pub fn reply(&mut self, ticket: &Ticket, reply: &mut Reply, random: &mut Random) {
        if self.mistake == Mistake::WindowTailLost
            && let (Ticket::Pending { device, .. }, Reply::Pending(places)) = (ticket, &mut *reply)
        {
            for place in places {
                let pushed = self.pushed.get(&(*device, place.conversation)).copied().unwrap_or_default();
                place.cursor = place.cursor.max(pushed).min(place.head);
            }
        }
        let rare = matches!(self.mistake, Mistake::ReuseTaken | Mistake::DuplicateElsewhere);
        if self.mistake == Mistake::None || !rare && random.below(4) > 0 {
            return;
        }
        match (reply, self.mistake) {
            (Reply::Page(entries), Mistake::PageWithGap) if entries.len() > 1 => {
                entries.remove(0);
            }
            (Reply::Pending(places), Mistake::NothingPending) => places.clear(),
            (Reply::Duplicate { seq, .. }, Mistake::DuplicateElsewhere) => *seq = seq.next(),
            (reply @ Reply::ClientIdReused, Mistake::ReuseTaken) => {
                *reply = Reply::Duplicate { seq: Seq(1), ts: model::Wall(0) };
            }
            _ => {}
        }
    }
}

fn changed(entry: &Entry) -> Entry {
    let mut entry = entry.clone();
    if let Body::Message { payload, .. } = &mut entry.body {
        let mut bytes = payload.bytes().to_vec();
        bytes[0] ^= 1;
        *payload = Payload::from(bytes);
    }
    entry
}
