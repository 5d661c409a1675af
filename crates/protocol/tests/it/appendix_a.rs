//! The examples of RFC 8949, Appendix A: what is well-formed is passed over, and integers are written as there.

use model::Wall;
use protocol::{Command, Encoding, ErrorCode, Push, encode_push};

use crate::bytes::{all, cbor, request};

/// Every example of definite length.
const DEFINITE: &str = "00 01 0a 17 1818 1819 1864 1903e8 1a000f4240 1b000000e8d4a51000 1bffffffffffffffff \
    c249010000000000000000 3bffffffffffffffff c349010000000000000000 20 29 3863 3903e7 f90000 f98000 f93c00 \
    fb3ff199999999999a f93e00 f97bff fa47c35000 fa7f7fffff fb7e37e43c8800759c f90001 f90400 f9c400 \
    fbc010666666666666 f97c00 f97e00 f9fc00 fa7f800000 fa7fc00000 faff800000 fb7ff0000000000000 \
    fb7ff8000000000000 fbfff0000000000000 f4 f5 f6 f7 f0 f8ff \
    c074323031332d30332d32315432303a30343a30305a c11a514b67b0 c1fb41d452d9ec200000 d74401020304 \
    d818456449455446 d82076687474703a2f2f7777772e6578616d706c652e636f6d 40 4401020304 60 6161 6449455446 62225c \
    62c3bc 63e6b0b4 64f0908591 80 83010203 8301820203820405 98190102030405060708090a0b0c0d0e0f101112131415161718181819 \
    a0 a201020304 a26161016162820203 826161a161626163 a56161614161626142616361436164614461656145";

/// Every example of indefinite length.
const INDEFINITE: &str = "5f42010243030405ff 7f657374726561646d696e67ff 9fff 9f018202039f0405ffff 9f01820203820405ff \
    83018202039f0405ff 83019f0203ff820405 9f0102030405060708090a0b0c0d0e0f101112131415161718181819ff \
    bf61610161629f0203ffff 826161bf61626163ff bf6346756ef563416d7421ff";

#[test]
fn every_definite_example_is_passed_over() {
    assert_eq!(DEFINITE.split_whitespace().count(), 70);
    for example in DEFINITE.split_whitespace() {
        let frame = cbor(&format!("a2 64'what' {example} 62'id' 07  a2 62'id' 08 64'ping' a0"));
        let read = all(Encoding::Cbor, &frame);
        assert_eq!(read.len(), 2, "{example}");
        let error = read[0].as_ref().expect_err(example);
        assert_eq!(error.refusal.code, ErrorCode::UnknownVerb);
        assert_eq!((error.id.map(|id| id.get()), error.fatal), (Some(7), false), "{example}");
        assert_eq!(read[1], Ok(request(8, Command::Ping)), "{example}");
    }
}

#[test]
fn every_indefinite_example_ends_the_frame() {
    assert_eq!(INDEFINITE.split_whitespace().count(), 11);
    for example in INDEFINITE.split_whitespace() {
        let frame = cbor(&format!("a2 62'id' 07 64'what' {example}  a2 62'id' 08 64'ping' a0"));
        let read = all(Encoding::Cbor, &frame);
        assert_eq!(read.len(), 1, "{example}");
        let error = read[0].as_ref().expect_err(example);
        assert_eq!((error.id.map(|id| id.get()), error.fatal), (Some(7), true), "{example}");
        assert!(error.refusal.message.contains("indefinite length"), "{}", error.refusal.message);
    }
}

#[test]
fn integers_are_written_as_in_the_examples() {
    for (value, example) in [
        (0, "00"),
        (1, "01"),
        (10, "0a"),
        (23, "17"),
        (24, "1818"),
        (25, "1819"),
        (100, "1864"),
        (1000, "1903e8"),
        (1_000_000, "1a000f4240"),
        (1_000_000_000_000, "1b000000e8d4a51000"),
        (u64::MAX, "1bffffffffffffffff"),
    ] {
        let push = Push::TokenExpiring { expires_at: Wall(value) };
        let mut out = Vec::new();
        encode_push(Encoding::Cbor, &mut out, &push);
        assert_eq!(out, cbor(&format!("a1 6e'token_expiring' a1 6a'expires_at' {example}")));
        out.clear();
        encode_push(Encoding::Json, &mut out, &push);
        assert_eq!(out, format!(r#"{{"token_expiring":{{"expires_at":{value}}}}}"#).into_bytes());
    }
}
