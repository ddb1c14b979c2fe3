//! Where a task has its record, and the task that `axtask` sees.

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
    /// What `axtask` has wrapped.
    type Inner;
    /// The policy's task.
    type Task: Deref<Target = WithSlot<Self::Inner>>;
    /// The policy.
    type Scheduler: BaseScheduler<SchedItem = Arc<Self::Task>>;

    /// The policy's wrapper of a new task.
    fn task(inner: WithSlot<Self::Inner>) -> Self::Task;
    /// The policy without tasks.
    fn scheduler() -> Self::Scheduler;
    /// What the policy knows of a task that serves coroutines; nothing by default.
    fn coop(task: &Self::Task) -> Option<&CoopState> {
        let _ = task;
        None
    }
}

/// Which record is a task's. Relaxed: see LOCK in [`task`](sched_core::task). It is written when the
/// task is added, or by a call that the task itself makes.
pub struct Slot {
    /// Of the measurement that the record is of; 0 for a task that was never added: `main`, idle,
    /// or a migration helper.
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

    /// From now on the task has this record, in this epoch.
    pub(super) fn set(&self, epoch: u32, record: &'static Record) {
        self.record.set(record);
        self.epoch.store(epoch, Relaxed);
    }

    /// The task's record in this epoch.
    #[inline(always)]
    pub(super) fn record(&self, epoch: u32) -> &'static Record {
        if self.epoch.load(Relaxed) == epoch {
            self.record.get()
        } else {
            &OUTSIDE
        }
    }

    /// Whether the task was never added.
    pub(super) fn is_new(&self) -> bool {
        self.epoch.load(Relaxed) == 0
    }
}

/// What a policy's task wraps: the task of `axtask`, and where its record is.
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

/// A task under [`Recorded`](super::Recorded): the policy's, that shows what `axtask` has
/// wrapped.
#[repr(transparent)]
pub struct RecordedTask<S: Subject>(S::Task);

impl<S: Subject> RecordedTask<S> {
    /// Wraps a task.
    pub fn new(inner: S::Inner) -> Self {
        Self(S::task(WithSlot::new(inner)))
    }

    /// The wrapped task.
    pub fn inner(&self) -> &S::Inner {
        &self.0.inner
    }

    /// The policy's task.
    pub const fn task(&self) -> &S::Task {
        &self.0
    }

    /// See [`Subject::coop`].
    pub fn coop(&self) -> Option<&CoopState> {
        S::coop(&self.0)
    }

    /// Where its record is.
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

/// The task as its policy has it.
#[inline(always)]
pub(super) fn of_policy<S: Subject>(task: Arc<RecordedTask<S>>) -> Arc<S::Task> {
    let task = Arc::into_raw(task).cast::<S::Task>();
    // SAFETY: it came from `into_raw`, and the one type is the other's only field, transparently.
    unsafe { Arc::from_raw(task) }
}

/// The task as `axtask` has it.
#[inline(always)]
pub(super) fn recorded<S: Subject>(task: Arc<S::Task>) -> Arc<RecordedTask<S>> {
    let task = Arc::into_raw(task).cast::<RecordedTask<S>>();
    // SAFETY: as in `of_policy`.
    unsafe { Arc::from_raw(task) }
}

/// A handle for the policy to look at: it counts for none.
#[inline(always)]
pub(super) fn lent<S: Subject>(task: &Arc<RecordedTask<S>>) -> ManuallyDrop<Arc<S::Task>> {
    let task = Arc::as_ptr(task).cast::<S::Task>();
    // SAFETY: as in `of_policy`; it is never dropped, and the handle that it is made of, which
    // does count, is borrowed for as long as it is used.
    ManuallyDrop::new(unsafe { Arc::from_raw(task) })
}
