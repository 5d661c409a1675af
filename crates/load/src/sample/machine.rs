//! What Linux says of the machine: texts of `/proc` in, numbers out.
//!
//! Owns the meaning of these texts (proc(5), and `Documentation/accounting/psi.rst` of the kernel). Reads no file itself. What is not there
//! in the expected form is missing, never zero.

/// Processor time of all cores since the start of the machine, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTimes {
    /// Something ran, interrupts included.
    pub busy: u64,
    /// Another machine ran instead.
    pub steal: u64,
    /// Nothing ran, and a disk was waited for.
    pub iowait: u64,
    /// All there was.
    pub total: u64,
}

/// The first line of `/proc/stat`. The time of guests is part of the user's time and not counted again.
pub fn cpu_times(stat: &str) -> Option<CpuTimes> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map(|ticks| ticks.parse().ok()).collect::<Option<_>>()?;
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = ticks[..] else { return None };
    let busy = user + nice + system + irq + softirq;
    Some(CpuTimes { busy, steal, iowait, total: busy + idle + iowait + steal })
}

/// Microseconds for which somebody waited: the line `some` of a file in `/proc/pressure`.
pub fn pressure(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    line.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

/// A line such as `MemTotal:  24684084 kB`, in bytes.
pub fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    rest.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1_024)
}

/// A line such as `Threads: 4`, with any blanks between.
pub fn count(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?.trim().parse().ok()
}

/// A number of a line such as `TCP: inuse 27 orphan 0 tw 0 alloc 27 mem 4`.
pub fn sockets(sockstat: &str, protocol: &str, name: &str) -> Option<u64> {
    let rest = sockstat.lines().find_map(|line| line.strip_prefix(protocol)?.strip_prefix(':'))?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    words.chunks_exact(2).find(|pair| pair[0] == name)?[1].parse().ok()
}

/// A counter of `/proc/net/netstat`: a line of names, and under it a line of numbers that begins alike.
pub fn netstat(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(':'));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let at = names.split_whitespace().position(|found| found == name)?;
    numbers.split_whitespace().nth(at)?.parse().ok()
}

/// What a process or a thread has used: its name, and its ticks in user and system mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Used {
    /// The name; it may contain anything.
    pub name: String,
    /// Ticks since its start.
    pub ticks: u64,
}

/// `/proc/PID/stat` or that of a thread: fields 2, 14 and 15. The name stands in parentheses and may contain some itself.
pub fn used(stat: &str) -> Option<Used> {
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let fields: Vec<&str> = after.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Used { name: name.to_owned(), ticks: ticks(11)? + ticks(12)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_are_not_counted_twice() {
        let times = cpu_times("cpu  100 20 30 4000 50 6 7 80 90 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
        assert_eq!(times, Some(CpuTimes { busy: 163, steal: 80, iowait: 50, total: 4_293 }));
        // Before steal was counted (Linux 2.6.10) the line was shorter: then nothing is known.
        assert_eq!(cpu_times("cpu  100 20 30 4000 50 6 7\n"), None);
        assert_eq!(cpu_times("cpu  100 20 x 4000 50 6 7 0\n"), None);
        assert_eq!(cpu_times(""), None);
    }

    #[test]
    fn pressure_is_the_total_of_the_line_some() {
        let text = "some avg10=48.75 avg60=19.33 avg300=10.10 total=14069907033\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(pressure(text), Some(14_069_907_033));
        assert_eq!(pressure("full avg10=0.00 total=7\n"), None);
    }

    #[test]
    fn kibibytes_are_told_as_bytes() {
        let text = "MemTotal:       24684084 kB\nMemFree:        18695172 kB\nMemAvailable:   23376472 kB\nHuge:  3\n";
        assert_eq!(kibibytes(text, "MemTotal"), Some(25_276_502_016));
        assert_eq!(kibibytes(text, "MemAvailable"), Some(23_937_507_328));
        assert_eq!(
            (kibibytes(text, "Mem"), kibibytes(text, "Huge"), kibibytes("", "MemTotal")),
            (None, None, None)
        );
        assert_eq!(count("Name:\tthrong\nThreads:\t131\n", "Threads"), Some(131));
    }

    #[test]
    fn sockets_are_found_by_protocol_and_name() {
        let text = "sockets: used 24\nTCP: inuse 1 orphan 2 tw 3996 alloc 1 mem 17\nUDP: inuse 5 mem 0\n";
        let tcp = |name| sockets(text, "TCP", name);
        assert_eq!(
            [tcp("inuse"), tcp("orphan"), tcp("tw"), tcp("mem")],
            [Some(1), Some(2), Some(3_996), Some(17)]
        );
        assert_eq!((tcp("gone"), sockets(text, "TCP6", "inuse")), (None, None));
    }

    #[test]
    fn counters_of_the_network_stand_under_their_names() {
        let text = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 12 34\nIpExt: InNoRoutes\nIpExt: 5\n";
        let of = |name| netstat(text, "TcpExt", name);
        assert_eq!([of("ListenOverflows"), of("ListenDrops"), of("Gone")], [Some(12), Some(34), None]);
        assert_eq!(netstat(text, "IpExt", "InNoRoutes"), Some(5));
        // Cut in the middle.
        assert_eq!(netstat("TcpExt: A B\nTcpExt: 1", "TcpExt", "B"), None);
        assert_eq!(netstat("TcpExt: A B\n", "TcpExt", "B"), None);
    }

    #[test]
    fn a_name_with_parentheses_and_blanks_does_not_move_the_fields() {
        let stat = "77 (shard) 1 (x) S 1 77 77 0 -1 4194304 901 0 0 0 1500 250 0 0 20 0 5 0 39 9";
        assert_eq!(used(stat), Some(Used { name: "shard) 1 (x".into(), ticks: 1_750 }));
        assert_eq!(used("77 (shard-1) S 1 77"), None);
    }
}
