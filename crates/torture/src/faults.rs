//! Faults of the disk and of the machine, made beneath the real binary.
//!
//! A small library (`shim/shim.c`), loaded before the C library, fails the calls that a plan names; the plan is a file that both map
//! or write, so a test changes it while the server runs. A file system of a few mebibytes in memory is a disk that really fills.
//! Owns both, and what to do where a machine cannot have them. Deliberately knows nothing of what a server should make of it.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::Errno;

use crate::run::Place;
use crate::server::Start;

/// System calls that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `fsync` and `fdatasync`.
    Sync = 1,
    /// `write` and its likes, and what makes a file longer or shorter.
    Write = 2,
    /// `open`.
    Open = 4,
}

/// Files of a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// The database file, also while it is being made.
    Database = 1,
    /// Its write-ahead log.
    Log = 2,
    /// The mark that says how far the log is durable.
    Mark = 4,
    /// The log's index, which processes share.
    Shared = 8,
}

impl On {
    /// All of them.
    pub const ALL: [On; 4] = [On::Database, On::Log, On::Mark, On::Shared];
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Nothing is done, and this is the error.
    Fails(Errno),
    /// Half of the bytes are written, which is no error.
    Half,
}

/// As often as a server can call.
pub const FOR_EVER: u64 = i64::MAX as u64;

/// The words of the plan, as the shim reads them.
const CALLS: u64 = 0;
const FILES: u64 = 1;
const GOOD: u64 = 2;
const BAD: u64 = 3;
const ERROR: u64 = 4;
const MET: u64 = 5;
const CLOCK: u64 = 6;
const WORDS: usize = 7;

/// The faults of one place.
pub struct Faults {
    shim: PathBuf,
    path: PathBuf,
    plan: File,
}

impl Faults {
    /// Without a fault so far. None, loudly, where there is no C compiler.
    pub fn new(place: &Place) -> Option<Faults> {
        let (source, shim, path) = (place.path("shim.c"), place.path("shim.so"), place.path("plan"));
        place.write("shim.c", include_str!("../shim/shim.c"));
        let mut compiler = Command::new("cc");
        compiler.args(["-std=gnu11", "-O1", "-shared", "-fPIC", "-o"]).args([&shim, &source]);
        match compiler.output() {
            Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
            Err(error) => {
                lacking(&format!("a C compiler called cc ({error})"));
                return None;
            }
        }
        fs::write(&path, [0; 8 * WORDS]).expect("a file in the temporary folder");
        let plan = File::options().read(true).write(true).open(&path).expect("a file of ours");
        Some(Faults { shim, path, plan })
    }

    /// A server that is started so has them.
    pub fn beneath<'a>(&self, start: Start<'a>) -> Start<'a> {
        start.with("LD_PRELOAD", self.shim.display()).with("FAULT_PLAN", self.path.display())
    }

    /// From now on, after `good` of these calls on these files, the next `bad` fail.
    pub fn arm(&self, call: Call, files: &[On], good: u64, bad: u64, how: How) {
        self.heal();
        let error = match how {
            How::Fails(errno) => errno.raw_os_error() as u64,
            How::Half => 0,
        };
        let files = files.iter().fold(0, |set, file| set | *file as u64);
        for (word, value) in [(FILES, files), (GOOD, good), (BAD, bad), (ERROR, error), (MET, 0)] {
            self.set(word, value);
        }
        // Last, as it begins.
        self.set(CALLS, call as u64);
    }

    /// From now on nothing fails.
    pub fn heal(&self) {
        self.set(CALLS, 0);
    }

    /// How many calls have failed since it was last armed.
    pub fn met(&self) -> u64 {
        let mut word = [0; 8];
        self.plan.read_exact_at(&mut word, 8 * MET).expect("a file of ours");
        u64::from_ne_bytes(word)
    }

    /// Makes the wall clock wrong by so many seconds; the clock that only goes on stays as it is.
    pub fn set_clock_wrong_by(&self, seconds: i64) {
        self.set(CLOCK, seconds as u64);
    }

    fn set(&self, word: u64, value: u64) {
        self.plan.write_all_at(&value.to_ne_bytes(), 8 * word).expect("a file of ours");
    }
}

/// A file system of its own, gone when this is dropped.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// At a folder of the place, with so many mebibytes. None, loudly, where this user may not mount one.
    pub fn mount(place: &Place, name: &str, mebibytes: u32) -> Option<SmallDisk> {
        let folder = place.path(name);
        fs::create_dir_all(&folder).expect("a folder in the temporary folder");
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", &format!("size={mebibytes}m,mode=0700"), "throng-test"])
            .arg(&folder);
        match mount.output() {
            Ok(output) if output.status.success() => Some(SmallDisk(folder)),
            Ok(output) => {
                let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                lacking(&format!("the right to mount a file system in memory, which root has ({why})"));
                None
            }
            Err(error) => {
                lacking(&format!("the command mount ({error})"));
                None
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Whatever still has a file there is about to go.
        let unmounted = Command::new("umount").arg("--lazy").arg(&self.0).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            eprintln!("{} is still mounted", self.0.display());
        }
    }
}

/// Says that a test cannot be made here. Fails where everything must be there.
pub fn lacking(what: &str) {
    eprintln!("NOT TESTED: this needs {what}");
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "with CI=true nothing is left out: this needs {what}"
    );
}
