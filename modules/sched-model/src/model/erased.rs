//! Schedulers and tasks behind one type. So the machine is compiled once, and not again for each policy.

use std::{
    cell::RefCell,
    ops::Deref,
    sync::{Arc, Weak},
};

use super::{ModelScheduler, ModelTask};

/// A task as a policy has wrapped it.
pub(super) type Wrapped<'a> = dyn Deref<Target = ModelTask> + 'a;
/// One owner of a task.
pub(super) type Handle<'a> = Arc<Wrapped<'a>>;

/// The calls of a scheduler that the machine makes.
pub(super) trait Scheduler<'a> {
    fn add_task(&mut self, task: Handle<'a>);
    fn put_prev_task(&mut self, task: Handle<'a>, preempt: bool);
    fn pick_next_task(&mut self) -> Option<Handle<'a>>;
    fn task_tick(&mut self, current: &Handle<'a>) -> bool;
    fn set_priority(&mut self, task: &Handle<'a>, priority: isize) -> bool;
}

/// The tasks of a machine with their type, by their numbers.
pub(super) struct Tasks<W>(RefCell<Vec<Weak<W>>>);

impl<W: Deref<Target = ModelTask>> Tasks<W> {
    pub(super) const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    /// Adds the next task.
    pub(super) fn add<'a>(&self, task: W) -> Handle<'a>
    where
        W: 'a,
    {
        let task = Arc::new(task);
        self.0.borrow_mut().push(Arc::downgrade(&task));
        task
    }

    fn typed(&self, task: &Handle<'_>) -> Arc<W> {
        let typed = self.0.borrow()[task.id().0].upgrade();
        typed.expect("it is alive, as it has an owner")
    }
}

/// A scheduler, and the tasks of its machine.
pub(super) struct Typed<'t, S: ModelScheduler> {
    pub(super) scheduler: S,
    pub(super) tasks: &'t Tasks<S::Task>,
}

impl<'a, S: ModelScheduler> Scheduler<'a> for Typed<'_, S>
where
    S::Task: 'a,
{
    fn add_task(&mut self, task: Handle<'a>) {
        let task = self.tasks.typed(&task);
        self.scheduler.add_task(task);
    }

    fn put_prev_task(&mut self, task: Handle<'a>, preempt: bool) {
        let task = self.tasks.typed(&task);
        self.scheduler.put_prev_task(task, preempt);
    }

    fn pick_next_task(&mut self) -> Option<Handle<'a>> {
        let task = self.scheduler.pick_next_task()?;
        Some(task)
    }

    fn task_tick(&mut self, current: &Handle<'a>) -> bool {
        self.scheduler.task_tick(&self.tasks.typed(current))
    }

    fn set_priority(&mut self, task: &Handle<'a>, priority: isize) -> bool {
        self.scheduler
            .set_priority(&self.tasks.typed(task), priority)
    }
}
