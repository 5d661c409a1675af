//! The server's side of writing: replies and pushes, appended to the buffer that goes to the socket.

use model::{ConversationId, UserId};

use crate::write::Sink;
use crate::{
    Answer, Body, Connected, ConversationChange, ConversationPush, Disconnect, Encoding, Message, Passing,
    Push, Receipt, Refusal, Reply, SystemEntry, Window, cbor, json,
};

/// Appends a reply. A success whose request had no id is not sent, so nothing is appended for it.
///
/// Two items of one frame need [`Encoding::separator`] between them.
pub fn encode_reply(encoding: Encoding, out: &mut Vec<u8>, reply: &Reply<'_>) {
    match encoding {
        Encoding::Json => write_reply(&mut json::Writer::new(out), reply),
        Encoding::Cbor => write_reply(&mut cbor::Writer::new(out), reply),
    }
}

/// Appends a push. It is the same for every device it goes to, so one that goes to many is encoded once.
///
/// Two items of one frame need [`Encoding::separator`] between them.
pub fn encode_push(encoding: Encoding, out: &mut Vec<u8>, push: &Push<'_>) {
    match encoding {
        Encoding::Json => write_push(&mut json::Writer::new(out), push),
        Encoding::Cbor => write_push(&mut cbor::Writer::new(out), push),
    }
}

fn write_reply(sink: &mut impl Sink, reply: &Reply<'_>) {
    match (&reply.outcome, reply.id) {
        (Ok(_), None) => return,
        (_, Some(id)) => {
            sink.map(2);
            sink.integer_field("id", id.get());
        }
        (Err(_), None) => sink.map(1),
    }
    match &reply.outcome {
        Ok(answer) => write_answer(sink, answer),
        Err(refusal) => write_refusal(sink, refusal),
    }
    sink.end_map();
}

fn write_answer(sink: &mut impl Sink, answer: &Answer<'_>) {
    sink.key(answer.verb());
    match answer {
        Answer::Connect(connected) => write_connected(sink, connected),
        Answer::Refresh { expires_at } => {
            sink.map(1);
            sink.integer_field("expires_at", expires_at.0);
            sink.end_map();
        }
        Answer::Send(sent) => {
            sink.map(if sent.duplicate { 3 } else { 2 });
            sink.integer_field("seq", sent.seq.0);
            sink.integer_field("ts", sent.ts.0);
            if sent.duplicate {
                sink.boolean_field("duplicate", true);
            }
            sink.end_map();
        }
        Answer::Sync(page) => {
            sink.map(3);
            sink.key("messages");
            sink.list(page.messages.len());
            for message in page.messages.iter() {
                sink.item();
                write_message(sink, message);
            }
            sink.end_list();
            sink.integer_field("head", page.head.0);
            sink.boolean_field("more", page.more);
            sink.end_map();
        }
        Answer::Ping | Answer::SendPassing | Answer::Recv | Answer::Read => sink.empty_map(),
    }
}

fn write_connected(sink: &mut impl Sink, connected: &Connected<'_>) {
    sink.map(6);
    sink.text_field("session", &connected.session);
    sink.uuid_field("user", &connected.user.0);
    sink.integer_field("device", u64::from(connected.device.0));
    sink.integer_field("server_time", connected.server_time.0);
    sink.integer_field("ping_ms", connected.ping.0);
    write_window(sink, "reconnect_ms", connected.reconnect);
    sink.end_map();
}

fn write_window(sink: &mut impl Sink, name: &'static str, window: Window) {
    sink.key(name);
    sink.list(2);
    for span in [window.min, window.max] {
        sink.item();
        sink.integer(span.0);
    }
    sink.end_list();
}

fn write_refusal(sink: &mut impl Sink, refusal: &Refusal<'_>) {
    sink.key("error");
    sink.map(5);
    sink.integer_field("code", u64::from(refusal.code.code()));
    sink.text_field("name", refusal.code.name());
    sink.text_field("message", &refusal.message);
    sink.boolean_field("temporary", refusal.code.temporary());
    sink.integer_field("retry_after_ms", refusal.retry_after.0);
    sink.end_map();
}

fn write_push(sink: &mut impl Sink, push: &Push<'_>) {
    sink.map(1);
    match push {
        Push::Message(message) => {
            sink.key("message");
            write_message(sink, message);
        }
        Push::Passing(passing) => {
            sink.key("message");
            write_passing(sink, passing);
        }
        Push::Receipt(receipt) => {
            sink.key("receipt");
            write_receipt(sink, receipt);
        }
        Push::Conversation(conversation) => {
            sink.key("conversation");
            write_conversation(sink, conversation);
        }
        Push::CaughtUp => {
            sink.key("caught_up");
            sink.empty_map();
        }
        Push::TokenExpiring { expires_at } => {
            sink.key("token_expiring");
            sink.map(1);
            sink.integer_field("expires_at", expires_at.0);
            sink.end_map();
        }
        Push::Disconnect(disconnect) => {
            sink.key("disconnect");
            write_disconnect(sink, disconnect);
        }
    }
    sink.end_map();
}

fn write_conv(sink: &mut impl Sink, conversation: ConversationId) {
    sink.uuid_field("conv", &conversation.0);
}

fn write_message(sink: &mut impl Sink, message: &Message<'_>) {
    match &message.body {
        Body::Sent { from, client_id, payload } => {
            sink.map(7);
            write_conv(sink, message.conversation);
            sink.integer_field("seq", message.seq.0);
            sink.uuid_field("from", &from.user.0);
            sink.integer_field("device", u64::from(from.device.0));
            sink.integer_field("ts", message.ts.0);
            sink.uuid_field("client_id", &client_id.0);
            sink.bytes_field("payload", payload);
        }
        Body::System(entry) => {
            sink.map(4);
            write_conv(sink, message.conversation);
            sink.integer_field("seq", message.seq.0);
            sink.integer_field("ts", message.ts.0);
            sink.key("system");
            write_system_entry(sink, entry);
        }
    }
    sink.end_map();
}

fn write_system_entry(sink: &mut impl Sink, entry: &SystemEntry<'_>) {
    sink.map(3);
    sink.text_field("event", entry.event.name());
    write_users(sink, "users", &entry.users);
    sink.uuid_field("by", &entry.by.0);
    sink.end_map();
}

fn write_users(sink: &mut impl Sink, name: &'static str, users: &[UserId]) {
    sink.key(name);
    sink.list(users.len());
    for user in users {
        sink.item();
        sink.uuid(&user.0);
    }
    sink.end_list();
}

fn write_passing(sink: &mut impl Sink, passing: &Passing<'_>) {
    sink.map(5);
    write_conv(sink, passing.conversation);
    sink.uuid_field("from", &passing.from.user.0);
    sink.integer_field("device", u64::from(passing.from.device.0));
    sink.integer_field("ts", passing.ts.0);
    sink.bytes_field("payload", &passing.payload);
    sink.end_map();
}

fn write_receipt(sink: &mut impl Sink, receipt: &Receipt) {
    sink.map(4);
    write_conv(sink, receipt.conversation);
    sink.uuid_field("user", &receipt.user.0);
    sink.integer_field("delivered", receipt.delivered.0);
    sink.integer_field("read", receipt.read.0);
    sink.end_map();
}

fn write_conversation(sink: &mut impl Sink, push: &ConversationPush<'_>) {
    let (event, rest) = match &push.change {
        ConversationChange::Added { kind, members, head } => ("added", Some((kind, members, head))),
        ConversationChange::Changed { kind, members, head } => ("changed", Some((kind, members, head))),
        ConversationChange::Removed => ("removed", None),
    };
    sink.map(if rest.is_some() { 5 } else { 2 });
    write_conv(sink, push.conversation);
    sink.text_field("event", event);
    if let Some((kind, members, head)) = rest {
        sink.text_field("kind", kind.name());
        write_users(sink, "members", members);
        sink.integer_field("head", head.0);
    }
    sink.end_map();
}

fn write_disconnect(sink: &mut impl Sink, disconnect: &Disconnect<'_>) {
    sink.map(4);
    sink.integer_field("code", u64::from(disconnect.code.code()));
    sink.text_field("reason", &disconnect.reason);
    sink.boolean_field("reconnect", disconnect.code.comes_back());
    write_window(sink, "after_ms", disconnect.after);
    sink.end_map();
}
