//! Panics made on purpose, in the middle of the rules and of what surrounds them, so that it can be tested what is left after one.
//!
//! Without the feature `faults`, which only the simulator and tests ask for, a point is nothing at all.

#[cfg(feature = "faults")]
mod armed {
    use std::cell::Cell;

    /// What such a panic says.
    const ON_PURPOSE: &str = "a fault made on purpose";

    std::thread_local! {
        static LEFT: Cell<u32> = const { Cell::new(0) };
    }

    /// The point that is reached as the `count`-th from now on panics; 0 disarms. Returns what was left of the last arming.
    pub fn arm(count: u32) -> u32 {
        LEFT.replace(count)
    }

    /// Lets panics that are made on purpose go without a word, in the whole process; all others are told as ever.
    pub fn keep_quiet() {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            let told = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                if panic.payload_as_str() != Some(ON_PURPOSE) {
                    told(panic);
                }
            }));
        });
    }

    /// A place that may break.
    pub fn point() {
        let left = LEFT.get();
        LEFT.set(left.saturating_sub(1));
        if left == 1 {
            std::panic::panic_any(ON_PURPOSE);
        }
    }
}

#[cfg(feature = "faults")]
pub use armed::{arm, keep_quiet, point};

/// A place that may break.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub fn point() {}
