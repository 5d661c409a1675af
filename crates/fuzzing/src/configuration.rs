//! Any text as a configuration file: mistakes are told one a line, and what is taken says the same when it is shown and read again.

use std::path::Path;

use ::configuration::{Sources, load_text, shown};

/// Where the file is said to lie; paths in it are then meant from here.
const PATH: &str = "throng.toml";

/// See the module.
pub fn configuration(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let sources = Sources::default();
    match load_text(&sources, Path::new(PATH), text) {
        Ok(loaded) => {
            let said = shown(&loaded.effective);
            let again = load_text(&sources, Path::new(PATH), &said);
            let again = again.unwrap_or_else(|mistakes| panic!("{mistakes:?} in what was shown:\n{said}"));
            assert_eq!(format!("{:?}", again.config), format!("{:?}", loaded.config), "shown and read again");
        }
        Err(mistakes) => {
            assert!(!mistakes.is_empty(), "a refusal says why");
            for mistake in mistakes {
                let line = mistake.to_string();
                assert!(!line.contains(['\n', '\r']), "a mistake is one line: {line:?}");
                assert!(line.starts_with(PATH) || line.contains('`'), "a mistake names its place: {line:?}");
            }
        }
    }
}
