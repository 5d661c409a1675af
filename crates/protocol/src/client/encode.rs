//! Requests, appended to a buffer.

use model::{ConversationId, Payload, Seq};

use crate::write::Sink;
use crate::{Command, Encoding, Request, Token, cbor, json};

/// Appends a request. Two items of one frame need [`Encoding::separator`] between them.
pub fn encode_request(encoding: Encoding, out: &mut Vec<u8>, request: &Request<'_>) {
    match encoding {
        Encoding::Json => write_request(&mut json::Writer::new(out), request),
        Encoding::Cbor => write_request(&mut cbor::Writer::new(out), request),
    }
}

fn write_request(sink: &mut impl Sink, request: &Request<'_>) {
    match request.id {
        Some(id) => {
            sink.map(2);
            sink.integer_field("id", id.get());
        }
        None => sink.map(1),
    }
    sink.key(request.command.verb());
    write_command(sink, &request.command);
    sink.end_map();
}

fn write_command(sink: &mut impl Sink, command: &Command<'_>) {
    match command {
        Command::Connect { token: None } | Command::Ping => sink.empty_map(),
        Command::Connect { token: Some(token) } | Command::Refresh { token } => write_token(sink, token),
        Command::Send { conversation, client_id, payload } => {
            sink.map(3);
            write_conv(sink, *conversation);
            sink.uuid_field("client_id", &client_id.0);
            sink.bytes_field("payload", payload);
            sink.end_map();
        }
        Command::SendPassing { conversation, payload } => write_passing(sink, *conversation, payload),
        Command::Recv { conversation, seq } | Command::Read { conversation, seq } => {
            write_place(sink, *conversation, *seq);
        }
        Command::Sync { conversation, after, limit } => {
            sink.map(3);
            write_conv(sink, *conversation);
            sink.integer_field("after", after.0);
            sink.integer_field("limit", u64::from(*limit));
            sink.end_map();
        }
    }
}

fn write_conv(sink: &mut impl Sink, conversation: ConversationId) {
    sink.uuid_field("conv", &conversation.0);
}

fn write_token(sink: &mut impl Sink, token: &Token<'_>) {
    sink.map(1);
    sink.text_field("token", &token.0);
    sink.end_map();
}

fn write_passing(sink: &mut impl Sink, conversation: ConversationId, payload: &Payload) {
    sink.map(3);
    write_conv(sink, conversation);
    sink.boolean_field("passing", true);
    sink.bytes_field("payload", payload);
    sink.end_map();
}

fn write_place(sink: &mut impl Sink, conversation: ConversationId, seq: Seq) {
    sink.map(2);
    write_conv(sink, conversation);
    sink.integer_field("seq", seq.0);
    sink.end_map();
}
