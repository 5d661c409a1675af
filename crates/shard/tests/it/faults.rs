//! Row 25 of the attack list: a panic in our code closes connections that can come back, or lets one partition begin anew; nothing
//! that was answered is lost, and the process lives.
//!
//! The panic strikes at every point that a message passes on its way, one after another.

use protocol::CloseCode;
use serde_json::Value;
use shard::{Close, Metric, Shard};

use crate::client::{self, Heard};
use crate::script::{Run, runs};
use crate::world::HOME;

/// More points than a message passes.
const POINTS: u32 = 200;

const BEFORE: &str = r#"
    alice and bob chat in $c
    carol connects as carol/1
    carol ← {"caught_up":{}}
"#;
const MESSAGE: &str = r#"{"id":2,"send":{"conv":"$c","client_id":"$m2","payload":"Zm9vYmFy"}}"#;

/// What happens between the arming and the disarming, so that many points are passed.
const PASSED: &[(&str, &str)] = &[("alice", MESSAGE), ("bob", r#"{"id":2,"recv":{"conv":"$c","seq":1}}"#)];

fn faults(run: &mut Run) -> u64 {
    run.world.shards.iter_mut().map(|shard: &mut Shard| shard.counters().get(Metric::Faults)).sum()
}

/// Everything of a kind that somebody has heard.
fn heard<'a>(run: &'a Run, name: &str, kind: &str) -> Vec<&'a Value> {
    let all = run.world.clients[name].heard.iter();
    all.filter_map(|heard| match heard {
        Heard::Object(object) => object.get(kind),
        _ => None,
    })
    .collect()
}

/// Whether a client was closed, in a way after which it comes back.
fn came_off(run: &Run, name: &str) -> bool {
    let client = &run.world.clients[name];
    if client.closed.is_none() {
        return false;
    }
    let code = client.heard.iter().find_map(|heard| match heard {
        Heard::Close(code, _) => *code,
        _ => None,
    });
    // Who could not even be told is cut off, which is a reason to come back as well.
    let expected = (client.closed != Some(Close::Now)).then_some(CloseCode::Internal.code());
    assert_eq!(code, expected, "{name} may come back: {:?}", client.heard);
    true
}

#[test]
fn row_25_a_panic_at_any_point_of_a_messages_way_loses_nothing() {
    domain::fault::keep_quiet();
    for again in 0..runs(|_| {}).count() {
        let mut reached = 0;
        for point in 1..=POINTS {
            let mut run = runs(|_| {}).nth(again).expect("as many as before");
            run.script(BEFORE);
            domain::fault::arm(point);
            for (name, line) in PASSED {
                let bytes = run.bytes(line);
                run.world.feed(name, &bytes);
            }
            if domain::fault::arm(0) > 0 {
                break;
            }
            reached = point;
            assert_eq!(faults(&mut run), 1, "point {point}: one panic, and it was survived");
            // Whoever came off comes back; alice says again what she has no answer to.
            let answered = !heard(&run, "alice", "send").is_empty();
            let mut now = Vec::new();
            for name in ["alice", "bob", "carol"] {
                let back = match came_off(&run, name) {
                    true => format!("{name} again"),
                    false => name.to_owned(),
                };
                if back != name {
                    let head = client::request(run.world.encoding, &[]);
                    run.world.accept(&back, HOME);
                    run.world.feed(&back, &head);
                    let connect = format!(r#"{{"id":1,"connect":{{"token":"$token {name}/1"}}}}"#);
                    let connect = run.bytes(&connect);
                    run.world.feed(&back, &connect);
                }
                now.push(back);
            }
            if !answered {
                let bytes = run.bytes(MESSAGE);
                run.world.feed(&now[0], &bytes);
                assert_eq!(heard(&run, &now[0], "send").len(), 1, "point {point}: alice is answered");
            }
            let ping = run.bytes(r#"{"id":9,"ping":{}}"#);
            for name in &now {
                run.world.feed(name, &ping);
                assert_eq!(heard(&run, name, "ping").len(), 1, "point {point}: {name} is served");
            }
            let messages = heard(&run, &now[1], "message");
            let places: Vec<u64> = messages.iter().filter_map(|message| message["seq"].as_u64()).collect();
            assert_eq!(places, [2], "point {point}: bob gets it once on his last connection");
            assert_eq!(faults(&mut run), 1);
        }
        println!("{reached} points");
        assert!((12..POINTS).contains(&reached), "{reached} points were passed");
    }
}

#[test]
fn row_25_a_panic_over_a_connections_bytes_closes_that_connection_alone() {
    domain::fault::keep_quiet();
    for mut run in runs(|_| {}) {
        run.script(BEFORE);
        domain::fault::arm(1);
        let bytes = run.bytes(r#"{"id":3,"ping":{}}"#);
        run.world.feed("alice", &bytes);
        assert_eq!(domain::fault::arm(0), 0);
        run.script(
            r#"
            alice ← close 4500
            bob → {"id":3,"ping":{}}
            bob ← {"id":3,"ping":{}}
            carol → {"id":3,"ping":{}}
            carol ← {"id":3,"ping":{}}
            c connects as alice/1
            c ← {"caught_up":{}}
            "#,
        );
        assert_eq!(faults(&mut run), 1);
        run.end();
    }
}

#[test]
fn row_25_a_panic_over_a_request_head_leaves_the_count_of_strangers_right() {
    domain::fault::keep_quiet();
    for mut run in runs(|settings| settings.unauthenticated_max = 1) {
        for name in ["p", "q", "r"] {
            domain::fault::arm(1);
            run.world.accept(name, HOME);
            run.world.feed(name, b"GET /v1/socket HTTP/1.1\r\n");
            assert_eq!(domain::fault::arm(0), 0);
            run.script(&format!("{name} ← gone"));
        }
        run.script("a connects as alice/1\na ← {\"caught_up\":{}}");
        run.end();
    }
}
