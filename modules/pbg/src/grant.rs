//! What one CPU may do without the lock: go on after a yield.

use alloc::sync::Arc;
use core::ptr;
use core::sync::atomic::{AtomicI64, AtomicPtr, Ordering::Relaxed};

use sched_core::event::{Return, Running};

use super::task::PbgTask;

/// The budget of a CPU that follows no plan.
pub const NO_PLAN: i64 = -1;

/// Which task a CPU runs, and how often that may yield and go on at once.
///
/// OWN: only its CPU writes it. The atomics are for several CPUs, where another may read it, and
/// cost no more than plain words.
pub struct Grant<T> {
    /// The address of the task that was picked last, as [`Running`] has it.
    running: AtomicPtr<()>,
    /// KEEP: how often the running task may yield and go on at once. Above 0 only if the task
    /// follows the plan, and nothing has become ready and no tick has asked for the CPU since it
    /// was dispatched: then nobody can be before it. Below 0 exactly if no plan is followed: then
    /// a yield is the base policy's. So one load and one comparison tell a yield which of its
    /// three ways to go.
    budget: AtomicI64,
    /// The task that the next pick gives, as the put before it has found; or null.
    kept: AtomicPtr<PbgTask<T>>,
}

impl<T> Grant<T> {
    pub const fn new() -> Self {
        Self {
            running: AtomicPtr::new(ptr::null_mut()),
            budget: AtomicI64::new(NO_PLAN),
            kept: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Which task runs.
    #[inline(always)]
    pub fn running(&self) -> Running {
        Running::at(self.running.load(Relaxed))
    }

    /// Returns true if this task runs.
    #[inline(always)]
    pub fn runs(&self, task: &Arc<PbgTask<T>>) -> bool {
        self.running().is(task)
    }

    /// What a put of this task means.
    #[inline(always)]
    pub fn why(&self, task: &Arc<PbgTask<T>>, preempt: bool) -> Return {
        self.running().why(task, preempt)
    }

    /// The running task is no longer known.
    pub fn forget(&self) {
        self.running.store(ptr::null_mut(), Relaxed);
    }

    /// This task runs from now on, or none.
    #[inline(always)]
    pub fn picked(&self, task: Option<&Arc<PbgTask<T>>>) {
        let mut running = Running::NOBODY;
        running.picked(task);
        self.running.store(running.address().cast_mut(), Relaxed);
    }

    /// How many yields are left; see KEEP.
    #[inline(always)]
    pub fn budget(&self) -> i64 {
        self.budget.load(Relaxed)
    }

    #[inline(always)]
    pub fn set_budget(&self, budget: i64) {
        self.budget.store(budget, Relaxed);
    }

    /// The next pick gives this task.
    #[inline(always)]
    pub fn keep(&self, task: Arc<PbgTask<T>>) {
        self.kept.store(Arc::into_raw(task).cast_mut(), Relaxed);
    }

    /// Takes the task that the next pick would give, if that is known.
    #[inline(always)]
    pub fn take_kept(&self) -> Option<Arc<PbgTask<T>>> {
        let kept = self.kept.load(Relaxed);
        if kept.is_null() {
            return None;
        }
        self.kept.store(ptr::null_mut(), Relaxed);
        // SAFETY: it is from `keep`, which gave a handle up for it.
        Some(unsafe { Arc::from_raw(kept.cast_const()) })
    }

    /// Returns true if the next pick gives this task.
    pub fn keeps(&self, task: &Arc<PbgTask<T>>) -> bool {
        ptr::eq(self.kept.load(Relaxed), Arc::as_ptr(task))
    }

    /// Returns true if the next pick gives the task at this address.
    #[cfg(test)]
    pub fn keeps_at(&self, address: *const PbgTask<T>) -> bool {
        ptr::eq(self.kept.load(Relaxed), address)
    }

    /// Returns true if the next pick gives a task that is known.
    #[cfg(test)]
    pub fn is_keeping(&self) -> bool {
        !self.kept.load(Relaxed).is_null()
    }
}

impl<T> Drop for Grant<T> {
    fn drop(&mut self) {
        drop(self.take_kept());
    }
}
