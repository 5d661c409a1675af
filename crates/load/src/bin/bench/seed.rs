//! Seconds until users and conversations of a load test are in a database, tokens included.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Up to so many users the bar is that of a first try, above it that of a whole crowd.
const FEW_USERS: u64 = 5_000;
const BAR_OF_FEW: f64 = 0.5;
const BAR_OF_MANY: f64 = 60.0;

pub fn run(arguments: &[String]) -> Result<(), String> {
    let users: u64 = super::option(arguments, "--users", FEW_USERS)?;
    let conversations: u64 = super::option(arguments, "--conversations", users / 2)?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let told = |error: std::io::Error| error.to_string();
    fs::write(folder.path().join("secret"), b"a secret for benchmarks that everybody may know")
        .map_err(told)?;
    fs::write(
        folder.path().join("throng.toml"),
        "data = \"data\"\n[[auth.keys]]\nfile = \"secret\"\nalgorithm = \"HS256\"\n",
    )
    .map_err(told)?;
    let (users_wanted, conversations_wanted) = (users.to_string(), conversations.to_string());
    let numbers = ["--users", &users_wanted, "--conversations", &conversations_wanted];

    let (seconds, said) = timed(folder.path(), &[&numbers[..], &["--tokens", "tokens"]].concat())?;
    println!("{}", said.trim_end());
    let expected = format!(
        "made {users} users (0 were there already) and {conversations} conversations (0 were there already)"
    );
    if !said.starts_with(&expected) {
        return Err(format!("not everything was made: {said}"));
    }
    let bytes = fs::metadata(folder.path().join("data/throng.db")).map_err(told)?.len();
    super::part("size of the database", bytes as f64 / 1_048_576.0, "MiB");
    let (again, _) = timed(folder.path(), &numbers)?;
    super::part("the same once more, which changes nothing", again, "s");
    let (cleaned, said) = timed(folder.path(), &["--clean"])?;
    println!("{}", said.trim_end());
    super::part("removing all of it", cleaned, "s");
    let bar = if users <= FEW_USERS { BAR_OF_FEW } else { BAR_OF_MANY };
    super::verdict("seed", seconds, "s", true, bar);
    Ok(())
}

/// Runs `throng seed` from beside this program, from its start to its end.
fn timed(folder: &Path, arguments: &[&str]) -> Result<(f64, String), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?.with_file_name("throng");
    let mut command = Command::new(&program);
    command.args(["seed", "--config", "throng.toml"]).args(arguments).current_dir(folder);
    let began = Instant::now();
    let output = command.output().map_err(|error| format!("{}: {error}", program.display()))?;
    let seconds = began.elapsed().as_secs_f64();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok((seconds, String::from_utf8_lossy(&output.stdout).into_owned()))
}
