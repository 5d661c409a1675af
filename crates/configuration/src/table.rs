//! The one table of options. The file, the environment, `config init`, `show`, `check`, `docs` and the page
//! `docs/configuration.md` are all made from it.

use std::time::Duration;

use model::limits;

use crate::kind::Kind;

/// An option.
#[derive(Debug)]
pub struct Setting {
    /// Its name in the file: the section, a dot, the key.
    pub key: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// Its default, as it would stand in the file.
    pub default: &'static str,
    /// What it does: a sentence or two.
    pub what: &'static str,
    /// Why its default is what it is.
    pub reason: &'static str,
    /// The command-line flag that sets it, if there is one.
    pub flag: Option<&'static str>,
}

impl Setting {
    /// The environment variable that sets it: `THRONG_`, and the key in capitals with `_` for the dot.
    pub fn variable(&self) -> Option<String> {
        match self.kind {
            Kind::Keys => None,
            _ => Some(format!("THRONG_{}", self.key.to_ascii_uppercase().replace('.', "_"))),
        }
    }

    /// Its section, and its key within.
    pub fn parts(&self) -> (&'static str, &'static str) {
        self.key.split_once('.').unwrap_or(("", self.key))
    }
}

/// The option of this name.
pub fn setting(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

/// What each section is about, in the order in which they are shown.
pub const SECTIONS: [(&str, &str); 8] = [
    ("", "The server as a whole."),
    ("connections", "Connections: how many, and how they are kept alive."),
    ("admission", "How fast clients may come in after a restart, on each shard."),
    ("commands", "How fast one connection may send commands."),
    ("messages", "Messages: their size and how long they are kept."),
    ("store", "The store and its group commit."),
    ("auth", "Who may connect: the keys that sign tokens, and what a token must say."),
    ("log", "The log, which goes to standard error."),
];

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const DAY: u64 = 24 * 3600;

/// Every option.
pub const SETTINGS: &[Setting] = &[
    Setting {
        key: "listen",
        kind: Kind::Address,
        default: "\"127.0.0.1:8080\"",
        what: "The address and port of the server, for sockets and HTTP alike. Port 0 takes a free one.",
        reason: "Only this machine can reach it until somebody decides otherwise: TLS ends in a proxy in front.",
        flag: Some("--listen"),
    },
    Setting {
        key: "data",
        kind: Kind::Path,
        default: "\"./throng-data\"",
        what: "The folder of the database and of generated keys. One server at a time uses it.",
        reason: "Beside the place it was started from, where somebody trying it out finds it and can delete it.",
        flag: Some("--data"),
    },
    Setting {
        key: "dev",
        kind: Kind::Switch,
        default: "false",
        what: "Development: makes a signing key when there is none, prints tokens to try, serves a demo page at `/`.",
        reason: "It hands an identity to anybody who asks.",
        flag: Some("--dev"),
    },
    Setting {
        key: "shards",
        kind: Kind::Number { min: 0, max: 1_024 },
        default: "0",
        what: "How many shards serve connections, each on a thread of its own; 0 is one for each core.",
        reason: "A core serves one shard best. More help only where a descriptor table is limited to fewer connections.",
        flag: Some("--shards"),
    },
    Setting {
        key: "drain",
        kind: Kind::Span { min: seconds(0), max: seconds(25) },
        default: "\"20s\"",
        what: "How long a server that was told to stop (SIGTERM) takes leave of its clients before it exits.",
        reason: "Most supervisors kill after 30 s, ending takes up to 5 s more, and the clients' return is spread over this time.",
        flag: None,
    },
    Setting {
        key: "origins",
        kind: Kind::Origins,
        default: "[]",
        what: "Web origins whose pages may connect, compared exactly; there is no wildcard. Empty: only pages that \
               this server's own address serves over http. Behind a proxy that speaks TLS, name the site: \
               `[\"https://chat.example.org\"]`.",
        reason: "A page of another site must not connect in its visitor's name.",
        flag: None,
    },
    Setting {
        key: "connections.shard_max",
        kind: Kind::Number { min: 0, max: 16_777_216 },
        default: "0",
        what: "Most connections of one shard; 0 is as many as its descriptors allow.",
        reason: "The descriptor limit is a cap already, and the one an operator knows.",
        flag: None,
    },
    Setting {
        key: "connections.unauthenticated_max",
        kind: Kind::Number { min: 1, max: 16_777_216 },
        default: "8192",
        what: "Most connections of one shard that have not said who they are yet; more are refused.",
        reason: "A second of a reconnecting crowd fits; stalled connections cannot take all descriptors.",
        flag: None,
    },
    Setting {
        key: "connections.unauthenticated_per_address_max",
        kind: Kind::Number { min: 1, max: 16_777_216 },
        default: "1024",
        what: "The same, from one peer address.",
        reason: "A carrier's or an office's shared address fits; one machine cannot fill the whole allowance.",
        flag: None,
    },
    Setting {
        key: "connections.connect_deadline",
        kind: Kind::Span { min: seconds(1), max: seconds(60) },
        default: "\"10s\"",
        what: "From accepting a connection to its valid `connect`; then it is closed with 4408.",
        reason: "Long enough for three lost packets on a phone, short enough to starve a slow attack.",
        flag: None,
    },
    Setting {
        key: "connections.ping_interval",
        kind: Kind::Span { min: seconds(5), max: seconds(3600) },
        default: "\"1m\"",
        what: "A connection quiet for this long is pinged; after two unanswered pings it is closed with 4505.",
        reason: "Below the idle limits of common proxies and carriers, and a million quiet clients cost 17 thousand pings a second.",
        flag: None,
    },
    Setting {
        key: "connections.reconnect_min",
        kind: Kind::Span { min: seconds(0), max: seconds(300) },
        default: "\"500ms\"",
        what: "The earliest moment, after losing its connection, at which a client is told to come back.",
        reason: "A restarting server needs about half a second.",
        flag: None,
    },
    Setting {
        key: "connections.reconnect_max",
        kind: Kind::Span { min: seconds(1), max: seconds(3600) },
        default: "\"10s\"",
        what: "The latest such moment. Clients choose at random between the two.",
        reason: "A hundred thousand clients come back at ten thousand a second, and nobody waits for long.",
        flag: None,
    },
    Setting {
        key: "admission.connects_per_second",
        kind: Kind::Number { min: 1, max: 1_000_000 },
        default: "20000",
        what: "Upgrades that one shard admits per second, on average; the others are told when to come back.",
        reason: "About what one core can take in, so that only a returning crowd meets it.",
        flag: None,
    },
    Setting {
        key: "admission.burst",
        kind: Kind::Number { min: 1, max: 1_000_000 },
        default: "20000",
        what: "Upgrades that one shard admits at once after a quiet time.",
        reason: "One second's worth.",
        flag: None,
    },
    Setting {
        key: "commands.per_second",
        kind: Kind::Number { min: 1, max: 1_000_000 },
        default: "500",
        what: "Commands that one connection may send per second, on average; more are refused with `rate_limited`.",
        reason: "Far more than a person types or a client acknowledges, far less than a shard can serve.",
        flag: None,
    },
    Setting {
        key: "commands.burst",
        kind: Kind::Number { min: 1, max: 10_000_000 },
        default: "2000",
        what: "Commands that one connection may send at once after a quiet time.",
        reason: "A device that was away acknowledges and syncs a full window of 256 messages in many conversations.",
        flag: None,
    },
    Setting {
        key: "messages.payload_bytes_max",
        kind: Kind::Number { min: 1_024, max: limits::PAYLOAD_BYTES_MAX as u64 },
        default: "65536",
        what: "Longest payload of a message, in bytes.",
        reason: "Text and keys fit; files belong elsewhere. It is also the most that windows and buffers are laid out for.",
        flag: None,
    },
    Setting {
        key: "messages.idempotency_window",
        kind: Kind::Span { min: seconds(3600), max: seconds(90 * DAY) },
        default: "\"7d\"",
        what: "How long a `client_id` is remembered, so that a repeated `send` gets the first reply again.",
        reason: "A phone that was off over a holiday may still repeat its last send.",
        flag: None,
    },
    Setting {
        key: "messages.retention",
        kind: Kind::Retention { min: seconds(60), max: seconds(3650 * DAY) },
        default: "\"until_acknowledged\"",
        what: "How long a message's body is kept: until every member's every device has acknowledged it, or for a fixed time. \
               This version has the first only and refuses the other.",
        reason: "What everybody has, the server need not keep.",
        flag: None,
    },
    Setting {
        key: "messages.receipts_members_max",
        kind: Kind::Number { min: 2, max: limits::GROUP_MEMBERS_MAX as u64 },
        default: "64",
        what: "Conversations with more members than this get no receipts.",
        reason: "Receipts of a group grow with the square of its members.",
        flag: None,
    },
    Setting {
        key: "messages.resident_conversations_max",
        kind: Kind::Number { min: 16, max: 1_000_000 },
        default: "1024",
        what: "Conversations that each of the 256 partitions keeps in memory; the least recently used make room.",
        reason: "A quarter of a million conversations at work, at some hundred bytes each.",
        flag: None,
    },
    Setting {
        key: "store.commit_batch_max",
        kind: Kind::Number { min: 1, max: 100_000 },
        default: "1000",
        what: "Most requests in one commit.",
        reason: "Beyond a thousand a batch only gets later, not cheaper per request.",
        flag: None,
    },
    Setting {
        key: "store.cache_bytes",
        kind: Kind::Number { min: 1 << 20, max: 1 << 40 },
        default: "67108864",
        what: "Bytes of the database kept in memory.",
        reason: "The tables' inner pages and the messages on their way fit; the system caches the file besides.",
        flag: None,
    },
    Setting {
        key: "auth.audience",
        kind: Kind::SomeText { bytes_max: 255 },
        default: "\"throng\"",
        what: "What a token's `aud` must be or contain.",
        reason: "A token that was made for another service must not work here, so there is always an audience.",
        flag: None,
    },
    Setting {
        key: "auth.issuer",
        kind: Kind::Text { bytes_max: 255 },
        default: "\"\"",
        what: "What a token's `iss` must equal; empty for any.",
        reason: "The key says who the issuer is; name it when several issuers share a key set.",
        flag: None,
    },
    Setting {
        key: "auth.leeway",
        kind: Kind::Span { min: seconds(0), max: seconds(300) },
        default: "\"30s\"",
        what: "How far a token's `iat` and `nbf` may lie in the future. `exp` has none: the socket closes at that moment.",
        reason: "Clocks kept by NTP differ by less than a second, others by some.",
        flag: None,
    },
    Setting {
        key: "auth.token_lifetime_max",
        kind: Kind::Span { min: seconds(60), max: seconds(366 * DAY) },
        default: "\"1d\"",
        what: "How far `iat` and `exp` of a token may lie apart.",
        reason: "What a stolen token is worth at most. Clients refresh in place, so short ones cost nothing.",
        flag: None,
    },
    Setting {
        key: "auth.keys",
        kind: Kind::Keys,
        default: "[]",
        what: "The keys that sign tokens: `file`, `algorithm` (HS256, EdDSA, ES256 or RS256) and, when there are several, \
               `kid`. A file holds a public key as PEM, or for HS256 the secret itself.",
        reason: "With no key and no key set here, the one that `throng keys generate` put into the data folder is used.",
        flag: None,
    },
    Setting {
        key: "auth.jwks",
        kind: Kind::PathOrNothing,
        default: "\"\"",
        what: "A file with a JSON Web Key Set, taken besides `auth.keys`. Read at start.",
        reason: "Most set-ups have one key or a provider's set, not both.",
        flag: None,
    },
    Setting {
        key: "log.format",
        kind: Kind::OneOf(&["text", "json"]),
        default: "\"text\"",
        what: "One line of text or one JSON object per event; control characters are escaped in both.",
        reason: "People read it first; collectors want \"json\".",
        flag: None,
    },
    Setting {
        key: "log.level",
        kind: Kind::LogLevel,
        default: "\"info\"",
        what: "The least important level that is logged, perhaps by part: \"info,reactor=debug\".",
        reason: "Starts, stops and what an operator must act on; nothing per message.",
        flag: None,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Value;

    #[test]
    fn defaults_are_those_of_the_limits() {
        let sources = crate::Sources::default();
        let config = crate::load(&sources).expect("the defaults are valid").config;
        let milliseconds = |span: model::Span| Duration::from_millis(span.0);
        assert_eq!(config.messages.payload_bytes_max, limits::PAYLOAD_BYTES_MAX);
        assert_eq!(config.messages.idempotency_window, limits::IDEMPOTENCY_WINDOW);
        assert_eq!(config.connections.connect_deadline, limits::CONNECT_DEADLINE);
        assert_eq!(config.connections.ping_interval, limits::PING_INTERVAL);
        assert_eq!(config.connections.unauthenticated_max as usize, limits::UNAUTHENTICATED_MAX);
        assert_eq!(
            config.connections.unauthenticated_per_address_max as usize,
            limits::UNAUTHENTICATED_PER_ADDRESS_MAX
        );
        assert_eq!(
            (config.connections.reconnect_min, config.connections.reconnect_max),
            limits::RECONNECT_WINDOW
        );
        assert_eq!(config.admission.per_second, limits::ADMISSION_PER_SECOND);
        assert_eq!(config.admission.burst, limits::ADMISSION_BURST);
        assert_eq!(config.messages.receipts_members_max, limits::RECEIPTS_MEMBERS_MAX);
        assert_eq!(config.messages.resident_conversations_max, limits::RESIDENT_CONVERSATIONS_MAX);
        assert_eq!(config.commands.burst, limits::COMMANDS_BURST);
        assert_eq!(config.commands.per_second, limits::COMMANDS_PER_SECOND);
        assert!(milliseconds(config.drain) <= seconds(25));
    }

    #[test]
    fn every_option_says_what_it_does_and_why_and_lies_in_a_known_section() {
        for setting in SETTINGS {
            assert!(setting.what.ends_with('.') && setting.reason.ends_with('.'), "{}", setting.key);
            assert!(SECTIONS.iter().any(|(name, _)| *name == setting.parts().0), "{}", setting.key);
        }
    }

    #[test]
    fn options_of_a_section_stand_together() {
        let order: Vec<&str> = SECTIONS.iter().map(|(name, _)| *name).collect();
        let places: Vec<usize> = SETTINGS
            .iter()
            .map(|setting| order.iter().position(|name| *name == setting.parts().0).expect("a section"))
            .collect();
        assert!(places.is_sorted());
    }

    #[test]
    fn every_default_is_written_as_it_would_be_shown() {
        let loaded = crate::load(&crate::Sources::default()).expect("the defaults are valid");
        for effective in &loaded.effective {
            if !matches!(effective.value, Value::Path(_)) {
                assert_eq!(effective.value.toml(), effective.setting.default, "{}", effective.setting.key);
            }
        }
    }
}
