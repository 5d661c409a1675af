//! Each close code of the table in a situation that leads to it.

use protocol::CloseCode;

use crate::client::{self, Heard};
use crate::script::{Run, check, runs};
use crate::world::HOME;

/// A script at whose end a connection is closed with this code. A row of the table without one does not compile.
fn situation(code: CloseCode) -> &'static str {
    match code {
        CloseCode::Normal => {
            r#"
            a connects as alice/1
            a ← {"caught_up":{}}
            a → close 1000
            a ← farewell 1000
            "#
        }
        CloseCode::ProtocolError => {
            r#"
            a opens
            a → bytes 81 02 7b 7d  # not masked
            a ← close 1002
            b connects as alice/1
            b ← {"caught_up":{}}
            b → bytes c1 80 00000000  # a reserved bit
            b ← close 1002
            "#
        }
        CloseCode::UnsupportedData => {
            r#"
            a opens
            json: a → binary a1 6470696e67 a0
            cbor: a → text {"ping":{}}
            a ← close 1003
            "#
        }
        CloseCode::InvalidData => {
            r#"
            a opens
            a → bytes 81 83 00000000 ed a0 80  # a surrogate
            a ← close 1007
            "#
        }
        CloseCode::PolicyViolation => {
            r#"
            a connects as alice/1
            a ← {"caught_up":{}}
            a → in 64 fragments {"id":2,"ping":{}} {"id":3,"ping":{}} {"id":4,"ping":{}} {"id":5,"ping":{}} {"id":6,"ping":{}}
            a ← {"id":2,"ping":{}} {"id":3,"ping":{}} {"id":4,"ping":{}} {"id":5,"ping":{}} {"id":6,"ping":{}}
            a → in 65 fragments {"id":2,"ping":{}} {"id":3,"ping":{}} {"id":4,"ping":{}} {"id":5,"ping":{}} {"id":6,"ping":{}}
            a ← close 1008
            "#
        }
        CloseCode::MessageTooBig => {
            // 89,432 bytes are taken; the head of a frame of 89,433 (0x15d59) is enough to refuse it.
            r#"
            a opens
            json: a → bytes 81 ff 0000000000015d59 00000000
            cbor: a → bytes 82 ff 0000000000015d59 00000000
            a ← close 1009
            "#
        }
        CloseCode::BadMessage => {
            r#"
            a opens
            a → {"id":1,"ping":{}}
            a ← close 4400
            b connects as alice/1
            b ← {"caught_up":{}}
            # An item that does not end, one of indefinite length, and a map that lacks a value.
            cbor: b → binary a1 6470696e67
            cbor: b ← {"error":"bad_request"}
            cbor: b ← close 4400
            cbor: c connects as alice/1
            cbor: c ← {"caught_up":{}}
            cbor: c → binary a2 626964 02 6470696e67 bf ff
            cbor: c ← {"id":2,"error":"bad_request"}
            cbor: c ← close 4400
            "#
        }
        CloseCode::Unauthorised => {
            r#"
            a opens
            a → {"connect":{"token":"$token alice/1 30s"}}
            a ← {"caught_up":{}}
            wait 2s
            a ← {"token_expiring":{"expires_at":"$start+30s"}}
            wait 28s
            a ← close 4401
            "#
        }
        CloseCode::ConnectTimeout => {
            r#"
            a opens
            wait 9999ms
            a ← nothing
            wait 1ms
            a ← close 4408
            "#
        }
        CloseCode::Replaced => {
            r#"
            a connects as alice/1
            a ← {"caught_up":{}}
            b connects as alice/1
            b ← {"caught_up":{}}
            a ← close 4409
            "#
        }
        CloseCode::RateLimited => {
            // 2,000 are taken, as many refused, and the next one is too much.
            r#"
            a connects as alice/1
            a ← {"caught_up":{}}
            a → 3999 × {"ping":{}}
            a ← 2000 × {"error":"rate_limited"}
            a → {"id":2,"ping":{}}
            a ← close 4429
            "#
        }
        CloseCode::Internal => {
            r#"
            store lies
            a opens
            a → {"id":1,"connect":{"token":"$token alice/1"}}
            a ← {"id":1,"error":"internal"}
            a ← close 4500
            store works
            again connects as alice/1
            again ← {"caught_up":{}}
            "#
        }
        CloseCode::Draining => {
            r#"
            a connects as alice/1
            a ← {"caught_up":{}}
            b opens
            drain within 10s
            wait 10s
            a ← close 4501
            b ← close 4501
            late opens
            late ← gone
            "#
        }
        CloseCode::Overloaded => {
            r#"
            store is full
            a opens
            a → {"id":1,"connect":{"token":"$token alice/1"}}
            a ← {"id":1,"error":"read_only"}
            a ← close 4503
            "#
        }
        CloseCode::SlowConsumer => {
            r#"
            a connects as alice/1
            a ← {"caught_up":{}}
            a stops reading
            a → {"id":2,"ping":{}}
            wait 58s
            a → {"id":3,"ping":{}}
            wait 4s
            a reads again
            a ← {"id":2,"ping":{}} {"id":3,"ping":{}}
            a ← close 4504
            "#
        }
        CloseCode::NoPong => {
            r#"
            a connects as alice/1
            a ← {"caught_up":{}}
            wait 60s
            a ← ping
            wait 60s
            a ← ping
            wait 59s
            a ← nothing
            wait 1s
            a ← close 4505
            "#
        }
    }
}

#[test]
fn every_close_code_of_the_table_is_reached_in_some_situation() {
    for code in CloseCode::ALL {
        let told = check(situation(*code));
        assert!(told.closes.contains(&code.code()), "{} was not reached", code.name());
    }
}

#[test]
fn a_client_that_closes_is_answered_with_its_own_code() {
    check(
        r#"
        a opens
        a → close 4999
        a ← farewell 4999
        b connects as bob/1
        b ← {"caught_up":{}}
        b → bytes 88 80 00000000  # without any
        b ← farewell 1000
        "#,
    );
}

#[test]
fn nothing_after_a_close_is_looked_at() {
    check(
        r#"
        alice and bob chat in $c
        json: alice → bytes 88 82 00000000 03e8 81 8b 00000000 7b2270696e67223a7b7d7d
        cbor: alice → bytes 88 82 00000000 03e8 82 87 00000000 a16470696e67a0
        alice ← farewell 1000
        alice2 opens
        alice2 → {"ping":{}} {"connect":{"token":"$token alice/1"}}
        alice2 ← close 4400
        "#,
    );
}

#[test]
fn a_message_whose_fragments_take_too_long_is_not_waited_for() {
    check(
        r#"
        a connects as alice/1
        a ← {"caught_up":{}}
        a → bytes 01 81 00000000 7b
        wait 10s
        a ← nothing
        # Pings in between do not help.
        a → ping still
        a ← pong still
        wait 2s
        a ← close 1008
        "#,
    );
}

#[test]
fn commands_after_the_token_has_expired_are_not_carried_out() {
    // The sweep comes every 2 s; the command comes between two of them.
    check(
        r#"
        alice and bob chat in $c
        a opens
        a → {"connect":{"token":"$token alice/2 3s"}}
        a ← {"caught_up":{}}
        wait 2s
        a ← {"token_expiring":{"expires_at":"$start+3s"}}
        wait 1s
        a → {"id":2,"send":{"conv":"$c","client_id":"$m2","payload":""}}
        a ← close 4401
        bob ← nothing
        "#,
    );
}

#[test]
fn a_session_that_cannot_be_told_what_is_pending_begins_anew() {
    check(
        r#"
        alice and bob chat in $c
        bob breaks
        alice sends 2 to $c
        store lies
        b connects as bob/1
        b ← close 4500
        store works
        again connects as bob/1
        again ← 2 of $c
        again ← {"caught_up":{}}
        "#,
    );
}

#[test]
fn a_session_whose_next_page_cannot_be_read_begins_anew() {
    check(
        r#"
        alice and bob chat in $c
        bob breaks
        alice sends 2..300 to $c
        b connects as bob/1
        b ← 2..257 of $c
        b → {"id":2,"recv":{"conv":"$c","seq":257}}
        alice ← {"receipt":{"conv":"$c","user":"$bob","delivered":257,"read":0}}
        b ← {"id":2,"recv":{}}
        b ← 258..300 of $c
        b ← {"caught_up":{}}
        alice sends 301..600 to $c
        b ← 301..513 of $c
        store lies
        b → {"recv":{"conv":"$c","seq":400}}
        alice ← {"receipt":{"conv":"$c","user":"$bob","delivered":400,"read":0}}
        b ← close 4500
        store works
        again connects as bob/1
        again ← 258..513 of $c
        "#,
    );
}

#[test]
fn a_drain_spreads_its_goodbyes_over_the_time_it_has() {
    let runs = runs(|settings| settings.unauthenticated_per_address_max = 2_000);
    for mut run in runs.filter(|run| run.world.shards.len() == 1 && run.world.residents) {
        for number in 0..2_000 {
            run.script(&format!("a{number} opens"));
        }
        let open = |run: &Run| run.world.clients.values().filter(|client| client.closed.is_none()).count();
        run.script("drain within 8s");
        assert_eq!(open(&run), 2_000, "nobody is told before time has passed");
        for expected in [1_500, 1_000, 500] {
            run.script("wait 2s");
            assert!(open(&run).abs_diff(expected) <= 100, "{} are left instead of {expected}", open(&run));
        }
        run.script("wait 2s");
        assert_eq!(open(&run), 0);
        for number in 0..2_000 {
            run.script(&format!("a{number} ← close 4501"));
        }
        run.end();
    }
}

#[test]
fn a_drain_sends_clients_away_until_it_is_over() {
    for (count, within) in [(1_000, 8_000), (10, 8_000), (10, 300)] {
        let runs = runs(|settings| settings.unauthenticated_per_address_max = 2_000);
        for mut run in runs.filter(|run| run.world.shards.len() == 1 && run.world.residents) {
            let names: Vec<String> = (0..count).map(|number| format!("a{number}")).collect();
            names.iter().for_each(|name| run.script(&format!("{name} opens")));
            run.script(&format!("drain within {within}ms"));
            let mut windows = Vec::new();
            for elapsed in (0..=within).step_by(50) {
                for name in &names {
                    let heard = &mut run.world.clients.get_mut(name).expect("it opened").heard;
                    let told = heard.iter().find_map(|heard| match heard {
                        Heard::Object(object) => object["disconnect"]["after_ms"].as_array().cloned(),
                        _ => None,
                    });
                    if let Some(window) = told {
                        heard.clear();
                        windows.push([0, 1].map(|end| elapsed + window[end].as_u64().expect("a length")));
                    }
                }
                run.script("wait 50ms");
            }
            assert_eq!(windows.len(), names.len(), "everybody is told");
            // The default window, from the end of the drain. That comes when its time is over, or, when there are few, when one has
            // left in every 50 ms, with four times the root of their number allowed for chance.
            let end = if count == 10 { within.min((10 + 4 * 3) * 50) } else { within };
            for [min, max] in windows {
                assert!(
                    min.abs_diff(end + 500) <= 100 && max - min == 9_500,
                    "{min} to {max}, {end} is the end"
                );
            }
        }
    }
}

#[test]
fn who_was_accepted_before_a_drain_and_asks_after_it_began_is_told_to_come_back() {
    for mut run in runs(|_| {}) {
        run.world.accept("late", HOME);
        run.script("drain within 10s");
        let head = client::request(run.world.encoding, &[]);
        run.world.feed("late", &head);
        let written = String::from_utf8_lossy(&run.world.clients["late"].written).into_owned();
        assert!(written.contains("\r\nRetry-After: "), "{written}");
        run.script("late ← refused 503");
    }
}
