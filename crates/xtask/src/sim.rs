//! `cargo xtask sim`: the simulator with its options, built for speed.

use std::process::{Command, ExitCode};

use crate::options::Options;
use crate::repository::Repository;

const HELP: &str = "\
Run the simulator: whole servers by function calls, everything that happens drawn from one seed.

Usage: cargo xtask sim [OPTIONS]

Options:
  --seeds N   Run N seeds, each twice, and compare the traces [default: 300]. From 300 on, everything
              that is counted must have happened in one of them
  --start S   Begin with this seed [default: 1]
  --jobs J    Run so many seeds at a time [default: as many as there are cores]
  --seed S    Run one seed again
  --trace     Print what happens, step by step
";

/// How many seeds are run when nothing is said; also in `cargo xtask test`.
pub const SEEDS_DEFAULT: u32 = 300;

/// `cargo xtask sim`
pub fn main(repository: &Repository, arguments: Vec<String>) -> Result<ExitCode, String> {
    let mut options = Options::new(arguments);
    if options.help() {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    }
    let trace = options.flag("--trace");
    let (seeds, seed) = (options.value("--seeds")?, options.value("--seed")?);
    let (start, jobs) = (options.value("--start")?, options.value("--jobs")?);
    options.finish()?;
    let mut command = command(repository);
    match (seeds, seed) {
        (Some(_), Some(_)) => return Err("--seeds and --seed exclude each other".to_owned()),
        (None, Some(seed)) => command.args(["--seed", &seed]),
        (seeds, None) => command.args(["--seeds", &seeds.unwrap_or_else(|| SEEDS_DEFAULT.to_string())]),
    };
    for (option, value) in [("--start", start), ("--jobs", jobs)] {
        command.args(value.iter().flat_map(|value| [option, value.as_str()]));
    }
    if trace {
        command.arg("--trace");
    }
    crate::pass_through(command)
}

/// The simulator, waiting for its options.
pub fn command(repository: &Repository) -> Command {
    let mut command = repository.cargo();
    command.args(["run", "--quiet", "--release", "--package", "simulator", "--"]);
    command
}
