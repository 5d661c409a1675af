//! The configuration as the server wants it: typed, and with what must hold between options.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use model::Span;

use crate::kind::{KeyFile, Value, span_text};
use crate::mistake::{Mistake, Origin};
use crate::sources::Effective;

/// Everything an operator decides. What each field means stands in the table, under the same name.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where connections are accepted.
    pub listen: SocketAddr,
    /// The folder with the database and, by default, the keys.
    pub data: PathBuf,
    /// Development mode: a page to try it, and identities for the asking.
    pub dev: bool,
    /// 0: as many as there are cores.
    pub shards: u16,
    /// How long connections are sent away before the server ends.
    pub drain: Span,
    /// Web origins that may connect; empty: the same host only.
    pub origins: Vec<String>,
    /// How many connections, and how they are kept alive.
    pub connections: Connections,
    /// How fast clients may come in, on each shard.
    pub admission: Rate,
    /// How fast one connection may send commands.
    pub commands: Rate,
    /// Messages: their size and how long they are kept.
    pub messages: Messages,
    /// The store and its group commit.
    pub store: Store,
    /// Who may connect.
    pub auth: Auth,
    /// The log.
    pub log: Log,
}

/// `[connections]`
#[derive(Debug, Clone)]
pub struct Connections {
    /// `None`: as many as the descriptor limit allows.
    pub shard_max: Option<u32>,
    /// Connections of a shard that have not said who they are.
    pub unauthenticated_max: u32,
    /// The same, from one address.
    pub unauthenticated_per_address_max: u32,
    /// From accept to a valid `connect`.
    pub connect_deadline: Span,
    /// A connection quiet for this long is pinged.
    pub ping_interval: Span,
    /// The earliest moment at which clients are asked to come back.
    pub reconnect_min: Span,
    /// The latest.
    pub reconnect_max: Span,
}

/// `[admission]` and `[commands]`: a token bucket.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// On average.
    pub per_second: u32,
    /// At once.
    pub burst: u32,
}

/// `[messages]`
#[derive(Debug, Clone)]
pub struct Messages {
    /// Longest payload, in bytes.
    pub payload_bytes_max: usize,
    /// How long a `client_id` is remembered.
    pub idempotency_window: Span,
    /// Receipts are not sent in conversations with more members.
    pub receipts_members_max: usize,
    /// Conversations that one partition keeps in memory.
    pub resident_conversations_max: usize,
}

/// `[store]`
#[derive(Debug, Clone)]
pub struct Store {
    /// Requests in one commit, at most.
    pub commit_batch_max: usize,
    /// The page cache of the database.
    pub cache_bytes: usize,
}

/// `[auth]`
#[derive(Debug, Clone)]
pub struct Auth {
    /// What `aud` of a token must be or contain.
    pub audience: String,
    /// What `iss` must be, if anything.
    pub issuer: Option<String>,
    /// How far clocks may differ.
    pub leeway: Span,
    /// How long a token may live.
    pub token_lifetime_max: Span,
    /// The keys that sign tokens.
    pub keys: Vec<KeyFile>,
    /// A file with a set of keys.
    pub jwks: Option<PathBuf>,
}

/// `[log]`
#[derive(Debug, Clone)]
pub struct Log {
    /// How a line looks.
    pub format: LogFormat,
    /// How much is logged.
    pub level: String,
}

/// How a line of the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For collectors.
    Json,
}

impl Config {
    /// Takes the values of the table apart.
    pub(crate) fn from_values(values: &[Effective]) -> Result<Config, Vec<Mistake>> {
        let v = Values(values);
        v.check_order("connections.reconnect_min", "connections.reconnect_max")?;
        v.check_order("connections.unauthenticated_per_address_max", "connections.unauthenticated_max")?;
        v.check_retention()?;
        Ok(Config {
            listen: v.address("listen"),
            data: v.path("data"),
            dev: v.switch("dev"),
            shards: v.number("shards") as u16,
            drain: v.span("drain"),
            origins: v.origins("origins"),
            connections: Connections {
                shard_max: Some(v.number("connections.shard_max") as u32).filter(|&max| max > 0),
                unauthenticated_max: v.number("connections.unauthenticated_max") as u32,
                unauthenticated_per_address_max: v.number("connections.unauthenticated_per_address_max")
                    as u32,
                connect_deadline: v.span("connections.connect_deadline"),
                ping_interval: v.span("connections.ping_interval"),
                reconnect_min: v.span("connections.reconnect_min"),
                reconnect_max: v.span("connections.reconnect_max"),
            },
            admission: Rate {
                per_second: v.number("admission.connects_per_second") as u32,
                burst: v.number("admission.burst") as u32,
            },
            commands: Rate {
                per_second: v.number("commands.per_second") as u32,
                burst: v.number("commands.burst") as u32,
            },
            messages: Messages {
                payload_bytes_max: v.count("messages.payload_bytes_max"),
                idempotency_window: v.span("messages.idempotency_window"),
                receipts_members_max: v.count("messages.receipts_members_max"),
                resident_conversations_max: v.count("messages.resident_conversations_max"),
            },
            store: Store {
                commit_batch_max: v.count("store.commit_batch_max"),
                cache_bytes: v.count("store.cache_bytes"),
            },
            auth: Auth {
                audience: v.text("auth.audience"),
                issuer: Some(v.text("auth.issuer")).filter(|issuer| !issuer.is_empty()),
                leeway: v.span("auth.leeway"),
                token_lifetime_max: v.span("auth.token_lifetime_max"),
                keys: v.keys("auth.keys"),
                jwks: Some(v.path("auth.jwks")).filter(|path| !path.as_os_str().is_empty()),
            },
            log: Log {
                format: match v.text("log.format").as_str() {
                    "json" => LogFormat::Json,
                    _ => LogFormat::Text,
                },
                level: v.text("log.level"),
            },
        })
    }
}

/// The values by key. The table fixes which kind each is and its range, so a miss here is a mistake of ours; the
/// narrowing above relies on the ranges.
struct Values<'v>(&'v [Effective]);

macro_rules! of_kind {
    ($($name:ident: $variant:ident($pattern:ident) -> $result:ty = $make:expr;)*) => {
        $(
            fn $name(&self, key: &str) -> $result {
                match &self.of(key).value {
                    Value::$variant($pattern) => $make,
                    other => unreachable!("the table says what `{key}` is, and it is not {other:?}"),
                }
            }
        )*
    };
}

impl Values<'_> {
    fn of(&self, key: &str) -> &Effective {
        let found = self.0.iter().find(|effective| effective.setting.key == key);
        found.unwrap_or_else(|| unreachable!("`{key}` is in the table"))
    }

    of_kind! {
        address: Address(address) -> SocketAddr = *address;
        path: Path(path) -> PathBuf = path.clone();
        switch: Switch(on) -> bool = *on;
        number: Number(number) -> u64 = *number;
        count: Number(number) -> usize = *number as usize;
        span: Span(span) -> Span = milliseconds(*span);
        text: Text(text) -> String = text.clone();
        origins: Origins(origins) -> Vec<String> = origins.clone();
        keys: Keys(keys) -> Vec<KeyFile> = keys.clone();
    }

    /// The store cannot forget by time yet, and an option that does nothing would be a lie.
    fn check_retention(&self) -> Result<(), Vec<Mistake>> {
        let retention = self.of("messages.retention");
        match retention.value {
            Value::Retention(Some(_)) => Err(vec![Mistake::at(
                &retention.origin,
                "`messages.retention`: this version keeps bodies until they are acknowledged, and has no other way yet",
            )]),
            _ => Ok(()),
        }
    }

    /// The value of `least` may not be greater than that of `greatest`.
    fn check_order(&self, least: &str, greatest: &str) -> Result<(), Vec<Mistake>> {
        let (low, high) = (self.of(least), self.of(greatest));
        let said = match (&low.value, &high.value) {
            (Value::Span(a), Value::Span(b)) if a > b => (span_text(*a), span_text(*b)),
            (Value::Number(a), Value::Number(b)) if a > b => (a.to_string(), b.to_string()),
            _ => return Ok(()),
        };
        let place = if low.origin == Origin::Default { &high.origin } else { &low.origin };
        let what = format!("`{least}` ({}) may not be greater than `{greatest}` ({})", said.0, said.1);
        Err(vec![Mistake::at(place, what)])
    }
}

fn milliseconds(span: Duration) -> Span {
    Span(span.as_millis() as u64)
}
