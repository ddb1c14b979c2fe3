//! The slot of a task for its record, and the task that `axtask` sees.

use alloc::sync::Arc;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::record::{OUTSIDE, Record, RecordRef};
use sched_core::base::BaseScheduler;
use sched_policies::coop::CoopState;

/// A policy that can be recorded.
pub trait Subject {
    /// The policy's short name, as in the result lines: 1 to 16 bytes.
    const NAME: &'static str;
    /// The task of `axtask`, which the policy's task wraps.
    type Inner;
    /// The policy's task.
    type Task: Deref<Target = WithSlot<Self::Inner>>;
    /// The scheduler that makes the policy's decisions.
    type Scheduler: BaseScheduler<SchedItem = Arc<Self::Task>>;

    /// Wraps a new task for the policy.
    fn task(inner: WithSlot<Self::Inner>) -> Self::Task;
    /// Creates the policy without tasks.
    fn scheduler() -> Self::Scheduler;
    /// Returns the policy's state of a task that serves coroutines; `None` by default.
    fn coop(task: &Self::Task) -> Option<&CoopState> {
        let _ = task;
        None
    }
}

/// The reference of a task to its record. It is written when the task is added, or by a call that
/// the task itself makes, so accesses are relaxed (LOCK in [`task`](sched_core::task)).
pub struct Slot {
    /// The number of the measurement to which the record belongs. It is 0 for a task that was never
    /// added, such as `main`, an idle task or a migration helper.
    epoch: AtomicU32,
    record: RecordRef,
}

impl Slot {
    pub(super) const fn new() -> Self {
        Self {
            epoch: AtomicU32::new(0),
            record: RecordRef::nowhere(),
        }
    }

    /// Gives the task a record for this epoch.
    pub(super) fn set(&self, epoch: u32, record: &'static Record) {
        self.record.set(record);
        self.epoch.store(epoch, Relaxed);
    }

    /// Returns the task's record in this epoch, or [`OUTSIDE`] if it has none.
    #[inline(always)]
    pub(super) fn record(&self, epoch: u32) -> &'static Record {
        if self.epoch.load(Relaxed) == epoch {
            self.record.get()
        } else {
            &OUTSIDE
        }
    }

    /// Returns true if the task was never added.
    pub(super) fn is_new(&self) -> bool {
        self.epoch.load(Relaxed) == 0
    }
}

/// The task of `axtask` together with its slot. The policy's task wraps this.
pub struct WithSlot<T> {
    slot: Slot,
    inner: T,
}

impl<T> WithSlot<T> {
    const fn new(inner: T) -> Self {
        Self {
            slot: Slot::new(),
            inner,
        }
    }
}

/// A task under [`Recorded`](super::Recorded). It is the policy's task, and dereferences to the task
/// of `axtask`.
#[repr(transparent)]
pub struct RecordedTask<S: Subject>(S::Task);

impl<S: Subject> RecordedTask<S> {
    /// Wraps a task.
    pub fn new(inner: S::Inner) -> Self {
        Self(S::task(WithSlot::new(inner)))
    }

    /// Returns the wrapped task.
    pub fn inner(&self) -> &S::Inner {
        &self.0.inner
    }

    /// Returns the policy's task.
    pub const fn task(&self) -> &S::Task {
        &self.0
    }

    /// Returns the policy's state of a task that serves coroutines ([`Subject::coop`]).
    pub fn coop(&self) -> Option<&CoopState> {
        S::coop(&self.0)
    }

    /// Returns the slot of the task.
    #[inline(always)]
    pub(super) fn slot(&self) -> &Slot {
        &self.0.slot
    }
}

impl<S: Subject> Deref for RecordedTask<S> {
    type Target = S::Inner;
    #[inline]
    fn deref(&self) -> &S::Inner {
        &self.0.inner
    }
}

/// Converts a handle of `axtask` into one of the policy.
#[inline(always)]
pub(super) fn of_policy<S: Subject>(task: Arc<RecordedTask<S>>) -> Arc<S::Task> {
    let task = Arc::into_raw(task).cast::<S::Task>();
    // SAFETY: the pointer comes from `into_raw`. `RecordedTask` is transparent, and its only field is
    // an `S::Task`.
    unsafe { Arc::from_raw(task) }
}

/// Converts a handle of the policy into one of `axtask`.
#[inline(always)]
pub(super) fn recorded<S: Subject>(task: Arc<S::Task>) -> Arc<RecordedTask<S>> {
    let task = Arc::into_raw(task).cast::<RecordedTask<S>>();
    // SAFETY: as in `of_policy`.
    unsafe { Arc::from_raw(task) }
}

/// Returns a handle that the policy may look at. It does not count as a reference.
#[inline(always)]
pub(super) fn lent<S: Subject>(task: &Arc<RecordedTask<S>>) -> ManuallyDrop<Arc<S::Task>> {
    let task = Arc::as_ptr(task).cast::<S::Task>();
    // SAFETY: as in `of_policy`. This handle is never dropped. The handle that it is made from does
    // count, and is borrowed while this one is used.
    ManuallyDrop::new(unsafe { Arc::from_raw(task) })
}
