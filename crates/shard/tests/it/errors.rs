//! Each error of the table in a situation that a client can come into, and what each verb refuses.

use protocol::ErrorCode;

use crate::script::check;

/// A script in which a client is told this error. A row of the table without one does not compile.
fn situation(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::BadRequest => {
            r#"
            alice and bob chat in $c
            alice → {"id":2,"recv":{"conv":"$c","seq":2}}
            alice ← {"id":2,"error":{"code":1001,"name":"bad_request","message":"$with seq","temporary":false,"retry_after_ms":0}}
            "#
        }
        ErrorCode::TooLarge => {
            r#"
            alice and bob chat in $c
            alice → {"id":2,"send":{"conv":"$c","client_id":"$m2","payload":"$bytes 65537"}}
            alice ← {"id":2,"error":{"code":1002,"name":"too_large","message":"$with payload","temporary":false,"retry_after_ms":0}}
            alice → {"id":3,"send":{"conv":"$c","passing":true,"payload":"$bytes 65537"}}
            alice ← {"id":3,"error":"too_large"}
            "#
        }
        ErrorCode::UnknownVerb => {
            r#"
            a connects as alice/1
            a ← {"caught_up":{}}
            a → {"id":2,"sned":{"conv":"$c"}}
            a ← {"id":2,"error":{"code":1003,"name":"unknown_verb","message":"$with sned","temporary":false,"retry_after_ms":0}}
            "#
        }
        ErrorCode::RateLimited => {
            // 2,000 in a burst, `connect` among them; then one every 2 ms.
            r#"
            a connects as alice/1
            a ← {"caught_up":{}}
            a → 1999 × {"ping":{}}
            a → {"id":2,"ping":{}}
            a ← {"id":2,"error":{"code":1004,"name":"rate_limited","message":"$any","temporary":true,"retry_after_ms":4}}
            wait 4ms
            a → {"id":2,"ping":{}}
            a ← {"id":2,"ping":{}}
            wait 4s
            a → 1999 × {"ping":{}}
            a → {"id":3,"ping":{}}
            a ← {"id":3,"ping":{}}
            "#
        }
        ErrorCode::Unauthorised => {
            r#"
            a opens
            a → {"id":1,"connect":{"token":"$forged alice/1"}}
            a ← {"id":1,"error":{"code":2001,"name":"unauthorised","message":"$any","temporary":false,"retry_after_ms":0}}
            a ← close 4401
            "#
        }
        ErrorCode::TokenExpired => {
            r#"
            a opens
            a → {"id":1,"connect":{"token":"$expired alice/1"}}
            a ← {"id":1,"error":{"code":2002,"name":"token_expired","message":"$any","temporary":false,"retry_after_ms":0}}
            a ← close 4401
            "#
        }
        ErrorCode::NotMember => {
            r#"
            alice and bob chat in $c
            mallory connects as mallory/1
            mallory ← {"caught_up":{}}
            mallory → {"id":2,"send":{"conv":"$c","client_id":"$m2","payload":""}}
            mallory ← {"id":2,"error":{"code":2003,"name":"not_member","message":"$any","temporary":false,"retry_after_ms":0}}
            "#
        }
        ErrorCode::NotFound => {
            r#"
            rest: alice creates group $g with $alice $bob
            rest ← "$any"
            rest: alice removes $carol from $g
            rest ← {"refused":"not_found"}
            "#
        }
        ErrorCode::ClientIdReused => {
            r#"
            alice and bob chat in $c
            alice sends 2 to $c
            bob ← 2 of $c
            alice → {"id":2,"send":{"conv":"$c","client_id":"$m2","payload":"Zm9vYmFy"}}
            alice ← {"id":2,"error":{"code":2006,"name":"client_id_reused","message":"$with client_id","temporary":false,"retry_after_ms":0}}
            rest: alice creates direct $d with $alice $carol
            rest ← "$any"
            alice ← {"conversation":"$any"} {"message":"$any"}
            alice → {"id":3,"send":{"conv":"$d","client_id":"$m2","payload":"Mg=="}}
            alice ← {"id":3,"error":"client_id_reused"}
            alice sends 3 to $c
            bob ← 3 of $c
            "#
        }
        ErrorCode::Overloaded => {
            // A conversation asks the store for 1,024 things at most before it has an answer.
            r#"
            alice and bob chat in $c
            store waits
            alice sends 2..1025 to $c
            alice → {"id":2,"send":{"conv":"$c","client_id":"$m1026","payload":"MTAyNg=="}}
            alice ← {"id":2,"error":{"code":5001,"name":"overloaded","message":"$any","temporary":true,"retry_after_ms":1000}}
            store works
            bob ← 2..257 of $c
            wait 1s
            alice → {"id":3,"send":{"conv":"$c","client_id":"$m1026","payload":"MTAyNg=="}}
            alice ← {"id":3,"send":{"seq":1026,"ts":"$now"}}
            "#
        }
        ErrorCode::ReadOnly => {
            r#"
            alice and bob chat in $c
            store is full
            alice → {"id":2,"send":{"conv":"$c","client_id":"$m2","payload":"Mg=="}}
            alice ← {"id":2,"error":{"code":5002,"name":"read_only","message":"$any","temporary":true,"retry_after_ms":1000}}
            store works
            alice → {"id":3,"send":{"conv":"$c","client_id":"$m2","payload":"Mg=="}}
            alice ← {"id":3,"send":{"seq":2,"ts":"$now"}}
            bob ← 2 of $c
            "#
        }
        ErrorCode::Internal => {
            r#"
            alice and bob chat in $c
            store lies
            alice → {"id":2,"send":{"conv":"$c","client_id":"$m2","payload":"Mg=="}}
            alice ← {"id":2,"error":{"code":5003,"name":"internal","message":"$any","temporary":true,"retry_after_ms":1000}}
            store works
            alice → {"id":3,"send":{"conv":"$c","client_id":"$m2","payload":"Mg=="}}
            alice ← {"id":3,"send":{"seq":2,"ts":"$now"}}
            bob ← 2 of $c
            "#
        }
    }
}

#[test]
fn every_error_of_the_table_is_told_in_some_situation() {
    for code in ErrorCode::ALL {
        let told = check(situation(*code));
        assert!(told.errors.contains(&code.code()), "{} was not told", code.name());
    }
}

#[test]
fn malformed_commands_are_refused_and_name_the_field() {
    check(
        r#"
        alice and bob chat in $c
        alice → {"id":2,"recv":{"conv":"$c"}}
        alice ← {"id":2,"error":{"code":1001,"name":"bad_request","message":"$with seq","temporary":false,"retry_after_ms":0}}
        alice → {"id":3,"recv":{"conv":"$c","seq":0}}
        alice ← {"id":3,"error":{"code":1001,"name":"bad_request","message":"$with seq","temporary":false,"retry_after_ms":0}}
        alice → {"id":4,"recv":{"conv":"$c","seq":"1"}}
        alice ← {"id":4,"error":{"code":1001,"name":"bad_request","message":"$with seq","temporary":false,"retry_after_ms":0}}
        alice → {"id":5,"recv":{"conv":"$c","seq":1,"until":2}}
        alice ← {"id":5,"error":{"code":1001,"name":"bad_request","message":"$with until","temporary":false,"retry_after_ms":0}}
        alice → {"id":6,"recv":{"conv":"c","seq":1}}
        alice ← {"id":6,"error":{"code":1001,"name":"bad_request","message":"$with conv","temporary":false,"retry_after_ms":0}}
        alice → {"id":7,"sync":{"conv":"$c","after":0,"limit":257}}
        alice ← {"id":7,"error":{"code":1001,"name":"bad_request","message":"$with limit","temporary":false,"retry_after_ms":0}}
        alice → {"id":8,"send":{"conv":"$c","payload":""}}
        alice ← {"id":8,"error":{"code":1001,"name":"bad_request","message":"$with client_id","temporary":false,"retry_after_ms":0}}
        alice → {"id":9,"send":{"conv":"$c","client_id":"$m2","payload":"","passing":true}}
        alice ← {"id":9,"error":{"code":1001,"name":"bad_request","message":"$with client_id","temporary":false,"retry_after_ms":0}}
        alice → {"id":10,"send":{"conv":"$c","client_id":"$m2","payload":null}}
        alice ← {"id":10,"error":{"code":1001,"name":"bad_request","message":"$with payload","temporary":false,"retry_after_ms":0}}
        alice → {"id":11}
        alice ← {"id":11,"error":"bad_request"}
        alice → {"id":12,"ping":{},"recv":{"conv":"$c","seq":1}}
        alice ← {"id":12,"error":"bad_request"}
        alice → {"id":13,"refresh":{}}
        alice ← {"id":13,"error":{"code":1001,"name":"bad_request","message":"$with token","temporary":false,"retry_after_ms":0}}
        alice → {"id":0,"ping":{}} {"id":9007199254740992,"ping":{}} {"id":-1,"ping":{}} {"id":"7","ping":{}}
        alice ← 4 × {"error":{"code":1001,"name":"bad_request","message":"$with id","temporary":false,"retry_after_ms":0}}
        "#,
    );
}

#[test]
fn a_refused_command_does_not_spoil_the_others_in_its_frame() {
    check(
        r#"
        a connects as alice/1
        a ← {"caught_up":{}}
        a → {"id":2,"ping":{}} {"id":3,"pong":{}} {"id":4,"ping":{"x":1}} {"ping":[]} {"id":5,"ping":{}}
        a ← {"id":2,"ping":{}} {"id":3,"error":"unknown_verb"} {"id":4,"error":"bad_request"} {"error":"bad_request"} {"id":5,"ping":{}}
        "#,
    );
}

#[test]
fn what_is_no_command_at_all_is_refused() {
    check(
        r#"
        a connects as alice/1
        a ← {"caught_up":{}}
        json: a → text {"id":2,"ping":{}
        json: a ← {"id":2,"error":"bad_request"}
        json: a → text {"ping":{},"id"
        json: a ← {"error":"bad_request"}
        json: a → text hello
        json: a ← {"error":"bad_request"}
        json: a → text {"id":3,"ping":{}} {"id":4,"ping":{}}
        json: a ← {"id":3,"error":"bad_request"}
        cbor: a → binary 01
        cbor: a ← {"error":"bad_request"}
        cbor: a → binary 80 a1 6470696e67 a0 f6
        cbor: a ← {"error":"bad_request"} {"error":"bad_request"}
        # Nothing is no error: an empty frame, empty lines.
        json: a → text
        cbor: a → binary
        a → {"id":5,"ping":{}}
        a ← {"id":5,"ping":{}}
        "#,
    );
}

#[test]
fn connect_comes_once() {
    check(
        r#"
        a connects as alice/1
        a ← {"caught_up":{}}
        a → {"id":2,"connect":{"token":"$token alice/1"}}
        a ← {"id":2,"error":{"code":1001,"name":"bad_request","message":"$with connect","temporary":false,"retry_after_ms":0}}
        a → {"id":3,"ping":{}}
        a ← {"id":3,"ping":{}}
        "#,
    );
}

#[test]
fn connect_without_any_token_or_with_none_that_is_one() {
    check(
        r#"
        a opens
        a → {"id":1,"connect":{}}
        a ← {"id":1,"error":{"code":2001,"name":"unauthorised","message":"$with token","temporary":false,"retry_after_ms":0}}
        a ← close 4401
        b opens
        b → {"id":1,"connect":{"token":"not a token"}}
        b ← {"id":1,"error":"unauthorised"}
        b ← close 4401
        c opens
        c → {"connect":{"token":"$forged alice/1"}}
        c ← {"error":"unauthorised"}
        c ← close 4401
        "#,
    );
}

#[test]
fn a_token_of_the_upgrade_may_expire_before_connect() {
    check(
        r#"
        a opens with Authorization: Bearer $token alice/1 5s
        wait 5s
        a → {"id":1,"connect":{}}
        a ← {"id":1,"error":"token_expired"}
        a ← close 4401
        "#,
    );
}

#[test]
fn a_refused_refresh_leaves_the_session_as_it_was() {
    check(
        r#"
        a opens
        a → {"connect":{"token":"$token alice/1 100s"}}
        a ← {"caught_up":{}}
        a → {"id":2,"refresh":{"token":"$token alice/2"}}
        a ← {"id":2,"error":"unauthorised"}
        a → {"id":3,"refresh":{"token":"$token bob/1"}}
        a ← {"id":3,"error":"unauthorised"}
        a → {"id":4,"refresh":{"token":"$forged alice/1"}}
        a ← {"id":4,"error":"unauthorised"}
        a → {"id":5,"refresh":{"token":"$expired alice/1"}}
        a ← {"id":5,"error":{"code":2002,"name":"token_expired","message":"$any","temporary":false,"retry_after_ms":0}}
        a → {"id":6,"refresh":{"token":"nonsense"}}
        a ← {"id":6,"error":"unauthorised"}
        wait 40s
        a ← {"token_expiring":{"expires_at":"$start+100s"}}
        a → {"id":7,"ping":{}}
        a ← {"id":7,"ping":{}}
        wait 59s
        a ← nothing
        wait 1s
        a ← close 4401
        "#,
    );
}

#[test]
fn nothing_is_acknowledged_or_read_that_was_not_there() {
    check(
        r#"
        alice and bob chat in $c
        alice sends 2..3 to $c
        bob ← 2..3 of $c
        bob → {"id":2,"recv":{"conv":"$c","seq":4}}
        bob ← {"id":2,"error":"bad_request"}
        bob → {"id":3,"read":{"conv":"$c","seq":4}}
        bob ← {"id":3,"error":"bad_request"}
        # Read is what some device of the user has acknowledged.
        bob → {"id":4,"read":{"conv":"$c","seq":2}}
        bob ← {"id":4,"error":{"code":1001,"name":"bad_request","message":"$with recv","temporary":false,"retry_after_ms":0}}
        bob → {"id":5,"recv":{"conv":"$c","seq":2}} {"id":6,"read":{"conv":"$c","seq":2}}
        alice ← {"receipt":{"conv":"$c","user":"$bob","delivered":2,"read":0}} {"receipt":{"conv":"$c","user":"$bob","delivered":2,"read":2}}
        bob ← {"id":5,"recv":{}} {"id":6,"read":{}}
        "#,
    );
}

#[test]
fn a_full_disk_refuses_what_would_be_stored_and_nothing_else() {
    check(
        r#"
        alice and bob chat in $c
        rest: alice creates group $g with $alice $bob
        rest ← "$any"
        alice ← {"conversation":"$any"} {"message":"$any"}
        bob ← {"conversation":"$any"} {"message":"$any"}
        alice sends 2..3 to $c
        bob ← 2..3 of $c
        bob → {"recv":{"conv":"$c","seq":2}}
        alice ← {"receipt":{"conv":"$c","user":"$bob","delivered":2,"read":0}}
        store is full
        bob → {"id":2,"recv":{"conv":"$c","seq":3}}
        bob ← {"id":2,"error":{"code":5002,"name":"read_only","message":"$any","temporary":true,"retry_after_ms":1000}}
        bob → {"id":3,"read":{"conv":"$c","seq":2}}
        bob ← {"id":3,"error":"read_only"}
        rest: alice creates direct $d with $alice $carol
        rest ← {"refused":"read_only"}
        rest: alice adds $carol to $g
        rest ← {"refused":"read_only"}
        rest: alice removes $bob from $g
        rest ← {"refused":"read_only"}
        fresh opens
        fresh → {"id":1,"connect":{"token":"$token bob/2"}}
        fresh ← {"id":1,"error":"read_only"}
        fresh ← close 4503

        bob → {"id":4,"sync":{"conv":"$c","after":2,"limit":1}}
        bob ← {"id":4,"sync":{"messages":[{"conv":"$c","seq":3,"ts":"$now","from":"$alice","device":1,"client_id":"$m3","payload":"Mw=="}],"head":3,"more":false}}
        alice → {"id":5,"send":{"conv":"$c","passing":true,"payload":""}}
        alice ← {"id":5,"send":{}}
        bob ← {"message":{"conv":"$c","ts":"$now","from":"$alice","device":1,"payload":""}}
        rest: bob lists
        rest ← ["$any","$any"]
        bob breaks
        again connects as bob/1
        again ← {"message":{"conv":"$c","seq":3,"ts":"$now","from":"$alice","device":1,"client_id":"$m3","payload":"Mw=="}}
        again ← {"message":{"conv":"$g","seq":1,"ts":"$now","system":"$any"}}
        again ← {"caught_up":{}}

        store works
        again → {"id":6,"recv":{"conv":"$c","seq":3}}
        alice ← {"receipt":{"conv":"$c","user":"$bob","delivered":3,"read":0}}
        again ← {"id":6,"recv":{}}
        "#,
    );
}

#[test]
fn a_line_for_a_conversation_that_is_being_looked_for_has_an_end() {
    check(
        r#"
        a connects as alice/1
        a ← {"caught_up":{}}
        store waits
        a → 512 × {"id":2,"sync":{"conv":"$c","after":0,"limit":1}}
        a → 512 × {"id":2,"sync":{"conv":"$c","after":0,"limit":1}}
        a → {"id":3,"sync":{"conv":"$c","after":0,"limit":1}}
        a ← {"id":3,"error":"overloaded"}
        store works
        a ← 1024 × {"id":2,"error":"not_member"}
        "#,
    );
}

#[test]
fn an_outsider_cannot_tell_a_conversation_from_none() {
    check(
        r#"
        alice and bob chat in $c
        rest: alice creates group $g with $alice $bob $eve
        rest ← "$any"
        alice ← {"conversation":"$any"} {"message":"$any"}
        bob ← {"conversation":"$any"} {"message":"$any"}
        rest: alice removes $eve from $g
        rest ← "$any"
        alice ← {"conversation":"$any"} {"message":"$any"}
        bob ← {"conversation":"$any"} {"message":"$any"}
        # Who never was a member, and who is none any more.
        eve connects as eve/1
        eve ← {"caught_up":{}}
        eve → {"id":2,"send":{"conv":"$c","client_id":"$m2","payload":""}} {"id":3,"send":{"conv":"$g","client_id":"$m2","payload":""}} {"id":4,"send":{"conv":"$none","client_id":"$m2","payload":""}}
        eve ← in any order {"id":2,"error":{"code":2003,"name":"not_member","message":"you are not a member of this conversation","temporary":false,"retry_after_ms":0}} {"id":3,"error":{"code":2003,"name":"not_member","message":"you are not a member of this conversation","temporary":false,"retry_after_ms":0}} {"id":4,"error":{"code":2003,"name":"not_member","message":"you are not a member of this conversation","temporary":false,"retry_after_ms":0}}
        eve → {"id":2,"send":{"conv":"$c","passing":true,"payload":""}} {"id":3,"send":{"conv":"$g","passing":true,"payload":""}} {"id":4,"send":{"conv":"$none","passing":true,"payload":""}}
        eve ← in any order {"id":2,"error":"not_member"} {"id":3,"error":"not_member"} {"id":4,"error":"not_member"}
        eve → {"id":2,"recv":{"conv":"$c","seq":1}} {"id":3,"recv":{"conv":"$g","seq":1}} {"id":4,"recv":{"conv":"$none","seq":1}}
        eve ← in any order {"id":2,"error":"not_member"} {"id":3,"error":"not_member"} {"id":4,"error":"not_member"}
        eve → {"id":2,"read":{"conv":"$c","seq":9}} {"id":3,"read":{"conv":"$g","seq":9}} {"id":4,"read":{"conv":"$none","seq":9}}
        eve ← in any order {"id":2,"error":"not_member"} {"id":3,"error":"not_member"} {"id":4,"error":"not_member"}
        eve → {"id":2,"sync":{"conv":"$c","after":0,"limit":1}} {"id":3,"sync":{"conv":"$g","after":0,"limit":1}} {"id":4,"sync":{"conv":"$none","after":0,"limit":1}}
        eve ← in any order {"id":2,"error":"not_member"} {"id":3,"error":"not_member"} {"id":4,"error":"not_member"}
        rest: eve adds $eve to $c
        rest ← {"refused":"not_member"}
        rest: eve adds $eve to $g
        rest ← {"refused":"not_member"}
        rest: eve removes $alice from $g
        rest ← {"refused":"not_member"}
        rest: eve removes $alice from $none
        rest ← {"refused":"not_member"}
        rest: eve creates direct $c with $eve $alice
        rest ← {"refused":"not_member"}
        rest: eve lists
        rest ← []
        alice ← nothing
        bob ← nothing
        "#,
    );
}
