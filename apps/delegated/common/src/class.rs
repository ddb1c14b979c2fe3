//! [`Class`]: a set of tasks that a program and its policy share.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use delegated::{MAX_TASKS, TaskId};

/// A set of tasks.
pub struct Class([AtomicU64; MAX_TASKS / 64]);

impl Class {
    /// Creates an empty set.
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; MAX_TASKS / 64])
    }

    /// Adds a task, before it joins its enclave.
    pub fn add(&self, task: TaskId) {
        self.0[task.index() / 64].fetch_or(1 << (task.index() % 64), Relaxed);
    }

    /// Removes a task, which has left its enclave.
    pub fn remove(&self, task: TaskId) {
        self.0[task.index() / 64].fetch_and(!(1 << (task.index() % 64)), Relaxed);
    }

    /// Returns true if a task is in the set.
    pub fn has(&self, task: TaskId) -> bool {
        self.0[task.index() / 64].load(Relaxed) >> (task.index() % 64) & 1 != 0
    }
}

impl Default for Class {
    fn default() -> Self {
        Self::new()
    }
}
