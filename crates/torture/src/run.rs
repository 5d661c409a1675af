//! Runs the real binary in a folder of its own, with an environment that sets no option but those of the test.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// A folder to run in. It is kept when whoever has it fails.
pub struct Place(TempDir);

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.disable_cleanup(true);
            eprintln!("kept for a look: {}", self.0.path().display());
        }
    }
}

impl Default for Place {
    fn default() -> Place {
        Place(tempfile::tempdir().expect("a temporary folder"))
    }
}

/// The binary under test: what `THRONG_PROGRAM` names, or the one that was built beside the running program.
pub fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("THRONG_PROGRAM") {
        return named.into();
    }
    let own = std::env::current_exe().expect("this program has a path");
    let beside = own.ancestors().skip(1).take(2).map(|folder| folder.join("throng"));
    let found = beside.into_iter().find(|program| program.is_file());
    found.expect("throng is built beside this program; or set THRONG_PROGRAM to its path")
}

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Place {
    /// An empty one, gone when this is dropped.
    pub fn new() -> Place {
        Place::default()
    }

    /// Where something in it is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Puts a file there.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).expect("a file in the temporary folder");
    }

    /// Runs the binary to its end.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        self.run_with(arguments, &[])
    }

    /// Runs it with these variables set.
    pub fn run_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Outcome {
        let mut command = Command::new(program());
        command.args(arguments).current_dir(self.0.path());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("THRONG_") {
                command.env_remove(name);
            }
        }
        let output = command.envs(environment.iter().copied()).output().expect("the binary runs");
        Outcome {
            code: output.status.code().expect("it ends by itself"),
            out: String::from_utf8(output.stdout).expect("UTF-8"),
            err: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    /// The run must succeed and say nothing on standard error, but how it gets on when a busy machine makes it slow.
    pub fn prints(&self, arguments: &[&str]) -> String {
        let outcome = self.run(arguments);
        let said: Vec<&str> = outcome.err.lines().filter(|line| !line.ends_with(" s so far")).collect();
        assert_eq!((outcome.code, said), (0, Vec::new()), "{arguments:?}");
        outcome.out
    }
}

/// The run must end with this code, print nothing, and say exactly these lines.
pub fn fails(outcome: &Outcome, code: i32, lines: &[&str]) {
    let said: Vec<&str> = outcome.err.lines().collect();
    let expected: Vec<String> = lines.iter().map(|line| format!("throng: {line}")).collect();
    assert_eq!(said, expected);
    assert_eq!((outcome.code, outcome.out.as_str()), (code, ""));
}
