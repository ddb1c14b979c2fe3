//! FIFO: first in, first out, cooperative.
//!
//! 1. Ready tasks run in the order in which they became ready.
//! 2. A task runs until it yields, blocks or exits; a tick never preempts it.
//! 3. A task that yields goes to the end of the queue.
//! 4. Another CPU gets the first task that may run there (the crate `sched-smp`), which has waited
//!    longest. It goes to the end of the queue there.
//!
//! The oldest policy is the baseline. Every operation is one list operation, and none allocates.
//!
//! **Bound.** There is none in time: a task that neither yields nor blocks keeps the CPU for ever.
//! Among tasks that yield, each runs once per round. On several CPUs that is a round of its queue,
//! and one of the queue that it is handed over to.

use alloc::sync::Arc;

use sched_core::event::{Adapter, EnqueueReason, EventLevel, May, Policy, TaskRef};
use sched_core::queue::Queue;
use sched_core::task::Task;

/// A task under [`FifoScheduler`].
pub type FifoTask<T> = Task<T, ()>;
/// The FIFO scheduler.
pub type FifoScheduler<T> = Adapter<Fifo<T>>;

/// The policy for one queue, as the [module documentation](self) describes.
pub struct Fifo<T> {
    ready: Queue<T, ()>,
}

impl<T> Policy for Fifo<T> {
    type Inner = T;
    type State = ();
    const NAME: &'static str = "FIFO";
    const EVENTS: EventLevel = EventLevel::None;
    const NEW: Self = Self {
        ready: Queue::new(),
    };

    #[inline]
    fn spawned(&mut self, task: Arc<FifoTask<T>>) {
        self.ready.push_back(task);
    }

    #[inline]
    fn enqueue(&mut self, task: Arc<FifoTask<T>>, _: EnqueueReason) {
        self.ready.push_back(task);
    }

    #[inline]
    fn dispatch(&mut self) -> Option<Arc<FifoTask<T>>> {
        self.ready.pop_front()
    }

    fn migrate_out(
        &mut self,
        may: &May<'_, Self>,
        take_request: &dyn Fn() -> bool,
    ) -> Option<TaskRef<Self>> {
        self.ready.remove_first(|task| may(task) && take_request())
    }

    fn remove(&mut self, task: &Arc<FifoTask<T>>) -> Option<Arc<FifoTask<T>>> {
        self.ready.remove(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched_core::BaseScheduler;

    fn with(n: u32) -> FifoScheduler<u32> {
        let mut s = FifoScheduler::new();
        (0..n).for_each(|i| s.add_task(Arc::new(FifoTask::new(i))));
        s
    }

    #[test]
    fn rule_1_order_of_readiness() {
        let mut s = with(3);
        for expected in 0..3 {
            assert_eq!(*s.pick_next_task().unwrap().inner(), expected);
        }
        assert!(s.pick_next_task().is_none());
    }

    #[test]
    fn rule_4_the_first_allowed_task_is_handed_over_and_the_others_stay_in_order() {
        let mut s = with(4);
        let given = s
            .policy_mut()
            .migrate_out(&|task| *task.inner() > 1, &|| true)
            .unwrap();
        assert_eq!(*given.inner(), 2);
        assert!(s.policy_mut().migrate_out(&|_| false, &|| true).is_none());
        let order: [u32; 3] = core::array::from_fn(|_| *s.pick_next_task().unwrap().inner());
        assert_eq!(order, [0, 1, 3]);
    }

    #[test]
    fn rule_2_a_tick_never_preempts() {
        let mut s = with(2);
        let running = s.pick_next_task().unwrap();
        assert!((0..1000).all(|_| !s.task_tick(&running)));
    }

    #[test]
    fn rule_3_a_yield_goes_to_the_end() {
        let mut s = with(3);
        let first = s.pick_next_task().unwrap();
        s.put_prev_task(first, false);
        let order: [u32; 3] = core::array::from_fn(|_| *s.pick_next_task().unwrap().inner());
        assert_eq!(order, [1, 2, 0]);
    }

    #[test]
    fn remove_answers_for_absent_and_foreign_tasks() {
        let (mut a, mut b) = (with(3), FifoScheduler::new());
        let foreign = Arc::new(FifoTask::new(7));
        b.add_task(foreign.clone());
        assert!(a.remove_task(&foreign).is_none());
        assert!(a.remove_task(&Arc::new(FifoTask::new(9))).is_none());
        let first = a.pick_next_task().unwrap();
        assert!(
            a.remove_task(&first).is_none(),
            "a running task is not in the queue"
        );
        a.put_prev_task(first.clone(), false);
        assert!(Arc::ptr_eq(&a.remove_task(&first).unwrap(), &first));
        assert_eq!(*b.pick_next_task().unwrap().inner(), 7);
    }
}
