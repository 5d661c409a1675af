//! What kinds of values options take: how each is read, what is expected of it, how it is written.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use auth::Algorithm;
use tracing_subscriber::filter::LevelFilter;

/// The kind of an option, with its bounds.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// An address with a port.
    Address,
    /// A file or folder.
    Path,
    /// A file, or nothing when empty.
    PathOrNothing,
    /// On or off.
    Switch,
    /// A whole number.
    Number { min: u64, max: u64 },
    /// A length of time.
    Span { min: Duration, max: Duration },
    /// A text, which may be empty.
    Text { bytes_max: usize },
    /// A text that may not be empty.
    SomeText { bytes_max: usize },
    /// A list of web origins.
    Origins,
    /// One of a few words.
    OneOf(&'static [&'static str]),
    /// `until_acknowledged`, or a length of time.
    Retention { min: Duration, max: Duration },
    /// How much is logged: a level, or levels by part.
    LogLevel,
    /// The tables `[[auth.keys]]`.
    Keys,
}

/// A key that the configuration names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFile {
    /// Where it lies.
    pub file: PathBuf,
    /// What it is for.
    pub algorithm: Algorithm,
    /// Its name, if it has one.
    pub kid: Option<String>,
}

/// A value of one of the kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Address(SocketAddr),
    Path(PathBuf),
    Switch(bool),
    Number(u64),
    Span(Duration),
    Text(String),
    Origins(Vec<String>),
    Retention(Option<Duration>),
    Keys(Vec<KeyFile>),
}

/// A value as it was found, before it is known to be of the right kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// From the environment or a flag: a text that may stand for any kind.
    Untyped(String),
    /// A TOML string.
    Text(String),
    /// A TOML integer.
    Number(i128),
    /// A TOML boolean.
    Switch(bool),
    /// A TOML array of strings.
    Texts(Vec<String>),
    /// The tables `[[auth.keys]]`, already read.
    Keys(Vec<KeyFile>),
    /// Anything else, by its name.
    Other(&'static str),
}

const RETENTION_WORD: &str = "until_acknowledged";

impl Kind {
    /// Reads a value of this kind.
    pub fn read(&self, found: &Found) -> Option<Value> {
        match (self, found) {
            (Kind::Switch, Found::Switch(on)) => Some(Value::Switch(*on)),
            (Kind::Switch, Found::Untyped(text)) => text.parse().ok().map(Value::Switch),
            (Kind::Number { .. }, Found::Number(number)) => self.number(*number),
            (Kind::Number { .. }, Found::Untyped(text)) => self.number(text.parse().ok()?),
            (Kind::Origins, Found::Texts(list)) => origins(list.iter().map(String::as_str)),
            (Kind::Origins, Found::Untyped(text)) if text.is_empty() => Some(Value::Origins(Vec::new())),
            (Kind::Origins, Found::Untyped(text)) => origins(text.split(',').map(str::trim)),
            (Kind::Keys, Found::Keys(keys)) => Some(Value::Keys(keys.clone())),
            (_, Found::Text(text) | Found::Untyped(text)) => self.read_text(text),
            _ => None,
        }
    }

    fn number(&self, number: i128) -> Option<Value> {
        let Kind::Number { min, max } = self else { return None };
        let number = u64::try_from(number).ok()?;
        (*min..=*max).contains(&number).then_some(Value::Number(number))
    }

    fn read_text(&self, text: &str) -> Option<Value> {
        let whole = |found: bool| found.then(|| Value::Text(text.to_owned()));
        match self {
            Kind::Address => text.parse().ok().map(Value::Address),
            Kind::Path => (!text.is_empty() && is_path(text)).then(|| Value::Path(text.into())),
            Kind::PathOrNothing => is_path(text).then(|| Value::Path(text.into())),
            Kind::Text { bytes_max } => whole(text.len() <= *bytes_max),
            Kind::SomeText { bytes_max } => whole((1..=*bytes_max).contains(&text.len())),
            Kind::OneOf(words) => whole(words.contains(&text)),
            Kind::LogLevel => whole(is_log_level(text)),
            Kind::Span { min, max } => {
                parse_span(text).filter(|span| (*min..=*max).contains(span)).map(Value::Span)
            }
            Kind::Retention { .. } if text == RETENTION_WORD => Some(Value::Retention(None)),
            Kind::Retention { min, max } => {
                let span = parse_span(text).filter(|span| (*min..=*max).contains(span))?;
                Some(Value::Retention(Some(span)))
            }
            Kind::Switch | Kind::Number { .. } | Kind::Origins | Kind::Keys => None,
        }
    }

    /// What is expected, to follow "must be".
    pub fn expected(&self) -> String {
        match self {
            Kind::Address => "an address and a port, such as \"127.0.0.1:8080\" or \"[::]:8080\"".to_owned(),
            Kind::Path => "the path of a file or folder".to_owned(),
            Kind::PathOrNothing => "the path of a file, or \"\" for none".to_owned(),
            Kind::Switch => "true or false".to_owned(),
            Kind::Number { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Span { min, max } => {
                format!("a length of time from \"{}\" to \"{}\"", span_text(*min), span_text(*max))
            }
            Kind::Text { bytes_max } => format!("a text of at most {bytes_max} bytes"),
            Kind::SomeText { bytes_max } => format!("a text of 1 to {bytes_max} bytes"),
            Kind::Origins => {
                "a list of origins exactly as browsers send them, such as [\"https://chat.example.org\"]".to_owned()
            }
            Kind::OneOf(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                words.join(" or ")
            }
            Kind::Retention { min, max } => format!(
                "\"{RETENTION_WORD}\", or a length of time from \"{}\" to \"{}\"",
                span_text(*min),
                span_text(*max)
            ),
            Kind::LogLevel => {
                "\"error\", \"warn\", \"info\", \"debug\" or \"trace\", or levels by part such as \"info,reactor=debug\""
                    .to_owned()
            }
            Kind::Keys => "a list of tables `[[auth.keys]]` with `file`, `algorithm` and perhaps `kid`".to_owned(),
        }
    }
}

impl Value {
    /// The value as TOML.
    pub fn toml(&self) -> String {
        match self {
            Value::Address(address) => quoted(&address.to_string()),
            Value::Path(path) => quoted(&path.to_string_lossy()),
            Value::Switch(on) => on.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Span(span) => quoted(&span_text(*span)),
            Value::Text(text) => quoted(text),
            Value::Origins(origins) => format!("[{}]", join(origins.iter().map(|origin| quoted(origin)))),
            Value::Retention(None) => quoted(RETENTION_WORD),
            Value::Retention(Some(span)) => quoted(&span_text(*span)),
            Value::Keys(keys) => format!("[{}]", join(keys.iter().map(KeyFile::toml))),
        }
    }
}

impl KeyFile {
    fn toml(&self) -> String {
        let kid = self.kid.as_ref().map_or(String::new(), |kid| format!(", kid = {}", quoted(kid)));
        format!(
            "{{ file = {}, algorithm = \"{}\"{kid} }}",
            quoted(&self.file.to_string_lossy()),
            self.algorithm
        )
    }
}

impl Found {
    /// What was found, short enough for a line and without line ends.
    pub fn described(&self) -> String {
        match self {
            Found::Untyped(text) | Found::Text(text) if text.contains("-----BEGIN") => {
                "the text of a key".to_owned()
            }
            Found::Untyped(text) | Found::Text(text) => short(text),
            Found::Number(number) => number.to_string(),
            Found::Switch(on) => on.to_string(),
            Found::Texts(list) => format!("[{}]", join(list.iter().map(|text| short(text)))),
            Found::Keys(_) => "a list of keys".to_owned(),
            Found::Other(name) => format!("a TOML {name}"),
        }
    }
}

/// A path is one line; who pastes a key where its path belongs is told so without the key being printed.
pub fn is_path(text: &str) -> bool {
    !text.contains(|c: char| c.is_control()) && !text.contains("-----BEGIN")
}

fn short(text: &str) -> String {
    const CHARACTERS_MAX: usize = 60;
    let cut: String = text.chars().take(CHARACTERS_MAX).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("{cut:?}{more}")
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

/// A TOML basic string.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn origins<'a>(list: impl Iterator<Item = &'a str>) -> Option<Value> {
    let list: Vec<String> = list.map(str::to_owned).collect();
    list.iter().all(|origin| is_origin(origin)).then_some(Value::Origins(list))
}

/// Whether a browser could send this as `Origin` (RFC 6454, section 6.1): scheme, host, and a port unless it is the
/// scheme's own. Compared byte for byte later, so a form that is never sent would silently never match.
fn is_origin(text: &str) -> bool {
    let Some((scheme, authority)) = text.split_once("://") else { return false };
    let scheme_is_sound = scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let host_is_sound = !host.is_empty()
        && host.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._[]:".contains(c))
        && (host.starts_with('[') == host.contains(':'));
    let port_is_sound = port.is_none_or(|port| {
        let own = matches!((scheme, port), ("https" | "wss", "443") | ("http" | "ws", "80"));
        !own && !port.starts_with('0') && port.parse::<u16>().is_ok() && !port.starts_with('+')
    });
    scheme_is_sound && host_is_sound && port_is_sound
}

/// A level, or levels by part: `info,reactor=debug`. The library would take any word for the name of a part.
fn is_log_level(text: &str) -> bool {
    text.split(',').all(|directive| {
        let (part, level) = directive.split_once('=').unwrap_or(("throng", directive));
        let names_a_part = part.chars().all(|c| c.is_ascii_alphanumeric() || "_:".contains(c));
        let is_a_word = level.starts_with(|c: char| c.is_ascii_alphabetic());
        let names_a_level = is_a_word && level.parse::<LevelFilter>().is_ok();
        !part.is_empty() && names_a_part && names_a_level
    })
}

const UNITS: [(&str, Duration); 6] = [
    ("d", Duration::from_secs(24 * 3600)),
    ("h", Duration::from_secs(3600)),
    ("m", Duration::from_secs(60)),
    ("s", Duration::from_secs(1)),
    ("ms", Duration::from_millis(1)),
    ("us", Duration::from_micros(1)),
];

/// Reads a length of time: a whole number and a unit (`us`, `ms`, `s`, `m`, `h`, `d`), nothing else.
pub fn parse_span(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit)?;
    unit.checked_mul(number.parse().ok()?)
}

/// Writes a length of time in the greatest unit that leaves no rest.
pub fn span_text(span: Duration) -> String {
    if span.is_zero() {
        return "0s".to_owned();
    }
    let whole = UNITS.iter().find(|(_, unit)| span.as_nanos().is_multiple_of(unit.as_nanos()));
    let (name, unit) = whole.unwrap_or(&UNITS[5]);
    format!("{}{name}", span.as_nanos() / unit.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_a_number_and_a_unit() {
        for (text, micros, again) in [
            ("0s", 0, "0s"),
            ("250us", 250, "250us"),
            ("1500ms", 1_500_000, "1500ms"),
            ("1000ms", 1_000_000, "1s"),
            ("90s", 90_000_000, "90s"),
            ("120m", 7_200_000_000, "2h"),
            ("7d", 604_800_000_000, "7d"),
        ] {
            let span = parse_span(text).expect(text);
            assert_eq!(span, Duration::from_micros(micros), "{text}");
            assert_eq!(span_text(span), again);
        }
        for text in ["", "10", "s", "1 s", "-1s", "1.5s", "1w", "1S", "s1", "99999999999d", "1s1s"] {
            assert_eq!(parse_span(text), None, "{text}");
        }
    }

    #[test]
    fn origins_are_what_browsers_send() {
        for origin in [
            "https://chat.example.org",
            "http://localhost:3000",
            "http://127.0.0.1:8080",
            "https://[::1]:8443",
            "http://[::1]",
            "capacitor://localhost",
            "https://xn--bcher-kva.example",
        ] {
            assert!(is_origin(origin), "{origin}");
        }
        for origin in [
            "*",
            "null",
            "",
            "chat.example.org",
            "https://",
            "https://chat.example.org/",
            "https://chat.example.org/path",
            "https://Chat.example.org",
            "HTTPS://chat.example.org",
            "https://chat.example.org:443",
            "http://chat.example.org:80",
            "https://*.example.org",
            "https://user@chat.example.org",
            "https://chat.example.org:65536",
            "https://chat.example.org:",
            "https://::1",
            "https://a b",
        ] {
            assert!(!is_origin(origin), "{origin}");
        }
    }

    #[test]
    fn log_levels_are_words_that_the_log_knows() {
        for (text, known) in [
            ("info", true),
            ("WARN", true),
            ("off", true),
            ("info,reactor=debug,store_sqlite::engine=trace", true),
            ("", false),
            ("loud", false),
            ("3", false),
            ("info,", false),
            ("reactor=", false),
            ("=debug", false),
            ("info reactor=debug", false),
        ] {
            assert_eq!(Kind::LogLevel.read(&Found::Text(text.to_owned())).is_some(), known, "{text}");
        }
    }

    #[test]
    fn a_pasted_key_is_not_printed() {
        let pem = Found::Text("-----BEGIN PRIVATE KEY-----\nMC4CAQ".to_owned());
        assert_eq!(Kind::Path.read(&pem), None);
        assert!(!pem.described().contains("MC4CAQ"));
    }
}
