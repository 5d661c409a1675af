//! How inputs, effects, requests and replies are written in a trace: the names they have in code, then the ids in short.

use std::fmt;

use domain::{Act, Answer, CloseCause, Effect, Input, Push, Ticket};
use model::{Body, DeviceKey, Entry};
use store::{Reply, Request};

use crate::names::Named;

/// Something as a trace tells it.
pub struct Said<'a, T>(pub &'a T);

struct List<'a>(&'a [DeviceKey]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, device) in self.0.iter().enumerate() {
            write!(f, "{}{}", if index == 0 { "" } else { "," }, Named(*device))?;
        }
        Ok(())
    }
}

impl fmt::Display for Said<'_, Input> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Input::Connect { device, connection, .. } => {
                write!(f, "Input::Connect {} on {}:{}", Named(*device), connection.shard.0, connection.slot)
            }
            Input::Disconnect { device, connection } => {
                write!(
                    f,
                    "Input::Disconnect {} on {}:{}",
                    Named(*device),
                    connection.shard.0,
                    connection.slot
                )
            }
            Input::ListConversations { user, .. } => write!(f, "Input::ListConversations {}", Named(*user)),
            Input::Chat { conversation, act } => {
                write!(f, "Input::Chat({}) {}", Said(act), Named(*conversation))
            }
            Input::Deliver(delivery) => {
                let (conversation, entry) = (Named(delivery.conversation), Said(&*delivery.entry));
                write!(f, "Input::Deliver {conversation} {entry}, marked {}", List(&delivery.marked))
            }
            Input::Acknowledged { device, conversation, cursor } => {
                write!(f, "Input::Acknowledged {} {} up to {cursor}", Named(*device), Named(*conversation))
            }
            Input::Unmarked { devices } => write!(f, "Input::Unmarked {}", List(devices)),
            Input::Receipt { conversation, user, delivered, read, .. } => {
                let (conversation, user) = (Named(*conversation), Named(*user));
                write!(f, "Input::Receipt {conversation} {user} delivered {delivered} read {read}")
            }
            Input::Pass { conversation, from, .. } => {
                write!(f, "Input::Pass {} from {}", Named(*conversation), Named(*from))
            }
            Input::Changed { summary, event, .. } => {
                write!(f, "Input::Changed {} {event:?}", Named(summary.id))
            }
            Input::Interrupted { users, .. } => write!(f, "Input::Interrupted {} users", users.len()),
            Input::Stored { ticket, reply } => write!(f, "Input::Stored({}) {}", Said(reply), Said(ticket)),
        }
    }
}

impl fmt::Display for Said<'_, Act> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Act::Send { from, client_id, .. } => {
                write!(f, "Act::Send {} from {}", Named(*client_id), Named(*from))
            }
            Act::Pass { from, .. } => write!(f, "Act::Pass from {}", Named(*from)),
            Act::Receive { device, seq, .. } => write!(f, "Act::Receive {} up to {seq}", Named(*device)),
            Act::Read { device, seq, .. } => write!(f, "Act::Read {} up to {seq}", Named(*device)),
            Act::Sync { user, after, limit, .. } => {
                write!(f, "Act::Sync {} after {after} at most {limit}", Named(*user))
            }
            Act::Create { by, members, .. } => {
                write!(f, "Act::Create by {} of {} members", Named(*by), members.len())
            }
            Act::Add { by, user, .. } => write!(f, "Act::Add {} by {}", Named(*user), Named(*by)),
            Act::Remove { by, user, .. } => write!(f, "Act::Remove {} by {}", Named(*user), Named(*by)),
            Act::Passed { device, seq } => write!(f, "Act::Passed {} up to {seq}", Named(*device)),
            Act::DeviceAdded { device, cursor } => {
                write!(f, "Act::DeviceAdded {} at {cursor}", Named(*device))
            }
        }
    }
}

impl fmt::Display for Said<'_, Entry> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.body {
            Body::Message { from, client_id, .. } => {
                write!(f, "#{} {} from {}", self.0.seq, Named(*client_id), Named(*from))
            }
            Body::Change(change) => {
                use model::Change::{Added, Created, Left, Removed};
                match change {
                    Created { by, members } => {
                        write!(f, "#{} created by {} of {}", self.0.seq, Named(*by), members.len())
                    }
                    Added { by, user } => {
                        write!(f, "#{} {} added by {}", self.0.seq, Named(*user), Named(*by))
                    }
                    Removed { by, user } => {
                        write!(f, "#{} {} removed by {}", self.0.seq, Named(*user), Named(*by))
                    }
                    Left { user } => write!(f, "#{} {} left", self.0.seq, Named(*user)),
                }
            }
        }
    }
}

impl fmt::Display for Said<'_, Answer> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Answer::Connected => write!(f, "Answer::Connected"),
            Answer::Sent { seq, duplicate: false, .. } => write!(f, "Answer::Sent #{seq}"),
            Answer::Sent { seq, .. } => write!(f, "Answer::Sent #{seq}, a duplicate"),
            Answer::Passed => write!(f, "Answer::Passed"),
            Answer::Received => write!(f, "Answer::Received"),
            Answer::Read => write!(f, "Answer::Read"),
            Answer::Page { conversation, entries, head, more } => {
                let (count, conversation) = (entries.len(), Named(*conversation));
                write!(f, "Answer::Page {conversation} {count} entries, head {head}, more {more}")
            }
            Answer::Conversation { summary, fresh } => {
                write!(f, "Answer::Conversation {} fresh {fresh}", Named(summary.id))
            }
            Answer::Conversations(list) => write!(f, "Answer::Conversations {}", list.len()),
        }
    }
}

impl fmt::Display for Said<'_, Effect> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Effect::Answer { answer: Ok(answer), .. } => write!(f, "Effect::Answer({})", Said(answer)),
            Effect::Answer { answer: Err(why), .. } => write!(f, "Effect::Answer(Refusal {why:?})"),
            Effect::Push { connection, push } => {
                write!(f, "Effect::Push({}) on {}:{}", Said(push), connection.shard.0, connection.slot)
            }
            Effect::Close { connection, cause } => {
                let why = match cause {
                    CloseCause::Replaced => "CloseCause::Replaced",
                    CloseCause::Refused(_) => "CloseCause::Refused",
                };
                write!(f, "Effect::Close({why}) {}:{}", connection.shard.0, connection.slot)
            }
            Effect::Ask { ticket, request } => write!(f, "Effect::Ask({}) {}", Said(request), Said(ticket)),
            Effect::Mail { input, .. } => write!(f, "Effect::Mail({})", Said(input)),
            Effect::Evict { partition, .. } => write!(f, "Effect::Evict of partition {}", partition.0),
        }
    }
}

impl fmt::Display for Said<'_, Push> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Push::Entry { conversation, entry } => {
                write!(f, "Push::Entry {} {}", Named(*conversation), Said(&**entry))
            }
            Push::Passing { conversation, .. } => write!(f, "Push::Passing {}", Named(*conversation)),
            Push::Receipt { conversation, user, delivered, read } => {
                let (conversation, user) = (Named(*conversation), Named(*user));
                write!(f, "Push::Receipt {conversation} {user} delivered {delivered} read {read}")
            }
            Push::Conversation { summary, event } => {
                write!(f, "Push::Conversation {} {event:?}", Named(summary.id))
            }
            Push::CaughtUp => write!(f, "Push::CaughtUp"),
        }
    }
}

impl fmt::Display for Said<'_, Ticket> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Ticket::Conversation { .. } => write!(f, "for Ticket::Conversation"),
            Ticket::Register { .. } => write!(f, "for Ticket::Register"),
            Ticket::Pending { device, .. } => write!(f, "for Ticket::Pending {}", Named(*device)),
            Ticket::Page { device, conversation, .. } => {
                write!(f, "for Ticket::Page {} {}", Named(*device), Named(*conversation))
            }
            Ticket::Conversations(_) => write!(f, "for Ticket::Conversations"),
        }
    }
}

impl fmt::Display for Said<'_, Request> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Request::LoadConversation { conversation } => {
                write!(f, "Request::LoadConversation {}", Named(*conversation))
            }
            Request::ReadLog { conversation, after, up_to, limit, .. } => {
                let conversation = Named(*conversation);
                write!(f, "Request::ReadLog {conversation} after {after} up to {up_to} at most {limit}")
            }
            Request::ListPending { device } => write!(f, "Request::ListPending {}", Named(*device)),
            Request::ListConversations { user, .. } => {
                write!(f, "Request::ListConversations {}", Named(*user))
            }
            Request::RegisterDevice { device, .. } => write!(f, "Request::RegisterDevice {}", Named(*device)),
            Request::CreateConversation { conversation, by, members, .. } => {
                let (conversation, by) = (Named(*conversation), Named(*by));
                write!(f, "Request::CreateConversation {conversation} by {by} of {} members", members.len())
            }
            Request::Append { conversation, from, client_id, mark, .. } => {
                let (conversation, from, id) = (Named(*conversation), Named(*from), Named(*client_id));
                write!(f, "Request::Append {conversation} {id} from {from}, mark {}", List(mark))
            }
            Request::AddMember { conversation, user, by, .. } => {
                write!(f, "Request::AddMember {} {} by {}", Named(*conversation), Named(*user), Named(*by))
            }
            Request::RemoveMember { conversation, user, by, .. } => {
                write!(f, "Request::RemoveMember {} {} by {}", Named(*conversation), Named(*user), Named(*by))
            }
            Request::Acknowledge { conversation, device, seq } => {
                write!(f, "Request::Acknowledge {} {} up to {seq}", Named(*conversation), Named(*device))
            }
            Request::MarkRead { conversation, user, seq } => {
                write!(f, "Request::MarkRead {} {} up to {seq}", Named(*conversation), Named(*user))
            }
            Request::Settle { conversation, acknowledged, unmark, trim } => {
                write!(f, "Request::Settle {}, acknowledged", Named(*conversation))?;
                for (device, seq) in acknowledged {
                    write!(f, " {} up to {seq}", Named(*device))?;
                }
                write!(f, ", unmark {}, trim {trim}", List(unmark))
            }
            Request::ForgetClientIds { before } => write!(f, "Request::ForgetClientIds before {}", before.0),
            Request::Import { users, conversations, .. } => {
                write!(f, "Request::Import {} users, {} conversations", users.len(), conversations.len())
            }
            Request::Clean { phones } => write!(f, "Request::Clean {} to {}", phones.start(), phones.end()),
        }
    }
}

impl fmt::Display for Said<'_, Reply> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Reply::Conversation(Some(record)) => write!(f, "Reply::Conversation head {}", record.head),
            Reply::Conversation(None) => write!(f, "Reply::Conversation none"),
            Reply::Page(entries) => match (entries.first(), entries.last()) {
                (Some(first), Some(last)) => write!(f, "Reply::Page #{}..=#{}", first.seq, last.seq),
                _ => write!(f, "Reply::Page empty"),
            },
            Reply::Pending(places) => {
                write!(f, "Reply::Pending")?;
                places.iter().try_for_each(|place| {
                    write!(f, " {} {} of {}", Named(place.conversation), place.cursor, place.head)
                })
            }
            Reply::Conversations(list) => write!(f, "Reply::Conversations {}", list.len()),
            Reply::Registered { fresh, conversations } => {
                write!(f, "Reply::Registered fresh {fresh} in {} conversations", conversations.len())
            }
            Reply::Created { fresh, record } => {
                write!(f, "Reply::Created fresh {fresh} head {}", record.head)
            }
            Reply::Appended { seq } => write!(f, "Reply::Appended #{seq}"),
            Reply::Duplicate { seq, .. } => write!(f, "Reply::Duplicate #{seq}"),
            Reply::ClientIdReused => write!(f, "Reply::ClientIdReused"),
            Reply::MemberAdded { seq, devices } => {
                write!(f, "Reply::MemberAdded #{seq} with {} devices", devices.len())
            }
            Reply::MemberRemoved { seq, .. } => write!(f, "Reply::MemberRemoved #{seq}"),
            Reply::Done => write!(f, "Reply::Done"),
            Reply::Forgotten(count) => write!(f, "Reply::Forgotten {count}"),
            Reply::Imported(imported) => {
                write!(
                    f,
                    "Reply::Imported {} users, {} conversations",
                    imported.users, imported.conversations
                )
            }
            Reply::Cleaned(cleaned) => write!(f, "Reply::Cleaned {} rows", cleaned.rows()),
            Reply::Conflict => write!(f, "Reply::Conflict"),
            Reply::ReadOnly => write!(f, "Reply::ReadOnly"),
        }
    }
}
