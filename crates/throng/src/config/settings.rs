//! The configuration as the server wants it: typed, and with what must hold between options.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use model::Span;

use super::kind::{KeyFile, Value, span_text};
use super::mistake::{Mistake, Origin};
use super::sources::Effective;

/// Everything an operator decides. What each field means stands in the table, under the same name.
#[derive(Debug, Clone)]
pub struct Config {
    pub listen: SocketAddr,
    pub data: PathBuf,
    pub dev: bool,
    /// 0: as many as there are cores.
    pub shards: u16,
    pub drain: Span,
    pub origins: Vec<String>,
    pub connections: Connections,
    pub admission: Rate,
    pub commands: Rate,
    pub messages: Messages,
    pub store: Store,
    pub auth: Auth,
    pub log: Log,
}

/// `[connections]`
#[derive(Debug, Clone)]
pub struct Connections {
    /// `None`: as many as the descriptor limit allows.
    pub shard_max: Option<u32>,
    pub unauthenticated_max: u32,
    pub unauthenticated_per_address_max: u32,
    pub connect_deadline: Span,
    pub ping_interval: Span,
    pub reconnect_min: Span,
    pub reconnect_max: Span,
}

/// `[admission]` and `[commands]`: a token bucket.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    pub per_second: u32,
    pub burst: u32,
}

/// `[messages]`
#[derive(Debug, Clone)]
pub struct Messages {
    pub payload_bytes_max: usize,
    pub idempotency_window: Span,
    pub receipts_members_max: usize,
    pub resident_conversations_max: usize,
}

/// `[store]`
#[derive(Debug, Clone)]
pub struct Store {
    pub commit_batch_max: usize,
    pub cache_bytes: usize,
}

/// `[auth]`
#[derive(Debug, Clone)]
pub struct Auth {
    pub audience: String,
    pub issuer: Option<String>,
    pub leeway: Span,
    pub token_lifetime_max: Span,
    pub keys: Vec<KeyFile>,
    pub jwks: Option<PathBuf>,
}

/// `[log]`
#[derive(Debug, Clone)]
pub struct Log {
    pub format: LogFormat,
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
    pub(super) fn from_values(values: &[Effective]) -> Result<Config, Vec<Mistake>> {
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
