//! What a task carries to stand in a [`Queue`](crate::queue::Queue).

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A task's place in a queue. Relaxed: see LOCK in [`task`](crate::task).
pub(crate) struct Link<N>(AtomicPtr<N>);

impl<N> Link<N> {
    /// Of a task that is in no queue: no address that a task can have.
    pub(crate) const APART: *mut N = ptr::without_provenance_mut(1);

    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(Self::APART))
    }

    /// Whether the task is in no queue.
    pub(crate) fn is_apart(&self) -> bool {
        ptr::eq(self.get(), Self::APART)
    }

    #[inline]
    pub(crate) fn get(&self) -> *mut N {
        step();
        self.0.load(Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, next: *mut N) {
        step();
        self.0.store(next, Relaxed);
    }
}

/// A step of a scheduler call, for tests to count: each look at a link is one, and so is
/// each turn of a loop that is not over tasks.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn step() {}

#[cfg(test)]
pub(crate) use counted::{step, steps_of};

#[cfg(test)]
mod counted {
    use std::cell::Cell;

    std::thread_local! {
        static STEPS: Cell<usize> = const { Cell::new(0) };
    }

    pub fn step() {
        STEPS.set(STEPS.get() + 1);
    }

    /// How many steps `call` takes.
    pub fn steps_of(call: impl FnOnce()) -> usize {
        STEPS.set(0);
        call();
        STEPS.get()
    }
}
