//! The repository's own commands: `cargo xtask test | layers | tidy | guards | sim | torture | bench`.
//!
//! Owns what the repository demands of itself and how that is run. Uses the standard library alone, because it is
//! compiled before everything else; deliberately knows nothing of the server's code but its files and its programs.

mod bench;
mod code;
mod guards;
mod layers;
mod manifest;
mod named_test;
mod options;
mod prerequisites;
mod process;
mod purity;
mod repository;
mod sim;
mod test;
mod tidy;
mod torture;

use std::process::{Command, ExitCode};

use repository::{Finding, Repository};

const HELP: &str = "\
The repository's own commands.

Usage: cargo xtask COMMAND [OPTIONS]

Commands:
  test      Everything that must hold: format, lints, layers, tidy, all tests, simulator, other people's clients,
            a browser. Installs what is missing (Debian, as root)
  layers    Check which crate may use which, and that the pure ones know no clock, thread, socket, file or lock
  tidy      Check rules about files: module heads, names, lengths, links, leftovers
  guards    Take each guard of the code away and see whether a test notices
  sim       Run the simulator: many seeds, or one seed again
  torture   Kill, soak or restart the real binary under load, for as long as you like
  bench     Run a benchmark and keep its result in bench/results/

`cargo xtask COMMAND --help` says more about each.
";

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.is_empty() {
        eprint!("{HELP}");
        return ExitCode::from(2);
    }
    let command = arguments.remove(0);
    let repository = Repository::find();
    let outcome = match command.as_str() {
        "test" => test::main(&repository, arguments),
        "layers" => layers::main(&repository, arguments),
        "tidy" => tidy::main(&repository, arguments),
        "guards" => guards::main(&repository, arguments),
        "sim" => sim::main(&repository, arguments),
        "torture" => torture::main(&repository, arguments),
        "bench" => bench::main(&repository, arguments),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        unknown => Err(format!("no command is called `{unknown}`; `cargo xtask --help` lists them")),
    };
    outcome.unwrap_or_else(|complaint| {
        eprintln!("xtask: {complaint}");
        ExitCode::from(2)
    })
}

/// Runs a program in our place: with our input and output, ending as it ends.
fn pass_through(mut command: Command) -> Result<ExitCode, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| format!("cannot start {name}: {error}"))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Prints what a check found, one line each, and says whether it holds.
fn verdict(check: &str, findings: &[Finding]) -> ExitCode {
    for finding in findings {
        eprintln!("{check}: {finding}");
    }
    match findings.len() {
        0 => {
            println!("{check}: holds");
            ExitCode::SUCCESS
        }
        count => {
            eprintln!("{check}: {count} to correct");
            ExitCode::FAILURE
        }
    }
}
