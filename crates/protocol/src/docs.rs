//! The documentation that is made from the tables.

use std::fmt::Write;

use crate::{CloseCode, ErrorCode};

const HEAD: &str = "\
<!-- Made from the tables in crates/protocol/src/errors.rs. Change them there, then run
     THRONG_BLESS=1 cargo test -p protocol -->

# Errors and close codes

Every code the server sends, from the one table that also names them in replies, logs and metrics. How they look on
the wire is in [protocol.md](protocol.md).
";

const ERRORS: &str = "
## Errors

1xxx is about the request, 2xxx about permission, 5xxx about the server. *Temporary* means that the same request may
succeed later, unchanged; wait `retry_after_ms` before repeating it, or, when that is 0, a random time that grows with
each attempt. A code this page does not have comes from a newer server: go by its first digit and by `temporary`.
*HTTP* is the status of a REST answer with this error.

| code | name | temporary | HTTP | what happened | what a client does |
|---|---|---|---|---|---|
";

const CLOSE_CODES: &str = "
## Close codes

1xxx are those of RFC 6455. After a code that does not *come back* a client must not reconnect by itself as it is:
something has to change first, or a person has to act. After one that does, it reconnects at a random moment in the
window it was given: `after_ms` of the `disconnect` push, or else `reconnect_ms` of the `connect` reply. A connection
that breaks without a close frame comes back likewise.

| code | name | comes back | what happened |
|---|---|---|---|
";

/// The text of `docs/errors.md`.
pub fn errors_markdown() -> String {
    let mut page = String::from(HEAD);
    page.push_str(ERRORS);
    for row in ErrorCode::ALL {
        let (code, name, http) = (row.code(), row.name(), row.http_status());
        let (meaning, client) = (row.meaning(), row.client_does());
        let temporary = yes(row.temporary());
        let _ = writeln!(page, "| {code} | `{name}` | {temporary} | {http} | {meaning} | {client} |");
    }
    page.push_str(CLOSE_CODES);
    for row in CloseCode::ALL {
        let (code, name, meaning) = (row.code(), row.name(), row.meaning());
        let comes_back = yes(row.comes_back());
        let _ = writeln!(page, "| {code} | `{name}` | {comes_back} | {meaning} |");
    }
    page
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}
