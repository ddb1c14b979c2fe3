//! Counts the steps of a scheduler call in tests, and nothing anywhere else.
//!
//! A step is a key of the tree that is compared, a task that is put into a bucket or taken
//! from one, or one that is passed in a list. Who is first in the tree is found by walking
//! down, which counts as [`DEPTH`] steps.

/// How deep a red-black tree of 4,096 tasks is at most: 2 log2 (n + 1).
pub(crate) const DEPTH: u64 = 24;

#[cfg(not(test))]
pub(crate) use nowhere::count;
#[cfg(test)]
pub(crate) use tests::{count, of};

#[cfg(not(test))]
mod nowhere {
    #[inline(always)]
    pub(crate) const fn count(_steps: u64) {}
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    std::thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    pub(crate) fn count(steps: u64) {
        STEPS.set(STEPS.get() + steps);
    }

    /// How many steps a call took.
    pub(crate) fn of<R>(call: impl FnOnce() -> R) -> u64 {
        STEPS.set(0);
        call();
        STEPS.get()
    }
}
