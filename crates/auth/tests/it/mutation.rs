//! No changed token is ever taken, and strict reading agrees with a slow and obvious reference.
//!
//! Every run prints its seed; `THRONG_SEED=… cargo test -p auth` replays it.

use auth::{Algorithm, Keys, VerifyingKey, verify};
use serde_json::{Map, Value, json};

use crate::forge::{CLAIMS, HEADER, IAT, after, check, keys, rules, signed};
use crate::reference::acceptable;

/// SplitMix64 (Steele, Lea, Flood, 2014).
struct Random(u64);

impl Random {
    fn new(test: &str) -> Random {
        let seed = match std::env::var("THRONG_SEED") {
            Ok(text) => text.parse().expect("THRONG_SEED is a number"),
            Err(_) => std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_nanos() as u64,
        };
        eprintln!("{test}: THRONG_SEED={seed}");
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }
}

const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \n\0";

#[test]
fn every_single_change_of_an_hs256_token_is_refused() {
    let token = signed(HEADER, CLAIMS);
    for at in 0..token.len() {
        let (before, rest) = token.split_at(at);
        assert!(check(before).is_err());
        assert!(check(&format!("{before}{}", &rest[1..])).is_err(), "without {at}");
        for &byte in ALPHABET {
            let byte = char::from(byte);
            if !rest.starts_with(byte) {
                assert!(check(&format!("{before}{byte}{}", &rest[1..])).is_err(), "{byte:?} at {at}");
            }
            assert!(check(&format!("{before}{byte}{rest}")).is_err(), "{byte:?} before {at}");
        }
    }
}

#[test]
fn random_changes_of_public_key_tokens_are_refused() {
    let mut random = Random::new("random_changes_of_public_key_tokens_are_refused");
    for (algorithm, public, token) in [
        (
            Algorithm::EdDsa,
            include_str!("../fixtures/ed25519.pub.pem"),
            include_str!("../fixtures/ed25519.token"),
        ),
        (Algorithm::Es256, include_str!("../fixtures/p256.pub.pem"), include_str!("../fixtures/p256.token")),
        (
            Algorithm::Rs256,
            include_str!("../fixtures/rsa2048.pub.pem"),
            include_str!("../fixtures/rsa2048.token"),
        ),
    ] {
        let key = VerifyingKey::from_file_bytes(algorithm, public.as_bytes()).expect("a key");
        let keys = Keys::new(vec![key]).expect("one key");
        let token = token.trim_end().as_bytes();
        for _ in 0..2_000 {
            let mut changed = token.to_vec();
            for _ in 0..1 + random.below(3) {
                let at = random.below(changed.len());
                match random.below(4) {
                    0 => changed[at] = random.one_of(ALPHABET),
                    1 => changed.insert(at, random.one_of(ALPHABET)),
                    2 => drop(changed.remove(at)),
                    _ => changed.swap(at, 0),
                }
            }
            let text = std::str::from_utf8(&changed).expect("ASCII");
            let taken = verify(&keys, &rules(), text, after(60)).is_ok();
            assert_eq!(taken, changed == token, "{algorithm}: {text}");
        }
    }
}

#[test]
fn reading_agrees_with_the_reference_on_random_claims() {
    let mut random = Random::new("reading_agrees_with_the_reference_on_random_claims");
    let odd = [
        json!(null),
        json!(true),
        json!(""),
        json!("x"),
        json!("throng"),
        json!("x".repeat(64)),
        json!("x".repeat(65)),
        json!("x".repeat(255)),
        json!("x".repeat(256)),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(7),
        json!(u32::MAX),
        json!(1u64 << 32),
        json!(u64::MAX),
        json!(IAT),
        json!(IAT + 90),
        json!(IAT + 91),
        json!(IAT + 60),
        json!(IAT + 61),
        json!(IAT + 86_400),
        json!(IAT + 86_401),
        json!([]),
        json!(["throng"]),
        json!(["x", "throng"]),
        json!(["throng", 1]),
        json!({}),
        json!({"a": [1]}),
    ];
    let names = ["sub", "dev", "sid", "iat", "exp", "nbf", "aud", "iss", "other"];
    let good: Map<String, Value> = serde_json::from_str(CLAIMS).expect("good claims");
    let mut taken = 0;
    for _ in 0..20_000 {
        let mut claims = good.clone();
        for _ in 0..random.below(3) {
            let name = random.one_of(&names);
            match random.below(8) {
                0 => drop(claims.remove(name)),
                _ => drop(claims.insert(name.to_owned(), random.one_of(&odd))),
            }
        }
        let text = Value::Object(claims.clone()).to_string();
        let result = verify(&keys(), &rules(), &signed(HEADER, &text), after(60));
        assert_eq!(result.is_ok(), acceptable(&claims, IAT + 60), "{text}: {result:?}");
        taken += usize::from(result.is_ok());
    }
    assert!((1_000..19_000).contains(&taken), "both outcomes were tried: {taken}");
}

#[test]
fn rubbish_is_refused_and_never_panics() {
    let mut random = Random::new("rubbish_is_refused_and_never_panics");
    for _ in 0..20_000 {
        let bytes: Vec<u8> = (0..random.below(300)).map(|_| random.one_of(ALPHABET)).collect();
        assert!(check(&String::from_utf8(bytes).expect("ASCII")).is_err());
        let header: Vec<u8> =
            (0..random.below(40)).map(|_| random.one_of(br#"{}[]":,\ualgkidtyp0e-.HS256"#)).collect();
        assert!(check(&signed(header, CLAIMS)).is_err());
    }
}
