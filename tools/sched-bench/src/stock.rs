//! The registry's schedulers under our trait, which has the same methods as theirs.

use axsched_ext::BaseScheduler;

/// A scheduler of the registry's `axsched`.
pub struct Stock<S>(pub S);

impl<S: axsched_upstream::BaseScheduler> BaseScheduler for Stock<S> {
    type SchedItem = S::SchedItem;

    #[inline(always)]
    fn init(&mut self) {
        self.0.init();
    }
    #[inline(always)]
    fn add_task(&mut self, task: S::SchedItem) {
        self.0.add_task(task);
    }
    #[inline(always)]
    fn remove_task(&mut self, task: &S::SchedItem) -> Option<S::SchedItem> {
        self.0.remove_task(task)
    }
    #[inline(always)]
    fn pick_next_task(&mut self) -> Option<S::SchedItem> {
        self.0.pick_next_task()
    }
    #[inline(always)]
    fn put_prev_task(&mut self, prev: S::SchedItem, preempt: bool) {
        self.0.put_prev_task(prev, preempt);
    }
    #[inline(always)]
    fn task_tick(&mut self, current: &S::SchedItem) -> bool {
        self.0.task_tick(current)
    }
    #[inline(always)]
    fn set_priority(&mut self, task: &S::SchedItem, prio: isize) -> bool {
        self.0.set_priority(task, prio)
    }
}
