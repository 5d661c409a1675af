//! What the machine says: time, processor time, memory, the processors allowed.

use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// A stretch of time under way.
pub struct Stretch {
    start: Instant,
    cpu: Duration,
    resident: u64,
}

impl Stretch {
    /// Starts now, with the peak of memory forgotten.
    pub fn begin() -> Self {
        // Where this is refused the peak includes what came before, for both sides alike.
        let _ = fs::write("/proc/self/clear_refs", "5");
        Self { resident: status("VmRSS"), cpu: cpu(), start: Instant::now() }
    }

    /// What has passed.
    pub fn end(&self) -> (Duration, Duration, u64) {
        let (time, cpu) = (self.start.elapsed(), cpu() - self.cpu);
        (time, cpu, status("VmHWM").saturating_sub(self.resident))
    }
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Resident memory counted page by page, in bytes; `status` may lag behind by some hundred kB.
pub fn resident() -> u64 {
    bytes(&line("/proc/self/smaps_rollup", "Rss"))
}

fn status(name: &str) -> u64 {
    bytes(&line("/proc/self/status", name))
}

fn bytes(kilobytes: &str) -> u64 {
    kilobytes.trim_end_matches(" kB").parse::<u64>().expect("a number of kB") * 1024
}

/// The processors this process may use.
pub fn processors() -> (String, usize) {
    let count = std::thread::available_parallelism().expect("the number of processors").get();
    (line("/proc/self/status", "Cpus_allowed_list"), count)
}

fn line(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).expect("the kernel's word on this process");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect("the line of that name").trim().to_owned()
}
