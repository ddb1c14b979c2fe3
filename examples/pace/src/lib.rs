//! PACE: round robin whose time slice shrinks as more tasks are ready.
//!
//! 1. Ready tasks run in the order in which they became ready. A task that yields, wakes or is
//!    preempted goes to the end.
//! 2. A slice lasts [`PERIOD_TICKS`] / n ticks, and at least one. Here n is the number of tasks
//!    that are ready at the tick, the running task included.
//!
//! **Bound.** A ready task is dispatched after at most one slice of each other task. A slice
//! beside another ready task lasts at most `PERIOD_TICKS` / 2 ticks.
//!
//! **Cost.** A switch costs two list operations, whatever the number of tasks.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

use sched_core::event::{Adapter, EnqueueReason, EventLevel, Policy, TaskRef, Tick};
use sched_core::queue::Queue;
use sched_core::task::Task;

/// A task under [`PaceScheduler`].
pub type PaceTask<T> = Task<T, ()>;
/// The scheduler, as ArceOS drives it.
pub type PaceScheduler<T> = Adapter<Pace<T>>;

/// The time in which every ready task runs once, if there are at most as many tasks as ticks.
pub const PERIOD_TICKS: usize = 12;

/// The ready tasks, and the slice of the running one. See the [crate documentation](crate) for the
/// rules.
pub struct Pace<T> {
    ready: Queue<T, ()>,
    /// The number of tasks in `ready`.
    waiting: usize,
    /// The ticks of the current slice so far.
    used_ticks: usize,
}

impl<T> Policy for Pace<T> {
    type Inner = T;
    type State = ();
    const NAME: &'static str = "PACE";
    const EVENTS: EventLevel = EventLevel::None;
    const NEW: Self = Self {
        ready: Queue::new(),
        waiting: 0,
        used_ticks: 0,
    };

    fn spawned(&mut self, task: TaskRef<Self>) {
        self.waiting += 1;
        self.ready.push_back(task);
    }
    fn enqueue(&mut self, task: TaskRef<Self>, _: EnqueueReason) {
        self.spawned(task);
    }
    fn dispatch(&mut self) -> Option<TaskRef<Self>> {
        self.used_ticks = 0;
        let next = self.ready.pop_front();
        self.waiting -= usize::from(next.is_some());
        next
    }
    fn ticked(&mut self, _running: &TaskRef<Self>) -> Tick {
        self.used_ticks += 1;
        let ready = self.waiting + 1;
        Tick::reschedule_if(ready > 1 && self.used_ticks >= (PERIOD_TICKS / ready).max(1))
    }
    fn remove(&mut self, task: &TaskRef<Self>) -> Option<TaskRef<Self>> {
        let removed = self.ready.remove(task);
        self.waiting -= usize::from(removed.is_some());
        removed
    }
}

#[cfg(test)]
mod tests;
