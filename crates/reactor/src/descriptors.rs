//! The process's and the thread's descriptors as such: how many there may be, and who shares the table.

use std::cmp::Ordering;
use std::fmt;
use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::thread::UnshareFlags;

/// The kernel refused a table of its own to this thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnshareError(pub Errno);

impl fmt::Display for UnshareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this thread could not get a descriptor table of its own")
    }
}

impl std::error::Error for UnshareError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Gives the calling thread a descriptor table of its own: a copy of what is open now, after which neither side
/// sees what the other opens or closes. Refused (`EPERM`) by some container profiles; going on with the shared table
/// is then correct, only slower.
///
/// # Safety
///
/// A descriptor opened after this call exists in this thread only. Every value that owns or borrows one (a
/// [`Reactor`](crate::Reactor), a `File`, a `TcpStream`) must be made, used and dropped in this thread: elsewhere the same
/// number is another file or none. Descriptors opened before exist on both sides, and closing one side's leaves the
/// other's open, so call this before the process opens what it wants to be able to close.
pub unsafe fn unshare_files() -> Result<(), UnshareError> {
    // SAFETY: what CLONE_FILES does to other owners of descriptors is the caller's promise above.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FILES) }.map_err(UnshareError)
}

/// Whether [`unshare_files`] is granted here: tried in a thread that does nothing else and ends at once.
pub fn can_unshare_files() -> bool {
    // SAFETY: the thread owns and borrows no descriptor.
    let tried = std::thread::Builder::new().spawn(|| unsafe { unshare_files() }.is_ok());
    tried.is_ok_and(|thread| thread.join().unwrap_or(false))
}

/// Compares the descriptor tables of two threads, in an order that the kernel chooses: equal means that they share one (kcmp(2)).
///
/// # Errors
/// When one is gone, when they belong to somebody else, or when the kernel or a container's profile refuses to say.
pub fn compare_descriptor_tables(thread: u32, other: u32) -> io::Result<Ordering> {
    /// `KCMP_FILES` of `linux/kcmp.h`.
    const FILES: libc::c_long = 2;
    let (thread, other) = (libc::c_long::from(thread), libc::c_long::from(other));
    // SAFETY: the call takes five numbers and writes nothing.
    match unsafe { libc::syscall(libc::SYS_kcmp, thread, other, FILES, 0, 0) } {
        0 => Ok(Ordering::Equal),
        1 => Ok(Ordering::Less),
        2 => Ok(Ordering::Greater),
        _ => Err(io::Error::last_os_error()),
    }
}

/// How many descriptors one table may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorLimit {
    /// The soft limit that was in force before; `None` is "no limit".
    pub soft_before: Option<u64>,
    /// The soft limit now in force.
    pub now: Option<u64>,
    /// The hard limit, which only a privileged process can raise.
    pub hard: Option<u64>,
}

/// Raises the soft limit to the hard one. When the kernel refuses, `now` says that nothing changed.
pub fn raise_descriptor_limit() -> DescriptorLimit {
    let before = getrlimit(Resource::Nofile);
    let mut raised = before;
    raised.current = before.maximum;
    let now = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => raised.current,
        Err(_) => before.current,
    };
    DescriptorLimit { soft_before: before.current, now, hard: before.maximum }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn threads_share_a_table_until_one_gets_its_own() {
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let (tell, told) = channel();
        let (end, ended) = channel::<()>();
        let other = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).expect("somebody listens");
            let _ = ended.recv();
            // SAFETY: from here on the thread uses no descriptor.
            let parted = unsafe { unshare_files() };
            tell.send(0).expect("somebody listens");
            let _ = ended.recv();
            parted
        });
        let thread = told.recv().expect("a thread");
        let before = compare_descriptor_tables(own, thread).expect("threads of ours");
        end.send(()).expect("it waits");
        told.recv().expect("it has tried");
        let after = compare_descriptor_tables(own, thread).expect("threads of ours");
        drop(end);
        let parted = other.join().expect("it ended").is_ok();
        assert_eq!(before, Ordering::Equal);
        assert_eq!(after == Ordering::Equal, !parted);
        assert!(compare_descriptor_tables(own, u32::MAX >> 1).is_err());
    }
}
