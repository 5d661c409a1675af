//! One partition: one `match` says what is done about each input.

use model::limits::{RECEIPTS_MEMBERS_MAX, RESIDENT_CONVERSATIONS_MAX};
use model::{DeviceKey, HashKey, Mono, Now};
use store::{Reply, Request};

use crate::chat::Chat;
use crate::effect::{Answer, CloseCause, Effect, Effects, Push, Refusal, Ticket};
use crate::input::{Input, Origin, Subject};
use crate::sessions::Sessions;

/// What an operator may set.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Conversations kept in memory by one partition.
    pub residents_max: usize,
    /// There are no receipts in conversations with more members than this.
    pub receipts_members_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { residents_max: RESIDENT_CONVERSATIONS_MAX, receipts_members_max: RECEIPTS_MEMBERS_MAX }
    }
}

/// How much is in a partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Live sessions.
    pub sessions: usize,
    /// Known devices.
    pub devices: usize,
    /// Conversations in memory.
    pub conversations: usize,
    /// Sessions with something on its way to them.
    pub flights: usize,
}

/// The unit of single-writer state.
pub struct Partition {
    chat: Chat,
    sessions: Sessions,
    receipts_members_max: usize,
}

impl Partition {
    /// Empty: devices are made known with [`Partition::know`] before the first input.
    pub fn new(hash_key: HashKey, settings: Settings) -> Self {
        Partition {
            chat: Chat::new(hash_key, settings.residents_max, settings.receipts_members_max),
            sessions: Sessions::new(hash_key),
            receipts_members_max: settings.receipts_members_max,
        }
    }

    /// Learns at start of a device, and in how many conversations it is marked pending.
    pub fn know(&mut self, device: DeviceKey, pending: u32) {
        self.sessions.know(device, pending);
    }

    /// How much is in it.
    pub fn counts(&self) -> Counts {
        Counts {
            sessions: self.sessions.live(),
            devices: self.sessions.known(),
            conversations: self.chat.resident(),
            flights: self.sessions.in_flight(),
        }
    }

    /// When [`Partition::tick`] next has something to do.
    pub fn next_deadline(&self) -> Option<Mono> {
        self.chat.next_deadline()
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Now, out: &mut Effects) {
        self.chat.tick(now, out);
    }

    /// Decides about one input.
    pub fn handle(&mut self, now: Now, input: Input, out: &mut Effects) {
        match input {
            Input::Connect { origin, connection, device } => {
                self.sessions.connect(origin, connection, device, now.wall, out)
            }
            Input::Disconnect { connection, device } => self.sessions.disconnect(connection, device),
            Input::ListConversations { origin, user } => {
                let receipts_members_max = self.receipts_members_max;
                let request = Request::ListConversations { user, receipts_members_max };
                out.push(Effect::Ask { ticket: Ticket::Conversations(origin), request });
            }
            Input::Chat { conversation, act } => self.chat.handle(now, conversation, act, out),
            Input::Deliver(delivery) => self.sessions.deliver(&delivery, out),
            Input::Acknowledged { device, conversation, cursor } => {
                self.sessions.acknowledged(device, conversation, cursor, out);
            }
            Input::Unmarked { devices } => self.sessions.unmarked(&devices),
            Input::Receipt { conversation, user, delivered, read, users, except } => {
                let push = Push::Receipt { conversation, user, delivered, read };
                self.sessions.push(&users, Some(except), &push, out);
            }
            Input::Pass { conversation, from, payload, users } => {
                let push = Push::Passing { conversation, from, payload };
                self.sessions.push(&users, Some(from), &push, out);
            }
            Input::Changed { summary, event, users } => self.sessions.changed(&users, &summary, event, out),
            Input::Interrupted { users, devices } => self.sessions.interrupted(&users, &devices, out),
            Input::Stored { ticket, reply } => self.handle_stored(now, ticket, reply, out),
        }
    }

    /// Begins anew after a rule has failed (panicked) in the middle of an input about `subject`. What it had `wished` so far belongs to a
    /// decision that was never made, and is dropped.
    ///
    /// What is in memory may be half changed, so nothing of it is used but who waits for an answer and which conversations were
    /// being worked on. Nobody has a session here any more: [`Effect::Evict`] tells their connections. Whoever waits for the owner of a
    /// conversation is disconnected, for what they asked for may have been done. And since entries may have been committed that nobody
    /// was told of, the members of those conversations are disconnected when the store has answered all that it was asked. They come
    /// back and go on from their cursors, as after a crash.
    pub fn reload(&mut self, subject: Subject, wished: Effects, out: &mut Effects) {
        self.sessions.reload();
        let why = Refusal::Internal("a fault in the server; connect again, and ask again");
        let (mut answered, mut told) = (Vec::new(), Vec::new());
        for effect in wished {
            match effect {
                Effect::Answer { origin, .. } => answered.push(origin),
                // Those included who have just been removed and are among no members any more.
                Effect::Mail { input: Input::Changed { users, .. }, .. } => told.extend_from_slice(&users),
                _ => {}
            }
        }
        let mut waiting = self.chat.reload(subject.conversation, told, out);
        for origin in answered.into_iter().chain(subject.origin) {
            // It may have been put into a line before the failure.
            if !waiting.contains(&origin) {
                waiting.push(origin);
            }
        }
        for origin in waiting {
            out.push(match origin {
                Origin::Connection { connection, .. } => {
                    Effect::Close { connection, cause: CloseCause::Refused(why) }
                }
                Origin::Outside { .. } => Effect::Answer { origin, answer: Err(why) },
            });
        }
    }

    fn handle_stored(&mut self, now: Now, ticket: Ticket, reply: Reply, out: &mut Effects) {
        match (ticket, reply) {
            (Ticket::Conversation { conversation, life }, reply) => {
                self.chat.handle_stored(now, conversation, life, reply, out);
            }
            (Ticket::Register { origin, connection, device }, Reply::Registered { conversations, .. }) => {
                self.sessions.handle_registered(origin, connection, device, conversations, out);
            }
            (Ticket::Register { origin, connection, device }, reply) => {
                let why = if reply == Reply::ReadOnly {
                    Refusal::ReadOnly
                } else {
                    Refusal::Internal("the device could not be registered")
                };
                self.sessions.handle_not_registered(origin, connection, device, why, out);
            }
            (Ticket::Pending { connection, device }, Reply::Pending(records)) => {
                self.sessions.handle_pending(connection, device, records, out);
            }
            (Ticket::Page { connection, device, conversation, after }, Reply::Page(entries)) => {
                self.sessions.handle_page(connection, device, (conversation, after), entries, out);
            }
            (Ticket::Conversations(origin), Reply::Conversations(list)) => {
                answer(origin, Ok(Answer::Conversations(list)), out);
            }
            (Ticket::Conversations(origin), _) => {
                answer(origin, Err(Refusal::Internal("the store gave an answer to another question")), out);
            }
            // The session would wait for ever. A new one begins from the cursors.
            (Ticket::Pending { connection, device } | Ticket::Page { connection, device, .. }, _) => {
                self.sessions.disconnect(connection, device);
                let why = Refusal::Internal("what is pending could not be read");
                out.push(Effect::Close { connection, cause: CloseCause::Refused(why) });
            }
        }
    }
}

fn answer(origin: Origin, answer: Result<Answer, Refusal>, out: &mut Effects) {
    out.push(Effect::Answer { origin, answer });
}
