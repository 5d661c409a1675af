//! What each verb does when all is well.

use model::{ConversationId, Seq};

use crate::names;
use crate::script::{check, runs};

#[test]
fn connect_with_the_token_in_the_command() {
    check(
        r#"
        a opens
        a → {"id":1,"connect":{"token":"$token alice/4294967295"}}
        a ← {"id":1,"connect":{"session":"$session","user":"$alice","device":4294967295,"server_time":"$now","ping_ms":60000,"reconnect_ms":[500,10000]}}
        a ← {"caught_up":{}}
        "#,
    );
}

#[test]
fn connect_with_the_token_in_authorization() {
    check(
        r#"
        a opens with Authorization: Bearer $token alice/1
        wait 5s
        a → {"id":9007199254740991,"connect":{}}
        a ← {"id":9007199254740991,"connect":{"session":"$session","user":"$alice","device":1,"server_time":"$start+5s","ping_ms":60000,"reconnect_ms":[500,10000]}}
        a ← {"caught_up":{}}
        "#,
    );
}

#[test]
fn the_token_of_the_command_counts_when_the_upgrade_brought_one_too() {
    check(
        r#"
        a opens with Authorization: Bearer $token alice/1
        a → {"id":1,"connect":{"token":"$token bob/2"}}
        a ← {"id":1,"connect":{"session":"$session","user":"$bob","device":2,"server_time":"$now","ping_ms":60000,"reconnect_ms":[500,10000]}}
        a ← {"caught_up":{}}
        "#,
    );
}

#[test]
fn without_an_id_success_is_not_told() {
    check(
        r#"
        a opens
        a → {"connect":{"token":"$token alice/1"}}
        a ← {"caught_up":{}}
        a → {"ping":{}} {"refresh":{"token":"$token alice/1"}} {"id":2,"ping":{}}
        a ← {"id":2,"ping":{}}
        "#,
    );
}

#[test]
fn commands_follow_connect_without_waiting_for_its_reply() {
    check(
        r#"
        alice and bob chat in $c
        wait 10s
        alice breaks
        a opens
        a → {"id":1,"connect":{"token":"$token alice/1"}} {"id":2,"send":{"conv":"$c","client_id":"$m2","payload":"Mg=="}} {"id":3,"ping":{}}
        a ← in any order {"id":1,"connect":"$any"} {"id":2,"send":{"seq":2,"ts":"$now"}} {"id":3,"ping":{}} {"caught_up":{}}
        bob ← 2 of $c
        "#,
    );
}

#[test]
fn refresh_extends_the_session_in_place() {
    check(
        r#"
        a opens
        a → {"id":1,"connect":{"token":"$token alice/1 90s"}}
        a ← {"id":1,"connect":"$any"}
        a ← {"caught_up":{}}
        wait 30s
        a ← {"token_expiring":{"expires_at":"$start+90s"}}
        a → {"id":2,"refresh":{"token":"$token alice/1 100s"}}
        a ← {"id":2,"refresh":{"expires_at":"$start+130s"}}
        wait 42s
        a ← {"token_expiring":{"expires_at":"$start+130s"}}
        a → {"id":3,"refresh":{"token":"$token alice/1 3600s"}}
        a ← {"id":3,"refresh":{"expires_at":"$start+3672s"}}
        wait 59s
        a → {"id":4,"ping":{}}
        a ← {"id":4,"ping":{}}
        "#,
    );
}

#[test]
fn ping_is_answered() {
    check(
        r#"
        a connects as alice/1
        a ← {"caught_up":{}}
        a → {"id":2,"ping":{}} {"ping":{},"id":3}
        a ← {"id":2,"ping":{}} {"id":3,"ping":{}}
        a → in 64 fragments {"id":4,"ping":{}} {"id":5,"ping":{}} {"id":6,"ping":{}} {"id":7,"ping":{}} {"id":8,"ping":{}}
        a ← {"id":4,"ping":{}} {"id":5,"ping":{}} {"id":6,"ping":{}} {"id":7,"ping":{}} {"id":8,"ping":{}}
        "#,
    );
}

#[test]
fn send_puts_a_message_into_the_log_once() {
    check(
        r#"
        alice and bob chat in $c
        alice → {"id":2,"send":{"conv":"$c","client_id":"$first","payload":"Zm9vYmFy"}}
        alice ← {"id":2,"send":{"seq":2,"ts":"$start"}}
        bob ← {"message":{"conv":"$c","seq":2,"ts":"$start","from":"$alice","device":1,"client_id":"$first","payload":"Zm9vYmFy"}}
        wait 1s
        alice → {"id":3,"send":{"conv":"$c","client_id":"$second","payload":"","passing":false}}
        alice ← {"id":3,"send":{"seq":3,"ts":"$start+1s"}}
        bob ← {"message":{"conv":"$c","seq":3,"ts":"$start+1s","from":"$alice","device":1,"client_id":"$second","payload":""}}

        # Repeated, even over another connection and another device of the same user, it is the first one again.
        alice → {"id":4,"send":{"conv":"$c","client_id":"$first","payload":"Zm9vYmFy"}}
        alice ← {"id":4,"send":{"seq":2,"ts":"$start","duplicate":true}}
        second connects as alice/2
        second ← {"caught_up":{}}
        second → {"id":5,"send":{"conv":"$c","client_id":"$first","payload":"Zm9vYmFy"}}
        second ← {"id":5,"send":{"seq":2,"ts":"$start","duplicate":true}}

        # Client ids are the sender's own: of another user the same one is another message.
        bob → {"id":6,"send":{"conv":"$c","client_id":"$first","payload":"Zm9vYmFy"}}
        bob ← {"id":6,"send":{"seq":4,"ts":"$start+1s"}}
        alice ← {"message":{"conv":"$c","seq":4,"ts":"$start+1s","from":"$bob","device":1,"client_id":"$first","payload":"Zm9vYmFy"}}
        second ← {"message":{"conv":"$c","seq":4,"ts":"$start+1s","from":"$bob","device":1,"client_id":"$first","payload":"Zm9vYmFy"}}
        "#,
    );
}

#[test]
fn a_repeat_in_the_same_breath_is_recognised() {
    check(
        r#"
        alice and bob chat in $c
        alice → {"id":2,"send":{"conv":"$c","client_id":"$m2","payload":"Mg=="}} {"id":3,"send":{"conv":"$c","client_id":"$m2","payload":"Mg=="}}
        alice ← {"id":2,"send":{"seq":2,"ts":"$now"}}
        alice ← {"id":3,"send":{"seq":2,"ts":"$now","duplicate":true}}
        bob ← 2 of $c
        "#,
    );
}

#[test]
fn other_devices_of_the_sender_get_the_message_too() {
    check(
        r#"
        alice and bob chat in $c
        second connects as alice/2
        second ← {"caught_up":{}}
        alice sends 2 to $c
        second ← 2 of $c
        bob ← 2 of $c
        second sends 3 to $c
        alice ← 3 of $c
        bob ← 3 of $c
        "#,
    );
}

#[test]
fn the_greatest_payload_is_taken() {
    check(
        r#"
        alice and bob chat in $c
        alice → {"id":2,"send":{"conv":"$c","client_id":"$m2","payload":"$bytes 65536"}}
        alice ← {"id":2,"send":{"seq":2,"ts":"$now"}}
        bob ← {"message":{"conv":"$c","seq":2,"ts":"$now","from":"$alice","device":1,"client_id":"$m2","payload":"$bytes 65536"}}
        alice → {"id":3,"send":{"conv":"$c","passing":true,"payload":"$bytes 65536"}}
        alice ← {"id":3,"send":{}}
        bob ← {"message":{"conv":"$c","ts":"$now","from":"$alice","device":1,"payload":"$bytes 65536"}}
        "#,
    );
}

#[test]
fn send_passing_reaches_who_is_there_and_nobody_later() {
    check(
        r#"
        alice and bob chat in $c
        second connects as alice/2
        second ← {"caught_up":{}}
        alice → {"id":2,"send":{"conv":"$c","passing":true,"payload":"Zm9vYmFy"}}
        alice ← {"id":2,"send":{}}
        bob ← {"message":{"conv":"$c","ts":"$now","from":"$alice","device":1,"payload":"Zm9vYmFy"}}
        second ← {"message":{"conv":"$c","ts":"$now","from":"$alice","device":1,"payload":"Zm9vYmFy"}}
        bob breaks
        alice → {"id":3,"send":{"conv":"$c","passing":true,"payload":"Zm9vYmFy"}}
        alice ← {"id":3,"send":{}}
        second ← {"message":{"conv":"$c","ts":"$now","from":"$alice","device":1,"payload":"Zm9vYmFy"}}
        later connects as bob/1
        later ← {"caught_up":{}}
        alice → {"id":4,"sync":{"conv":"$c","after":1,"limit":10}}
        alice ← {"id":4,"sync":{"messages":[],"head":1,"more":false}}
        "#,
    );
}

#[test]
fn what_was_received_is_not_pushed_again() {
    check(
        r#"
        alice and bob chat in $c
        alice sends 2..4 to $c
        bob ← 2..4 of $c
        bob → {"id":2,"recv":{"conv":"$c","seq":3}}
        bob ← {"id":2,"recv":{}}
        alice ← {"receipt":{"conv":"$c","user":"$bob","delivered":3,"read":0}}
        bob breaks
        again connects as bob/1
        again ← 4 of $c
        again ← {"caught_up":{}}
        # Going back is no error and changes nothing.
        again → {"id":3,"recv":{"conv":"$c","seq":1}}
        again ← {"id":3,"recv":{}}
        again → {"id":4,"recv":{"conv":"$c","seq":4}}
        again ← {"id":4,"recv":{}}
        alice ← {"receipt":{"conv":"$c","user":"$bob","delivered":4,"read":0}}
        again breaks
        third connects as bob/1
        third ← {"caught_up":{}}
        "#,
    );
}

#[test]
fn read_is_the_users_and_receipts_tell_the_others() {
    check(
        r#"
        alice and bob chat in $c
        phone connects as bob/2
        phone ← {"caught_up":{}}
        alice sends 2..3 to $c
        bob ← 2..3 of $c
        phone ← 2..3 of $c
        bob → {"id":2,"recv":{"conv":"$c","seq":3}}
        bob ← {"id":2,"recv":{}}
        alice ← {"receipt":{"conv":"$c","user":"$bob","delivered":3,"read":0}}
        phone ← {"receipt":{"conv":"$c","user":"$bob","delivered":3,"read":0}}
        # What one device has received another may say is read.
        phone → {"id":3,"read":{"conv":"$c","seq":2}}
        phone ← {"id":3,"read":{}}
        alice ← {"receipt":{"conv":"$c","user":"$bob","delivered":3,"read":2}}
        bob ← {"receipt":{"conv":"$c","user":"$bob","delivered":3,"read":2}}
        bob → {"id":4,"read":{"conv":"$c","seq":1}}
        bob ← {"id":4,"read":{}}
        # The sender has read its own. A receipt never says more than what was acknowledged.
        alice → {"id":5,"read":{"conv":"$c","seq":3}}
        alice ← {"id":5,"read":{}}
        bob ← {"receipt":{"conv":"$c","user":"$alice","delivered":1,"read":1}}
        phone ← {"receipt":{"conv":"$c","user":"$alice","delivered":1,"read":1}}
        "#,
    );
}

#[test]
fn sync_gives_pages() {
    check(
        r#"
        alice and bob chat in $c
        alice sends 2..5 to $c
        bob ← 2..5 of $c
        bob → {"id":2,"sync":{"conv":"$c","after":0,"limit":2}}
        bob ← {"id":2,"sync":{"messages":[{"conv":"$c","seq":1,"ts":"$now","system":{"event":"created","users":["$alice","$bob"],"by":"$alice"}},{"conv":"$c","seq":2,"ts":"$now","from":"$alice","device":1,"client_id":"$m2","payload":"Mg=="}],"head":5,"more":true}}
        bob → {"id":3,"sync":{"conv":"$c","after":2,"limit":3}}
        bob ← {"id":3,"sync":{"messages":["$any","$any",{"conv":"$c","seq":5,"ts":"$now","from":"$alice","device":1,"client_id":"$m5","payload":"NQ=="}],"head":5,"more":false}}
        bob → {"id":4,"sync":{"conv":"$c","after":5,"limit":256}} {"id":5,"sync":{"conv":"$c","after":9007199254740991,"limit":1}}
        bob ← {"id":4,"sync":{"messages":[],"head":5,"more":false}}
        bob ← {"id":5,"sync":{"messages":[],"head":5,"more":false}}
        "#,
    );
}

#[test]
fn sync_gives_no_more_than_half_a_mebibyte_at_once() {
    // 512 KiB hold 8 payloads of 64 KiB.
    check(
        r#"
        alice and bob chat in $c
        bob breaks
        alice sends 2..9 to $c, 65536 bytes each
        alice → {"send":{"conv":"$c","client_id":"$m10","payload":"eA=="}}
        alice → {"id":2,"sync":{"conv":"$c","after":1,"limit":256}}
        alice ← {"id":2,"sync":{"messages":["$any","$any","$any","$any","$any","$any","$any","$any"],"head":10,"more":true}}
        alice → {"id":3,"sync":{"conv":"$c","after":9,"limit":256}}
        alice ← {"id":3,"sync":{"messages":["$any"],"head":10,"more":false}}
        "#,
    );
}

#[test]
fn what_everybody_has_is_no_longer_kept() {
    check(
        r#"
        alice and bob chat in $c
        alice sends 2..4 to $c
        bob ← 2..4 of $c
        bob → {"id":2,"recv":{"conv":"$c","seq":3}}
        bob ← {"id":2,"recv":{}}
        alice ← {"receipt":{"conv":"$c","user":"$bob","delivered":3,"read":0}}
        wait 10s
        alice → {"id":3,"sync":{"conv":"$c","after":0,"limit":256}}
        alice ← {"id":3,"sync":{"messages":[{"conv":"$c","seq":4,"ts":"$start","from":"$alice","device":1,"client_id":"$m4","payload":"NA=="}],"head":4,"more":false}}
        bob → {"id":4,"recv":{"conv":"$c","seq":4}}
        bob ← {"id":4,"recv":{}}
        alice ← {"receipt":{"conv":"$c","user":"$bob","delivered":4,"read":0}}
        wait 10s
        alice → {"id":5,"sync":{"conv":"$c","after":0,"limit":256}}
        alice ← {"id":5,"sync":{"messages":[],"head":4,"more":false}}
        "#,
    );
}

#[test]
fn at_most_256_messages_are_on_their_way() {
    // Entry 1 is acknowledged, so 2 to 257 fill the window.
    check(
        r#"
        alice and bob chat in $c
        alice sends 2..300 to $c
        bob ← 2..257 of $c
        bob ← nothing
        bob → {"id":2,"recv":{"conv":"$c","seq":11}}
        alice ← {"receipt":{"conv":"$c","user":"$bob","delivered":11,"read":0}}
        bob ← {"id":2,"recv":{}}
        bob ← 258..267 of $c
        bob ← nothing
        bob → {"id":3,"recv":{"conv":"$c","seq":267}}
        alice ← {"receipt":{"conv":"$c","user":"$bob","delivered":267,"read":0}}
        bob ← {"id":3,"recv":{}}
        bob ← 268..300 of $c
        alice sends 301 to $c
        bob ← 301 of $c
        "#,
    );
}

#[test]
fn caught_up_waits_for_what_was_pending_at_the_beginning() {
    check(
        r#"
        alice and bob chat in $c
        bob breaks
        alice sends 2..300 to $c
        again connects as bob/1
        again ← 2..257 of $c
        again ← nothing
        alice sends 301 to $c
        again → {"recv":{"conv":"$c","seq":257}}
        alice ← {"receipt":{"conv":"$c","user":"$bob","delivered":257,"read":0}}
        again ← 258..301 of $c
        again ← {"caught_up":{}}
        "#,
    );
}

#[test]
fn the_window_holds_half_a_mebibyte() {
    // 512 KiB are 8 payloads of 64 KiB. What is pushed as it comes leaves room for the greatest payload.
    check(
        r#"
        alice and bob chat in $c
        alice sends 2..12 to $c, 65536 bytes each
        bob ← 2..8 of $c, 65536 bytes each
        bob breaks
        again connects as bob/1
        again ← 2..9 of $c, 65536 bytes each
        again ← nothing
        again → {"recv":{"conv":"$c","seq":9}}
        alice ← {"receipt":{"conv":"$c","user":"$bob","delivered":9,"read":0}}
        again ← 10..12 of $c, 65536 bytes each
        again ← {"caught_up":{}}
        "#,
    );
}

#[test]
fn x1_a_conversation_that_is_never_quiet_is_trimmed_all_the_same() {
    for mut run in runs(|_| {}) {
        run.script("alice and bob chat in $c");
        for place in 2..=30 {
            run.script(&format!(
                r#"
                alice sends {place} to $c
                bob ← {place} of $c
                bob → {{"id":{place},"recv":{{"conv":"$c","seq":{place}}}}}
                bob ← {{"id":{place},"recv":{{}}}}
                alice ← {{"receipt":{{"conv":"$c","user":"$bob","delivered":{place},"read":0}}}}
                wait 1s
                "#
            ));
        }
        let trimmed = run.world.store.trimmed(ConversationId(names::id("$c")));
        // Every ten seconds, and it takes 28 until here.
        assert!((Seq(18)..Seq(30)).contains(&trimmed), "trimmed up to {trimmed}");
        run.end();
    }
}

#[test]
fn what_a_device_sent_itself_before_it_acknowledged_the_rest_is_not_pushed_again() {
    check(
        r#"
        alice and bob chat in $c
        bob → {"id":2,"send":{"conv":"$c","client_id":"$m2","payload":"Mg=="}}
        bob ← {"id":2,"send":{"seq":2,"ts":"$now"}}
        alice ← {"message":"$any"}
        alice → {"id":3,"send":{"conv":"$c","client_id":"$m3","payload":"Mw=="}}
        alice ← {"id":3,"send":{"seq":3,"ts":"$now"}}
        bob ← {"message":"$any"}
        bob → {"recv":{"conv":"$c","seq":3}}
        alice ← {"receipt":"$any"}
        # Without residents the conversation leaves memory now.
        wait 5s
        alice → {"recv":{"conv":"$c","seq":2}}
        bob ← {"receipt":"$any"}
        wait 5s
        alice breaks
        again connects as alice/1
        again ← {"caught_up":{}}
        "#,
    );
}
