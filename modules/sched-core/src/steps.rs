//! Counts the steps of a scheduler call in tests, and nothing anywhere else.
//!
//! A step is a look at a task's link, a key of the tree that is compared, and a turn of a loop
//! that is not over tasks. Who is first in the tree is found by walking down, which counts as
//! [`DEPTH`] steps.

/// How deep a red-black tree of 4,096 tasks is at most: 2 log2 (n + 1).
pub const DEPTH: usize = 24;

#[cfg(feature = "steps")]
pub use counted::{count, of};
#[cfg(not(feature = "steps"))]
pub use nowhere::count;

#[cfg(not(feature = "steps"))]
mod nowhere {
    /// Does nothing: steps are counted with the feature `steps` alone.
    #[inline(always)]
    pub const fn count(_steps: usize) {}
}

#[cfg(feature = "steps")]
mod counted {
    use std::cell::Cell;

    std::thread_local! {
        static STEPS: Cell<usize> = const { Cell::new(0) };
    }

    /// Adds `steps` to those of the call that this thread counts.
    pub fn count(steps: usize) {
        STEPS.set(STEPS.get() + steps);
    }

    /// Returns how many steps a call took on this thread. Calls do not nest.
    pub fn of<R>(call: impl FnOnce() -> R) -> usize {
        STEPS.set(0);
        call();
        STEPS.get()
    }
}
