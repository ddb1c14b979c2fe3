//! The same policies, with an observer that is called for each task that becomes ready.
//!
//! `axtask` tells its hooks who enters and leaves a CPU, and nobody when a task is woken, nor
//! whether one yields or is preempted. Whatever makes a task ready goes through the scheduler,
//! though: here a layer around it, of any policy, tells an observer first and hands on the call
//! as it is. Where CPUs share the work (`balanced`), that layer is within this one: a task that one CPU hands
//! over to another was ready and still is, so nobody is told.

use core::{any::Any, ops::Deref};

use spin::Once;

use crate::inner;
pub use crate::inner::{BaseScheduler, CFSTask, FifoTask, NAME, RRTask, coop_of};

/// How a task becomes ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// It was spawned, or has migrated.
    Added,
    /// It was woken, or yields if it is the current task.
    PutBack,
    /// It was woken to run at once, or is preempted if it is the current task.
    PutBackPreempted,
}

/// Who is told: the task, as what `axtask` has the scheduler keep, and how it becomes ready.
/// Called with interrupts off and the run queue locked.
pub type Observer = fn(task: &dyn Any, how: Ready);

static OBSERVER: Once<Observer> = Once::new();

/// From now on tells `observer`. The first call counts, for all CPUs.
pub fn observe(observer: Observer) {
    OBSERVER.call_once(|| observer);
}

/// A scheduler that is observed.
#[derive(Default)]
pub struct Observed<S>(S);

impl<S: Default> Observed<S> {
    /// A scheduler without tasks.
    pub fn new() -> Self {
        Self::default()
    }

    /// The policy's name.
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

/// See the alias table of the policy.
pub type FifoScheduler<T> = Observed<inner::FifoScheduler<T>>;
/// See [`FifoScheduler`].
pub type RRScheduler<T, const S: usize> = Observed<inner::RRScheduler<T, S>>;
/// See [`FifoScheduler`].
pub type CFScheduler<T> = Observed<inner::CFScheduler<T>>;
