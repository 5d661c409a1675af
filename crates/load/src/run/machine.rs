//! The machine in one line: what a number needs beside it to mean something.

use std::fs;

/// CPUs, their model, memory and kernel, as far as they can be found out.
pub fn machine() -> String {
    let cpus = std::thread::available_parallelism().map_or(0, |cpus| cpus.get());
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    describe(cpus, &read("/proc/cpuinfo"), &read("/proc/meminfo"), &read("/proc/sys/kernel/osrelease"))
}

fn describe(cpus: usize, cpuinfo: &str, meminfo: &str, kernel: &str) -> String {
    let value = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    let model = value(cpuinfo, "model name").unwrap_or_else(|| "unknown CPU".to_owned());
    let kibibytes =
        value(meminfo, "MemTotal").and_then(|value| value.trim_end_matches(" kB").parse::<u64>().ok());
    let memory = kibibytes
        .map_or("unknown memory".to_owned(), |kib| format!("{:.1} GiB", kib as f64 / f64::from(1 << 20)));
    let kernel = if kernel.trim().is_empty() { "unknown" } else { kernel.trim() };
    format!("{cpus} CPUs, {model}, {memory}, Linux {kernel}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_told_and_what_is_not_is_not_made_up() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU @ 2.00GHz\nprocessor\t: 1\nmodel name\t: Some CPU @ 2.00GHz\n";
        let meminfo = "MemTotal:       25165824 kB\nMemFree: 1 kB\n";
        assert_eq!(
            describe(2, cpuinfo, meminfo, "6.1.0\n"),
            "2 CPUs, Some CPU @ 2.00GHz, 24.0 GiB, Linux 6.1.0"
        );
        assert_eq!(describe(2, "", "", ""), "2 CPUs, unknown CPU, unknown memory, Linux unknown");
    }
}
