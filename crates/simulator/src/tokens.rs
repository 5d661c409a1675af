//! Tokens of the run: the key that makes them, and what the server is told of it.

use std::sync::Arc;

use auth::{Grant, Keys, Rules, SigningKey};
use model::{DeviceKey, Span, Wall};

const AUDIENCE: &str = "throng";

/// Makes tokens for clients.
pub struct Tokens {
    signing: SigningKey,
}

impl Tokens {
    /// With a key of its own.
    pub fn new() -> Self {
        let signing = SigningKey::from_secret(b"a secret of the simulator, 32 bytes").expect("long enough");
        Tokens { signing }
    }

    /// What the server needs to check them.
    pub fn keys(&self) -> Arc<Keys> {
        Arc::new(Keys::new(vec![self.signing.verifying_key()]).expect("one key is a set"))
    }

    /// What else the server asks of a token.
    pub fn rules(&self) -> Rules {
        Rules::for_audience(AUDIENCE)
    }

    /// A token for a device. The last moment of its validity is returned with it.
    pub fn mint(&self, device: DeviceKey, now: Wall, lifetime: Span) -> (String, Wall) {
        let user = device.user.to_string();
        let grant = Grant {
            user: &user,
            device: device.device.0,
            session: "simulated",
            audience: AUDIENCE,
            issuer: None,
            issued_at: now,
            lifetime,
        };
        (auth::mint(&self.signing, &grant), Wall(now.0 / 1_000 * 1_000 + lifetime.0))
    }
}
