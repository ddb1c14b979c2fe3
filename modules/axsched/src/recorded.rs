//! The alias table for the policies in the layer of [`axsched_ext::recorded`].

use core::marker::PhantomData;

pub use axsched_ext::BaseScheduler;
use axsched_ext::coop::CoopState;
use axsched_ext::recorded::{Recorded, RecordedTask, Subject, WithSlot};

pub use crate::names::NAME;
use crate::names::{self, BaseScheduler as AnyScheduler};

/// A scheduler with the trait of `axsched-ext`, around one with that trait or the registry's.
pub struct Ours<S>(S);

impl<S: AnyScheduler> BaseScheduler for Ours<S> {
    type SchedItem = S::SchedItem;

    fn init(&mut self) {
        self.0.init();
    }

    #[inline]
    fn add_task(&mut self, task: Self::SchedItem) {
        self.0.add_task(task);
    }

    fn remove_task(&mut self, task: &Self::SchedItem) -> Option<Self::SchedItem> {
        self.0.remove_task(task)
    }

    #[inline]
    fn pick_next_task(&mut self) -> Option<Self::SchedItem> {
        self.0.pick_next_task()
    }

    #[inline]
    fn put_prev_task(&mut self, prev: Self::SchedItem, preempt: bool) {
        self.0.put_prev_task(prev, preempt);
    }

    #[inline]
    fn task_tick(&mut self, current: &Self::SchedItem) -> bool {
        self.0.task_tick(current)
    }

    fn set_priority(&mut self, task: &Self::SchedItem, prio: isize) -> bool {
        self.0.set_priority(task, prio)
    }
}

/// Returns the state that `sched_coop` keeps of a task, or `None` under every other policy.
pub fn coop_of<S: Subject>(task: &RecordedTask<S>) -> Option<&CoopState> {
    task.coop()
}

/// Defines the recorded task and scheduler for one of the three pairs of names that `axtask` uses.
macro_rules! subject {
    ($subject:ident $(<const $slice:ident>)?, $task:ident, $scheduler:ident) => {
        #[doc = concat!("The policy as `", stringify!($scheduler), "`.")]
        pub struct $subject<T $(, const $slice: usize)?>(PhantomData<T>);

        impl<T: 'static $(, const $slice: usize)?> Subject for $subject<T $(, $slice)?> {
            const NAME: &'static str = NAME;
            type Inner = T;
            type Task = names::$task<WithSlot<T> $(, $slice)?>;
            type Scheduler = Ours<names::$scheduler<WithSlot<T> $(, $slice)?>>;

            fn task(inner: WithSlot<T>) -> Self::Task {
                <Self::Task>::new(inner)
            }

            fn coop(task: &Self::Task) -> Option<&CoopState> {
                names::coop_of(task)
            }

            fn scheduler() -> Self::Scheduler {
                Ours(<names::$scheduler<WithSlot<T> $(, $slice)?>>::new())
            }
        }

        /// See the alias table of the policy.
        pub type $task<T $(, const $slice: usize)?> = RecordedTask<$subject<T $(, $slice)?>>;
        /// See the task of that name.
        pub type $scheduler<T $(, const $slice: usize)?> = Recorded<$subject<T $(, $slice)?>>;
    };
}

subject!(Fifo, FifoTask, FifoScheduler);
subject!(RoundRobin<const S>, RRTask, RRScheduler);
subject!(Fair, CFSTask, CFScheduler);
