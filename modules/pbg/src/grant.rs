//! The grant of a CPU: the number of yields after which its running task goes on without the engine.

use alloc::sync::Arc;
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicI64, AtomicPtr, Ordering::Relaxed};

use sched_core::event::{EnqueueReason, Running};

use super::task::PbgTask;

/// The budget of a CPU without a plan.
pub const NO_PLAN: i64 = -1;

/// The running task of a CPU, and how often it may yield and go on at once.
///
/// OWN: only its CPU writes it. If it is `SHARED`, other CPUs may read it, and every access is a
/// relaxed atomic one. The compiler does not fold an atomic load into a comparison. So a yield takes
/// one more instruction on several CPUs (x86_64). With one CPU the accesses are plain.
pub struct Grant<T, const SHARED: bool = false> {
    /// The address of the task that was picked last, as [`Running`] has it.
    running: UnsafeCell<*mut ()>,
    /// KEEP: how often the running task may yield and go on at once. It is positive only if the
    /// task follows the plan, and since its dispatch no task has become ready and no tick has asked
    /// for the CPU. Then no other task comes first. It is negative exactly if no plan is followed.
    /// Then the base policy handles the yield. So one load and one comparison choose among the three
    /// ways of a yield.
    budget: UnsafeCell<i64>,
    /// The task that the next pick returns, as the put before it has found; or null.
    kept: UnsafeCell<*mut PbgTask<T>>,
}

// SAFETY: it owns the handle in `kept`. The rest is a number, and an address to be compared.
unsafe impl<T: Send + Sync, const SHARED: bool> Send for Grant<T, SHARED> {}
// SAFETY: every access is atomic.
unsafe impl<T: Send + Sync> Sync for Grant<T, true> {}

/// Reads a pointer.
#[inline(always)]
fn load<P, const SHARED: bool>(cell: &UnsafeCell<*mut P>) -> *mut P {
    // SAFETY: the cell is in bounds and aligned. If it is not shared, only one CPU accesses it.
    unsafe {
        match SHARED {
            true => AtomicPtr::from_ptr(cell.get()).load(Relaxed),
            false => *cell.get(),
        }
    }
}

/// Writes a pointer.
#[inline(always)]
fn store<P, const SHARED: bool>(cell: &UnsafeCell<*mut P>, to: *mut P) {
    // SAFETY: as in `load`.
    unsafe {
        match SHARED {
            true => AtomicPtr::from_ptr(cell.get()).store(to, Relaxed),
            false => *cell.get() = to,
        }
    }
}

impl<T, const SHARED: bool> Grant<T, SHARED> {
    pub const fn new() -> Self {
        Self {
            running: UnsafeCell::new(ptr::null_mut()),
            budget: UnsafeCell::new(NO_PLAN),
            kept: UnsafeCell::new(ptr::null_mut()),
        }
    }

    /// Returns the running task.
    #[inline(always)]
    pub fn running(&self) -> Running {
        Running::at(load::<_, SHARED>(&self.running))
    }

    /// Returns true if this task runs.
    #[inline(always)]
    pub fn is_running(&self, task: &Arc<PbgTask<T>>) -> bool {
        self.running().is(task)
    }

    /// Returns why this task is put back.
    #[inline(always)]
    pub fn enqueue_reason(&self, task: &Arc<PbgTask<T>>, preempt: bool) -> EnqueueReason {
        self.running().enqueue_reason(task, preempt)
    }

    /// Forgets the running task.
    pub fn forget(&self) {
        store::<_, SHARED>(&self.running, ptr::null_mut());
    }

    /// Notes the task that runs from now on, if there is one.
    #[inline(always)]
    pub fn picked(&self, task: Option<&Arc<PbgTask<T>>>) {
        let mut running = Running::NONE;
        running.picked(task);
        store::<_, SHARED>(&self.running, running.address().cast_mut());
    }

    /// Returns how many yields are left; see KEEP.
    #[inline(always)]
    pub fn budget(&self) -> i64 {
        // SAFETY: as in `load`.
        unsafe {
            match SHARED {
                true => AtomicI64::from_ptr(self.budget.get()).load(Relaxed),
                false => *self.budget.get(),
            }
        }
    }

    /// Sets how many yields are left.
    #[inline(always)]
    pub fn set_budget(&self, budget: i64) {
        // SAFETY: as in `load`.
        unsafe {
            match SHARED {
                true => AtomicI64::from_ptr(self.budget.get()).store(budget, Relaxed),
                false => *self.budget.get() = budget,
            }
        }
    }

    /// Keeps this task for the next pick.
    #[inline(always)]
    pub fn keep(&self, task: Arc<PbgTask<T>>) {
        store::<_, SHARED>(&self.kept, Arc::into_raw(task).cast_mut());
    }

    /// Takes the task that is kept for the next pick, if there is one.
    #[inline(always)]
    pub fn take_kept(&self) -> Option<Arc<PbgTask<T>>> {
        let kept = load::<_, SHARED>(&self.kept);
        if kept.is_null() {
            return None;
        }
        store::<_, SHARED>(&self.kept, ptr::null_mut());
        // SAFETY: it is from `keep`, which gave a handle up for it.
        Some(unsafe { Arc::from_raw(kept.cast_const()) })
    }

    /// Returns true if the next pick gives this task.
    pub fn is_kept(&self, task: &Arc<PbgTask<T>>) -> bool {
        ptr::eq(load::<_, SHARED>(&self.kept), Arc::as_ptr(task))
    }

    /// Returns true if the next pick gives the task at this address.
    #[cfg(test)]
    pub fn is_kept_at(&self, address: *const PbgTask<T>) -> bool {
        ptr::eq(load::<_, SHARED>(&self.kept), address)
    }

    /// Returns true if the next pick gives a task that is known.
    #[cfg(test)]
    pub fn has_kept(&self) -> bool {
        !load::<_, SHARED>(&self.kept).is_null()
    }
}

impl<T, const SHARED: bool> Drop for Grant<T, SHARED> {
    fn drop(&mut self) {
        drop(self.take_kept());
    }
}
