//! The TOML file: which values stand on which lines. What they must be, the table knows.

use std::path::{Path, PathBuf};

use auth::Algorithm;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::kind::{Found, KeyFile, Kind, is_path};
use crate::mistake::{Mistake, Origin};
use crate::nearest::nearest;
use crate::table::{SECTIONS, SETTINGS, Setting, setting};

/// What the file sets, with the line of each.
pub type Entries = Vec<(&'static Setting, Found, Origin)>;

/// Reads the text of the file at `path`.
///
/// # Errors
/// Every mistake in it, but after a mistake of syntax nothing more is looked at.
pub fn read(path: &Path, text: &str) -> Result<Entries, Vec<Mistake>> {
    let mut reader = Reader { path, text, entries: Vec::new(), mistakes: Vec::new() };
    match DeTable::parse(text) {
        Ok(document) => reader.table("", document.get_ref()),
        Err(error) => {
            let place = reader.origin(error.span().map_or(0, |span| span.start));
            let message = error.message().replace('\n', ", ");
            return Err(vec![Mistake::at(&place, format_args!("not TOML: {message}"))]);
        }
    }
    reader.finish()
}

struct Reader<'f> {
    path: &'f Path,
    text: &'f str,
    entries: Entries,
    /// With the offset of each: tables come in the order of their keys, mistakes are told in that of the lines.
    mistakes: Vec<(usize, String)>,
}

impl Reader<'_> {
    fn finish(mut self) -> Result<Entries, Vec<Mistake>> {
        if self.mistakes.is_empty() {
            return Ok(self.entries);
        }
        self.mistakes.sort();
        Err(self.mistakes.iter().map(|(at, what)| Mistake::at(&self.origin(*at), what)).collect())
    }

    fn origin(&self, offset: usize) -> Origin {
        let line =
            1 + self.text.as_bytes()[..offset.min(self.text.len())].iter().filter(|&&b| b == b'\n').count();
        Origin::File { path: self.path.to_owned(), line }
    }

    fn mistake(&mut self, offset: usize, what: String) {
        self.mistakes.push((offset, what));
    }

    fn table(&mut self, section: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let key = match section {
                "" => name.get_ref().to_string(),
                _ => format!("{section}.{}", name.get_ref()),
            };
            let at = name.span().start;
            match (setting(&key), value.get_ref()) {
                (Some(setting), _) => self.value(setting, at, value),
                (None, DeValue::Table(inner)) if section.is_empty() => self.section(&key, at, inner),
                _ => self.unknown(&key, at),
            }
        }
    }

    fn section(&mut self, name: &str, at: usize, table: &DeTable<'_>) {
        let names = || SECTIONS.iter().map(|(name, _)| *name).filter(|name| !name.is_empty());
        if names().any(|known| known == name) {
            return self.table(name, table);
        }
        let near = nearest(name, names()).unwrap_or_default();
        self.mistake(at, format!("unknown section `[{name}]`; the nearest known one is `[{near}]`"));
    }

    fn unknown(&mut self, key: &str, at: usize) {
        let names = SECTIONS.iter().map(|(name, _)| *name);
        if names.clone().any(|name| name == key) {
            return self.mistake(at, format!("`{key}` is a section: write `[{key}]` and its keys below"));
        }
        let near = nearest(key, SETTINGS.iter().map(|setting| setting.key)).unwrap_or_default();
        self.mistake(at, format!("unknown key `{key}`; the nearest known key is `{near}`"));
    }

    fn value(&mut self, setting: &'static Setting, at: usize, value: &Spanned<DeValue<'_>>) {
        let found = match setting.kind {
            Kind::Keys => match self.keys(value.get_ref()) {
                Some(found) => found,
                None => return,
            },
            _ => found(value.get_ref()),
        };
        let origin = self.origin(at);
        self.entries.push((setting, found, origin));
    }

    /// The tables `[[auth.keys]]`; nothing when a mistake in them has been noted.
    fn keys(&mut self, value: &DeValue<'_>) -> Option<Found> {
        let DeValue::Array(list) = value else { return Some(found(value)) };
        let mut keys = Vec::new();
        for (index, entry) in list.iter().enumerate() {
            let at = entry.span().start;
            match entry.get_ref() {
                DeValue::Table(table) => keys.push(self.key(index, at, table)),
                other => return Some(Found::Other(other.type_str())),
            }
        }
        keys.into_iter().collect::<Option<Vec<KeyFile>>>().map(Found::Keys)
    }

    fn key(&mut self, index: usize, at: usize, table: &DeTable<'_>) -> Option<KeyFile> {
        const NAMES: [&str; 3] = ["file", "algorithm", "kid"];
        let mistakes_before = self.mistakes.len();
        let (mut file, mut algorithm, mut kid) = (None, None, None);
        for (name, value) in table {
            let text = value.get_ref().as_str().unwrap_or_default();
            let expected = match name.get_ref().as_ref() {
                "file" if !text.is_empty() && is_path(text) => {
                    file = Some(PathBuf::from(text));
                    continue;
                }
                "file" => "the path of a file".to_owned(),
                "kid" if (1..=255).contains(&text.len()) => {
                    kid = Some(text.to_owned());
                    continue;
                }
                "kid" => "a text of 1 to 255 bytes".to_owned(),
                "algorithm" => match text.parse::<Algorithm>() {
                    Ok(known) => {
                        algorithm = Some(known);
                        continue;
                    }
                    Err(_) => Kind::OneOf(&["HS256", "EdDSA", "ES256", "RS256"]).expected(),
                },
                other => {
                    let near = nearest(other, NAMES.into_iter()).unwrap_or_default();
                    let what = format!(
                        "unknown key `auth.keys.{other}`; the nearest known key is `auth.keys.{near}`"
                    );
                    self.mistake(name.span().start, what);
                    continue;
                }
            };
            let found = found(value.get_ref()).described();
            let what = format!("`auth.keys.{}` must be {expected}, not {found}", name.get_ref());
            self.mistake(name.span().start, what);
        }
        if self.mistakes.len() > mistakes_before {
            return None;
        }
        let missing = if file.is_none() { "file" } else { "algorithm" };
        let (Some(file), Some(algorithm)) = (file, algorithm) else {
            self.mistake(at, format!("key {} of `auth.keys` has no `{missing}`", index + 1));
            return None;
        };
        Some(KeyFile { file, algorithm, kid })
    }
}

fn found(value: &DeValue<'_>) -> Found {
    match value {
        DeValue::String(text) => Found::Text(text.to_string()),
        DeValue::Boolean(on) => Found::Switch(*on),
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Found::Number(number),
            Err(_) => Found::Other(value.type_str()),
        },
        DeValue::Array(list) => {
            let texts: Option<Vec<String>> =
                list.iter().map(|entry| entry.get_ref().as_str().map(str::to_owned)).collect();
            texts.map_or(Found::Other(value.type_str()), Found::Texts)
        }
        other => Found::Other(other.type_str()),
    }
}
