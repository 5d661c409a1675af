//! The tables of codes, and the page made from them.

use std::collections::BTreeSet;
use std::path::Path;

use protocol::{CloseCode, ErrorCode, docs};

#[test]
fn codes_and_names_are_those_of_the_wire() {
    // The numbers that clients have been told.
    for (code, name, temporary) in [
        (1001, "bad_request", false),
        (1002, "too_large", false),
        (1003, "unknown_verb", false),
        (2001, "unauthorised", false),
        (2002, "token_expired", false),
        (2003, "not_member", false),
        (2004, "not_found", false),
        (2006, "client_id_reused", false),
        (5001, "overloaded", true),
        (5002, "read_only", true),
        (5003, "internal", true),
    ] {
        let row = ErrorCode::from_code(code).expect("a row");
        assert_eq!((row.name(), row.temporary()), (name, temporary));
    }
    assert_eq!(ErrorCode::from_code(65536 + 1001), None);
}

#[test]
fn every_row_is_its_own() {
    let codes: BTreeSet<_> = ErrorCode::ALL.iter().map(|row| row.code()).collect();
    let names: BTreeSet<_> = ErrorCode::ALL.iter().map(|row| row.name()).collect();
    assert_eq!((codes.len(), names.len()), (ErrorCode::ALL.len(), ErrorCode::ALL.len()));
    assert!(ErrorCode::ALL.is_sorted_by_key(|row| row.code()));
    let names: BTreeSet<_> = CloseCode::ALL.iter().map(|row| row.name()).collect();
    assert_eq!(names.len(), CloseCode::ALL.len());
    assert!(CloseCode::ALL.is_sorted_by_key(|row| row.code()));
}

#[test]
fn close_codes_say_by_their_hundred_whether_to_come_back() {
    for row in CloseCode::ALL.iter().filter(|row| row.code() >= 4000) {
        let expected = row.code() / 100 == 45 || row.code() == 4429;
        assert_eq!(row.comes_back(), expected, "{}", row.name());
    }
}

#[test]
fn the_page_of_errors_is_made_from_the_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
    let made = docs::errors_markdown();
    if std::env::var_os("THRONG_BLESS").is_some() {
        std::fs::write(&path, &made).expect("docs/errors.md can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == made,
        "docs/errors.md is not what the tables say. Make it again: THRONG_BLESS=1 cargo test -p protocol"
    );
}
