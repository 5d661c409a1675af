//! Memory that the allocator keeps after a burst.

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
