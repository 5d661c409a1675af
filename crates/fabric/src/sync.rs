//! The one switch between the real atomics and loom's, so that the code that is checked is the code that runs.
//!
//! Gauges do not pass through here: they order nothing, and every atomic that loom watches multiplies its work.

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::{
        Arc,
        atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    },
};

#[cfg(not(loom))]
pub(crate) use self::{
    cell::UnsafeCell,
    std_sync::{Arc, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
};

#[cfg(not(loom))]
mod std_sync {
    pub(crate) use std::sync::{
        Arc,
        atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    };
}

#[cfg(not(loom))]
mod cell {
    /// Loom's door to a cell: every access is a call that loom can watch.
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}

/// Keeps what different cores write off each other's cache lines.
#[repr(align(64))]
pub(crate) struct Line<T>(pub(crate) T);

impl<T> std::ops::Deref for Line<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}
