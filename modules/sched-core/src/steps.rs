//! Counts the steps of a scheduler call in tests, and nothing anywhere else.
//!
//! A step is a look at a task's link, a comparison of a tree key, or an iteration of a loop that is
//! not over tasks. Finding the first task of a tree walks down the tree, which counts as [`DEPTH`]
//! steps.

/// The largest depth of a red-black tree of 4,096 tasks: 2 log2 (n + 1).
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

    /// Adds `steps` to the count of the call that this thread measures.
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
