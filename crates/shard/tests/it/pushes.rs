//! What the server says unasked, and conversations as REST makes them.

use crate::script::{check, check_with, runs};

#[test]
fn everybody_is_told_how_a_group_comes_and_goes() {
    check(
        r#"
        alice connects as alice/1
        alice ← {"caught_up":{}}
        bob connects as bob/1
        bob ← {"caught_up":{}}
        carol connects as carol/1
        carol ← {"caught_up":{}}

        rest: alice creates group $g with $alice $bob
        rest ← {"fresh":true,"conv":"$g","kind":"group","members":["$alice","$bob"],"head":1}
        alice ← {"conversation":{"conv":"$g","event":"added","kind":"group","members":["$alice","$bob"],"head":1}}
        alice ← {"message":{"conv":"$g","seq":1,"ts":"$now","system":{"event":"created","users":["$alice","$bob"],"by":"$alice"}}}
        bob ← {"conversation":{"conv":"$g","event":"added","kind":"group","members":["$alice","$bob"],"head":1}}
        bob ← {"message":{"conv":"$g","seq":1,"ts":"$now","system":{"event":"created","users":["$alice","$bob"],"by":"$alice"}}}

        wait 1s
        rest: bob adds $carol to $g
        rest ← {"fresh":true,"conv":"$g","kind":"group","members":["$alice","$bob","$carol"],"head":2}
        alice ← {"conversation":{"conv":"$g","event":"changed","kind":"group","members":["$alice","$bob","$carol"],"head":2}}
        alice ← {"message":{"conv":"$g","seq":2,"ts":"$now","system":{"event":"added","users":["$carol"],"by":"$bob"}}}
        bob ← {"conversation":{"conv":"$g","event":"changed","kind":"group","members":["$alice","$bob","$carol"],"head":2}}
        bob ← {"message":{"conv":"$g","seq":2,"ts":"$now","system":{"event":"added","users":["$carol"],"by":"$bob"}}}
        carol ← {"conversation":{"conv":"$g","event":"added","kind":"group","members":["$alice","$bob","$carol"],"head":2}}
        carol ← {"message":{"conv":"$g","seq":2,"ts":"$now","system":{"event":"added","users":["$carol"],"by":"$bob"}}}

        # A member sees the log from the entry that made them one.
        carol → {"id":2,"sync":{"conv":"$g","after":0,"limit":256}}
        carol ← {"id":2,"sync":{"messages":[{"conv":"$g","seq":2,"ts":"$now","system":{"event":"added","users":["$carol"],"by":"$bob"}}],"head":2,"more":false}}

        wait 1s
        rest: alice removes $bob from $g
        rest ← {"fresh":true,"conv":"$g","kind":"group","members":["$alice","$carol"],"head":3}
        alice ← {"conversation":{"conv":"$g","event":"changed","kind":"group","members":["$alice","$carol"],"head":3}}
        alice ← {"message":{"conv":"$g","seq":3,"ts":"$now","system":{"event":"removed","users":["$bob"],"by":"$alice"}}}
        carol ← {"conversation":{"conv":"$g","event":"changed","kind":"group","members":["$alice","$carol"],"head":3}}
        carol ← {"message":{"conv":"$g","seq":3,"ts":"$now","system":{"event":"removed","users":["$bob"],"by":"$alice"}}}
        bob ← {"conversation":{"conv":"$g","event":"removed"}}

        rest: carol removes $carol from $g
        rest ← {"fresh":true,"conv":"$g","kind":"group","members":["$alice"],"head":4}
        alice ← {"conversation":{"conv":"$g","event":"changed","kind":"group","members":["$alice"],"head":4}}
        alice ← {"message":{"conv":"$g","seq":4,"ts":"$now","system":{"event":"left","users":["$carol"],"by":"$carol"}}}
        carol ← {"conversation":{"conv":"$g","event":"removed"}}

        alice → {"send":{"conv":"$g","client_id":"$m5","payload":"NQ=="}} {"id":2,"send":{"conv":"$g","passing":true,"payload":"NQ=="}}
        alice ← {"id":2,"send":{}}
        bob ← nothing
        carol ← nothing
        "#,
    );
}

#[test]
fn who_comes_back_to_a_group_sees_it_from_there() {
    check(
        r#"
        bob connects as bob/1
        bob ← {"caught_up":{}}
        rest: alice creates group $g with $alice $bob
        rest ← "$any"
        bob ← {"conversation":"$any"} {"message":"$any"}
        rest: alice removes $bob from $g
        rest ← "$any"
        bob ← {"conversation":{"conv":"$g","event":"removed"}}
        rest: alice adds $bob to $g
        rest ← {"fresh":true,"conv":"$g","kind":"group","members":["$alice","$bob"],"head":3}
        bob ← {"conversation":{"conv":"$g","event":"added","kind":"group","members":["$alice","$bob"],"head":3}}
        bob ← {"message":{"conv":"$g","seq":3,"ts":"$now","system":{"event":"added","users":["$bob"],"by":"$alice"}}}
        bob breaks
        again connects as bob/1
        again ← {"message":{"conv":"$g","seq":3,"ts":"$now","system":{"event":"added","users":["$bob"],"by":"$alice"}}}
        again ← {"caught_up":{}}
        "#,
    );
}

#[test]
fn making_what_is_there_changes_nothing() {
    check(
        r#"
        alice and bob chat in $c
        rest: bob creates direct $c with $bob $alice
        rest ← {"fresh":false,"conv":"$c","kind":"direct","members":["$alice","$bob"],"head":1}
        rest: alice creates group $g with $alice $bob $carol
        rest ← {"fresh":true,"conv":"$g","kind":"group","members":["$alice","$bob","$carol"],"head":1}
        alice ← {"conversation":"$any"} {"message":"$any"}
        bob ← {"conversation":"$any"} {"message":"$any"}
        rest: bob adds $carol to $g
        rest ← {"fresh":false,"conv":"$g","kind":"group","members":["$alice","$bob","$carol"],"head":1}
        rest: bob lists
        rest ← [{"conv":"$c","kind":"direct","members":["$alice","$bob"],"head":1,"receipts":"$any"},{"conv":"$g","kind":"group","members":["$alice","$bob","$carol"],"head":1,"receipts":"$any"}]
        rest: carol lists
        rest ← [{"conv":"$g","kind":"group","members":["$alice","$bob","$carol"],"head":1,"receipts":"$any"}]
        rest: dave lists
        rest ← []
        "#,
    );
}

#[test]
fn members_of_a_direct_conversation_stay() {
    check(
        r#"
        alice and bob chat in $c
        rest: alice adds $carol to $c
        rest ← {"refused":"bad_request"}
        rest: alice removes $bob from $c
        rest ← {"refused":"bad_request"}
        rest: bob removes $bob from $c
        rest ← {"refused":"bad_request"}
        "#,
    );
}

#[test]
fn a_group_has_at_most_1024_members() {
    check(
        r#"
        rest: alice creates group $g with $alice and 1022 others
        rest ← {"fresh":true,"conv":"$g","kind":"group","members":"$any","head":1}
        rest: alice adds $bob to $g
        rest ← {"fresh":true,"conv":"$g","kind":"group","members":"$any","head":2}
        rest: alice adds $carol to $g
        rest ← {"refused":"bad_request"}
        rest: alice removes $other0 from $g
        rest ← "$any"
        rest: alice adds $carol to $g
        rest ← {"fresh":true,"conv":"$g","kind":"group","members":"$any","head":4}
        "#,
    );
}

#[test]
fn receipts_are_told_in_groups_of_64_and_not_above() {
    check(
        r#"
        alice connects as alice/1
        alice ← {"caught_up":{}}
        bob connects as bob/1
        bob ← {"caught_up":{}}
        rest: alice creates group $small with $alice $bob and 62 others
        rest ← "$any"
        rest: alice creates group $large with $alice $bob and 63 others
        rest ← "$any"
        alice ← {"conversation":"$any"} {"message":"$any"} {"conversation":"$any"} {"message":"$any"}
        bob ← {"conversation":"$any"} {"message":"$any"} {"conversation":"$any"} {"message":"$any"}
        bob → {"id":2,"recv":{"conv":"$small","seq":1}}
        bob ← {"id":2,"recv":{}}
        alice ← {"receipt":{"conv":"$small","user":"$bob","delivered":1,"read":0}}
        bob → {"id":3,"recv":{"conv":"$large","seq":1}} {"id":4,"read":{"conv":"$large","seq":1}}
        bob ← {"id":3,"recv":{}} {"id":4,"read":{}}
        alice ← nothing
        "#,
    );
}

#[test]
fn whoever_was_away_learns_of_receipts_from_the_list() {
    check(
        r#"
        alice and bob chat in $c
        alice sends 2..3 to $c
        bob ← 2..3 of $c
        # As in the pushes: what the sender has read is no further than what it has acknowledged.
        alice → {"id":2,"read":{"conv":"$c","seq":3}}
        alice ← {"id":2,"read":{}}
        bob ← {"receipt":{"conv":"$c","user":"$alice","delivered":1,"read":1}}
        alice breaks
        bob → {"id":2,"recv":{"conv":"$c","seq":3}} {"id":3,"read":{"conv":"$c","seq":2}}
        bob ← {"id":2,"recv":{}} {"id":3,"read":{}}
        rest: alice lists
        rest ← [{"conv":"$c","kind":"direct","members":["$alice","$bob"],"head":3,"receipts":[{"user":"$alice","delivered":1,"read":1},{"user":"$bob","delivered":3,"read":2}]}]
        "#,
    );
}

#[test]
fn the_list_has_no_receipts_of_groups_above_64() {
    check(
        r#"
        rest: alice creates group $small with $alice $bob and 1 others
        rest ← "$any"
        rest: alice creates group $large with $alice $bob and 63 others
        rest ← "$any"
        bob connects as bob/1
        bob ← in any order {"message":"$any"} {"message":"$any"}
        bob → {"id":2,"recv":{"conv":"$small","seq":1}} {"id":3,"recv":{"conv":"$large","seq":1}}
        bob ← in any order {"id":2,"recv":{}} {"id":3,"recv":{}} {"caught_up":{}}
        rest: alice lists
        rest ← [{"conv":"$large","kind":"group","members":"$any","head":1,"receipts":[]},{"conv":"$small","kind":"group","members":"$any","head":1,"receipts":[{"user":"$alice","delivered":0,"read":0},{"user":"$bob","delivered":1,"read":0},{"user":"$other0","delivered":0,"read":0}]}]
        "#,
    );
}

#[test]
fn a_first_device_gets_what_waited_and_a_later_one_begins_at_the_end() {
    check(
        r#"
        alice connects as alice/1
        alice ← {"caught_up":{}}
        rest: alice creates direct $c with $alice $bob
        rest ← "$any"
        alice ← {"conversation":"$any"} {"message":"$any"}
        alice sends 2..3 to $c
        bob connects as bob/1
        bob ← {"message":{"conv":"$c","seq":1,"ts":"$now","system":{"event":"created","users":["$alice","$bob"],"by":"$alice"}}}
        bob ← 2..3 of $c
        bob ← {"caught_up":{}}
        second connects as bob/2
        second ← {"caught_up":{}}
        alice sends 4 to $c
        bob ← 4 of $c
        second ← 4 of $c
        # What is older and still kept it can ask for.
        second → {"id":2,"sync":{"conv":"$c","after":2,"limit":1}}
        second ← {"id":2,"sync":{"messages":[{"conv":"$c","seq":3,"ts":"$now","from":"$alice","device":1,"client_id":"$m3","payload":"Mw=="}],"head":4,"more":true}}
        "#,
    );
}

#[test]
fn pending_messages_come_conversation_by_conversation_before_caught_up() {
    check(
        r#"
        alice and bob chat in $c
        rest: alice creates group $g with $alice $bob
        rest ← "$any"
        alice ← {"conversation":"$any"} {"message":"$any"}
        bob ← {"conversation":"$any"} {"message":"$any"}
        bob breaks
        alice sends 2 to $c
        alice → {"send":{"conv":"$g","client_id":"$g2","payload":""}}
        alice sends 3 to $c
        bob2 connects as bob/1
        bob2 ← 2..3 of $c
        bob2 ← {"message":{"conv":"$g","seq":1,"ts":"$now","system":"$any"}}
        bob2 ← {"message":{"conv":"$g","seq":2,"ts":"$now","from":"$alice","device":1,"client_id":"$g2","payload":""}}
        bob2 ← {"caught_up":{}}
        "#,
    );
}

#[test]
fn token_expiring_comes_a_minute_before_or_at_once() {
    check(
        r#"
        a opens
        a → {"connect":{"token":"$token alice/1 70s"}}
        a ← {"caught_up":{}}
        wait 9s
        a ← nothing
        wait 1s
        a ← {"token_expiring":{"expires_at":"$start+70s"}}
        b opens
        b → {"connect":{"token":"$token bob/1 30s"}}
        b ← {"caught_up":{}}
        wait 2s
        b ← {"token_expiring":{"expires_at":"$start+40s"}}
        "#,
    );
}

#[test]
fn the_server_pings_who_is_quiet_and_is_content_with_anything() {
    check(
        r#"
        a connects as alice/1
        a ← {"caught_up":{}}
        b connects as bob/1
        b ← {"caught_up":{}}
        c connects as carol/1
        c ← {"caught_up":{}}
        wait 59s
        c → {"ping":{}}
        wait 1s
        a ← ping
        b ← ping
        a → pong
        b → pong whatever
        wait 59s
        a ← nothing
        b ← nothing
        c ← nothing
        wait 1s
        a ← ping
        b ← ping
        c ← ping
        wait 60s
        a ← ping
        b ← ping
        c ← ping
        # Even after the second ping an answer keeps the connection.
        a → pong
        b → {"id":2,"ping":{}}
        b ← {"id":2,"ping":{}}
        wait 60s
        a ← ping
        b ← ping
        c ← close 4505
        "#,
    );
}

#[test]
fn a_clients_ping_is_answered_with_its_own_bytes() {
    check(
        r#"
        a opens
        a → ping before
        a ← pong before
        a → {"connect":{"token":"$token alice/1"}}
        a ← {"caught_up":{}}
        a → ping after
        a ← pong after
        "#,
    );
}

#[test]
fn a_length_of_quiet_that_the_operator_chose_is_told_and_kept() {
    check_with(
        |settings| settings.ping = model::Span::seconds(6),
        r#"
        a opens
        a → {"id":1,"connect":{"token":"$token alice/1"}}
        a ← {"id":1,"connect":{"session":"$session","user":"$alice","device":1,"server_time":"$now","ping_ms":6000,"reconnect_ms":[500,10000]}}
        a ← {"caught_up":{}}
        wait 6s
        a ← ping
        wait 6s
        a ← ping
        wait 6s
        a ← close 4505
        "#,
    );
}

#[test]
fn an_older_connection_of_the_same_device_gives_way() {
    check(
        r#"
        alice and bob chat in $c
        alice sends 2..3 to $c
        bob ← 2..3 of $c
        bob → {"recv":{"conv":"$c","seq":2}}
        alice ← {"receipt":{"conv":"$c","user":"$bob","delivered":2,"read":0}}
        newer connects as bob/1
        bob ← close 4409
        newer ← 3 of $c
        newer ← {"caught_up":{}}
        alice sends 4 to $c
        newer ← 4 of $c
        # Another device of the same user stays.
        other connects as bob/2
        other ← {"caught_up":{}}
        newer → {"id":2,"ping":{}}
        newer ← {"id":2,"ping":{}}
        "#,
    );
}

#[test]
fn an_older_connection_gives_way_while_its_device_is_being_made_known() {
    check(
        r#"
        store waits
        older opens
        older → {"id":1,"connect":{"token":"$token alice/1"}}
        newer opens
        newer → {"id":1,"connect":{"token":"$token alice/1"}}
        older ← close 4409
        store works
        newer ← {"id":1,"connect":"$any"}
        newer ← {"caught_up":{}}
        "#,
    );
}

#[test]
fn who_joined_later_has_read_nothing_yet() {
    check(
        r#"
        alice connects as alice/1
        alice ← {"caught_up":{}}
        carol connects as carol/1
        carol ← {"caught_up":{}}
        rest: alice creates group $g with $alice $bob
        rest ← "$any"
        alice ← {"conversation":"$any"} {"message":"$any"}
        alice sends 2..3 to $g
        rest: alice adds $carol to $g
        rest ← "$any"
        alice ← {"conversation":"$any"} {"message":"$any"}
        carol ← {"conversation":"$any"} {"message":"$any"}
        carol → {"recv":{"conv":"$g","seq":4}}
        alice ← {"receipt":{"conv":"$g","user":"$carol","delivered":4,"read":0}}
        carol → {"id":2,"read":{"conv":"$g","seq":4}}
        carol ← {"id":2,"read":{}}
        alice ← {"receipt":{"conv":"$g","user":"$carol","delivered":4,"read":4}}
        "#,
    );
}

#[test]
fn the_answer_to_connect_comes_before_every_push() {
    // Of a conversation in memory a passing message needs no store, so it comes while the device is still being made known.
    for mut run in runs(|_| {}).filter(|run| run.world.residents) {
        run.script(
            r#"
            alice and bob chat in $c
            tablet opens
            store waits
            tablet → {"id":1,"connect":{"token":"$token bob/2"}}
            alice → {"id":9,"send":{"conv":"$c","client_id":"$m2","payload":"Mg=="}} {"id":10,"send":{"conv":"$c","passing":true,"payload":"Mw=="}}
            alice ← {"id":10,"send":{}}
            bob ← {"message":{"conv":"$c","ts":"$now","from":"$alice","device":1,"payload":"Mw=="}}
            tablet ← nothing
            store works
            tablet ← {"id":1,"connect":"$any"}
            tablet ← in any order {"caught_up":{}} {"message":{"conv":"$c","seq":2,"ts":"$now","from":"$alice","device":1,"client_id":"$m2","payload":"Mg=="}}
            alice ← {"id":9,"send":{"seq":2,"ts":"$now"}}
            bob ← {"message":"$any"}
            "#,
        );
        run.end();
    }
}
