//! The table as people see it: a commented file, the values in force, a page of documentation.

use std::fmt::Write;

use crate::sources::{Effective, FILE_VARIABLE};
use crate::table::{SECTIONS, SETTINGS, Setting};

/// The file that `throng config init` writes: every option with its default, commented out.
pub fn sample() -> String {
    let mut text = String::from(
        "# Configuration of throng.\n\
         #\n\
         # Every option is shown with its default; take the `#` away to change one. A flag counts more than an\n\
         # environment variable, and that more than this file. Lengths of time are a number and a unit: us, ms, s,\n\
         # m, h, d. Paths are meant from where this file lies. `throng config check` finds mistakes.\n",
    );
    for (section, about) in SECTIONS {
        text.push('\n');
        wrapped(&mut text, "# ", about);
        if !section.is_empty() {
            let _ = writeln!(text, "[{section}]");
        }
        for setting in of_section(section) {
            text.push('\n');
            wrapped(&mut text, "# ", setting.what);
            wrapped(&mut text, "# Why this default: ", setting.reason);
            let (_, key) = setting.parts();
            if setting.key == "auth.keys" {
                text.push_str(
                    "#keys = [{ file = \"public.pem\", algorithm = \"EdDSA\", kid = \"2026-01\" }]\n",
                );
            } else {
                let _ = writeln!(text, "#{key} = {}", setting.default);
            }
        }
    }
    text
}

/// The values in force, as TOML that could be used as a file, each with where it came from.
pub fn shown(effective: &[Effective]) -> String {
    let lines: Vec<String> =
        effective.iter().map(|one| format!("{} = {}", one.setting.key, one.value.toml())).collect();
    let width = lines.iter().map(|line| line.chars().count()).filter(|&width| width <= 60).max().unwrap_or(0);
    let mut text = String::new();
    for (line, one) in lines.iter().zip(effective) {
        let _ = writeln!(text, "{line:width$}  # {}", one.origin);
    }
    text
}

/// The page `docs/configuration.md`.
pub fn documentation() -> String {
    let mut page = format!(
        "# Configuration\n\n\
         Made by `throng config docs`; a test keeps it true. Change `crates/configuration/src/table.rs` instead.\n\n\
         Every option has a default, so throng runs without any configuration. A value comes from the first of\n\n\
         1. a flag (`throng serve --help` lists them),\n\
         2. an environment variable,\n\
         3. the TOML file that `--config FILE` or `{FILE_VARIABLE}` names,\n\
         4. the default.\n\n\
         `throng config init` writes a commented file, `throng config check` finds mistakes, and `throng config\n\
         show` prints the values in force and where each came from. An unknown key is an error.\n\n\
         Lengths of time are a whole number and a unit: `us`, `ms`, `s`, `m`, `h` or `d`. Paths in the file are\n\
         meant from the folder of the file, other paths from where throng is started. A list in an environment\n\
         variable is separated by commas.\n"
    );
    for (section, about) in SECTIONS {
        let title = if section.is_empty() { "Top of the file".to_owned() } else { format!("`[{section}]`") };
        let _ = write!(page, "\n## {title}\n\n{about}\n");
        for setting in of_section(section) {
            document(&mut page, setting);
        }
    }
    page.push_str(
        "\n## Keys\n\n\
         With neither `auth.keys` nor `auth.jwks`, throng uses the key that `throng keys generate` put into the\n\
         folder `keys` of the data folder. Otherwise each key is a table:\n\n\
         ```toml\n\
         [[auth.keys]]\n\
         file = \"issuer.pem\"      # a public key in PEM (`-----BEGIN PUBLIC KEY-----`), or an HS256 secret\n\
         algorithm = \"EdDSA\"      # HS256, EdDSA (Ed25519), ES256 or RS256 (2048 bits or more)\n\
         kid = \"2026-01\"          # the `kid` of tokens signed with it; at most one key may be without\n\
         ```\n\n\
         The algorithm belongs to the key; what a token claims is only compared with it. A token with a `kid` needs\n\
         the key of exactly that name. An HS256 secret has at least 32 bytes; a file that is text is taken without\n\
         its line end, any other file to the last byte.\n",
    );
    page
}

fn document(page: &mut String, setting: &Setting) {
    let (_, key) = setting.parts();
    let _ = write!(page, "\n### `{key}`\n\n{}\n\n", setting.what);
    let _ = writeln!(page, "- Takes {}.", setting.kind.expected());
    let _ = writeln!(page, "- Default `{}`: {}", setting.default, setting.reason);
    let places = [setting.variable(), setting.flag.map(str::to_owned)];
    let places: Vec<String> = places.into_iter().flatten().map(|place| format!("`{place}`")).collect();
    if !places.is_empty() {
        let _ = writeln!(page, "- Also set by {}.", places.join(" or "));
    }
}

fn of_section(section: &str) -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().filter(move |setting| setting.parts().0 == section)
}

/// Breaks a text into lines of at most 100 characters; the first one begins with `prefix`, the others with `# `.
fn wrapped(text: &mut String, prefix: &str, words: &str) {
    let mut line = prefix.to_owned();
    let mut empty = true;
    for word in words.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > 100 {
            text.push_str(&line);
            text.push('\n');
            line = "# ".to_owned();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    text.push_str(line.trim_end());
    text.push('\n');
}
