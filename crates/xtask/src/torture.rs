//! `cargo xtask torture`: the long runs of crate `torture` on the real binary, both built for speed.

use std::process::ExitCode;

use crate::options::Options;
use crate::repository::Repository;

const HELP: &str = "\
Torture the real binary until something promised does not hold, or the time is up.

Usage: cargo xtask torture kill    [--rounds N]  [--seed S]
       cargo xtask torture soak    [--minutes M] [--seed S]
       cargo xtask torture restart [--clients N] [--seed S]

  kill     50 senders and 50 receivers chat in pairs and groups; in every round the server is killed (SIGKILL) at a
           random moment of the traffic, or while it starts, or while it stops. Every acknowledged message must have
           reached every device once and in order, every cursor and receipt be right, `throng db check` be clean
           after every kill [default: 20 rounds]
  soak     The same people chat through a proxy that delays, splits, stalls, cuts and resets, with a few kills and
           restarts in the first half. Nothing may be lost, and in the second half memory, descriptors, threads and
           files must not grow beyond what is pending [default: 60 minutes]
  restart  N clients chat while the server is told to stop (SIGTERM) and started again. Nothing may be lost, no client
           may wait longer than the window it was given and 2 s, and they must come back spread over it
           [default: 5000 clients]

Each prints its seed, which --seed S uses again (moments follow from it, the machine's timing does not), ends with one
line that says whether everything held, and exits 1 if not. A server's folder is kept when something did not hold.
";

/// The runs, and the option of each.
const RUNS: &[(&str, &str)] = &[("kill", "--rounds"), ("soak", "--minutes"), ("restart", "--clients")];

/// `cargo xtask torture`
pub fn main(repository: &Repository, mut arguments: Vec<String>) -> Result<ExitCode, String> {
    let name = if arguments.is_empty() { String::new() } else { arguments.remove(0) };
    let mut options = Options::new(std::iter::once(name.clone()).chain(arguments).collect());
    if options.help() {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    }
    let Some((_, size)) = RUNS.iter().find(|(run, _)| *run == name) else {
        return Err(format!(
            "torture by what? {}",
            RUNS.iter().map(|run| run.0).collect::<Vec<_>>().join(", ")
        ));
    };
    options.flag(&name);
    let mut given = vec![name];
    for option in [*size, "--seed"] {
        if let Some(value) = options.value(option)? {
            value.parse::<u64>().map_err(|_| format!("{option} needs a whole number"))?;
            given.extend([option.to_owned(), value]);
        }
    }
    options.finish()?;
    // The server is started from beside the program, so both are built, of the same state.
    let mut build = repository.cargo();
    build.args(["build", "--quiet", "--release", "--package", "throng", "--package", "torture"]);
    let built = build.status().map_err(|error| format!("cannot start cargo: {error}"))?;
    if !built.success() {
        return Err("the release build failed".to_owned());
    }
    let mut run = repository.command(&repository.target().join("release/torture").to_string_lossy());
    run.args(given).env_remove("THRONG_PROGRAM");
    crate::pass_through(run)
}
