//! The repository as files: where it is, which files belong to it, what they hold.
//!
//! Knows git only to ask which files are ignored; knows no rule about any of them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The working tree.
pub struct Repository {
    /// Its root, absolute.
    pub root: PathBuf,
}

/// One text file of the repository.
pub struct TextFile {
    /// Relative to the root, with `/`.
    pub path: String,
    /// All of it.
    pub text: String,
}

/// Something a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, relative to the root.
    pub path: String,
    /// The line, from 1; 0 when it concerns the whole file.
    pub line: usize,
    /// What is wrong, and what to do.
    pub text: String,
}

impl Finding {
    /// A finding at a place.
    pub fn new(path: impl Into<String>, line: usize, text: impl Into<String>) -> Finding {
        Finding { path: path.into(), line, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.text),
            line => write!(f, "{}:{line}: {}", self.path, self.text),
        }
    }
}

impl Repository {
    /// The repository this program was built from; cargo says where when it runs us, otherwise the build did.
    pub fn find() -> Repository {
        let own = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = own.ancestors().nth(2).expect("xtask lies two folders below the root").to_owned();
        Repository { root }
    }

    /// A command that runs in the root.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        command
    }

    /// Cargo, the one that runs us.
    pub fn cargo(&self) -> Command {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        self.command(&cargo)
    }

    /// Where cargo puts what it builds.
    pub fn target(&self) -> PathBuf {
        std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| self.root.join("target"), |dir| self.root.join(dir))
    }

    /// Whether a path relative to the root exists.
    pub fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// Every file that is tracked, or new and not ignored; in order.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = match self.listed_by_git() {
            Some(paths) => paths,
            None => self.walk(),
        };
        paths.sort();
        paths.dedup();
        paths
    }

    /// Every text file that is tracked, or new and not ignored; in order of path.
    pub fn text_files(&self) -> Result<Vec<TextFile>, String> {
        let mut files = Vec::new();
        for path in self.paths() {
            match std::fs::read(self.root.join(&path)) {
                // What is not UTF-8 is no text: pictures, database fixtures.
                Ok(bytes) => files.extend(String::from_utf8(bytes).ok().map(|text| TextFile { path, text })),
                // Listed by git, and deleted in the working tree.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(format!("cannot read {path}: {error}")),
            }
        }
        Ok(files)
    }

    fn listed_by_git(&self) -> Option<Vec<String>> {
        let output = self
            .command("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        let text = String::from_utf8(output.stdout).ok()?;
        Some(text.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
    }

    /// Without git (an unpacked archive): everything but what builds and package managers make.
    fn walk(&self) -> Vec<String> {
        fn visit(root: &Path, dir: &Path, paths: &mut Vec<String>) {
            let Ok(entries) = std::fs::read_dir(dir) else { return };
            for entry in entries.flatten() {
                let path = entry.path();
                let name = entry.file_name().to_string_lossy().into_owned();
                if path.is_dir() {
                    let made = name.starts_with("target") || name == "node_modules" || name == ".git";
                    if !made {
                        visit(root, &path, paths);
                    }
                } else if let Ok(relative) = path.strip_prefix(root) {
                    paths.push(relative.to_string_lossy().into_owned());
                }
            }
        }
        let mut paths = Vec::new();
        visit(&self.root, &self.root, &mut paths);
        paths
    }
}
