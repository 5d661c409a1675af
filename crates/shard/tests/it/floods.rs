//! Clients that send without measure or do not read: rows 8 and 10 of the list of attacks.

use model::Span;
use model::limits::{OUTBOX_BYTES_MAX, OUTBOX_PASSING_BYTES_MAX};
use protocol::Encoding;
use websocket::Opcode;

use crate::client::{self, Heard};
use crate::script::{Run, check, runs};

/// The bytes that a shard reads from one connection at a time.
const READ: usize = 64 * 1024;

fn pongs(run: &Run, name: &str) -> usize {
    run.world.clients[name].heard.iter().filter(|heard| matches!(heard, Heard::Pong(_))).count()
}

#[test]
fn a_hundred_thousand_pings_at_once_get_a_pong_a_read_and_then_4429() {
    for mut run in runs(|_| {}) {
        run.script("a connects as alice/1\na ← {\"caught_up\":{}}");
        let flood = client::frame(Opcode::Ping, true, b"").repeat(100_000);
        for read in flood.chunks(READ) {
            run.world.feed("a", read);
        }
        assert!(pongs(&run, "a") <= flood.len() / READ + 1);
        run.world.clients.get_mut("a").expect("a").heard.retain(|heard| !matches!(heard, Heard::Pong(_)));
        run.script("a ← close 4429");
        run.end();
    }
}

#[test]
fn pings_within_the_rate_of_a_client_that_does_not_read_leave_a_bounded_pile() {
    for mut run in runs(|_| {}) {
        run.script("a connects as alice/1\na ← {\"caught_up\":{}}\na stops reading");
        let ping = client::frame(Opcode::Ping, true, &[b'x'; 125]);
        let mut sent = 0;
        // 500 a second are allowed.
        while run.world.clients["a"].closed.is_none() && sent < 100_000 {
            run.world.feed("a", &ping);
            run.world.wait(Span(2));
            sent += 1;
            let client = &run.world.clients["a"];
            let unsent = client.unsent.len();
            assert!(
                unsent <= OUTBOX_PASSING_BYTES_MAX + 127 || client.closed.is_some(),
                "{unsent} bytes wait after {sent} pings"
            );
        }
        assert!(sent > 20_000, "it was not the rate that ended it");
        run.world.set_reading("a", true);
        run.world.clients.get_mut("a").expect("a").heard.retain(|heard| !matches!(heard, Heard::Pong(_)));
        run.script("a ← close 4504");
    }
}

#[test]
fn malformed_commands_count_against_the_rate() {
    for mut run in runs(|_| {}) {
        run.script("a connects as alice/1\na ← {\"caught_up\":{}}");
        let before = run.world.clients["a"].written.len();
        // As many as fit one message.
        let message = match run.world.encoding {
            Encoding::Json => b"x\n".repeat(44_000),
            Encoding::Cbor => vec![1; 88_000],
        };
        let message = client::message(run.world.encoding, &message, 1);
        run.world.feed("a", &message);
        let written = run.world.clients["a"].written.len() - before;
        // 4,000 refusals of about 150 bytes.
        assert!(written < 1_000_000, "{written} bytes in answer to {}", message.len());
        run.world
            .clients
            .get_mut("a")
            .expect("a")
            .heard
            .retain(|heard| !matches!(heard, Heard::Object(object) if object.get("error").is_some()));
        run.script("a ← close 4429");
    }
}

#[test]
fn passing_messages_and_receipts_for_a_client_that_does_not_read_are_dropped_first() {
    for mut run in runs(|_| {}) {
        run.script("alice and bob chat in $c\nbob stops reading");
        for _ in 0..200 {
            run.script(r#"alice → {"send":{"conv":"$c","passing":true,"payload":"$bytes 1000"}}"#);
        }
        let unsent = run.world.clients["bob"].unsent.len();
        assert!(unsent > OUTBOX_PASSING_BYTES_MAX, "what fits is kept");
        // One more than the bound: base64 of 1,000 bytes and the rest of the push.
        assert!(unsent < OUTBOX_PASSING_BYTES_MAX + 1_600, "{unsent} bytes wait");
        run.script(
            r#"
            alice sends 2 to $c
            alice → {"recv":{"conv":"$c","seq":2}}
            bob reads again
            "#,
        );
        let heard = &mut run.world.clients.get_mut("bob").expect("bob").heard;
        let durable =
            |heard: &Heard| matches!(heard, Heard::Object(object) if object["message"]["seq"].is_u64());
        assert!(heard.len() < 200);
        heard.retain(durable);
        // Afterwards all is as it was.
        run.script(
            r#"
            bob ← 2 of $c
            alice → {"send":{"conv":"$c","passing":true,"payload":""}}
            bob ← {"message":{"conv":"$c","ts":"$now","from":"$alice","device":1,"payload":""}}
            alice sends 3 to $c
            bob ← 3 of $c
            "#,
        );
        run.end();
    }
}

#[test]
fn who_does_not_read_is_closed_and_gets_everything_once_when_it_is_back() {
    check(
        r#"
        alice and bob chat in $c
        alice sends 2..3 to $c
        bob ← 2..3 of $c
        bob → {"recv":{"conv":"$c","seq":2}}
        alice ← {"receipt":{"conv":"$c","user":"$bob","delivered":2,"read":0}}
        bob stops reading
        alice sends 4..50 to $c
        wait 40s
        alice → {"ping":{}}
        wait 22s
        bob reads again
        bob ← 4..50 of $c
        bob ← ping
        bob ← close 4504
        again connects as bob/1
        again ← 3..50 of $c
        again ← {"caught_up":{}}
        again → {"recv":{"conv":"$c","seq":50}}
        alice ← {"receipt":{"conv":"$c","user":"$bob","delivered":50,"read":0}}
        again breaks
        third connects as bob/1
        third ← {"caught_up":{}}
        "#,
    );
}

#[test]
fn above_two_mebibytes_that_wait_the_next_word_is_the_last() {
    for mut run in runs(|_| {}) {
        run.script(
            r#"
            alice and bob chat in $c
            bob breaks
            alice sends 2..9 to $c, 65536 bytes each
            alice stops reading
            "#,
        );
        let page = r#"alice → {"id":2,"sync":{"conv":"$c","after":1,"limit":256}}"#;
        let mut pages = 0;
        while run.world.clients["alice"].closed.is_none() {
            run.script(page);
            pages += 1;
            let unsent = run.world.clients["alice"].unsent.len();
            assert!(
                unsent < OUTBOX_BYTES_MAX + 750_000,
                "a page more than the bound, and {unsent} bytes wait"
            );
        }
        // 8 payloads of 64 KiB are 512 KiB in CBOR, of which 4 are a little more than 2 MiB with what is around them; in JSON it
        // is a third more, and 3 are.
        assert_eq!(pages, if run.world.encoding == Encoding::Json { 3 + 1 } else { 4 + 1 });
        run.world.set_reading("alice", true);
        for _ in 1..pages {
            run.script(r#"alice ← {"id":2,"sync":{"messages":"$any","head":9,"more":false}}"#);
        }
        run.script("alice ← close 4504");
    }
}

#[test]
fn a_client_that_reads_slowly_but_reads_is_kept() {
    for mut run in runs(|_| {}) {
        run.script("a connects as alice/1\na ← {\"caught_up\":{}}");
        // Something waits at every look, and something of it was taken since the last.
        for _ in 0..100 {
            run.script(
                r#"
                a stops reading
                a → {"id":2,"ping":{}}
                wait 2s
                a reads again
                a ← {"id":2,"ping":{}}
                "#,
            );
        }
        run.end();
    }
}

#[test]
fn pages_asked_for_without_measure_are_refused_and_do_not_pile_up() {
    for mut run in runs(|_| {}) {
        run.script(
            r#"
            alice and bob chat in $c
            bob breaks
            alice sends 2..9 to $c, 65536 bytes each
            alice stops reading
            alice → 100 × {"id":2,"sync":{"conv":"$c","after":1,"limit":256}}
            "#,
        );
        let unsent = run.world.clients["alice"].unsent.len();
        assert!(unsent < OUTBOX_BYTES_MAX + 750_000, "a page more than the bound, and {unsent} bytes wait");
        run.world.set_reading("alice", true);
        let heard = &run.world.clients["alice"].heard;
        let told = |name: &str| {
            let names = heard.iter().filter(|heard| match heard {
                Heard::Object(object) => object["error"]["name"] == name,
                _ => false,
            });
            names.count()
        };
        // A page of 256 counts for 33 commands, so 2,000 commands are 60 of them.
        let (limited, overloaded) = (told("rate_limited"), told("overloaded"));
        assert_eq!((heard.len(), limited), (100, 40));
        assert!((50..60).contains(&overloaded), "{overloaded} were refused because too much waits");
    }
}

#[test]
fn pongs_that_nobody_asked_for_count_against_the_rate() {
    for mut run in runs(|_| {}) {
        run.script("a connects as alice/1\na ← {\"caught_up\":{}}");
        let flood = client::frame(Opcode::Pong, true, b"").repeat(4_000);
        run.world.feed("a", &flood);
        run.script("a ← close 4429");
    }
}
