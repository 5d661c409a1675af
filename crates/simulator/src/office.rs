//! Requests that do not come over a socket: who makes conversations, and lets members come and go.
//!
//! Owns who waits for which answer. It enters by the same inputs as the sockets do.

use std::collections::BTreeMap;

use domain::{Act, Answer, Input, Origin, Refusal};
use model::{ConversationId, ConversationKind, ConversationListing, Now, Receipt, Seq, ShardId, UserId};

use crate::names::{Named, Registry};
use crate::oracle::Oracle;
use crate::random::Random;
use crate::trace::Trace;
use crate::violation::{Checked, Violation, broken};
use crate::words::Said;

/// A request that waits.
#[derive(Debug, Clone)]
struct Waiting {
    what: What,
    by: UserId,
    conversation: ConversationId,
    /// Where the membership began that the asker had.
    member_since: Option<Seq>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Create,
    Add(UserId),
    Remove(UserId),
    List,
}

/// Everybody who asks from outside.
#[derive(Debug)]
pub struct Office {
    registry: Registry,
    conversations_max: u16,
    tickets: u64,
    waiting: BTreeMap<u64, Waiting>,
    /// Direct conversations by their pair.
    direct: BTreeMap<(UserId, UserId), ConversationId>,
    groups: Vec<(ConversationId, UserId, Vec<UserId>)>,
    violation: Option<Violation>,
}

impl Office {
    /// Nobody waits.
    pub fn new(registry: Registry, conversations_max: u16) -> Self {
        Office {
            registry,
            conversations_max,
            tickets: 0,
            waiting: BTreeMap::new(),
            direct: BTreeMap::new(),
            groups: Vec::new(),
            violation: None,
        }
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The process is gone, and everybody who waited.
    pub fn crash(&mut self) {
        self.waiting.clear();
    }

    /// Makes up a request.
    pub fn request(
        &mut self,
        users: &[UserId],
        oracle: &Oracle,
        shard: ShardId,
        random: &mut Random,
    ) -> Option<Input> {
        let by = *random.pick(users)?;
        let known: Vec<ConversationId> = self.groups.iter().map(|(id, ..)| *id).collect();
        let (what, conversation) = match random.below(10) {
            0 | 1 => return self.create(by, users, oracle, shard, random),
            2 => (What::List, ConversationId([0; 16])),
            3..=6 => (What::Add(*random.pick(users)?), *random.pick(&known)?),
            7 | 8 => (What::Remove(*random.pick(users)?), *random.pick(&known)?),
            _ => (What::Remove(by), *random.pick(&known)?),
        };
        Some(self.enter(what, by, conversation, None, oracle, shard))
    }

    /// Asks for a conversation: a new one, or one that is there.
    pub fn create(
        &mut self,
        by: UserId,
        users: &[UserId],
        oracle: &Oracle,
        shard: ShardId,
        random: &mut Random,
    ) -> Option<Input> {
        let number = (self.direct.len() + self.groups.len()) as u16;
        if number >= self.conversations_max {
            return None;
        }
        if random.below(2) == 0 {
            let other = *random.pick(users)?;
            if other == by {
                return None;
            }
            let (registry, pair) = (self.registry, (by.min(other), by.max(other)));
            let conversation =
                *self.direct.entry(pair).or_insert_with(|| registry.conversation(random, number));
            let members = vec![by, other];
            let create = (ConversationKind::Direct, members);
            return Some(self.enter(What::Create, by, conversation, Some(create), oracle, shard));
        }
        // Now and then the same request comes again, as after a lost answer.
        if random.below(4) == 0
            && let Some((conversation, by, members)) = random.pick(&self.groups).cloned()
        {
            let create = (ConversationKind::Group, members);
            return Some(self.enter(What::Create, by, conversation, Some(create), oracle, shard));
        }
        let mut members: Vec<UserId> = users.iter().copied().filter(|_| random.below(2) == 0).collect();
        if !members.contains(&by) {
            members.push(by);
        }
        let conversation = self.registry.conversation(random, number);
        self.groups.push((conversation, by, members.clone()));
        let create = (ConversationKind::Group, members);
        Some(self.enter(What::Create, by, conversation, Some(create), oracle, shard))
    }

    fn enter(
        &mut self,
        what: What,
        by: UserId,
        conversation: ConversationId,
        create: Option<(ConversationKind, Vec<UserId>)>,
        oracle: &Oracle,
        shard: ShardId,
    ) -> Input {
        self.tickets += 1;
        let member_since = oracle.membership(conversation, by).map(|period| period.start);
        self.waiting.insert(self.tickets, Waiting { what, by, conversation, member_since });
        let origin = Origin::Outside { shard, ticket: self.tickets };
        let act = match (what, create) {
            (What::Add(user), _) => Act::Add { origin, by, user },
            (What::Remove(user), _) => Act::Remove { origin, by, user },
            (What::Create, Some((kind, members))) => Act::Create { origin, by, kind, members },
            _ => return Input::ListConversations { origin, user: by },
        };
        Input::Chat { conversation, act }
    }

    /// Somebody asks for a conversation by a request made elsewhere.
    pub fn expect_creation(&mut self, ticket: u64, by: UserId, conversation: ConversationId) {
        self.waiting.insert(ticket, Waiting { what: What::Create, by, conversation, member_since: None });
    }

    /// An answer came.
    pub fn answered(
        &mut self,
        ticket: u64,
        answer: Result<Answer, Refusal>,
        oracle: &Oracle,
        trace: &mut Trace,
        now: Now,
    ) {
        match &answer {
            Ok(answer) => trace.line(format_args!("{} office ← {ticket} {}", now.mono.0, Said(answer))),
            Err(why) => trace.line(format_args!("{} office ← {ticket} {why:?}", now.mono.0)),
        }
        let checked = match self.waiting.remove(&ticket) {
            Some(waiting) => check(&waiting, &answer, oracle),
            None => broken("office", format!("request {ticket} was answered twice")),
        };
        if let Err(violation) = checked {
            self.violation.get_or_insert(violation);
        }
    }

    /// What was wrong with an answer, if something was.
    pub fn verdict(&mut self) -> Checked {
        self.violation.take().map_or(Ok(()), Err)
    }
}

fn check(waiting: &Waiting, answer: &Result<Answer, Refusal>, oracle: &Oracle) -> Checked {
    let (by, name) = (Named(waiting.by), Named(waiting.conversation));
    let still = oracle.membership(waiting.conversation, waiting.by).map(|period| period.start);
    if *answer == Err(Refusal::NotMember) && still.is_some() && still == waiting.member_since {
        return broken("office", format!("{by} is a member of {name} and refused as none"));
    }
    match (waiting.what, answer) {
        (What::List, Ok(Answer::Conversations(list))) => {
            let mut summaries = list.iter().map(|listing| &listing.summary);
            match summaries.find(|summary| !summary.members.contains(&waiting.by)) {
                Some(other) => broken("D9", format!("the list of {by} has {}", Named(other.id))),
                None => list.iter().try_for_each(|ConversationListing { summary, receipts }| {
                    let conversation = summary.id;
                    receipts.iter().try_for_each(|Receipt { user, delivered, read }| {
                        let (user, delivered, read) = (*user, *delivered, *read);
                        let receipt = protocol::Receipt { conversation, user, delivered, read };
                        oracle.receipt(waiting.by, &receipt)
                    })
                }),
            }
        }
        (What::Create, Ok(Answer::Conversation { summary, .. })) => {
            match summary.members.contains(&waiting.by) {
                true => Ok(()),
                false => broken("D9", format!("{by} made {name} and is no member")),
            }
        }
        (What::Add(user), Ok(Answer::Conversation { summary, .. })) if summary.members.contains(&user) => {
            Ok(())
        }
        (What::Remove(user), Ok(Answer::Conversation { summary, .. }))
            if !summary.members.contains(&user) =>
        {
            Ok(())
        }
        (_, Err(Refusal::NotMember | Refusal::NotFound(_) | Refusal::BadRequest(_))) => Ok(()),
        (_, Err(Refusal::ReadOnly | Refusal::Overloaded(_))) => Ok(()),
        // What was asked for may have been done or not.
        (_, Err(Refusal::Internal(why))) if why.starts_with("a fault in the server") => Ok(()),
        (what, answer) => broken("office", format!("{by} asked {what:?} of {name} and was told {answer:?}")),
    }
}
