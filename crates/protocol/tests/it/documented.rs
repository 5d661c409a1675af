//! `docs/protocol.md` is what strangers write clients from, so its examples are read here and its numbers compared.

use std::collections::BTreeSet;
use std::path::Path;

use model::limits;
use protocol::client::Incoming;
use protocol::{Answer, Encoding, ErrorCode, Push, client, decode};

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocol.md");
    std::fs::read_to_string(path).expect("docs/protocol.md can be read")
}

/// The fenced blocks of the page: what stands after the fence, and the text within.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = page.split("\n```").collect();
    assert!(parts.len() % 2 == 1, "every fence is closed");
    parts.iter().skip(1).step_by(2).map(|block| block.split_once('\n').expect("a block has lines")).collect()
}

/// The bytes of a dump: hexadecimal digits, with a comment after `#`.
fn dump(text: &str) -> Vec<u8> {
    let digits: String = text.lines().map(|line| line.split('#').next().unwrap_or_default()).collect();
    crate::bytes::cbor(&digits)
}

#[test]
fn commands_of_the_page_are_read() {
    let page = page();
    let mut before = Vec::new();
    let mut verbs = BTreeSet::new();
    let mut dumps = 0;
    for (kind, text) in blocks(&page) {
        match kind {
            "json command" => {
                before = decode(Encoding::Json, text.as_bytes(), limits::PAYLOAD_BYTES_MAX).collect();
                assert!(!before.is_empty());
                for read in &before {
                    verbs.insert(read.as_ref().expect(text).command.verb());
                }
            }
            "cbor command" => {
                let bytes = dump(text);
                let read: Vec<_> = decode(Encoding::Cbor, &bytes, limits::PAYLOAD_BYTES_MAX).collect();
                assert!(read == before, "the dump is not the command above it:\n{text}");
                dumps += 1;
            }
            _ => {}
        }
    }
    assert_eq!(Vec::from_iter(verbs), ["connect", "ping", "read", "recv", "refresh", "send", "sync"]);
    assert_eq!(dumps, 2);
}

#[test]
fn replies_and_pushes_of_the_page_are_read() {
    let page = page();
    let (mut answers, mut pushes) = (BTreeSet::new(), BTreeSet::new());
    let mut refusals = 0;
    for (kind, text) in blocks(&page) {
        for item in client::decode(Encoding::Json, text.as_bytes()) {
            match (kind, item) {
                ("json reply", Ok(Incoming::Reply(reply))) => match reply.outcome {
                    Ok(answer) => _ = answers.insert((answer.verb(), matches!(answer, Answer::SendPassing))),
                    Err(_) => refusals += 1,
                },
                ("json push", Ok(Incoming::Push(push))) => _ = pushes.insert(push_name(&push)),
                ("json reply" | "json push", other) => panic!("{other:?} is no {kind}:\n{text}"),
                _ => break,
            }
        }
    }
    assert_eq!(refusals, 1);
    assert_eq!(answers.len(), 7, "read is as recv: {answers:?}");
    let expected =
        ["caught_up", "conversation", "disconnect", "entry", "passing", "receipt", "token_expiring"];
    assert_eq!(Vec::from_iter(pushes), expected);
}

fn push_name(push: &Push<'_>) -> &'static str {
    match push {
        Push::Message { .. } => "entry",
        Push::Passing(_) => "passing",
        Push::Receipt(_) => "receipt",
        Push::Conversation(_) => "conversation",
        Push::CaughtUp => "caught_up",
        Push::TokenExpiring { .. } => "token_expiring",
        Push::Disconnect(_) => "disconnect",
    }
}

#[test]
fn the_problem_of_the_page_is_a_row_of_the_table() {
    let page = page();
    let (_, text) = *blocks(&page).iter().find(|(kind, _)| *kind == "json problem").expect("an example");
    let problem: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let row = ErrorCode::from_code(problem["code"].as_u64().expect("a number")).expect("a row");
    assert_eq!(problem["name"], row.name());
    assert_eq!(problem["status"], row.http_status());
}

/// With commas between thousands, as the page writes numbers.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[test]
fn the_limits_of_the_page_are_those_of_the_model() {
    let page = page();
    let (_, table) = page.split_once("\n## Limits\n").expect("a section on limits");
    for (row, number) in [
        ("| payload |", limits::PAYLOAD_BYTES_MAX),
        ("| WebSocket message", limits::CLIENT_MESSAGE_BYTES_MAX),
        ("| WebSocket message", limits::FRAGMENTS_MAX),
        ("| WebSocket message", limits::FRAGMENTS_DEADLINE.0 as usize / 1000),
        ("| nesting", limits::NESTING_MAX),
        ("| commands", limits::COMMANDS_BURST as usize),
        ("| commands", limits::COMMANDS_PER_SECOND as usize),
        ("| commands", limits::SYNC_ENTRIES_PER_COMMAND as usize),
        ("| entries in one page", limits::SYNC_LIMIT_MAX as usize),
        ("| entries in one page", limits::PAGE_BYTES_MAX / 1024),
        ("| pushed and not", limits::WINDOW_MESSAGES_MAX),
        ("| pushed and not", limits::WINDOW_BYTES_MAX / 1024),
        ("| waiting for", limits::OUTBOX_BYTES_MAX / (1024 * 1024)),
        ("| members of a group", limits::GROUP_MEMBERS_MAX),
    ] {
        let line = table.lines().find(|line| line.starts_with(row)).expect(row);
        let words: Vec<&str> =
            line.split_whitespace().map(|word| word.trim_end_matches([',', ';'])).collect();
        assert!(words.contains(&&*grouped(number)), "{number} is not in {line}");
    }
}
