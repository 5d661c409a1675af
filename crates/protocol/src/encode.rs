//! The server's side of writing: replies and pushes, appended to the buffer that goes to the socket.

use model::{Body, Change, ConversationId, ConversationKind, ConversationSummary, Entry, UserId};

use crate::write::Sink;
use crate::{
    Answer, Connected, ConversationPush, Disconnect, Encoding, Passing, Push, Receipt, Refusal, Reply,
    Window, cbor, json,
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
            sink.list(page.entries.len());
            for entry in page.entries.iter() {
                sink.item();
                write_entry(sink, page.conversation, entry);
            }
            sink.end_list();
            sink.integer_field("head", page.head.0);
            sink.boolean_field("more", page.more);
            sink.end_map();
        }
        Answer::Ping | Answer::SendPassing | Answer::Recv | Answer::Read => sink.empty_map(),
    }
}

fn write_connected(sink: &mut impl Sink, connected: &Connected) {
    sink.map(6);
    sink.uuid_field("session", &connected.session);
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
        Push::Message { conversation, entry } => {
            sink.key("message");
            write_entry(sink, *conversation, entry);
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

fn write_entry(sink: &mut impl Sink, conversation: ConversationId, entry: &Entry) {
    match &entry.body {
        Body::Message { from, client_id, payload } => {
            sink.map(7);
            write_conv(sink, conversation);
            sink.integer_field("seq", entry.seq.0);
            sink.uuid_field("from", &from.user.0);
            sink.integer_field("device", u64::from(from.device.0));
            sink.integer_field("ts", entry.ts.0);
            sink.uuid_field("client_id", &client_id.0);
            sink.bytes_field("payload", payload);
        }
        Body::Change(change) => {
            sink.map(4);
            write_conv(sink, conversation);
            sink.integer_field("seq", entry.seq.0);
            sink.integer_field("ts", entry.ts.0);
            sink.key("system");
            write_change(sink, change);
        }
    }
    sink.end_map();
}

fn write_change(sink: &mut impl Sink, change: &Change) {
    let (event, users, by) = match change {
        Change::Created { by, members } => ("created", members.as_slice(), by),
        Change::Added { by, user } => ("added", std::slice::from_ref(user), by),
        Change::Removed { by, user } => ("removed", std::slice::from_ref(user), by),
        Change::Left { user } => ("left", std::slice::from_ref(user), user),
    };
    sink.map(3);
    sink.text_field("event", event);
    write_users(sink, "users", users);
    sink.uuid_field("by", &by.0);
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

fn write_passing(sink: &mut impl Sink, passing: &Passing) {
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
    match push {
        ConversationPush::Added(summary) => write_summary(sink, "added", summary),
        ConversationPush::Changed(summary) => write_summary(sink, "changed", summary),
        ConversationPush::Removed(conversation) => {
            sink.map(2);
            write_conv(sink, *conversation);
            sink.text_field("event", "removed");
            sink.end_map();
        }
    }
}

fn write_summary(sink: &mut impl Sink, event: &str, summary: &ConversationSummary) {
    sink.map(5);
    write_conv(sink, summary.id);
    sink.text_field("event", event);
    sink.text_field("kind", kind_name(summary.kind));
    write_users(sink, "members", &summary.members);
    sink.integer_field("head", summary.head.0);
    sink.end_map();
}

/// A conversation's kind as it is called on the wire, here and in REST.
pub const fn kind_name(kind: ConversationKind) -> &'static str {
    match kind {
        ConversationKind::Direct => "direct",
        ConversationKind::Group => "group",
    }
}

fn write_disconnect(sink: &mut impl Sink, disconnect: &Disconnect<'_>) {
    sink.map(4);
    sink.integer_field("code", u64::from(disconnect.code.code()));
    sink.text_field("reason", &disconnect.reason);
    sink.boolean_field("reconnect", disconnect.code.comes_back());
    write_window(sink, "after_ms", disconnect.after);
    sink.end_map();
}
