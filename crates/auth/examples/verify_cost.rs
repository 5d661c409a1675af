//! What checking one token costs, for each algorithm: `cargo run --release -p auth --example verify_cost`.
//!
//! Prints the median of nine rounds in nanoseconds. A herd that reconnects pays this once per connection.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use auth::{Algorithm, Grant, Keys, Rules, SigningKey, VerifyingKey, mint, verify};
use model::{Span, Wall};

const NOW: Wall = Wall(1_700_000_060_000);

fn main() -> Result<(), Box<dyn Error>> {
    let grant = Grant {
        user: "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        device: 7,
        session: "0b54b3ce-51f4-4c25-8b02-3a0f3bde9d10",
        audience: "throng",
        issuer: Some("https://issuer.example"),
        issued_at: Wall(1_700_000_000_000),
        lifetime: Span::seconds(3600),
    };
    let secret = SigningKey::from_secret(&[7; 32])?;
    measure("HS256", secret.verifying_key(), &mint(&secret, &grant), 20_000)?;
    let named = Grant { user: "alice", session: "laptop", ..grant };
    measure("HS256, names that are no UUIDs", secret.verifying_key(), &mint(&secret, &named), 20_000)?;
    for (algorithm, key, token) in [
        (
            Algorithm::EdDsa,
            include_str!("../tests/fixtures/ed25519.pub.pem"),
            include_str!("../tests/fixtures/ed25519.token"),
        ),
        (
            Algorithm::Es256,
            include_str!("../tests/fixtures/p256.pub.pem"),
            include_str!("../tests/fixtures/p256.token"),
        ),
        (
            Algorithm::Rs256,
            include_str!("../tests/fixtures/rsa2048.pub.pem"),
            include_str!("../tests/fixtures/rsa2048.token"),
        ),
    ] {
        let key = VerifyingKey::from_file_bytes(algorithm, key.as_bytes())?;
        measure(algorithm.name(), key, token.trim_end(), 2_000)?;
    }
    Ok(())
}

fn measure(name: &str, key: VerifyingKey, token: &str, times: u32) -> Result<(), Box<dyn Error>> {
    let keys = Keys::new(vec![key])?;
    let rules = Rules::for_audience("throng");
    verify(&keys, &rules, token, NOW)?;
    let mut rounds: Vec<u128> = (0..9)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..times {
                let _ = black_box(verify(&keys, &rules, black_box(token), NOW));
            }
            start.elapsed().as_nanos() / u128::from(times)
        })
        .collect();
    rounds.sort_unstable();
    println!("{name}: {} ns for a token of {} bytes", rounds[rounds.len() / 2], token.len());
    Ok(())
}
