//! The machine under a very large crowd: what has to be set for it, and where its memory goes.
//!
//! Owns the files of `/proc` that say so. Whatever is changed is printed, and put back at the end.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::Command;

use load::sample::machine;
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// A network of its own, with room for so many connections with both ends in it.
pub struct Prepared {
    /// Settings of the machine and of its first network, as they were. Their files are kept open: a path leads to the settings of the
    /// network one is in.
    before: Vec<(&'static str, File, String)>,
}

/// From so many connections on, the network of the machine is too small.
pub const LARGE: usize = 500_000;
/// Most open files of the machine.
const FILES: &str = "/proc/sys/fs/file-max";
/// Buckets in the table of connections of a network made from now on.
const BUCKETS: &str = "/proc/sys/net/ipv4/tcp_child_ehash_entries";
/// The kernel takes no more.
const BUCKETS_MAX: usize = 16 * 1024 * 1024;

impl Prepared {
    /// Call it before any other thread is there.
    pub fn new(connections: usize) -> Result<Prepared, String> {
        let mut prepared = Prepared { before: Vec::new() };
        let files = 2 * connections + 200_000;
        if read(FILES)?.parse().is_ok_and(|now: u64| now < files as u64) {
            prepared.set(FILES, &files.to_string())?;
        }
        let buckets = (2 * connections).next_power_of_two().min(BUCKETS_MAX);
        prepared.set(BUCKETS, &buckets.to_string())?;
        // SAFETY: this thread is the only one, and no descriptor of the old network is used in the new one.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }
            .map_err(|errno| format!("a network of its own needs root: {errno}"))?;
        println!("a network of its own, with {} buckets for connections", buckets_here()?);
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
        if !up.is_ok_and(|status| status.success()) {
            return Err(
                "the loopback device stays down: `ip link set lo up` failed (Debian: iproute2)".into()
            );
        }
        // Of this network only, so nothing has to be put back.
        for (file, value) in [
            ("/proc/sys/net/ipv4/ip_local_port_range", "1024 65535"),
            ("/proc/sys/net/core/somaxconn", "65535"),
            ("/proc/sys/net/ipv4/tcp_max_syn_backlog", "65535"),
        ] {
            if fs::write(file, value).is_ok() {
                println!("{file} = {value}, in this network");
            }
        }
        Ok(prepared)
    }

    fn set(&mut self, file: &'static str, value: &str) -> Result<(), String> {
        let before = read(file)?;
        let told = |error: std::io::Error| format!("{file} = {value}: {error}");
        let mut open = OpenOptions::new().write(true).open(file).map_err(told)?;
        open.write_all(value.as_bytes()).map_err(told)?;
        println!("{file} = {value} (was {before}; put back at the end)");
        self.before.push((file, open, before));
        Ok(())
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        for (file, open, before) in self.before.drain(..) {
            // At the beginning: what is written behind it the kernel ignores.
            if open.write_all_at(before.as_bytes(), 0).is_err() {
                eprintln!("bench: {file} was {before} and could not be put back");
            }
        }
    }
}

/// In a network of its own the number is told as a negative one when it is shared with the first.
fn buckets_here() -> Result<String, String> {
    read("/proc/sys/net/ipv4/tcp_ehash_entries")
}

fn read(file: &str) -> Result<String, String> {
    fs::read_to_string(file).map(|text| text.trim().to_owned()).map_err(|error| format!("{file}: {error}"))
}

/// A line of `/proc/meminfo`, in bytes.
pub fn memory(name: &str) -> Result<f64, String> {
    let bytes = machine::kibibytes(&read("/proc/meminfo")?, name);
    bytes.map(|bytes| bytes as f64).ok_or_else(|| format!("/proc/meminfo has no {name}"))
}

/// The kernel's caches that hold most, with their bytes.
pub fn slabs(most: usize) -> Result<Vec<(String, f64)>, String> {
    let text = read("/proc/slabinfo")?;
    let mut slabs: Vec<(String, f64)> = text
        .lines()
        .skip(2)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // name, active objects, objects, bytes of one, objects of a slab, pages of a slab … slabs at the end but one.
            let pages: f64 = fields.get(5)?.parse().ok()?;
            let count: f64 = fields.get(14)?.parse().ok()?;
            Some((fields[0].to_owned(), pages * count * 4096.0))
        })
        .collect();
    slabs.sort_by(|a, b| b.1.total_cmp(&a.1));
    slabs.truncate(most);
    Ok(slabs)
}

/// Time that all processors have spent, and how much of it idle, in ticks.
pub fn processors() -> Result<(f64, f64), String> {
    let times = machine::cpu_times(&read("/proc/stat")?);
    let times = times.ok_or("/proc/stat has no line for all processors")?;
    Ok((times.total as f64, (times.total - times.busy - times.steal) as f64))
}

/// Connections that the kernel turned away because a listener's line was full, since the network began.
pub fn listen_overflows() -> Result<u64, String> {
    let overflows = machine::netstat(&read("/proc/net/netstat")?, "TcpExt", "ListenOverflows");
    overflows.ok_or("/proc/net/netstat has no ListenOverflows".into())
}
