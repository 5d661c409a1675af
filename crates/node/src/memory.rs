//! Memory that the allocator keeps after a burst.

/// Above so many bytes, an allocation is pages of its own, which go back to the system when it is freed.
const OWN_PAGES_BYTES: libc::c_int = 128 * 1024;

/// Fixes what the allocator otherwise raises by itself the first time something large is freed (glibc's dynamic threshold): from then on
/// large buffers would lie among small long-lived things, in every thread's arena. Call it once, at start.
pub fn fix_thresholds() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it only sets parameters of the allocator.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_PAGES_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, OWN_PAGES_BYTES);
    }
}

/// Gives pages that hold nothing any more back to the system. The allocator keeps them for itself otherwise, in every thread's arena:
/// after a herd has connected that was about as much again as the connections themselves. It visits free memory only, so it costs
/// little; call it when shards have fallen quiet ([`crate::ShardGauges::rests`]).
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it has no preconditions; the allocator locks what it works on.
    unsafe {
        libc::malloc_trim(0);
    }
}
