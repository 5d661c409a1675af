//! Mistakes made on purpose, to see whether the checkers notice: each is a rule of the server broken from outside, where its mail, its
//! requests and its replies pass.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::{Effect, Input, Push};
use model::{Body, ConversationId, Entry, PartitionId, Payload, Seq, UserId};
use shard::Ask;
use store::{Reply, Request};

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
    ];
}

/// Makes mistakes, now and then.
#[derive(Debug, Default)]
pub struct Tamper {
    mistake: Mistake,
    /// Everybody to whom something of a conversation was delivered, by the owner of the users.
    served: BTreeMap<(ConversationId, PartitionId), Vec<UserId>>,
    /// A push that waits to be overtaken.
    overtaken: Option<Effect>,
}

impl Tamper {
    /// Makes this one.
    pub fn new(mistake: Mistake) -> Self {
        Tamper { mistake, ..Tamper::default() }
    }

    /// Whether it is made this time.
    pub fn strikes(&self, mistake: Mistake, random: &mut Random) -> bool {
        self.mistake == mistake && random.below(8) == 0
    }

    /// A piece of mail on its way to another shard.
    pub fn mail(&mut self, effect: Effect, random: &mut Random, send: &mut dyn FnMut(Effect)) {
        if self.mistake == Mistake::None {
            return send(effect);
        }
        let strikes = random.below(8) == 0;
        match (effect, self.mistake) {
            (Effect::Mail { input: Input::Deliver(_), .. }, Mistake::DeliveryLost) if strikes => {}
            (Effect::Mail { to, input: Input::Deliver(mut delivery) }, Mistake::RemovedStillServed) => {
                let served = self.served.entry((delivery.conversation, to)).or_default();
                served.extend(delivery.users.iter());
                served.sort_unstable();
                served.dedup();
                delivery.users = served[..].into();
                send(Effect::Mail { to, input: Input::Deliver(delivery) });
            }
            (
                Effect::Mail {
                    to,
                    input: Input::Receipt { conversation, user, delivered, read, users, except },
                },
                Mistake::ReceiptTooFar,
            ) if strikes => {
                let delivered = delivered.next();
                send(Effect::Mail {
                    to,
                    input: Input::Receipt { conversation, user, delivered, read, users, except },
                });
            }
            (Effect::Push { connection, push: Push::Entry { conversation, entry } }, mistake) if strikes => {
                let push = |entry| Effect::Push { connection, push: Push::Entry { conversation, entry } };
                match mistake {
                    Mistake::PushedTwice => {
                        send(push(Arc::clone(&entry)));
                        send(push(entry));
                    }
                    Mistake::PushedOutOfOrder if self.overtaken.is_none() => {
                        self.overtaken = Some(push(entry))
                    }
                    Mistake::PayloadChanged => send(push(Arc::new(changed(&entry)))),
                    _ => send(push(entry)),
                }
            }
            (effect, _) => send(effect),
        }
        if strikes && let Some(late) = self.overtaken.take_if(|_| random.below(2) == 0) {
            send(late);
        }
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

    /// A reply on its way back.
    pub fn reply(&mut self, reply: &mut Reply, random: &mut Random) {
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
