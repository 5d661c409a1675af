//! Every operation by a member, by somebody who was one and by a stranger: row 17 of the list of attacks.

use domain::{Answer, Refusal};
use model::ConversationId;
use serde_json::{Value, json};

use crate::client::Heard;
use crate::names;
use crate::script::{Run, check, runs};

/// A group of alice and carol, which bob has left. Eve was never in it.
const GROUP: &str = r#"
    alice connects as alice/1
    bob connects as bob/1
    carol connects as carol/1
    eve connects as eve/1
    rest: alice creates group $g with $alice $bob
    rest ← "$any"
    alice → {"send":{"conv":"$g","client_id":"$early","payload":"Zm9v"}}
    bob → {"recv":{"conv":"$g","seq":2}}
    bob → {"read":{"conv":"$g","seq":2}}
    rest: alice removes $bob from $g
    rest ← "$any"
    rest: alice adds $carol to $g
    rest ← "$any"
    alice → {"recv":{"conv":"$g","seq":4}}
    carol → {"recv":{"conv":"$g","seq":4}}
"#;

/// What the socket offers, but for what it says of a conversation.
const COMMANDS: [&str; 5] = [
    r#"{"id":7,"send":{"conv":"$g","client_id":"$late","payload":"YmFy"}}"#,
    r#"{"id":7,"send":{"conv":"$g","passing":true,"payload":"YmFy"}}"#,
    r#"{"id":7,"recv":{"conv":"$g","seq":1}}"#,
    r#"{"id":7,"read":{"conv":"$g","seq":1}}"#,
    r#"{"id":7,"sync":{"conv":"$g","after":0,"limit":9}}"#,
];

/// What REST offers, by whoever is meant.
const REQUESTS: [&str; 5] = [
    "adds $dave to $g",
    "adds $WHO to $g",
    "removes $carol from $g",
    "removes $WHO from $g",
    "creates direct $g with $WHO $carol",
];

/// Everything somebody has heard since it was last asked for.
fn heard(run: &mut Run, name: &str) -> Vec<Value> {
    let heard = run.world.clients.get_mut(name).expect(name).heard.drain(..);
    let object = |heard| if let Heard::Object(object) = heard { object } else { panic!("{heard:?}") };
    heard.map(object).collect()
}

fn forget(run: &mut Run) {
    let names: Vec<String> = run.world.clients.keys().cloned().collect();
    names.iter().for_each(|name| drop(heard(run, name)));
}

/// What the store has of the group.
fn stored(run: &Run) -> String {
    format!("{:?}", run.world.store.record(ConversationId(names::id("g"))))
}

fn command(run: &mut Run, who: &str, command: &str) -> Vec<Value> {
    run.script(&format!("{who} → {command}"));
    heard(run, who)
}

fn request(run: &mut Run, who: &str, request: &str) -> Result<Answer, Refusal> {
    run.script(&format!("rest: {who} {}", request.replace("WHO", who)));
    run.world.answers.pop_front().expect("an answer")
}

#[test]
fn what_each_may_do_to_a_conversation() {
    let refused = json!({"id": 7, "error": {"code": 2003, "name": "not_member",
        "message": "you are not a member of this conversation", "temporary": false, "retry_after_ms": 0}});
    for mut run in runs(|_| {}) {
        run.script(GROUP);
        forget(&mut run);
        let before = stored(&run);
        for outsider in ["bob", "eve"] {
            for text in COMMANDS {
                // There is a group, and there is none: the same is told.
                for text in [text.to_owned(), text.replace("$g", "$none")] {
                    let told = command(&mut run, outsider, &text);
                    assert_eq!(told, std::slice::from_ref(&refused), "{outsider}: {text}");
                }
            }
            for text in REQUESTS {
                for text in [text.to_owned(), text.replace("$g", "$none")] {
                    if text.starts_with("creates direct $none") {
                        continue;
                    }
                    let told = request(&mut run, outsider, &text);
                    assert_eq!(told, Err(Refusal::NotMember), "{outsider} {text}");
                }
            }
            let Ok(Answer::Conversations(list)) = request(&mut run, outsider, "lists") else {
                panic!("no list")
            };
            assert_eq!(list.len(), 0, "{outsider}");
        }
        assert_eq!(stored(&run), before, "what was refused has changed nothing");
        for insider in ["alice", "carol"] {
            assert_eq!(heard(&mut run, insider), [Value::Null; 0], "nobody was told of an attempt");
        }
        // Who is a member may do all of it, and sees nothing from before joining.
        for text in COMMANDS {
            let told = command(&mut run, "carol", text);
            let reply = told.iter().find(|object| object["id"] == 7).expect("a reply");
            assert_eq!(reply.get("error"), None, "{text}: {reply}");
            if let Some(messages) = reply["sync"]["messages"].as_array() {
                let seqs: Vec<Option<u64>> = messages.iter().map(|message| message["seq"].as_u64()).collect();
                assert_eq!(seqs, [Some(4), Some(5)], "carol was added by the fourth entry");
            }
        }
        for text in ["adds $dave to $g", "removes $dave from $g", "removes $WHO from $g"] {
            request(&mut run, "carol", text).unwrap_or_else(|why| panic!("{text}: {why:?}"));
        }
    }
}

#[test]
fn who_was_removed_hears_nothing_more() {
    check(
        r#"
        alice connects as alice/1
        alice ← {"caught_up":{}}
        bob connects as bob/1
        bob ← {"caught_up":{}}
        rest: alice creates group $g with $alice $bob
        rest ← "$any"
        alice ← {"conversation":"$any"} {"message":"$any"}
        bob ← {"conversation":"$any"} {"message":"$any"}
        rest: alice removes $bob from $g
        rest ← "$any"
        alice ← {"conversation":"$any"} {"message":"$any"}
        bob ← {"conversation":{"conv":"$g","event":"removed"}}
        alice sends 3 to $g
        alice → {"send":{"conv":"$g","passing":true,"payload":""}}
        alice → {"recv":{"conv":"$g","seq":3}}
        bob ← nothing
        bob breaks
        again connects as bob/1
        again ← {"caught_up":{}}
        # Nor does another device of theirs.
        other connects as bob/2
        other ← {"caught_up":{}}
        alice sends 4 to $g
        again ← nothing
        other ← nothing
        "#,
    );
}
