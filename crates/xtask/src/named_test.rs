//! Tests by their names: `shard::splits::every_cut` is a function in a file of a crate, and a way to run it alone.
//!
//! Owns how a name leads to a file and to cargo's arguments. Knows files as text and runs nothing.

use crate::repository::TextFile;

/// A test that exists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedTest {
    /// The package.
    pub package: String,
    /// Which of its programs holds the test.
    pub program: Program,
    /// What the program calls it.
    pub filter: String,
}

/// What cargo builds the test into.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// `tests/it`, which talks through the public door.
    Integration,
    /// The library itself.
    Library,
    /// The binary of the package's name.
    Binary,
}

impl NamedTest {
    /// Finds the test of a name: crate, modules, function.
    pub fn find(name: &str, files: &[TextFile]) -> Result<NamedTest, String> {
        let segments: Vec<&str> = name.split("::").collect();
        let [package, modules @ .., function] = segments.as_slice() else {
            return Err(format!("`{name}` does not name a test: CRATE::MODULE::TEST"));
        };
        let has = |path: &str| files.iter().find(|file| file.path == path);
        let folder = [package.to_string(), package.replace('_', "-")]
            .into_iter()
            .find(|folder| has(&format!("crates/{folder}/Cargo.toml")).is_some())
            .ok_or_else(|| format!("`{name}`: there is no crate `{package}`"))?;
        let own = match has(&format!("crates/{folder}/src/lib.rs")) {
            Some(_) => (Program::Library, "src/lib.rs"),
            None => (Program::Binary, "src/main.rs"),
        };
        for (program, root) in [(Program::Integration, "tests/it/main.rs"), own] {
            let (root_folder, _) = root.rsplit_once('/').expect("a root lies in a folder");
            // Outer modules are files, inner ones may stand in them.
            for outer in (0..=modules.len()).rev() {
                let path = modules[..outer].join("/");
                let candidates = match outer {
                    0 => vec![format!("crates/{folder}/{root}")],
                    _ => ["/mod.rs", ".rs"]
                        .map(|end| format!("crates/{folder}/{root_folder}/{path}{end}"))
                        .to_vec(),
                };
                for file in candidates.iter().filter_map(|path| has(path)) {
                    let nested = modules[outer..]
                        .iter()
                        .all(|inner| file.text.lines().any(|line| line.trim() == format!("mod {inner} {{")));
                    if nested && holds_test(&file.text, function) {
                        let filter = segments[1..].join("::");
                        return Ok(NamedTest { package: folder, program, filter });
                    }
                }
            }
        }
        Err(format!("`{name}`: there is no such test"))
    }

    /// Cargo's arguments that choose the program.
    pub fn program_arguments(&self) -> Vec<&str> {
        let mut arguments = vec!["--package", self.package.as_str()];
        match self.program {
            Program::Integration => arguments.extend(["--test", "it"]),
            Program::Library => arguments.push("--lib"),
            Program::Binary => arguments.extend(["--bin", self.package.as_str()]),
        }
        arguments
    }
}

/// Whether a source has a function of this name with `#[test]` right above it.
fn holds_test(source: &str, function: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    lines.iter().enumerate().any(|(at, line)| {
        let is_it = line.strip_prefix("fn ").and_then(|rest| rest.strip_prefix(function));
        is_it.is_some_and(|rest| rest.starts_with('('))
            && lines[..at]
                .iter()
                .rev()
                .take_while(|line| line.starts_with("#["))
                .any(|line| *line == "#[test]")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Vec<TextFile> {
        [
            ("crates/shard/Cargo.toml", ""),
            ("crates/shard/src/lib.rs", ""),
            ("crates/shard/src/pace.rs", "mod tests {\n    #[test]\n    fn paced() {}\n}\n"),
            ("crates/shard/tests/it/main.rs", "mod splits;\n#[test]\nfn top() {}\n"),
            (
                "crates/shard/tests/it/splits.rs",
                "fn helper() {}\n\n#[test]\n#[should_panic]\nfn every_cut() {}\nfn after() {}\n",
            ),
            ("crates/store-engine/Cargo.toml", ""),
            ("crates/store-engine/src/main.rs", "#[test]\nfn alone() {}\n"),
        ]
        .map(|(path, text)| TextFile { path: path.to_owned(), text: text.to_owned() })
        .into()
    }

    #[track_caller]
    fn found(name: &str, package: &str, program: Program, filter: &str) {
        let expected = NamedTest { package: package.to_owned(), program, filter: filter.to_owned() };
        assert_eq!(NamedTest::find(name, &files()), Ok(expected));
    }

    #[test]
    fn a_name_leads_to_its_file_and_program() {
        found("shard::splits::every_cut", "shard", Program::Integration, "splits::every_cut");
        found("shard::top", "shard", Program::Integration, "top");
        found("shard::pace::tests::paced", "shard", Program::Library, "pace::tests::paced");
        found("store_engine::alone", "store-engine", Program::Binary, "alone");
    }

    #[test]
    fn a_name_without_a_test_is_refused() {
        for name in [
            "shard",
            "shard::splits",
            "shard::splits::every_cu",
            "shard::splits::helper",
            "shard::splits::after",
            "shard::pace::paced_not",
            "shard::pace::inner::paced",
            "sharp::splits::every_cut",
        ] {
            assert!(NamedTest::find(name, &files()).is_err(), "{name}");
        }
    }
}
