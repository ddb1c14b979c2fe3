//! The fallback queue: the ready tasks outside the plan, round robin.

use alloc::sync::Arc;

use sched_core::event::EnqueueReason;
use sched_core::queue::Queue;

use crate::caller::{Caller, take_first};
use crate::ready_set::MOST_PASSED;
use crate::task::{PbgState, PbgTask};

/// A queue in which a task that was preempted within its slice keeps its place.
///
/// PLACE: each task has the number of its last arrival at the end, and the queue is in that order.
/// With one CPU the running task was the first, and goes back to the front. With several it may
/// have been taken from behind others that may not run there. At the front it would pass them each
/// time, and they would starve.
pub struct Fallback<T> {
    queue: Queue<T, PbgState>,
    /// The number of the next arrival.
    next: u32,
}

impl<T> Fallback<T> {
    /// Creates a queue of tasks in order of arrival.
    pub fn new(mut arrived: Queue<T, PbgState>) -> Self {
        let mut fallback = Self {
            queue: Queue::new(),
            next: 0,
        };
        while let Some(task) = arrived.pop_front() {
            fallback.push_back(task);
        }
        fallback
    }

    /// Requeues a ready task: at the end with a new slice or, if it was preempted within its slice,
    /// at its place, behind [`MOST_PASSED`] others at most.
    pub fn requeue(&mut self, task: Arc<PbgTask<T>>, why: EnqueueReason) {
        let state = task.policy_state();
        if why == EnqueueReason::Preempted && !state.slice.is_over() {
            let place = state.place();
            let is_behind =
                |other: &PbgTask<T>| other.policy_state().place().wrapping_sub(place) as i32 > 0;
            return self.queue.push_before(task, MOST_PASSED, is_behind);
        }
        state.slice.renew();
        self.push_back(task);
    }

    /// Puts a task at the end, with the slice that it has.
    pub fn push_back(&mut self, task: Arc<PbgTask<T>>) {
        task.policy_state().set_place(self.next);
        self.next = self.next.wrapping_add(1);
        self.queue.push_back(task);
    }

    /// Takes the first task that this CPU may run, if possible one that is not reserved for another
    /// CPU.
    #[inline(always)]
    pub fn take_first(&mut self, by: impl Caller) -> Option<Arc<PbgTask<T>>> {
        take_first(&mut self.queue, by)
    }

    /// Returns the first task that is `wanted`.
    pub fn find(&self, wanted: impl Fn(&PbgTask<T>) -> bool) -> Option<&PbgTask<T>> {
        self.queue.find(wanted)
    }

    /// Takes `task` out if it is here.
    pub fn remove(&mut self, task: &Arc<PbgTask<T>>) -> Option<Arc<PbgTask<T>>> {
        self.queue.remove(task)
    }

    /// Returns all tasks, in order.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &PbgTask<T>> {
        self.queue.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Alone;

    /// PLACE holds while tasks are taken out and requeued for every reason.
    #[test]
    fn task_preempted_within_its_slice_passes_no_other() {
        let tasks = ["a", "b", "c"].map(|name| Arc::new(PbgTask::new(name)));
        let mut fallback = Fallback::new(Queue::new());
        for task in &tasks {
            fallback.requeue(task.clone(), EnqueueReason::Woken);
        }
        for (taken, why, order) in [
            (1, EnqueueReason::Preempted, ["a", "b", "c"]), // `a` may not run there
            (0, EnqueueReason::Preempted, ["a", "b", "c"]),
            (2, EnqueueReason::Preempted, ["a", "b", "c"]),
            (1, EnqueueReason::Yielded, ["a", "c", "b"]),
            (2, EnqueueReason::Preempted, ["a", "c", "b"]),
            (0, EnqueueReason::Woken, ["c", "b", "a"]),
        ] {
            let task = fallback.remove(&tasks[taken]).unwrap();
            fallback.requeue(task, why);
            let found: Vec<_> = fallback.iter().map(|task| *task.inner()).collect();
            assert_eq!(found, order, "{taken} {why:?}");
        }
        let first = fallback.take_first(Alone).unwrap();
        first.policy_state().slice.expire();
        fallback.requeue(first, EnqueueReason::Preempted);
        assert_eq!(
            *fallback.find(|_| true).unwrap().inner(),
            "b",
            "its slice is over"
        );
    }
}
