//! A layer around any policy that calls an observer for each task that becomes ready.
//!
//! `axtask` has hooks for a task that enters or leaves a CPU. It has none for wakes, and none that
//! tell a yield from a preemption. But all tasks that become ready go through the scheduler. So a
//! layer around the scheduler calls the observer first and then passes the call on unchanged. If
//! CPUs share the work (`balanced`), that layer is within this one. A task that one CPU hands over
//! to another is ready before and after, so the observer is not called.

use core::{any::Any, ops::Deref};

use spin::Once;

use crate::inner;
pub use crate::inner::{BaseScheduler, CFSTask, FifoTask, NAME, RRTask, coop_of};

/// The call by which a task becomes ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// The task was spawned, or has migrated.
    Added,
    /// The task was woken. If it is the current task, it yields.
    PutBack,
    /// The task was woken to run at once. If it is the current task, it is preempted.
    PutBackPreempted,
}

/// A function that is called with each task that becomes ready, which is `axtask`'s inner task. It
/// runs with interrupts off and the run queue locked.
pub type Observer = fn(task: &dyn Any, how: Ready);

static OBSERVER: Once<Observer> = Once::new();

/// Sets the observer of all CPUs. Only the first call has an effect.
pub fn observe(observer: Observer) {
    OBSERVER.call_once(|| observer);
}

/// A scheduler with an observer.
#[derive(Default)]
pub struct Observed<S>(S);

impl<S: Default> Observed<S> {
    /// Creates a scheduler without tasks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the policy's name.
    pub fn scheduler_name() -> &'static str {
        NAME
    }
}

#[inline]
fn tell<P: Deref<Target: Deref<Target: Any + Sized>>>(task: &P, how: Ready) {
    if let Some(observer) = OBSERVER.get() {
        let inner: &<P::Target as Deref>::Target = task;
        observer(inner, how);
    }
}

impl<S> BaseScheduler for Observed<S>
where
    S: BaseScheduler,
    S::SchedItem: Deref<Target: Deref<Target: Any + Sized>>,
{
    type SchedItem = S::SchedItem;

    fn init(&mut self) {
        self.0.init();
    }

    fn add_task(&mut self, task: Self::SchedItem) {
        tell(&task, Ready::Added);
        self.0.add_task(task);
    }

    fn remove_task(&mut self, task: &Self::SchedItem) -> Option<Self::SchedItem> {
        self.0.remove_task(task)
    }

    fn pick_next_task(&mut self) -> Option<Self::SchedItem> {
        self.0.pick_next_task()
    }

    fn put_prev_task(&mut self, prev: Self::SchedItem, preempt: bool) {
        let how = if preempt {
            Ready::PutBackPreempted
        } else {
            Ready::PutBack
        };
        tell(&prev, how);
        self.0.put_prev_task(prev, preempt);
    }

    fn task_tick(&mut self, current: &Self::SchedItem) -> bool {
        self.0.task_tick(current)
    }

    fn set_priority(&mut self, task: &Self::SchedItem, prio: isize) -> bool {
        self.0.set_priority(task, prio)
    }
}

/// The observed scheduler that `axtask` uses without a `sched-*` feature, or with `sched-fifo`.
pub type FifoScheduler<T> = Observed<inner::FifoScheduler<T>>;
/// The observed scheduler that `axtask` uses with `sched-rr`.
pub type RRScheduler<T, const S: usize> = Observed<inner::RRScheduler<T, S>>;
/// The observed scheduler that `axtask` uses with `sched-cfs`.
pub type CFScheduler<T> = Observed<inner::CFScheduler<T>>;
