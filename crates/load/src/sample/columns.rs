//! The columns of a sampler's file: their names, units and sources, and one row of them.
//!
//! Every column is a variant of one enum and is written once; the help, the page about sampling and the reader of such files
//! take their names from here.

macro_rules! columns {
    ($($name:ident = $text:literal, $unit:literal, $source:literal;)*) => {
        /// What a sampler writes down.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Column {
            $(#[doc = $source] $name,)*
        }

        impl Column {
            /// All of them, in the order of the file.
            pub const ALL: &'static [Column] = &[$(Column::$name,)*];

            /// Its name in the file.
            pub const fn name(self) -> &'static str {
                match self { $(Column::$name => $text,)* }
            }

            /// What its numbers count.
            pub const fn unit(self) -> &'static str {
                match self { $(Column::$name => $unit,)* }
            }

            /// What it says and where that comes from.
            pub const fn source(self) -> &'static str {
                match self { $(Column::$name => $source,)* }
            }
        }
    };
}

columns! {
    Time = "time_ms", "ms since 1970", "when the row was measured: the system clock";
    Elapsed = "elapsed_s", "s", "since the sampler started: the monotonic clock";
    CpuBusy = "cpu_busy_pct", "% of all cores", "user, nice, system and interrupts: /proc/stat";
    CpuSteal = "cpu_steal_pct", "% of all cores", "wanted and given to other machines by the hypervisor: /proc/stat";
    CpuIowait = "cpu_iowait_pct", "% of all cores", "idle while a disk was waited for: /proc/stat";
    PressureCpu = "psi_cpu_some_pct", "% of the time", "somebody waited for a core: /proc/pressure/cpu";
    PressureMemory = "psi_memory_some_pct", "% of the time", "somebody waited for memory: /proc/pressure/memory";
    PressureIo = "psi_io_some_pct", "% of the time", "somebody waited for a disk: /proc/pressure/io";
    MemoryAvailable = "memory_available_bytes", "bytes", "MemAvailable in /proc/meminfo";
    MemoryTotal = "memory_total_bytes", "bytes", "MemTotal in /proc/meminfo";
    TcpInUse = "tcp_in_use", "sockets", "TCP over IPv4 and IPv6: inuse in net/sockstat and net/sockstat6";
    TcpOrphans = "tcp_orphans", "sockets", "closed by their process and not yet by the kernel: orphan in net/sockstat";
    TcpTimeWait = "tcp_time_wait", "sockets", "tw in net/sockstat";
    TcpMemory = "tcp_memory_bytes", "bytes", "pages of TCP's buffers on the whole machine: mem in net/sockstat";
    ListenOverflows = "listen_overflows", "in the interval", "connections dropped because the accept queue was full: net/netstat";
    ListenDrops = "listen_drops", "in the interval", "connections dropped by listeners for any reason: net/netstat";
    ServerResident = "server_resident_bytes", "bytes", "VmRSS in /proc/PID/status";
    ServerDescriptors = "server_descriptors", "descriptors", "open in all descriptor tables of the server's threads: /proc/PID/task/TID/fd, kcmp(2)";
    ServerThreads = "server_threads", "threads", "Threads in /proc/PID/status";
    ServerCpu = "server_cpu_pct", "% of one core", "utime and stime in /proc/PID/stat";
    BusiestThread = "busiest_thread", "name", "the server's thread with the most CPU in the interval: /proc/PID/task/TID/stat";
    BusiestThreadCpu = "busiest_thread_pct", "% of one core", "that thread's utime and stime";
    StoreQueue = "store_queue", "requests", "taken by the store and not answered: throng_store_queue_requests";
    StoreCommits = "store_commits", "in the interval", "batches of the store: throng_store_commit_seconds_count";
    StoreCommitMean = "store_commit_mean_ms", "ms", "mean time of a batch in the interval: throng_store_commit_seconds";
    StoreRequests = "store_requests", "in the interval", "carried out by the store: throng_store_requests_total";
    DatabaseConnections = "database_connections", "connections", "descriptors of the file throng.db among the first 1,024 of the process's table: /proc/PID/fd";
    Connections = "connections", "connections", "open at the server, sum over its shards: throng_connections";
    Api = "api_ms", "ms", "GET /v1/conversations with a token of the user `sampler`, on a connection that stays open: from the first byte sent to the last received";
    ApiStatus = "api_status", "HTTP status", "of that answer; `timeout` when none came in half an interval (api_ms is then how long was waited), `unreachable` when there was no connection";
}

/// What stands in one cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A whole number.
    Whole(u64),
    /// A share of the time, in percent.
    Percent(f64),
    /// Thousandths are kept: milliseconds, and seconds.
    Thousandths(f64),
    /// A name.
    Word(String),
}

impl Value {
    /// The number, unless it is a name.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Whole(number) => Some(*number as f64),
            Value::Percent(number) | Value::Thousandths(number) => Some(*number),
            Value::Word(_) => None,
        }
    }

    fn text(&self) -> String {
        match self {
            Value::Whole(number) => number.to_string(),
            Value::Percent(number) => format!("{number:.2}"),
            Value::Thousandths(number) => format!("{number:.3}"),
            // A thread may have any name; in a cell it must not end the cell or the line.
            Value::Word(word) => {
                word.chars().map(|c| if c == ',' || c == '#' || c.is_control() { '_' } else { c }).collect()
            }
        }
    }
}

/// One row: a value for every column that has one.
#[derive(Debug, Clone, PartialEq)]
pub struct Values(Vec<Option<Value>>);

impl Values {
    /// A row in which everything is missing.
    pub fn missing() -> Values {
        Values(vec![None; Column::ALL.len()])
    }

    /// Sets a column, or leaves it missing.
    pub fn set(&mut self, column: Column, value: Option<Value>) {
        self.0[column as usize] = value;
    }

    /// What a column has.
    pub fn get(&self, column: Column) -> Option<&Value> {
        self.0[column as usize].as_ref()
    }

    /// The number of a column.
    pub fn number(&self, column: Column) -> Option<f64> {
        self.get(column).and_then(Value::number)
    }

    /// The line of the file, with its end. What is missing is an empty cell.
    pub fn line(&self) -> String {
        let cells: Vec<String> =
            self.0.iter().map(|value| value.as_ref().map(Value::text).unwrap_or_default()).collect();
        cells.join(",") + "\n"
    }
}

/// The line of column names, with its end.
pub fn names() -> String {
    let names: Vec<&str> = Column::ALL.iter().map(|column| column.name()).collect();
    names.join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_an_empty_cell_and_a_name_cannot_end_its_cell() {
        let mut values = Values::missing();
        values.set(Column::Time, Some(Value::Whole(1_764_527_562_123)));
        values.set(Column::Elapsed, Some(Value::Thousandths(2.0)));
        values.set(Column::CpuBusy, Some(Value::Percent(12.345)));
        values.set(Column::BusiestThread, Some(Value::Word("a,b\nc".into())));
        let line = values.line();
        let cells: Vec<&str> = line.trim_end().split(',').collect();
        assert_eq!(cells.len(), 30);
        assert_eq!(&cells[..5], ["1764527562123", "2.000", "12.35", "", ""]);
        assert_eq!(cells[Column::BusiestThread as usize], "a_b_c");
        assert_eq!(line.matches('\n').count(), 1);
    }

    #[test]
    fn the_page_about_sampling_has_them_all() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sampling.md");
        let page = std::fs::read_to_string(page).expect("docs/sampling.md");
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        let wanted =
            |column: &Column| format!("| `{}` | {} | {} |", column.name(), column.unit(), column.source());
        assert_eq!(rows, Column::ALL.iter().map(wanted).collect::<Vec<String>>());
    }
}
