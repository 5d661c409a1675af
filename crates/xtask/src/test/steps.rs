//! The steps of `cargo xtask test`, cheap ones first.
//!
//! Each is a program with its limit, or a check of our own. A limit is several times what a step takes on two cores,
//! so that only something that hangs meets it.

use std::process::Command;
use std::time::Duration;

use super::{Outcome, server};
use crate::prerequisites::Need;
use crate::process::{self, Counts, Ended};
use crate::repository::{Finding, Repository};
use crate::{layers, sim, tidy};

/// One thing that must hold.
pub struct Step {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it checks.
    pub about: &'static str,
    /// What it needs beyond Rust and gcc.
    pub needs: &'static [Need],
    minutes: u64,
    work: Work,
}

enum Work {
    /// A program that succeeds.
    Program(fn(&Repository) -> Command),
    /// A check that finds nothing.
    Check(fn(&Repository) -> Result<Vec<Finding>, String>),
    /// A script of the repository.
    Script(&'static str),
    /// A script that is given a server's address and the file with the secret its tokens are signed with.
    ScriptWithServer(&'static str),
}

/// All steps, in order.
pub const STEPS: &[Step] = &[
    Step {
        name: "format",
        about: "the code is formatted (cargo fmt --check)",
        needs: &[Need::Rustfmt],
        minutes: 2,
        work: Work::Program(|repository| cargo(repository, &["fmt", "--all", "--check"])),
    },
    Step {
        name: "layers",
        about: "crates use only smaller layers, and the pure ones stay pure",
        needs: &[],
        minutes: 2,
        work: Work::Check(layers::check),
    },
    Step {
        name: "tidy",
        about: "rules about files that no compiler checks",
        needs: &[],
        minutes: 2,
        work: Work::Check(tidy::check),
    },
    Step {
        name: "page",
        about: "the demo page's modules, without a browser",
        needs: &[Need::Node],
        minutes: 2,
        work: Work::Program(|repository| {
            let mut command = repository.command("bash");
            command.args(["-c", "node --test web/tests/*.test.js"]);
            command
        }),
    },
    Step {
        name: "lints",
        about: "no warning from clippy, in all targets",
        needs: &[Need::Clippy],
        minutes: 10,
        work: Work::Program(|repository| {
            cargo(repository, &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])
        }),
    },
    Step {
        name: "cargo",
        about: "all tests of all crates, those that kill the real binary included",
        needs: &[],
        minutes: 15,
        work: Work::Program(|repository| {
            cargo(repository, &["test", "--workspace", "--quiet", "--no-fail-fast"])
        }),
    },
    Step {
        name: "loom",
        about: "the mail between threads, in every order that loom finds (bounded preemptions)",
        needs: &[],
        minutes: 8,
        work: Work::Program(|repository| {
            let mut command =
                cargo(repository, &["test", "--quiet", "--release", "--package", "fabric", "--test", "it"]);
            // A target folder of its own: the flag would make everything else compile again.
            command.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", repository.target().join("loom"));
            command
        }),
    },
    Step {
        name: "build",
        about: "the release build, which the steps after it use",
        needs: &[],
        minutes: 12,
        work: Work::Program(|repository| {
            // Alone: built together with the simulator it would have the features that the simulator asks for.
            cargo(repository, &["build", "--release", "--quiet", "--package", "throng"])
        }),
    },
    Step {
        name: "sim",
        about: "the simulator's seeds, each twice",
        needs: &[],
        minutes: 8,
        work: Work::Program(|repository| {
            let mut command = sim::command(repository);
            command.args(["--seeds", &sim::SEEDS_DEFAULT.to_string()]);
            command
        }),
    },
    Step {
        name: "autobahn",
        about: "the Autobahn cases against the WebSocket layer",
        needs: &[Need::PythonVenv],
        minutes: 10,
        work: Work::Script("tests/autobahn/run.sh"),
    },
    Step {
        name: "clients",
        about: "clients nobody here wrote, in Python and Node",
        needs: &[Need::PythonVenv, Need::Node, Need::Npm],
        minutes: 6,
        work: Work::ScriptWithServer("tests/clients/run.sh"),
    },
    Step {
        name: "browser",
        about: "the demo page in Chromium, with the server killed in between; and a report",
        needs: &[Need::Chromium, Need::Node, Need::Npm],
        minutes: 6,
        work: Work::Script("tests/browser/run.sh"),
    },
];

fn cargo(repository: &Repository, arguments: &[&str]) -> Command {
    let mut command = repository.cargo();
    command.args(arguments);
    command
}

impl Step {
    /// Does it.
    pub fn run(&self, repository: &Repository) -> Outcome {
        let limit = Duration::from_secs(self.minutes * 60);
        match self.work {
            Work::Program(command) => judged(process::run(command(repository), limit)),
            Work::Check(check) => match check(repository) {
                Ok(findings) => found(&findings),
                Err(complaint) => Outcome::Failed(Counts::default(), complaint),
            },
            Work::Script(path) => match script(repository, path) {
                Ok(command) => judged(process::run(command, limit)),
                Err(missing) => Outcome::NotRun(missing),
            },
            Work::ScriptWithServer(path) => match script(repository, path) {
                Ok(command) => with_server(repository, command, limit),
                Err(missing) => Outcome::NotRun(missing),
            },
        }
    }
}

fn script(repository: &Repository, path: &str) -> Result<Command, String> {
    if !repository.has(path) {
        return Err(format!("{path} does not exist"));
    }
    let mut command = repository.command("bash");
    command.arg(path);
    Ok(command)
}

fn with_server(repository: &Repository, mut command: Command, limit: Duration) -> Outcome {
    match server::start(repository) {
        Ok(server) => {
            command.arg(&server.address).arg(&server.secret);
            judged(process::run(command, limit))
        }
        Err(complaint) => Outcome::Failed(Counts::default(), complaint),
    }
}

fn judged(ended: Ended) -> Outcome {
    match ended.outcome {
        Ok(()) if ended.counts.failed == 0 => Outcome::Passed(ended.counts),
        Ok(()) => {
            Outcome::Failed(ended.counts, "it reported failures and ended as if there were none".to_owned())
        }
        Err(complaint) => Outcome::Failed(ended.counts, complaint),
    }
}

fn found(findings: &[Finding]) -> Outcome {
    findings.iter().for_each(|finding| println!("{finding}"));
    match findings.len() {
        0 => Outcome::Passed(Counts::default()),
        count => Outcome::Failed(Counts::default(), format!("{count} to correct")),
    }
}
