//! Every route about conversations: what it does, and what it refuses.

use std::sync::atomic::Ordering;

use model::UserId;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::server::{Options, Server, token, user};

fn users(count: usize) -> Vec<UserId> {
    (0..count).map(|number| user(&format!("member {number}"))).collect()
}

fn texts(users: &[UserId]) -> Vec<String> {
    users.iter().map(UserId::to_string).collect()
}

/// Sorted, as a set.
fn members(conversation: &Value) -> Vec<String> {
    let list = conversation["members"].as_array().expect("members");
    let mut members: Vec<String> =
        list.iter().map(|member| member.as_str().expect("text").to_owned()).collect();
    members.sort();
    members
}

fn sorted(users: &[UserId]) -> Vec<String> {
    let mut texts = texts(users);
    texts.sort();
    texts
}

impl Server {
    fn create(&self, by: &str, kind: &str, members: &[UserId]) -> Answer {
        let body = json!({"kind": kind, "members": texts(members)}).to_string();
        self.ask("POST", "/v1/conversations", Some(&token(by)), Some(&body))
    }

    /// The id of a new group.
    fn group(&self, by: &str, members: &[UserId]) -> String {
        let answer = self.create(by, "group", members);
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["id"].as_str().expect("an id").to_owned()
    }

    fn member(&self, method: &str, by: &str, conversation: &str, user: &str) -> Answer {
        self.ask(method, &format!("/v1/conversations/{conversation}/members/{user}"), Some(&token(by)), None)
    }

    fn list(&self, by: &str) -> Vec<Value> {
        let answer = self.ask("GET", "/v1/conversations", Some(&token(by)), None);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let json = answer.json();
        assert_eq!(json.as_object().expect("an object").len(), 1);
        json["conversations"].as_array().expect("a list").clone()
    }
}

#[test]
fn a_pair_has_one_direct_conversation_whoever_asks_and_how_often() {
    let server = Server::start();
    let (alice, bob) = (user("alice"), user("bob"));
    let first = server.create("alice", "direct", &[bob]);
    assert_eq!(first.status, 201);
    assert_eq!(first.header("content-type"), Some("application/json"));
    let made = first.json();
    assert_eq!(made["id"], model::direct_id(alice, bob).to_string());
    assert_eq!(made["kind"], "direct");
    assert_eq!(made["head"], 1);
    assert_eq!(members(&made), sorted(&[alice, bob]));
    assert_eq!(made.as_object().expect("an object").len(), 4);
    for again in [
        server.create("alice", "direct", &[bob]),
        server.create("bob", "direct", &[alice]),
        server.create("bob", "direct", &[alice, bob, alice]),
    ] {
        assert_eq!(again.status, 200);
        assert_eq!(again.json(), made);
    }
    assert_ne!(server.create("alice", "direct", &[user("carol")]).json()["id"], made["id"]);
}

#[test]
fn a_direct_conversation_needs_exactly_one_other() {
    let server = Server::start();
    let alice = user("alice");
    for others in [&[][..], &[alice], &[user("bob"), user("carol")]] {
        let detail = server.create("alice", "direct", others).problem(400, "bad_request");
        assert!(detail.contains("`members`"), "{detail}");
    }
}

#[test]
fn a_group_holds_its_asker_and_each_member_once() {
    let server = Server::start();
    let (alice, bob, carol) = (user("alice"), user("bob"), user("carol"));
    let answer = server.create("alice", "group", &[carol, bob, carol, alice, bob]);
    assert_eq!(answer.status, 201);
    let group = answer.json();
    assert_eq!(members(&group), sorted(&[alice, bob, carol]));
    assert_eq!((group["kind"].as_str(), group["head"].as_u64()), (Some("group"), Some(1)));
    // RFC 9562, section 5.4: version 4, random.
    assert_eq!(group["id"].as_str().expect("an id").as_bytes()[14], b'4');
    let again = server.create("alice", "group", &[bob, carol]);
    assert_eq!(again.status, 201, "every group is another one");
    assert_ne!(again.json()["id"], group["id"]);
    let alone = server.create("alice", "group", &[]);
    assert_eq!((alone.status, members(&alone.json())), (201, sorted(&[alice])));
}

#[test]
fn a_group_holds_1024_and_not_one_more() {
    let server = Server::start();
    let full = server.create("asker", "group", &users(1_023));
    assert_eq!(full.status, 201);
    let id = full.json()["id"].as_str().expect("an id").to_owned();
    assert_eq!(members(&full.json()).len(), 1_024);
    server.create("asker", "group", &users(1_024)).problem(400, "bad_request");
    server.create("asker", "group", &users(1_025)).problem(400, "bad_request");
    server.member("POST", "asker", &id, &user("one more").to_string()).problem(400, "bad_request");
    assert_eq!(server.member("DELETE", "asker", &id, &user("member 5").to_string()).status, 204);
    assert_eq!(server.member("POST", "asker", &id, &user("one more").to_string()).status, 200);
}

/// As it is listed before anybody has acknowledged anything.
fn unread(conversation: Value) -> Value {
    let receipt = |user: &Value| json!({"user": user, "delivered": 0, "read": 0});
    let receipts: Value = conversation["members"].as_array().expect("members").iter().map(receipt).collect();
    let mut listed = conversation;
    listed["receipts"] = receipts;
    listed
}

#[test]
fn everybody_is_told_of_their_own_conversations() {
    let server = Server::start();
    assert_eq!(server.list("alice"), [json!(null); 0]);
    let direct = unread(server.create("alice", "direct", &[user("bob")]).json());
    let group = unread(server.create("bob", "group", &[user("carol")]).json());
    assert_eq!(server.list("alice"), std::slice::from_ref(&direct));
    assert_eq!(server.list("carol"), std::slice::from_ref(&group));
    let both = server.list("bob");
    assert!(both.len() == 2 && both.contains(&direct) && both.contains(&group), "{both:?}");
    assert_eq!(server.list("dave"), [json!(null); 0]);
}

#[test]
fn members_come_and_go() {
    let server = Server::start();
    let (alice, bob, carol) = (user("alice"), user("bob"), user("carol"));
    let id = server.group("alice", &[bob]);

    let added = server.member("POST", "bob", &id, &carol.to_string());
    assert_eq!(added.status, 200);
    assert_eq!(members(&added.json()), sorted(&[alice, bob, carol]));
    assert_eq!(added.json()["head"], 2, "the change is an entry of the log");
    let again = server.member("POST", "alice", &id, &carol.to_string());
    assert_eq!((again.status, again.json()), (200, added.json()), "nothing changed");

    let removed = server.member("DELETE", "carol", &id, &bob.to_string());
    assert_eq!((removed.status, removed.body.as_str()), (204, ""));
    assert_eq!(server.list("bob"), [json!(null); 0]);
    assert_eq!(server.list("alice")[0]["head"], 3);

    assert_eq!(server.member("DELETE", "carol", &id, "me").status, 204);
    assert_eq!(members(&server.list("alice")[0]), sorted(&[alice]));
    assert_eq!(
        server.member("DELETE", "alice", &id, &alice.to_string()).status,
        204,
        "one's own id is oneself"
    );
    assert_eq!(server.list("alice"), [json!(null); 0]);
}

#[test]
fn a_stranger_and_an_ex_member_cannot_tell_a_conversation_from_none() {
    let server = Server::start();
    let id = server.group("alice", &[user("bob")]);
    assert_eq!(server.member("DELETE", "bob", &id, "me").status, 204);
    let nowhere = "00000000-0000-4000-8000-000000000000";
    let alice = user("alice").to_string();
    let carol = user("carol").to_string();
    for by in ["stranger", "bob"] {
        for (method, whom) in
            [("POST", &carol), ("POST", &alice), ("DELETE", &alice), ("DELETE", &"me".to_owned())]
        {
            let there = server.member(method, by, &id, whom);
            let absent = server.member(method, by, nowhere, whom);
            there.problem(403, "not_member");
            assert_eq!((there.status, there.body), (absent.status, absent.body), "{by} {method} {whom}");
        }
    }
    assert_eq!(members(&server.list("alice")[0]), [alice]);
}

#[test]
fn only_a_member_can_be_removed() {
    let server = Server::start();
    let id = server.group("alice", &[user("bob")]);
    server.member("DELETE", "alice", &id, &user("carol").to_string()).problem(404, "not_found");
}

#[test]
fn the_members_of_a_direct_conversation_do_not_change() {
    let server = Server::start();
    let id =
        server.create("alice", "direct", &[user("bob")]).json()["id"].as_str().expect("an id").to_owned();
    server.member("POST", "alice", &id, &user("carol").to_string()).problem(400, "bad_request");
    server.member("DELETE", "alice", &id, &user("bob").to_string()).problem(400, "bad_request");
    server.member("DELETE", "bob", &id, "me").problem(400, "bad_request");
}

#[test]
fn an_address_that_is_no_uuid_is_named() {
    let server = Server::start();
    let id = server.group("alice", &[]);
    let someone = user("bob").to_string();
    for (id, user, named) in [
        ("x", someone.as_str(), "`id`"),
        ("f81d4fae7dec11d0a76500a0c91e6bf6", &someone, "`id`"),
        (&id, "bob", "`user`"),
        (&id, "%62%6f", "`user`"),
        (&id, "me%2e", "`user`"),
    ] {
        let detail = server.member("DELETE", "alice", id, user).problem(400, "bad_request");
        assert!(detail.contains(named), "{detail}");
    }
    server.member("DELETE", "alice", "x", "me").problem(400, "bad_request");
    server.member("DELETE", "alice", &id, "%ff").problem(400, "bad_request");
}

#[test]
fn s4_a_full_disk_refuses_changes_and_goes_on_reading() {
    let server = Server::start();
    let id = server.group("alice", &[user("bob")]);
    server.full.store(true, Ordering::SeqCst);
    server.create("alice", "direct", &[user("bob")]).problem(503, "read_only");
    server.create("alice", "group", &[]).problem(503, "read_only");
    server.member("POST", "alice", &id, &user("carol").to_string()).problem(503, "read_only");
    server.member("DELETE", "alice", &id, "me").problem(503, "read_only");
    assert_eq!(server.list("alice").len(), 1);
    server.full.store(false, Ordering::SeqCst);
    assert_eq!(server.create("alice", "direct", &[user("bob")]).status, 201);
    assert_eq!(server.member("POST", "alice", &id, &user("carol").to_string()).status, 200);
}

#[test]
fn any_number_of_shards_gives_the_same_answers() {
    for shards in [1, 3] {
        let server = Server::with(Options { shards: Some(shards), ..Options::default() });
        for number in 0..16 {
            let (one, other) = (format!("one {number}"), format!("other {number}"));
            let made = server.create(&one, "direct", &[user(&other)]);
            assert_eq!(made.status, 201);
            assert_eq!(server.list(&other), [unread(made.json())]);
        }
    }
}

/// A WebSocket on which a user is connected.
fn socket(server: &Server, user: &str) -> Client {
    let mut socket = server.client();
    socket.send(
        "GET /v1/socket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    socket.read_until("\r\n\r\n");
    command(&mut socket, &format!(r#"{{"id":1,"connect":{{"token":"{}"}}}}"#, token(user)));
    socket
}

fn command(socket: &mut Client, text: &str) {
    // RFC 6455, section 5.2: text, masked (with zeros), a length of two bytes.
    let mut frame = vec![0x81, 0x80 | 126, (text.len() >> 8) as u8, text.len() as u8, 0, 0, 0, 0];
    frame.extend_from_slice(text.as_bytes());
    socket.send(frame);
}

#[test]
fn the_list_tells_how_far_the_members_have_got() {
    let server = Server::start();
    let (alice, bob, carol) = (user("alice"), user("bob"), user("carol"));
    let id = server.group("alice", &[bob]);
    server.member("POST", "alice", &id, &carol.to_string());
    let mut socket = socket(&server, "bob");
    socket.read_until(r#""added""#);
    // Padded to a length that takes two bytes.
    let pad = " ".repeat(126);
    let text = format!(r#"{{"recv":{{"conv":"{id}","seq":2}}}}{pad}"#);
    command(&mut socket, &text);
    command(&mut socket, &format!(r#"{{"id":2,"read":{{"conv":"{id}","seq":1}}}}{pad}"#));
    socket.read_until(r#"{"id":2,"read":{}}"#);
    let receipt = |user: UserId, delivered: u64, read: u64| json!({"user": user.to_string(), "delivered": delivered, "read": read});
    for by in ["alice", "bob", "carol"] {
        let listed = server.list(by).remove(0);
        let receipts = listed["receipts"].as_array().expect("receipts").clone();
        let mut expected = vec![receipt(alice, 0, 0), receipt(bob, 2, 1)];
        // Those who came together are ordered by id.
        expected.sort_by_key(|receipt| receipt["user"].as_str().map(str::to_owned));
        expected.push(receipt(carol, 0, 0));
        assert_eq!(receipts, expected, "told to {by}");
    }
    // The other answers do not tell.
    assert!(server.member("POST", "alice", &id, &carol.to_string()).json().get("receipts").is_none());
}

#[test]
fn a_conversation_of_more_than_64_has_no_receipts() {
    let server = Server::start();
    server.group("small", &users(63));
    server.group("large", &users(64));
    let receipts = |by| server.list(by)[0]["receipts"].as_array().expect("receipts").len();
    assert_eq!((receipts("small"), receipts("large")), (64, 0));
}

#[test]
fn the_list_looks_as_documented() {
    let page = include_str!("../../../../docs/protocol.md");
    let (_, after) = page.split_once("```json conversations\n").expect("an example");
    let (example, _) = after.split_once("\n```").expect("an end");
    let example: Value = serde_json::from_str(example).expect("JSON");
    let server = Server::start();
    server.create("alice", "direct", &[user("bob")]);
    let told = json!({"conversations": server.list("alice")});
    assert_eq!(shape(&told), shape(&example));
}

/// What kinds of values lie where.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), shape(value))).collect(),
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::Number(_) => "number".into(),
        _ => "text".into(),
    }
}

#[test]
fn a_change_over_rest_is_pushed_to_the_sockets_of_its_members() {
    let server = Server::start();
    let mut socket = socket(&server, "bob");
    socket.read_until("caught_up");
    let made = server.create("alice", "direct", &[user("bob")]).json();
    let pushed = socket.read_until("\"message\"");
    let pushed = String::from_utf8_lossy(&pushed);
    assert!(pushed.contains(made["id"].as_str().expect("an id")) && pushed.contains("\"added\""), "{pushed}");
}
