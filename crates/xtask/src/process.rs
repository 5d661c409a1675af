//! Running other programs: with a time limit, their output passed on and their tests counted, nothing left behind.
//!
//! Knows no step and no rule. What a program starts is recognised by a mark in its environment, so that it is found
//! and ended by its process number even when its parent has gone.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// The environment variable whose value marks all that one run starts.
const MARK: &str = "THRONG_XTASK_RUN";
/// How often a running program is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long what a program started may outlive it.
const LINGER: Duration = Duration::from_secs(3);
/// How long output may go on after the program has ended.
const OUTPUT_GRACE: Duration = Duration::from_secs(5);

/// Tests a program said it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// That passed.
    pub passed: u64,
    /// That failed.
    pub failed: u64,
}

impl Counts {
    /// Adds what one line of output says; other lines say nothing.
    fn read_line(&mut self, line: &str) {
        let words: Vec<&str> = line.split(|c: char| c.is_whitespace() || ";,.#ℹ".contains(c)).collect();
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        match words.as_slice() {
            // cargo test: `test result: ok. 3 passed; 0 failed; …`
            ["test", "result:", _, _, "passed", _, "failed", ..] => {
                self.passed += number(3).unwrap_or(0);
                self.failed += number(5).unwrap_or(0);
            }
            // node --test: `# pass 3`
            ["pass", _] if line.starts_with(['#', 'ℹ']) => self.passed += number(1).unwrap_or(0),
            ["fail", _] if line.starts_with(['#', 'ℹ']) => self.failed += number(1).unwrap_or(0),
            // The plain form: `3 passed, 0 failed`, a word and a colon in front.
            [_, "passed", _, "failed", ..] => {
                self.passed += number(0).unwrap_or(0);
                self.failed += number(2).unwrap_or(0);
            }
            [word, _, "passed", _, "failed", ..] if word.ends_with(':') => {
                self.passed += number(1).unwrap_or(0);
                self.failed += number(3).unwrap_or(0);
            }
            _ => {}
        }
    }
}

/// How a program ended.
pub struct Ended {
    /// `Err` says in words what was wrong.
    pub outcome: Result<(), String>,
    /// What it said about its tests.
    pub counts: Counts,
    /// Everything it wrote to its standard output, line by line, when that was asked for.
    pub lines: Vec<String>,
}

/// Runs a program to its end, at most for `limit`, showing its output as it comes.
pub fn run(command: Command, limit: Duration) -> Ended {
    run_to(command, limit, std::io::stdout(), std::io::stderr())
}

/// As [`run`], with the output shown elsewhere.
pub fn run_to(
    mut command: Command,
    limit: Duration,
    out: impl Write + Send + 'static,
    err: impl Write + Send + 'static,
) -> Ended {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let mark = format!("{}-{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
    let name = command.get_program().to_string_lossy().into_owned();
    command.env(MARK, &mark).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let outcome = Err(format!("cannot start {name}: {error}"));
            return Ended { outcome, counts: Counts::default(), lines: Vec::new() };
        }
    };
    let (sender, output) = mpsc::channel();
    pass_on(child.stdout.take().expect("piped above"), out, Some(sender.clone()));
    pass_on(child.stderr.take().expect("piped above"), err, None::<Sender<String>>);
    drop(sender);
    let status = wait(&mut child, limit);
    // A browser's helpers take a moment to notice that it is gone.
    let left = sweep(&mark, if status.is_some() { LINGER } else { Duration::ZERO });
    let _ = child.wait();
    let mut outcome = describe(&name, status, limit);
    if left > 0 && outcome.is_ok() {
        outcome = Err(format!("{name} left {left} processes running; they were ended"));
    }
    let lines = collect(&output);
    let mut counts = Counts::default();
    lines.iter().for_each(|line| counts.read_line(line));
    Ended { outcome, counts, lines }
}

/// Copies lines as they come, and sends them on.
fn pass_on(
    from: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
    copy: Option<Sender<String>>,
) {
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            // A closed terminal is no reason to stop reading: the program would block.
            let _ = to.write_all(&line).and_then(|()| to.flush());
            if let Some(copy) = &copy {
                let _ = copy.send(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            line.clear();
        }
    });
}

/// Everything until the writers have closed, or for a while.
fn collect(output: &mpsc::Receiver<String>) -> Vec<String> {
    let end = Instant::now() + OUTPUT_GRACE;
    let mut lines = Vec::new();
    while let Ok(line) = output.recv_timeout(end.saturating_duration_since(Instant::now())) {
        lines.push(line);
    }
    lines
}

/// `None` when the time was up.
fn wait(child: &mut Child, limit: Duration) -> Option<std::io::Result<ExitStatus>> {
    let end = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < end => thread::sleep(LOOK_EVERY),
            Ok(None) => return None,
            Ok(Some(status)) => return Some(Ok(status)),
            Err(error) => return Some(Err(error)),
        }
    }
}

fn describe(name: &str, status: Option<std::io::Result<ExitStatus>>, limit: Duration) -> Result<(), String> {
    match status {
        None => Err(format!("{name} was ended after {} s", limit.as_secs())),
        Some(Ok(status)) if status.success() => Ok(()),
        Some(Ok(status)) => Err(format!("{name}: {status}")),
        Some(Err(error)) => Err(format!("cannot wait for {name}: {error}")),
    }
}

/// Ends every process with the mark that does not end by itself; returns how many there were.
fn sweep(mark: &str, linger: Duration) -> usize {
    let entry = format!("{MARK}={mark}");
    let end = Instant::now() + linger;
    while Instant::now() < end && !marked_processes(&entry).is_empty() {
        thread::sleep(LOOK_EVERY);
    }
    let mut ended = 0;
    // A process may start another one while we look.
    for _ in 0..3 {
        let marked = marked_processes(&entry);
        if marked.is_empty() {
            break;
        }
        ended += marked.len();
        for id in marked {
            signal(id, "KILL");
        }
        thread::sleep(LOOK_EVERY);
    }
    ended
}

fn marked_processes(entry: &str) -> Vec<u32> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok())
        .filter(|id| {
            std::fs::read(format!("/proc/{id}/environ")).is_ok_and(|environment| {
                environment.split(|byte| *byte == 0).any(|one| one == entry.as_bytes())
            })
        })
        .collect()
}

/// Sends a signal to one process.
fn signal(id: u32, name: &str) {
    let _ = Command::new("sh").args(["-c", &format!("kill -s {name} {id}")]).stderr(Stdio::null()).status();
}

/// A program that runs beside a step, and ends with it whatever happens.
pub struct Service {
    child: Child,
}

impl Service {
    /// Starts it; its output goes where ours goes.
    pub fn start(mut command: Command) -> std::io::Result<Service> {
        command.stdin(Stdio::null()).spawn().map(|child| Service { child })
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if self.is_running() {
            signal(self.child.id(), "TERM");
            let _ = wait(&mut self.child, Duration::from_secs(10));
        }
        // After its own end there is nothing to kill, and this says so.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows nothing: these tests run under `cargo xtask test` themselves, which would count what their samples say.
    fn run(command: Command, limit: Duration) -> Ended {
        run_to(command, limit, std::io::sink(), std::io::sink())
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn counted(lines: &[&str]) -> (u64, u64) {
        let mut counts = Counts::default();
        lines.iter().for_each(|line| counts.read_line(line));
        (counts.passed, counts.failed)
    }

    #[test]
    fn the_closing_lines_of_test_runners_are_counted() {
        let cargo = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.05s";
        assert_eq!(counted(&[cargo, cargo]), (24, 6));
        assert_eq!(counted(&["# tests 9", "# pass 8", "# fail 1"]), (8, 1));
        assert_eq!(counted(&["ℹ pass 8", "ℹ fail 1"]), (8, 1));
        assert_eq!(counted(&["301 passed, 0 failed"]), (301, 0));
        assert_eq!(counted(&["browser: 7 passed, 2 failed, 1 skipped"]), (7, 2));
        assert_eq!(counted(&["they passed, we failed", "running 3 tests", "pass 8", ""]), (0, 0));
    }

    #[test]
    fn what_a_program_says_and_how_it_ends_is_told() {
        let ended = run(shell("echo one; echo '2 passed, 1 failed'; exit 3"), Duration::from_secs(20));
        assert_eq!(ended.lines, ["one", "2 passed, 1 failed"]);
        assert_eq!(ended.counts, Counts { passed: 2, failed: 1 });
        assert!(ended.outcome.unwrap_err().contains("exit status: 3"));
        assert_eq!(run(shell("true"), Duration::from_secs(20)).outcome, Ok(()));
        assert!(run(Command::new("no-such-program"), Duration::from_secs(20)).outcome.is_err());
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended_with_all_it_started() {
        let begun = Instant::now();
        let ended = run(shell("echo $$; sleep 300 & sleep 300"), Duration::from_millis(300));
        assert!(ended.outcome.unwrap_err().contains("was ended"));
        assert!(begun.elapsed() < Duration::from_secs(60));
        assert!(!std::path::Path::new(&format!("/proc/{}", ended.lines[0])).exists());
    }

    #[test]
    fn what_a_program_leaves_running_is_ended_and_told() {
        let ended = run(shell("sleep 300 >/dev/null 2>&1 & echo $!"), Duration::from_secs(20));
        assert!(ended.outcome.unwrap_err().contains("left 1 processes"));
        assert!(!std::path::Path::new(&format!("/proc/{}/exe", ended.lines[0])).exists());
    }

    #[test]
    fn a_service_ends_when_it_is_dropped() {
        let mut service = Service::start(shell("exec sleep 300")).expect("sh exists");
        let id = service.child.id();
        assert!(service.is_running());
        drop(service);
        assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
    }
}
