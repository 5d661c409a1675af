//! Taking a guard away: in a copy of the repository, with a target folder of its own, and put back afterwards.
//!
//! Owns the copy and the running of tests in it. Knows nothing of why a guard is there.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::table::{Guard, Watch};
use crate::named_test::NamedTest;
use crate::process::{self, Ended};
use crate::repository::{Repository, TextFile};

/// No build takes longer on two busy cores.
const BUILD_LIMIT: Duration = Duration::from_secs(1_200);
/// No test takes longer, unless what was taken away makes it hang.
const TEST_LIMIT: Duration = Duration::from_secs(600);

/// What happened without a guard.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every one of its tests failed.
    Noticed,
    /// They failed, this one by not coming to an end.
    Hung(String),
    /// This test passed.
    Unnoticed(String),
    /// The code cannot do without the text, so nothing was tried; the log says why.
    DoesNotCompile(String),
}

impl Verdict {
    /// Whether the tests missed the guard.
    pub fn is_noticed(&self) -> bool {
        matches!(self, Verdict::Noticed | Verdict::Hung(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Noticed => f.write_str("noticed"),
            Verdict::Hung(test) => write!(f, "noticed ({test} did not end)"),
            Verdict::Unnoticed(test) => write!(f, "NOT NOTICED by {test}"),
            Verdict::DoesNotCompile(log) => write!(f, "DOES NOT COMPILE ({log})"),
        }
    }
}

/// A copy of the repository.
pub struct Copy {
    root: PathBuf,
    /// Logs and what cargo builds.
    folder: PathBuf,
    cargo: Command,
    files: Vec<TextFile>,
}

/// How one run of tests ended.
enum Ran {
    Passed,
    Failed,
    Hung,
}

impl Copy {
    /// Makes the copy, or brings the last one up to date: a file that is the same is left as it is, so that cargo does
    /// not compile it again.
    pub fn make(repository: &Repository, files: Vec<TextFile>) -> Result<Copy, String> {
        let folder = repository.target().join("guards");
        let root = folder.join("copy");
        let complain = |error: std::io::Error| format!("cannot copy to {}: {error}", root.display());
        let paths = repository.paths();
        remove_others(&root, &root, &paths).map_err(complain)?;
        for path in &paths {
            let (from, to) = (repository.root.join(path), root.join(path));
            // Listed by git, and deleted in the working tree.
            let Ok(bytes) = fs::read(&from) else { continue };
            if fs::read(&to).is_ok_and(|there| there == bytes) {
                continue;
            }
            fs::create_dir_all(to.parent().unwrap_or(&root)).map_err(complain)?;
            // With its permissions: scripts.
            fs::copy(&from, &to).map_err(complain)?;
        }
        Ok(Copy { root, folder, cargo: repository.cargo(), files })
    }

    /// With every guard in place all tests must pass, or their failing would say nothing.
    pub fn check_tests(&self, guards: &[&Guard]) -> Result<(), String> {
        let mut programs: BTreeMap<(bool, Vec<String>), Vec<String>> = BTreeMap::new();
        for watch in guards.iter().flat_map(|guard| &guard.tests) {
            let test = NamedTest::find(&watch.name, &self.files)?;
            let arguments = test.program_arguments().into_iter().map(str::to_owned).collect();
            let filters = programs.entry((watch.loom, arguments)).or_default();
            if !filters.contains(&test.filter) {
                filters.push(test.filter);
            }
        }
        for ((loom, program), filters) in programs {
            let log = "with-all-guards.log";
            let program: Vec<&str> = program.iter().map(String::as_str).collect();
            if !self.builds(loom, &program, log) {
                return Err(format!("{} does not compile; see {}", program.join(" "), self.log(log)));
            }
            let Ran::Passed = self.run(loom, &program, &filters, log)? else {
                return Err(format!(
                    "a test of {} fails with every guard in place; see {}",
                    program.join(" "),
                    self.log(log)
                ));
            };
        }
        Ok(())
    }

    /// Takes a guard away, runs its tests, and puts it back.
    pub fn without(&self, guard: &Guard) -> Result<Verdict, String> {
        for edit in &guard.edits {
            self.edit(&edit.path, &edit.find, &edit.replace)?;
        }
        let verdict = self.verdict(guard);
        for edit in guard.edits.iter().rev() {
            let file = self.files.iter().find(|file| file.path == edit.path);
            let file = file.ok_or(format!("{} does not exist", edit.path))?;
            write(&self.root.join(&edit.path), &file.text)?;
        }
        verdict
    }

    fn verdict(&self, guard: &Guard) -> Result<Verdict, String> {
        let log = format!("{}.log", guard.name);
        let _ = fs::remove_file(self.folder.join(&log));
        let mut hung = None;
        for Watch { name, loom } in &guard.tests {
            let test = NamedTest::find(name, &self.files)?;
            let program = test.program_arguments();
            if !self.builds(*loom, &program, &log) {
                return Ok(Verdict::DoesNotCompile(self.log(&log)));
            }
            match self.run(*loom, &program, std::slice::from_ref(&test.filter), &log)? {
                Ran::Passed => return Ok(Verdict::Unnoticed(name.clone())),
                Ran::Failed => {}
                Ran::Hung => hung = Some(name.clone()),
            }
        }
        Ok(hung.map_or(Verdict::Noticed, Verdict::Hung))
    }

    /// Replaces a text that stands in a file exactly once, as the table was checked for.
    fn edit(&self, path: &str, find: &str, replace: &str) -> Result<(), String> {
        let place = self.root.join(path);
        let text = fs::read_to_string(&place).map_err(|error| format!("cannot read {path}: {error}"))?;
        write(&place, &text.replacen(find, replace, 1))
    }

    fn builds(&self, loom: bool, program: &[&str], log: &str) -> bool {
        let mut command = self.cargo(loom);
        command.args(["test", "--quiet", "--no-run"]).args(loom.then_some("--release")).args(program);
        self.logged(command, BUILD_LIMIT, log).outcome.is_ok()
    }

    /// Runs tests by their exact names; all of them must be there.
    fn run(&self, loom: bool, program: &[&str], filters: &[String], log: &str) -> Result<Ran, String> {
        let mut command = self.cargo(loom);
        command.args(["test", "--quiet"]).args(loom.then_some("--release")).args(program);
        command.args(["--", "--exact"]).args(filters);
        let ended = self.logged(command, TEST_LIMIT, log);
        let ran = ended.counts.passed + ended.counts.failed;
        match ended.outcome {
            Ok(()) if ran == filters.len() as u64 => Ok(Ran::Passed),
            Ok(()) => Err(format!("{ran} tests ran instead of {filters:?}; see {}", self.log(log))),
            Err(why) if why.contains("was ended") => Ok(Ran::Hung),
            // It may also have ended in an abort, and then counts nothing.
            Err(_) => Ok(Ran::Failed),
        }
    }

    fn cargo(&self, loom: bool) -> Command {
        let mut command = Command::new(self.cargo.get_program());
        command.current_dir(&self.root);
        command.env("CARGO_TARGET_DIR", self.folder.join(if loom { "loom" } else { "target" }));
        if loom {
            command.env("RUSTFLAGS", "--cfg loom");
        }
        command
    }

    fn logged(&self, command: Command, limit: Duration, log: &str) -> Ended {
        let open = || {
            let file = fs::OpenOptions::new().create(true).append(true).open(self.folder.join(log))?;
            Ok::<_, std::io::Error>((file.try_clone()?, file))
        };
        match open() {
            Ok((out, err)) => process::run_to(command, limit, out, err),
            Err(_) => process::run_to(command, limit, std::io::stdout(), std::io::stderr()),
        }
    }

    fn log(&self, log: &str) -> String {
        self.folder.join(log).display().to_string()
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Removes what the repository does not have (any more).
fn remove_others(root: &Path, folder: &Path, paths: &[String]) -> std::io::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(root, &path, paths)?;
        } else if let Ok(relative) = path.strip_prefix(root)
            && paths.binary_search(&relative.to_string_lossy().into_owned()).is_err()
        {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}
