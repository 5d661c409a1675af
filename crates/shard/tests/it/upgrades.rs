//! Who may open a connection: origins, tokens, subprotocols, and how many at once. Rows 1, 3, 4 and 5 of the list of attacks.

use std::net::{IpAddr, Ipv4Addr};

use model::Span;
use shard::{Close, Settings};

use crate::client::Heard;
use crate::script::{Run, check, runs};
use crate::world::HOME;

const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));

/// The status that a request head is answered with, given its request line and its last headers.
fn status(run: &mut Run, line: &str, headers: &str) -> u16 {
    let name = format!("client {}", run.world.clients.len());
    run.world.accept(&name, HOME);
    let head = format!(
        "{line} HTTP/1.1\r\nHost: chat.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
    );
    run.world.feed(&name, head.as_bytes());
    let client = &run.world.clients[&name];
    match client.heard.front() {
        Some(Heard::Upgraded(_)) => {
            assert_eq!(client.closed, None);
            101
        }
        Some(Heard::Refused(status)) => {
            assert_eq!(client.closed, Some(Close::AfterFlush), "a refused connection is not used again");
            *status
        }
        other => panic!("{other:?} after {head}"),
    }
}

#[track_caller]
fn check_heads(adjust: fn(&mut Settings), cases: &[(u16, &str, &str)]) {
    for mut run in runs(adjust) {
        for (expected, line, headers) in cases {
            assert_eq!(status(&mut run, line, headers), *expected, "{line}\n{headers}");
        }
    }
}

const SOCKET: &str = "GET /v1/socket";

#[test]
fn by_default_only_pages_of_the_same_host_connect() {
    check_heads(
        |_| {},
        &[
            (101, SOCKET, ""),
            (101, SOCKET, "Origin: http://chat.example\r\n"),
            (403, SOCKET, "Origin: https://chat.example\r\n"),
            (403, SOCKET, "Origin: null\r\n"),
            (403, SOCKET, "Origin: \r\n"),
            (403, SOCKET, "Origin: chat.example\r\n"),
            (403, SOCKET, "Origin: http://chat.example.evil.test\r\n"),
            (403, SOCKET, "Origin: http://evilchat.example\r\n"),
            (403, SOCKET, "Origin: http://evil.test/http://chat.example\r\n"),
            (403, SOCKET, "Origin: http://chat.example@evil.test\r\n"),
            (403, SOCKET, "Origin: http://chat.example:8443\r\n"),
            (403, SOCKET, "Origin: http://chat.example/\r\n"),
            (403, SOCKET, "Origin: http://chat.exampl\r\n"),
            (403, SOCKET, "Origin: ftp://chat.example\r\n"),
            (403, SOCKET, "Origin: http://chat.example http://evil.test\r\n"),
            (400, SOCKET, "Origin: http://chat.example\r\nOrigin: http://evil.test\r\n"),
        ],
    );
}

#[test]
fn origins_that_the_operator_names_are_compared_exactly() {
    check_heads(
        |settings| {
            settings.origins = vec!["https://app.example".to_owned(), "http://localhost:5173".to_owned()];
        },
        &[
            (101, SOCKET, ""),
            (101, SOCKET, "Origin: https://app.example\r\n"),
            (101, SOCKET, "Origin: http://localhost:5173\r\n"),
            (403, SOCKET, "Origin: https://chat.example\r\n"),
            (403, SOCKET, "Origin: null\r\n"),
            (403, SOCKET, "Origin: http://app.example\r\n"),
            (403, SOCKET, "Origin: https://app.example:444\r\n"),
            (403, SOCKET, "Origin: https://app.example.evil.test\r\n"),
            (403, SOCKET, "Origin: https://evil.app.example\r\n"),
            (403, SOCKET, "Origin: HTTPS://APP.EXAMPLE\r\n"),
            (403, SOCKET, "Origin: http://localhost:51730\r\n"),
            (403, SOCKET, "Origin: http://localhost\r\n"),
        ],
    );
}

#[test]
fn a_token_in_the_address_is_refused_and_not_repeated() {
    check_heads(
        |_| {},
        &[
            (400, "GET /v1/socket?token=secretsecret", ""),
            (400, "GET /v1/socket?access_token=secretsecret", ""),
            (400, "GET /v1/socket?v=1&Token=secretsecret", ""),
            (400, "GET /v1/socket?t%6fken=secretsecret", ""),
            (400, "GET /v1/socket?token", ""),
            (101, "GET /v1/socket?v=1", ""),
            (101, "GET /v1/socket?broken=token", ""),
        ],
    );
    for mut run in runs(|_| {}) {
        status(&mut run, "GET /v1/socket?token=secretsecret", "");
        let written = String::from_utf8_lossy(&run.world.clients["client 0"].written).into_owned();
        assert!(!written.contains("secretsecret"), "{written}");
    }
}

#[test]
fn what_is_no_upgrade_of_version_13_is_refused() {
    check_heads(
        |_| {},
        &[
            (405, "POST /v1/socket", ""),
            (400, SOCKET, "Content-Length: 5\r\n"),
            (400, SOCKET, "Transfer-Encoding: chunked\r\n"),
            (400, SOCKET, "Host: chat.example\r\n"),
            (400, SOCKET, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"),
            (400, SOCKET, "Sec-WebSocket-Version: 13\r\n"),
            (431, SOCKET, &"X: y\r\n".repeat(65)),
        ],
    );
}

#[test]
fn the_first_subprotocol_that_is_known_is_spoken() {
    for mut run in runs(|_| {}) {
        for (offered, expected) in [
            ("", None),
            ("Sec-WebSocket-Protocol: throng.v1.json, throng.v1.cbor\r\n", Some("throng.v1.json")),
            ("Sec-WebSocket-Protocol: throng.v1.cbor, throng.v1.json\r\n", Some("throng.v1.cbor")),
            (
                "Sec-WebSocket-Protocol: soap\r\nSec-WebSocket-Protocol: throng.v1.cbor\r\n",
                Some("throng.v1.cbor"),
            ),
        ] {
            let name = format!("client {}", run.world.clients.len());
            assert_eq!(status(&mut run, SOCKET, offered), 101);
            let heard = run.world.clients[&name].heard.front();
            assert_eq!(heard, Some(&Heard::Upgraded(expected.map(str::to_owned))));
        }
        assert_eq!(status(&mut run, SOCKET, "Sec-WebSocket-Protocol: soap, throng.v2.json\r\n"), 400);
        assert_eq!(status(&mut run, SOCKET, "Sec-WebSocket-Protocol: THRONG.V1.JSON\r\n"), 400);
    }
}

#[test]
fn a_token_of_the_upgrade_that_is_refused_refuses_the_upgrade() {
    check(
        r#"
        a opens with Authorization: Bearer $forged alice/1
        a ← refused 401
        b opens with Authorization: Bearer $expired alice/1
        b ← refused 401
        c opens with Authorization: Bearer nonsense
        c ← refused 401
        # The credentials of another scheme are not for us.
        d opens with Authorization: Basic dXNlcjpwYXNz
        d → {"id":1,"connect":{}}
        d ← {"id":1,"error":"unauthorised"}
        d ← close 4401
        "#,
    );
}

#[test]
fn what_is_not_for_the_socket_is_handed_over_with_its_bytes() {
    let request = b"GET /v1/conversations HTTP/1.1\r\nHost: chat.example\r\n\r\nand more";
    for mut run in runs(|_| {}) {
        run.world.accept("whole", HOME);
        run.world.feed("whole", request);
        assert_eq!(run.world.handed_over.pop(), Some(("whole".to_owned(), request.to_vec())));
        // Whose it is is known at the end of the request line.
        let line_end = request.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
        run.world.accept("bytewise", HOME);
        for byte in &request[..line_end] {
            assert_eq!(run.world.handed_over, []);
            run.world.feed("bytewise", &[*byte]);
        }
        assert_eq!(run.world.handed_over.pop(), Some(("bytewise".to_owned(), request[..line_end].to_vec())));
        let connections: usize = run.world.shards.iter().map(shard::Shard::connections).sum();
        assert_eq!(connections, 0, "they are no connections of ours any more");
    }
}

/// Connects without saying anything; whether it was let in.
fn stall(run: &mut Run, name: &str, address: IpAddr) -> bool {
    run.world.accept(name, address);
    run.world.feed(name, b"GET /v1/socket HTTP/1.1\r\nHost: chat");
    run.world.clients[name].closed.is_none()
}

fn caps(settings: &mut Settings) {
    settings.unauthenticated_per_address_max = 3;
    settings.unauthenticated_max = 5;
}

/// As [`runs`] with one shard, since the caps are a shard's.
fn runs_on_one_shard(adjust: fn(&mut Settings)) -> impl Iterator<Item = Run> {
    runs(adjust).filter(|run| run.world.shards.len() == 1)
}

#[test]
fn those_who_say_nothing_are_capped_by_address_and_in_all() {
    for mut run in runs_on_one_shard(caps) {
        let from_home: Vec<bool> =
            ["h1", "h2", "h3", "h4"].iter().map(|name| stall(&mut run, name, HOME)).collect();
        assert_eq!(from_home, [true, true, true, false]);
        let from_other: Vec<bool> =
            ["o1", "o2", "o3"].iter().map(|name| stall(&mut run, name, OTHER)).collect();
        assert_eq!(from_other, [true, true, false]);
        // One place is free again when one of them leaves, and who says who they are takes none.
        run.world.part("o1");
        run.world.home = OTHER;
        for user in 0..10 {
            let name = format!("good{user}");
            run.script(&format!("{name} connects as user{user}/1\n{name} ← {{\"caught_up\":{{}}}}"));
        }
    }
}

#[test]
fn those_who_say_nothing_are_gone_after_ten_seconds() {
    for mut run in runs(|_| {}) {
        for number in 0..100 {
            assert!(stall(&mut run, &format!("stalled{number}"), HOME));
        }
        run.script("good connects as alice/1\ngood ← {\"caught_up\":{}}");
        // Dribbling does not help, nor does a token that is refused.
        run.world.wait(Span::seconds(9));
        run.world.feed("stalled7", b".example\r\n");
        run.world.wait(Span(999));
        let open = |run: &Run| run.world.clients.values().filter(|client| client.closed.is_none()).count();
        assert_eq!(open(&run), 101);
        run.world.wait(Span(1));
        assert_eq!(open(&run), 1);
        assert!(run.world.clients.values().all(|client| client.closed != Some(Close::AfterFlush)));
        run.script("good → {\"id\":2,\"ping\":{}}\ngood ← {\"id\":2,\"ping\":{}}");
        let connections: usize = run.world.shards.iter().map(shard::Shard::connections).sum();
        assert_eq!(connections, 1);
    }
}

#[test]
fn a_place_that_was_taken_by_the_silent_is_free_when_they_are_gone() {
    for mut run in runs_on_one_shard(caps) {
        for name in ["h1", "h2", "h3"] {
            assert!(stall(&mut run, name, HOME));
        }
        assert!(!stall(&mut run, "early", HOME));
        run.world.wait(Span::seconds(10));
        run.script("late connects as alice/1\nlate ← {\"caught_up\":{}}");
    }
}

#[test]
fn a_shard_takes_so_many_connections_and_no_more() {
    for mut run in runs_on_one_shard(|settings| settings.connections_max = 2) {
        run.script(
            r#"
            a connects as alice/1
            a ← {"caught_up":{}}
            b connects as bob/1
            b ← {"caught_up":{}}
            c opens
            c ← gone
            a breaks
            d connects as dave/1
            d ← {"caught_up":{}}
            "#,
        );
        run.end();
    }
}

#[test]
fn a_herd_is_admitted_at_a_rate() {
    for mut run in runs_on_one_shard(|settings| {
        settings.admission_burst = 2;
        settings.admission_per_second = 1;
    }) {
        let mut answers = || status(&mut run, SOCKET, "");
        assert_eq!([answers(), answers(), answers()], [101, 101, 503]);
        let refused = String::from_utf8_lossy(&run.world.clients["client 2"].written).into_owned();
        assert!(refused.contains("\r\nRetry-After: 2\r\n"), "{refused}");
        run.world.wait(Span::seconds(2));
        let mut answers = || status(&mut run, SOCKET, "");
        assert_eq!([answers(), answers(), answers()], [101, 101, 503]);
    }
}
