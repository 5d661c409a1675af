//! Ends a reactor's wait from another thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// A handle that wakes one reactor. Clones wake the same one.
///
/// It is a descriptor, so it must be made **before** any thread parts its descriptor table
/// ([`unshare_files`](crate::unshare_files)): every table then holds it under the same number.
#[derive(Debug, Clone)]
pub struct Waker {
    eventfd: Arc<OwnedFd>,
}

impl Waker {
    /// Makes one; it takes one descriptor.
    pub fn new() -> io::Result<Waker> {
        Ok(Waker { eventfd: Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?) })
    }

    /// Makes the reactor's present or next wait return with [`Event::Woken`](crate::Event::Woken). One system call;
    /// whether the reactor sleeps at all is the caller's to know.
    pub fn wake(&self) {
        // The counter would have to be added to 2^64 - 2 times before this could fail.
        let _ = rustix::io::write(&*self.eventfd, &1u64.to_ne_bytes());
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }
}
