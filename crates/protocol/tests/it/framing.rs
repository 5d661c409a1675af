//! Several commands in one frame: each stands for itself, and the order stays.

use protocol::{Command, Encoding};

use crate::bytes::{all, cbor, json, one, request};

#[test]
fn an_empty_frame_holds_no_command() {
    assert!(all(Encoding::Json, b"").is_empty());
    assert!(all(Encoding::Json, b"\n \r\n\t\n").is_empty());
    assert!(all(Encoding::Cbor, b"").is_empty());
}

#[test]
fn lines_are_commands_and_empty_lines_are_nothing() {
    let frame = json("\n{\"id\":1,\"ping\":{}}\r\n\n {\"id\":2,\"ping\":{}} \n{\"id\":3,\"ping\":{}}\n");
    let ids: Vec<_> = all(Encoding::Json, &frame).into_iter().map(|read| read.expect("a ping")).collect();
    assert_eq!(ids, [1, 2, 3].map(|id| request(id, Command::Ping)));
}

#[test]
fn a_bad_line_spoils_no_other() {
    let frame = b"{\"id\":1,\"ping\":{}}\n{\"id\":2,\"ping\":{\nnonsense\n{\"id\":4,\"pong\":{}}\n{\"id\":5,\"ping\":{}}";
    let read = all(Encoding::Json, frame);
    let ids: Vec<_> = read
        .iter()
        .map(|read| match read {
            Ok(request) => (true, request.id.map(|id| id.get())),
            Err(error) => (false, error.id.map(|id| id.get())),
        })
        .collect();
    assert_eq!(ids, [(true, Some(1)), (false, Some(2)), (false, None), (false, Some(4)), (true, Some(5))]);
    assert!(read.iter().flat_map(|read| read.as_ref().err()).all(|error| !error.fatal));
}

#[test]
fn a_command_over_several_lines_is_none() {
    let read = all(Encoding::Json, b"{\"id\":7,\n\"ping\":{}}");
    assert_eq!(read.len(), 2);
    let first = read[0].as_ref().expect_err("half a command");
    assert_eq!(first.refusal.message, "not JSON: a line break inside a command at byte 8");
    assert!(read[1].is_err());
}

#[test]
fn items_follow_each_other_and_a_refused_one_is_passed_over() {
    let frame = cbor(
        "a2 62'id' 01 64'ping' a0  a2 62'id' 02 64'pong' a1 61'x' 82 01 a0  05  a2 62'id' 04 64'ping' a0",
    );
    let read = all(Encoding::Cbor, &frame);
    assert_eq!(read.len(), 4);
    assert_eq!(read[0], Ok(request(1, Command::Ping)));
    assert_eq!(read[1].as_ref().expect_err("pong").id.map(|id| id.get()), Some(2));
    assert!(!read[2].as_ref().expect_err("5").fatal);
    assert_eq!(read[3], Ok(request(4, Command::Ping)));
}

#[test]
fn ill_formed_cbor_ends_the_frame() {
    for (tail, why) in [
        ("a2 62'id' 07 64'ping'", "more items announced than there are bytes"),
        ("a2 62'id' 07 64'pin", "a string cut short"),
        ("a2 62'id' 07 64'ping' 1c", "a reserved head"),
        ("a2 62'id' 07 64'ping' 19 01", "an item cut short"),
        ("a2 62'id' 07 64'ping' bf ff", "an item of indefinite length"),
        ("a2 62'id' 07 64'ping' f818", "a simple value"),
        ("a2 62'id' 07 64'ping' ff", "an item of indefinite length"),
        ("bb 8000000000000000 62'id' 07", "a map too large"),
        ("bb 7fffffffffffffff 62'id' 07", "more items announced than there are bytes"),
        ("a2 62'id' 07 64'ping' 5b ffffffffffffffff", "a string cut short"),
        ("a2 62'id' 07 64'ping' 9b ffffffffffffffff", "more items announced than there are bytes"),
    ] {
        // Each is followed by what would be a good command, if anybody could find it.
        let cut = tail.ends_with("'pin");
        let tail = if cut { cbor(&format!("{tail}'")) } else { cbor(tail) };
        let frame = [cbor("a2 62'id' 01 64'ping' a0"), tail].concat();
        let read = all(Encoding::Cbor, &frame);
        assert_eq!(read.len(), 2, "{why}");
        assert!(read[0].is_ok());
        let error = read[1].as_ref().expect_err(why);
        assert!(error.refusal.message.contains(why), "{} is not {why}", error.refusal.message);
        assert!(error.fatal, "{why}");
        assert_eq!(error.id.map(|id| id.get()), Some(7), "{why}");
    }
    let error = one(Encoding::Cbor, &[0xff]).expect_err("a break");
    assert!(error.fatal);
}

#[test]
fn subprotocols_name_encodings_exactly() {
    assert_eq!(Encoding::from_subprotocol("throng.v1.json"), Some(Encoding::Json));
    assert_eq!(Encoding::from_subprotocol("throng.v1.cbor"), Some(Encoding::Cbor));
    for other in ["throng.v1.JSON", "throng.v1", "throng.v2.json", "", " throng.v1.json"] {
        assert_eq!(Encoding::from_subprotocol(other), None);
    }
}
