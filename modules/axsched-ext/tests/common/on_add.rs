//! A scheduler with a hook after each added task.

use axsched_ext::BaseScheduler;

/// A scheduler, and a step that is taken after each [`add_task`](BaseScheduler::add_task).
pub struct OnAdd<S, F> {
    pub scheduler: S,
    pub on_add: F,
}

impl<S: BaseScheduler, F: FnMut(&mut S, &S::SchedItem)> BaseScheduler for OnAdd<S, F>
where
    S::SchedItem: Clone,
{
    type SchedItem = S::SchedItem;

    fn init(&mut self) {
        self.scheduler.init();
    }
    fn add_task(&mut self, task: S::SchedItem) {
        self.scheduler.add_task(task.clone());
        (self.on_add)(&mut self.scheduler, &task);
    }
    fn remove_task(&mut self, task: &S::SchedItem) -> Option<S::SchedItem> {
        self.scheduler.remove_task(task)
    }
    fn pick_next_task(&mut self) -> Option<S::SchedItem> {
        self.scheduler.pick_next_task()
    }
    fn put_prev_task(&mut self, task: S::SchedItem, preempt: bool) {
        self.scheduler.put_prev_task(task, preempt);
    }
    fn task_tick(&mut self, current: &S::SchedItem) -> bool {
        self.scheduler.task_tick(current)
    }
    fn set_priority(&mut self, task: &S::SchedItem, priority: isize) -> bool {
        self.scheduler.set_priority(task, priority)
    }
}
