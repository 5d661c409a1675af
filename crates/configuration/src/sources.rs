//! Where values come from and which one counts: flags before environment before file before default.

use std::path::{Path, PathBuf};

use crate::file;
use crate::kind::{Found, Kind, Value};
use crate::mistake::{Mistake, Origin};
use crate::nearest::{distance, nearest};
use crate::settings::Config;
use crate::table::{SETTINGS, Setting, setting};

/// The environment variable that names the file, unless the flag `--config` does.
pub const FILE_VARIABLE: &str = "THRONG_CONFIG";

/// What may set options, besides the defaults.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The file that `--config` names.
    pub file: Option<PathBuf>,
    /// The environment; only names beginning with `THRONG_` matter.
    pub environment: Vec<(String, String)>,
    /// Options set by flags: the key in the table, and the text given.
    pub flags: Vec<(&'static str, String)>,
}

/// An option with its value and where that came from.
#[derive(Debug)]
pub struct Effective {
    pub(crate) setting: &'static Setting,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// The result: every option's value, and the same typed.
#[derive(Debug)]
pub struct Loaded {
    /// In the order of the table.
    pub effective: Vec<Effective>,
    /// For the server.
    pub config: Config,
    /// Not wrong, but probably not meant.
    pub warnings: Vec<Mistake>,
}

/// Reads the file, if one is named, gathers the values from everywhere and checks each, and all together.
///
/// # Errors
/// Every mistake, each with its place.
pub fn load(sources: &Sources) -> Result<Loaded, Vec<Mistake>> {
    let file = sources.file.clone().or_else(|| {
        let named =
            sources.environment.iter().find(|(name, value)| name == FILE_VARIABLE && !value.is_empty());
        named.map(|(_, path)| PathBuf::from(path))
    });
    let Some(path) = file else { return resolve(sources, Ok(Vec::new()), Path::new("")) };
    let entries = match std::fs::read_to_string(&path) {
        Ok(text) => file::read(&path, &text),
        Err(error) => Err(vec![Mistake::in_file(&path, format_args!("cannot be read: {error}"))]),
    };
    resolve(sources, entries, path.parent().unwrap_or(Path::new("")))
}

/// The same, with a file whose text is known.
///
/// # Errors
/// Every mistake, each with its place.
pub fn load_text(sources: &Sources, path: &Path, text: &str) -> Result<Loaded, Vec<Mistake>> {
    resolve(sources, file::read(path, text), path.parent().unwrap_or(Path::new("")))
}

/// What counts, when this is what the file in that folder sets.
fn resolve(
    sources: &Sources,
    entries: Result<file::Entries, Vec<Mistake>>,
    folder: &Path,
) -> Result<Loaded, Vec<Mistake>> {
    let (entries, mut mistakes) = match entries {
        Ok(entries) => (entries, Vec::new()),
        Err(mistakes) => (Vec::new(), mistakes),
    };
    let mut effective = Vec::with_capacity(SETTINGS.len());
    for setting in SETTINGS {
        let (found, origin) = first_of(setting, sources, &entries);
        match setting.kind.read(&found) {
            Some(mut value) => {
                if matches!(origin, Origin::File { .. }) {
                    from_folder(&mut value, folder);
                }
                effective.push(Effective { setting, value, origin });
            }
            None => {
                let what = format!(
                    "`{}` must be {}, not {}",
                    setting.key,
                    setting.kind.expected(),
                    found.described()
                );
                mistakes.push(Mistake::at(&origin, what));
            }
        }
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let config = Config::from_values(&effective)?;
    let warnings = warnings(sources, &config);
    Ok(Loaded { effective, config, warnings })
}

/// The found value that counts.
fn first_of(setting: &'static Setting, sources: &Sources, entries: &file::Entries) -> (Found, Origin) {
    if let Some((_, text)) = sources.flags.iter().find(|(key, _)| *key == setting.key) {
        return (Found::Untyped(text.clone()), Origin::Flag(setting.flag.unwrap_or(setting.key)));
    }
    if let Some(variable) = setting.variable()
        && let Some((_, text)) = sources.environment.iter().find(|(name, _)| *name == variable)
    {
        return (Found::Untyped(text.clone()), Origin::Variable(variable));
    }
    if let Some((_, found, origin)) = entries.iter().find(|(set, ..)| set.key == setting.key) {
        return (found.clone(), origin.clone());
    }
    (default_of(setting), Origin::Default)
}

fn default_of(setting: &Setting) -> Found {
    match setting.kind {
        Kind::Keys => Found::Keys(Vec::new()),
        Kind::Origins => Found::Texts(Vec::new()),
        _ => Found::Untyped(setting.default.trim_matches('"').to_owned()),
    }
}

/// Paths in a file are meant from where the file lies, so that it means the same wherever the server is started.
fn from_folder(value: &mut Value, folder: &Path) {
    let place = |path: &mut PathBuf| {
        if !path.as_os_str().is_empty() {
            *path = folder.join(&path);
        }
    };
    match value {
        Value::Path(path) => place(path),
        Value::Keys(keys) => keys.iter_mut().for_each(|key| place(&mut key.file)),
        _ => {}
    }
}

fn warnings(sources: &Sources, config: &Config) -> Vec<Mistake> {
    let mut warnings = Vec::new();
    let known = || SETTINGS.iter().filter_map(Setting::variable).chain([FILE_VARIABLE.to_owned()]);
    for (name, _) in &sources.environment {
        // Others may set variables of this prefix (Kubernetes does for a service called throng), so only a name
        // that looks like a slip of the hand is worth a word, and no name is an error.
        if !name.starts_with("THRONG_") || known().any(|one| one == *name) {
            continue;
        }
        let names: Vec<String> = known().collect();
        if let Some(near) = nearest(name, names.iter().map(String::as_str))
            && distance(name, near) <= 2
        {
            let what = format!("sets no option; the nearest known variable is {near}");
            warnings.push(Mistake::at(&Origin::Variable(name.clone()), what));
        }
    }
    if config.dev && !config.listen.ip().is_loopback() {
        let what =
            format!("development mode hands out identities, and {} can be reached by others", config.listen);
        warnings
            .push(Mistake::at(&Origin::Flag(setting("dev").and_then(|dev| dev.flag).unwrap_or("dev")), what));
    }
    warnings
}
