//! Keys and tokens from the command line: made, kept to oneself, found again.

use std::os::unix::fs::PermissionsExt;
use std::time::SystemTime;

use auth::{Algorithm, Keys, Rules, VerifyingKey, verify};
use model::Wall;

use crate::run::{Place, fails};

fn now() -> Wall {
    Wall(SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_millis() as u64)
}

/// Verifies what `throng token` printed with a key file, as somebody else's server would.
fn identity(place: &Place, algorithm: Algorithm, file: &str, printed: &str) -> auth::Identity {
    let token = printed.strip_suffix('\n').expect("one line");
    let bytes = std::fs::read(place.path(file)).expect("the key file");
    let key = VerifyingKey::from_file_bytes(algorithm, &bytes).expect("a key");
    let keys = Keys::new(vec![key]).expect("one key");
    verify(&keys, &Rules::for_audience("throng"), token, now()).expect("a good token")
}

#[test]
fn a_generated_key_signs_tokens_that_its_public_half_checks() {
    let place = Place::new();
    let made = place.run(&["keys", "generate"]);
    assert_eq!((made.code, made.out.as_str()), (0, ""));
    assert!(made.err.contains("wrote ./throng-data/keys/signing.pem; keep it secret"), "{}", made.err);
    let lines = "[[auth.keys]]\nfile = \"./throng-data/keys/verifying.pem\"\nalgorithm = \"EdDSA\"\n";
    assert!(made.err.ends_with(lines), "{}", made.err);

    let printed =
        place.prints(&["token", "--user", "alice", "--device", "7", "--ttl", "10m", "--session", "s"]);
    let identity = identity(&place, Algorithm::EdDsa, "throng-data/keys/verifying.pem", &printed);
    assert_eq!(identity.device.user, auth::user_id("alice"));
    assert_eq!(identity.device.device.0, 7);
    assert_eq!(identity.expires_at.0 - identity.issued_at.0, 600_000);
    // Those lines, used as a configuration elsewhere, make a server that checks but cannot sign.
    place.write("other.toml", lines);
    assert_eq!(place.run(&["config", "check", "--config", "other.toml"]).code, 0);
    fails(
        &place.run(&["token", "--user", "a", "--device", "1", "--config", "other.toml"]),
        2,
        &["none of the configured keys can sign: they are public keys, and tokens come from their owner"],
    );
}

#[test]
fn a_generated_secret_does_both() {
    let place = Place::new();
    let made = place.run(&["keys", "generate", "--algorithm", "hs256", "--data", "d"]);
    assert_eq!(made.code, 0, "{}", made.err);
    assert!(
        made.err.ends_with("[[auth.keys]]\nfile = \"d/keys/signing.secret\"\nalgorithm = \"HS256\"\n"),
        "{}",
        made.err
    );
    let secret = std::fs::read_to_string(place.path("d/keys/signing.secret")).expect("the secret");
    assert!(secret.len() == 64 && !made.err.contains(&secret));
    let printed = place.prints(&["token", "--user", "alice", "--device", "1", "--data", "d"]);
    identity(&place, Algorithm::Hs256, "d/keys/signing.secret", &printed);
    place.write(
        "c.toml",
        "[[auth.keys]]\nfile = \"d/keys/signing.secret\"\nalgorithm = \"HS256\"\nkid = \"one\"\n",
    );
    let printed = place.prints(&["token", "--user", "alice", "--device", "1", "--config", "c.toml"]);
    assert!(printed.starts_with("eyJ"), "{printed}");
}

#[test]
fn nobody_else_can_read_a_generated_key() {
    let place = Place::new();
    for (data, algorithm) in [("a", "ed25519"), ("b", "hs256")] {
        assert_eq!(place.run(&["keys", "generate", "--data", data, "--algorithm", algorithm]).code, 0);
        let mode = |path: &std::path::Path| path.metadata().expect("it exists").permissions().mode() & 0o777;
        let folder = place.path(data).join("keys");
        assert_eq!(mode(&folder), 0o700);
        let names: Vec<_> =
            folder.read_dir().expect("a folder").map(|entry| entry.expect("an entry")).collect();
        assert!(names.iter().all(|entry| mode(&entry.path()) == 0o600));
        assert!(names.iter().all(|entry| !entry.file_name().to_string_lossy().contains("unfinished")));
    }
}

#[test]
fn a_key_is_never_replaced() {
    let place = Place::new();
    assert_eq!(place.run(&["keys", "generate", "--data", "d"]).code, 0);
    let before = std::fs::read(place.path("d/keys/signing.pem")).expect("the key");
    for algorithm in ["ed25519", "hs256"] {
        fails(
            &place.run(&["keys", "generate", "--data", "d", "--algorithm", algorithm]),
            1,
            &["d/keys/signing.pem: a signing key exists already and is not replaced; remove it first"],
        );
    }
    assert_eq!(std::fs::read(place.path("d/keys/signing.pem")).expect("the key"), before);
    assert!(!place.path("d/keys/signing.secret").exists());
}

#[test]
fn a_key_folder_that_cannot_be_made_or_read_is_named() {
    let place = Place::new();
    place.write("file", "");
    fails(
        &place.run(&["keys", "generate", "--data", "file"]),
        1,
        &["file/keys: cannot be made: Not a directory (os error 20)"],
    );
    std::fs::create_dir_all(place.path("d/keys")).expect("a folder");
    place.write("d/keys/signing.pem", "garbage");
    fails(
        &place.run(&["token", "--user", "a", "--device", "1", "--data", "d"]),
        2,
        &["d/keys/signing.pem: not a usable key: not a PEM text with one `-----BEGIN PUBLIC KEY-----` block"],
    );
    place.write("d/keys/signing.secret", "x".repeat(64));
    std::fs::remove_file(place.path("d/keys/signing.pem")).expect("the file");
    assert_eq!(place.run(&["keys", "generate", "--data", "e"]).code, 0);
    std::fs::copy(place.path("e/keys/signing.pem"), place.path("d/keys/signing.pem")).expect("a copy");
    fails(
        &place.run(&["token", "--user", "a", "--device", "1", "--data", "d"]),
        2,
        &["d/keys: two signing keys lie here; remove the one that is not in use"],
    );
}

#[test]
fn no_token_is_printed_that_the_server_would_refuse() {
    let place = Place::new();
    assert_eq!(place.run(&["keys", "generate"]).code, 0);
    let token = |more: &[&str]| place.run(&[["token", "--device", "1", "--user"].as_slice(), more].concat());
    let refused = "the server would refuse this token: ";
    for (arguments, said) in [
        (vec!["a", "--ttl", "2d"], format!("{refused}the token lives longer than tokens may, or not at all")),
        (vec!["a", "--ttl", "0s"], format!("{refused}the token lives longer than tokens may, or not at all")),
        (vec![""], format!("{refused}the token's `sub` is not a string of 1 to 255 bytes")),
        (vec!["a", "--session", ""], format!("{refused}the token's `sid` is not a string of 1 to 64 bytes")),
        (vec!["a", "--ttl", "soon"], "--ttl must be a length of time such as 90s, 10m, 1h or 7d".to_owned()),
    ] {
        fails(&token(&arguments), 2, &[&said]);
    }
    // The audience and the issuer of the configuration go into the token.
    place.write("c.toml", "data = \"throng-data\"\n[auth]\naudience = \"elsewhere\"\nissuer = \"me\"\ntoken_lifetime_max = \"3d\"\n");
    assert_eq!(token(&["a", "--ttl", "2d", "--config", "c.toml"]).code, 0);
}

#[test]
fn without_a_key_it_is_said_how_to_get_one() {
    let place = Place::new();
    let line = "there is no key to check tokens with: run `throng keys generate --data d`, or name your issuer's key \
                under `auth.keys` in the configuration";
    fails(&place.run(&["token", "--data", "d", "--user", "a", "--device", "1"]), 2, &[line]);
    assert!(!place.path("d").exists(), "asking for a token makes nothing");
    // Serving logs other lines on its way; this one is the last.
    let outcome = place.run(&["serve", "--data", "d", "--listen", "127.0.0.1:0"]);
    assert_eq!((outcome.code, outcome.out.as_str()), (2, ""));
    assert_eq!(outcome.err.lines().last(), Some(format!("throng: {line}").as_str()));
}
