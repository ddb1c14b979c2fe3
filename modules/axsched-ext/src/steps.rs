//! Counts the steps of a scheduler call in tests, and nothing anywhere else.
//!
//! A step is a look at a task's link, a key of the tree that is compared, and a turn of a loop
//! that is not over tasks. Who is first in the tree is found by walking down, which counts as
//! [`DEPTH`] steps.

/// How deep a red-black tree of 4,096 tasks is at most: 2 log2 (n + 1).
pub(crate) const DEPTH: usize = 24;

#[cfg(not(test))]
pub(crate) use nowhere::count;
#[cfg(test)]
pub(crate) use tests::{count, of};

#[cfg(not(test))]
mod nowhere {
    #[inline(always)]
    pub(crate) const fn count(_steps: usize) {}
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    std::thread_local! {
        static STEPS: Cell<usize> = const { Cell::new(0) };
    }

    pub(crate) fn count(steps: usize) {
        STEPS.set(STEPS.get() + steps);
    }

    /// How many steps a call took.
    pub(crate) fn of<R>(call: impl FnOnce() -> R) -> usize {
        STEPS.set(0);
        call();
        STEPS.get()
    }
}
