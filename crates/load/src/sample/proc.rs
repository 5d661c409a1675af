//! Reads the folder `/proc`, or one that looks like it: which files there are and who is asked.
//!
//! Owns where each number lies. What the texts mean, `machine` knows.

use std::cmp::Ordering;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::machine::{self, CpuTimes, Used};

/// Descriptors of the process's table that are looked at one by one for the database's file: it is opened at the start and has a small number.
const DATABASE_DESCRIPTORS_LOOKED_AT: u32 = 1_024;

/// How the descriptor tables of two threads compare.
pub type Comparing = fn(u32, u32) -> io::Result<Ordering>;

/// The folder, and what cannot be read from it.
#[derive(Debug, Clone)]
pub struct Proc {
    root: PathBuf,
    compare: Comparing,
}

/// What the machine said at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineReading {
    /// Processor time since its start.
    pub cpu: Option<CpuTimes>,
    /// Microseconds of waiting for cores, memory, disks.
    pub pressure: [Option<u64>; 3],
    /// Bytes that could be used.
    pub memory_available: Option<u64>,
    /// Bytes there are.
    pub memory_total: Option<u64>,
    /// TCP sockets in use over IPv4 and IPv6.
    pub tcp_in_use: Option<u64>,
    /// Those without a process.
    pub tcp_orphans: Option<u64>,
    /// Those that wait for their end.
    pub tcp_time_wait: Option<u64>,
    /// Pages of TCP's buffers.
    pub tcp_pages: Option<u64>,
    /// Connections dropped by full accept queues since the start.
    pub listen_overflows: Option<u64>,
    /// Connections dropped by listeners since the start.
    pub listen_drops: Option<u64>,
}

/// What was said of the server's process at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessReading {
    /// Its number.
    pub pid: u32,
    /// Bytes in memory.
    pub resident: Option<u64>,
    /// How many threads.
    pub threads: Option<u64>,
    /// What it has used, threads that have ended included.
    pub used: Option<Used>,
    /// What each thread has used.
    pub thread_used: Vec<(u32, Used)>,
    /// Open descriptors in all its tables.
    pub descriptors: Option<u64>,
    /// Descriptors of the database's file.
    pub database_connections: Option<u64>,
}

impl Proc {
    /// The one of this machine.
    pub fn of_this_machine() -> Proc {
        Proc::at(Path::new("/proc"), reactor::compare_descriptor_tables)
    }

    /// Any folder.
    pub fn at(root: &Path, compare: Comparing) -> Proc {
        Proc { root: root.to_owned(), compare }
    }

    fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    /// What the machine says now. Sockets and listeners are those of the process's network namespace, if there is a process.
    pub fn machine(&self, pid: Option<u32>) -> MachineReading {
        let stat = self.text("stat");
        let memory = self.text("meminfo").unwrap_or_default();
        let net = pid.map_or("net".to_owned(), |pid| format!("{pid}/net"));
        let sockets = self.text(&format!("{net}/sockstat")).unwrap_or_default();
        // Not there when IPv6 is switched off.
        let sockets_6 = self.text(&format!("{net}/sockstat6")).unwrap_or_default();
        let netstat = self.text(&format!("{net}/netstat")).unwrap_or_default();
        let tcp = |name| machine::sockets(&sockets, "TCP", name);
        let in_use_6 = machine::sockets(&sockets_6, "TCP6", "inuse").unwrap_or(0);
        MachineReading {
            cpu: stat.and_then(|stat| machine::cpu_times(&stat)),
            pressure: ["cpu", "memory", "io"]
                .map(|what| machine::pressure(&self.text(&format!("pressure/{what}"))?)),
            memory_available: machine::kibibytes(&memory, "MemAvailable"),
            memory_total: machine::kibibytes(&memory, "MemTotal"),
            tcp_in_use: tcp("inuse").map(|in_use| in_use + in_use_6),
            tcp_orphans: tcp("orphan"),
            tcp_time_wait: tcp("tw"),
            tcp_pages: tcp("mem"),
            listen_overflows: machine::netstat(&netstat, "TcpExt", "ListenOverflows"),
            listen_drops: machine::netstat(&netstat, "TcpExt", "ListenDrops"),
        }
    }

    /// What there is to say of a process; none when there is none with this number.
    pub fn process(&self, pid: u32) -> Option<ProcessReading> {
        let status = self.text(&format!("{pid}/status"))?;
        let used_by = |path: &str| machine::used(&self.text(path)?);
        let threads = self.threads(pid);
        Some(ProcessReading {
            pid,
            resident: machine::kibibytes(&status, "VmRSS"),
            threads: machine::count(&status, "Threads"),
            used: used_by(&format!("{pid}/stat")),
            thread_used: threads
                .iter()
                .filter_map(|thread| Some((*thread, used_by(&format!("{pid}/task/{thread}/stat"))?)))
                .collect(),
            descriptors: self.descriptors(pid, &threads),
            database_connections: self.database_connections(pid),
        })
    }

    /// Which machine this is: cores, their model, memory, kernel. What is not known is left out.
    pub fn describe(&self) -> String {
        let cores = std::thread::available_parallelism().ok().map(|cores| format!("{cores} cpus"));
        let info = self.text("cpuinfo").unwrap_or_default();
        let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let model = model.map(|(_, model)| model.trim().to_owned());
        let memory = self.machine(None).memory_total;
        let memory = memory.map(|bytes| format!("{:.1} GiB", bytes as f64 / (1_u64 << 30) as f64));
        let kernel = self.text("sys/kernel/osrelease").map(|release| format!("Linux {}", release.trim()));
        [cores, model, memory, kernel].into_iter().flatten().collect::<Vec<String>>().join(", ")
    }

    fn threads(&self, pid: u32) -> Vec<u32> {
        let folder = fs::read_dir(self.root.join(format!("{pid}/task")));
        let names =
            folder.into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut threads: Vec<u32> = names.filter_map(|name| name.parse().ok()).collect();
        threads.sort_unstable();
        threads
    }

    /// Open descriptors in every table that some thread uses, each table counted once. A thread may end meanwhile and is then left out; when the
    /// kernel does not say who shares a table with whom, the number is unknown.
    fn descriptors(&self, pid: u32, threads: &[u32]) -> Option<u64> {
        let mut with_tables: Vec<u32> = Vec::new();
        let mut sum = 0;
        for thread in threads {
            let mut is_counted = false;
            for known in &with_tables {
                match (self.compare)(*thread, *known) {
                    Ok(Ordering::Equal) => is_counted = true,
                    Ok(_) => {}
                    Err(_) if !self.root.join(format!("{pid}/task/{thread}")).exists() => is_counted = true,
                    Err(_) if !self.root.join(format!("{pid}/task/{known}")).exists() => {}
                    Err(_) => return None,
                }
                if is_counted {
                    break;
                }
            }
            if is_counted {
                continue;
            }
            match count_descriptors(&self.root.join(format!("{pid}/task/{thread}/fd"))) {
                Some(count) => {
                    with_tables.push(*thread);
                    sum += count;
                }
                None if !self.root.join(format!("{pid}/task/{thread}")).exists() => {}
                None => return None,
            }
        }
        (!with_tables.is_empty()).then_some(sum)
    }

    fn database_connections(&self, pid: u32) -> Option<u64> {
        let folder = self.root.join(format!("{pid}/fd"));
        fs::read_dir(&folder).ok()?;
        let is_database = |number: &u32| {
            fs::read_link(folder.join(number.to_string())).is_ok_and(|path| path.ends_with("throng.db"))
        };
        Some((0..DATABASE_DESCRIPTORS_LOOKED_AT).filter(is_database).count() as u64)
    }
}

/// Since Linux 6.2 the size of the folder is their number, which saves walking through hundreds of thousands.
fn count_descriptors(folder: &Path) -> Option<u64> {
    let size = fs::metadata(folder).ok()?.len();
    let is_proc = rustix::fs::statfs(folder).is_ok_and(|found| found.f_type == rustix::fs::PROC_SUPER_MAGIC);
    if is_proc && size > 0 {
        // A folder that nobody may read has a size, too.
        return fs::read_dir(folder).ok().map(|_| size);
    }
    Some(fs::read_dir(folder).ok()?.count() as u64)
}

/// The process that holds the lock file of a data folder, if it lives.
///
/// # Errors
/// A sentence that says why it is not known.
pub fn holder_of(lock: &Path, root: &Path) -> Result<u32, String> {
    let text = fs::read_to_string(lock).map_err(|error| format!("{}: {error}", lock.display()))?;
    let pid: u32 = text.trim().parse().map_err(|_| format!("{}: names no process", lock.display()))?;
    match root.join(pid.to_string()).exists() {
        true => Ok(pid),
        false => Err(format!("{}: process {pid} has ended", lock.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn stat(pid: u32, name: &str, user: u64, system: u64) -> String {
        format!("{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {user} {system} 0 0 20 0 1 0 5 6\n")
    }

    /// A server of four threads: two share the process's table, one shard has its own.
    fn server(root: &Path) {
        write(root, "70/status", "Name:\tthrong\nVmRSS:\t    2048 kB\nThreads:\t3\n");
        write(root, "70/stat", &stat(70, "throng", 300, 50));
        for (thread, name, descriptors) in [(70, "throng", 5), (71, "store", 5), (72, "shard-0", 7)] {
            write(root, &format!("70/task/{thread}/stat"), &stat(thread, name, 10 * u64::from(thread), 0));
            for number in 0..descriptors {
                write(root, &format!("70/task/{thread}/fd/{number}"), "");
            }
        }
        fs::create_dir_all(root.join("70/fd")).expect("made");
        for (number, target) in
            [(0, "/dev/null"), (5, "/d/throng.db"), (6, "/d/throng.db-wal"), (1_023, "/d/throng.db")]
        {
            symlink(target, root.join(format!("70/fd/{number}"))).expect("a link");
        }
        symlink("/d/throng.db", root.join("70/fd/1024")).expect("a link");
    }

    fn compared(thread: u32, other: u32) -> io::Result<Ordering> {
        Ok((thread == 72).cmp(&(other == 72)))
    }

    #[test]
    fn a_table_that_threads_share_is_counted_once() {
        let root = tempfile::tempdir().expect("a folder");
        server(root.path());
        let read = Proc::at(root.path(), compared).process(70).expect("it is there");
        assert_eq!((read.resident, read.threads), (Some(2_097_152), Some(3)));
        assert_eq!(read.used, Some(Used { name: "throng".into(), ticks: 350 }));
        assert_eq!(read.thread_used[2], (72, Used { name: "shard-0".into(), ticks: 720 }));
        assert_eq!(read.descriptors, Some(5 + 7));
        assert_eq!(read.database_connections, Some(2));
    }

    #[test]
    fn who_shares_a_table_is_not_guessed() {
        let root = tempfile::tempdir().expect("a folder");
        server(root.path());
        let refused: Comparing = |_, _| Err(io::ErrorKind::PermissionDenied.into());
        let read = Proc::at(root.path(), refused).process(70).expect("it is there");
        assert_eq!((read.descriptors, read.threads), (None, Some(3)));
        assert_eq!(Proc::at(root.path(), refused).process(71), None);
    }

    #[test]
    fn what_is_not_there_is_missing() {
        let root = tempfile::tempdir().expect("a folder");
        let empty = Proc::at(root.path(), compared);
        assert_eq!(empty.machine(None), MachineReading::default());
        write(root.path(), "70/net/sockstat", "TCP: inuse 3 orphan 0 tw 1 alloc 3 mem 2\n");
        write(root.path(), "net/sockstat", "TCP: inuse 9 orphan 0 tw 1 alloc 3 mem 2\n");
        assert_eq!(empty.machine(None).tcp_in_use, Some(9));
        // A process in a network of its own, and without IPv6, then with it.
        assert_eq!(empty.machine(Some(70)).tcp_in_use, Some(3));
        write(root.path(), "70/net/sockstat6", "TCP6: inuse 40\n");
        assert_eq!(empty.machine(Some(70)).tcp_in_use, Some(43));
    }

    #[test]
    fn a_machine_is_described_by_what_is_known_of_it() {
        let root = tempfile::tempdir().expect("a folder");
        write(root.path(), "cpuinfo", "processor\t: 0\nmodel name\t: Some: CPU @ 2.5GHz\n");
        write(root.path(), "meminfo", "MemTotal:       25165824 kB\n");
        write(root.path(), "sys/kernel/osrelease", "6.18.44\n");
        let said = Proc::at(root.path(), compared).describe();
        let (cores, rest) = said.split_once(" cpus, ").expect("the number of cores");
        assert!(cores.parse::<usize>().is_ok_and(|cores| cores > 0));
        assert_eq!(rest, "Some: CPU @ 2.5GHz, 24.0 GiB, Linux 6.18.44");
    }

    #[test]
    fn the_holder_of_a_lock_is_a_process_that_lives() {
        let root = tempfile::tempdir().expect("a folder");
        let lock = root.path().join("throng.lock");
        let said = || holder_of(&lock, root.path());
        assert!(said().expect_err("no file").contains("throng.lock"));
        fs::write(&lock, "x\n").expect("written");
        assert!(said().expect_err("no number").ends_with("names no process"));
        fs::write(&lock, "70\n").expect("written");
        assert!(said().expect_err("nobody").ends_with("process 70 has ended"));
        server(root.path());
        assert_eq!(said(), Ok(70));
    }

    #[test]
    fn the_real_folder_says_of_this_process_what_is_true() {
        let proc = Proc::of_this_machine();
        let read = proc.process(std::process::id()).expect("we live");
        assert!(read.resident.is_some_and(|bytes| bytes > 100_000));
        assert!(read.threads.is_some_and(|threads| threads >= 1));
        assert!(read.used.is_some() && !read.thread_used.is_empty());
        let machine = proc.machine(Some(std::process::id()));
        assert!(machine.cpu.is_some() && machine.memory_total.is_some() && machine.tcp_in_use.is_some());
    }
}
