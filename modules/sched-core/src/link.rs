//! The link inside a task, through which it is in a [`Queue`](crate::queue::Queue).

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::steps;

/// A task's link to the next task of its queue. Its accesses are relaxed: see LOCK in
/// [`task`](crate::task).
pub struct Link<N>(AtomicPtr<N>);

impl<N> Link<N> {
    /// The link of a task that is in no queue. No task has this address.
    pub const APART: *mut N = ptr::without_provenance_mut(1);

    /// Creates the link of a task that is in no queue.
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(Self::APART))
    }

    /// Returns true if the task is in no queue.
    #[inline]
    pub fn is_apart(&self) -> bool {
        ptr::eq(self.get(), Self::APART)
    }

    /// Returns the next node: [`APART`](Self::APART) outside a queue, null at a queue's end.
    #[inline]
    pub fn get(&self) -> *mut N {
        steps::count(1);
        self.0.load(Relaxed)
    }

    /// Sets the next node. [`Task::link`](crate::task::Task::link) says when that is allowed.
    #[inline]
    pub fn set(&self, next: *mut N) {
        steps::count(1);
        self.0.store(next, Relaxed);
    }
}
