//! RR: round robin with a time slice.
//!
//! 1. Ready tasks run in the order in which they became ready.
//! 2. A task begins with a slice of `SLICE` timer ticks ([`SLICE_TICKS`] by default: 5, which are
//!    50 ms at 100 Hz).
//! 3. A tick takes one tick from the running task's slice. The tick that takes the last one
//!    preempts the task, which goes to the end of the queue with a new slice.
//! 4. A task that is preempted with ticks left, by a wake that asks for rescheduling, keeps them
//!    and its place at the front.
//! 5. A task that yields or wakes goes to the end with a new slice. A woken task never goes to the
//!    front, even if its waker asks for rescheduling. (Stock axsched 0.3.1 handles such a wake as a
//!    preemption.)
//! 6. Another CPU gets the first task that may run there (the crate `sched-smp`), which has waited
//!    longest. It goes to the end of the queue there, with the rest of its slice.
//!
//! PBG's base policy uses these rules, too ([`RrState`]).
//!
//! The textbook policy (Kleinrock, 1964). It needs `axtask/preempt`: without it ticks have no
//! effect, and this is FIFO.
//!
//! **Bound.** With n ready tasks each runs again within (n − 1) × `SLICE` ticks, plus the time in
//! which preemption is disabled. On several CPUs, with n tasks on all of them, each runs again
//! within 2 × n × `SLICE` ticks. That is one round of its own queue, and one of the queue that it
//! is handed over to, where it stays until it has run.
//!
//! **Cost.** Every operation is one list operation, and none allocates.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use sched_core::event::{Adapter, EnqueueReason, EventLevel, May, Policy, TaskRef, Tick};
use sched_core::queue::Queue;
use sched_core::task::{InitialState, Task};

/// Timer ticks per time slice, as upstream's `axtask` has it: 50 ms at 100 Hz.
pub const SLICE_TICKS: usize = 5;

/// A task under [`RrScheduler`].
pub type RrTask<T, const SLICE: usize = SLICE_TICKS> = Task<T, RrState<SLICE>>;
/// The round-robin scheduler; `SLICE` is in timer ticks, at least 1.
pub type RrScheduler<T, const SLICE: usize = SLICE_TICKS> = Adapter<Rr<T, SLICE>>;

/// The state of round robin in a task.
pub struct RrState<const SLICE: usize> {
    /// Timer ticks left of its slice. Relaxed: see LOCK in [`task`](sched_core::task).
    left: AtomicUsize,
}

impl<const SLICE: usize> RrState<SLICE> {
    /// Takes a tick (rule 3). It stops at 0, since ticks go on coming while preemption is disabled.
    #[inline]
    pub fn tick(&self) -> Tick {
        let left = self.left.load(Relaxed).saturating_sub(1);
        self.left.store(left, Relaxed);
        if left == 0 {
            Tick::Reschedule
        } else {
            Tick::Continue
        }
    }

    /// Returns true if nothing is left of the slice.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.left.load(Relaxed) == 0
    }

    /// Ends the slice, however much is left of it: the next return goes to the end of the queue.
    #[inline]
    pub fn expire(&self) {
        self.left.store(0, Relaxed);
    }

    /// Begins a slice anew, as if it had been to the end of the queue (rule 3).
    #[inline]
    pub fn renew(&self) {
        self.left.store(SLICE, Relaxed);
    }
}

/// Requeues a task that carries a slice, by rules 3, 4 and 5.
#[inline]
pub fn requeue<T, S: AsRef<RrState<SLICE>>, const SLICE: usize>(
    ready: &mut Queue<T, S>,
    task: Arc<Task<T, S>>,
    why: EnqueueReason,
) {
    let slice = task.policy_state().as_ref();
    if why == EnqueueReason::Preempted && !slice.is_over() {
        ready.push_front(task); // rule 4
    } else {
        slice.renew(); // rules 3 and 5
        ready.push_back(task);
    }
}

impl<const SLICE: usize> AsRef<Self> for RrState<SLICE> {
    #[inline]
    fn as_ref(&self) -> &Self {
        self
    }
}

impl<const SLICE: usize> InitialState for RrState<SLICE> {
    const INITIAL: Self = {
        assert!(SLICE > 0, "a time slice has at least one tick");
        Self {
            left: AtomicUsize::new(SLICE),
        }
    };
}

/// The policy for one queue, as the [module documentation](self) describes.
pub struct Rr<T, const SLICE: usize> {
    ready: Queue<T, RrState<SLICE>>,
}

impl<T, const SLICE: usize> Policy for Rr<T, SLICE> {
    type Inner = T;
    type State = RrState<SLICE>;
    const NAME: &'static str = "RR";
    const EVENTS: EventLevel = EventLevel::Reasons;
    const NEW: Self = Self {
        ready: Queue::new(),
    };

    #[inline]
    fn spawned(&mut self, task: Arc<RrTask<T, SLICE>>) {
        self.ready.push_back(task);
    }

    #[inline]
    fn enqueue(&mut self, task: Arc<RrTask<T, SLICE>>, why: EnqueueReason) {
        if why == EnqueueReason::HandedOver && task.policy_state().left.load(Relaxed) > 0 {
            return self.ready.push_back(task); // rule 6
        }
        requeue(&mut self.ready, task, why);
    }

    #[inline]
    fn dispatch(&mut self) -> Option<Arc<RrTask<T, SLICE>>> {
        self.ready.pop_front()
    }

    #[inline]
    fn ticked(&mut self, running: &Arc<RrTask<T, SLICE>>) -> Tick {
        running.policy_state().tick()
    }

    fn migrate_out(
        &mut self,
        may: &May<'_, Self>,
        take_request: &dyn Fn() -> bool,
    ) -> Option<TaskRef<Self>> {
        self.ready.remove_first(|task| may(task) && take_request())
    }

    fn remove(&mut self, task: &Arc<RrTask<T, SLICE>>) -> Option<Arc<RrTask<T, SLICE>>> {
        self.ready.remove(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched_core::BaseScheduler;

    fn with(n: u32) -> RrScheduler<u32, 3> {
        let mut s = RrScheduler::new();
        (0..n).for_each(|i| s.add_task(Arc::new(RrTask::new(i))));
        s
    }

    /// Returns the ticks until the scheduler asks for rescheduling.
    fn ticks_of_a_turn(s: &mut RrScheduler<u32, 3>, task: &Arc<RrTask<u32, 3>>) -> usize {
        1 + (0..100).take_while(|_| !s.task_tick(task)).count()
    }

    #[test]
    fn rule_1_order_of_readiness() {
        let mut s = with(3);
        let order: [u32; 3] = core::array::from_fn(|_| *s.pick_next_task().unwrap().inner());
        assert_eq!(order, [0, 1, 2]);
    }

    #[test]
    fn rule_6_the_first_allowed_task_is_handed_over_and_the_others_stay_in_order() {
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
    fn rule_6_a_task_that_is_handed_over_keeps_the_rest_of_its_slice_and_comes_last() {
        let (mut old, mut new) = (with(2), with(1));
        for rest in [2, 1, 3] {
            let first = old.pick_next_task().unwrap();
            assert!((rest..3).all(|_| !old.task_tick(&first)));
            old.put_prev_task(first, true);
            let given = old.policy_mut().migrate_out(&|_| true, &|| true).unwrap();
            new.policy_mut()
                .enqueue(given.clone(), EnqueueReason::HandedOver);
            let local = new.pick_next_task().unwrap();
            assert!(!Arc::ptr_eq(&local, &given), "it comes last");
            let found = new.pick_next_task().unwrap();
            assert_eq!(ticks_of_a_turn(&mut new, &found), rest);
            new.put_prev_task(local, false);
            old.put_prev_task(given, false);
        }
    }

    #[test]
    fn rules_2_and_3_a_task_is_preempted_after_slice_ticks() {
        let mut s = with(2);
        let first = s.pick_next_task().unwrap();
        assert_eq!(ticks_of_a_turn(&mut s, &first), 3);
        s.put_prev_task(first, true);
        let second = s.pick_next_task().unwrap();
        assert_eq!(*second.inner(), 1);
        s.put_prev_task(second, false);
        let first = s.pick_next_task().unwrap();
        assert_eq!(
            ticks_of_a_turn(&mut s, &first),
            3,
            "the new slice is a whole one"
        );
    }

    #[test]
    fn rule_3_the_request_stands_while_preemption_is_disabled() {
        let mut s = with(1);
        let task = s.pick_next_task().unwrap();
        assert_eq!(ticks_of_a_turn(&mut s, &task), 3);
        assert!((0..1000).all(|_| s.task_tick(&task)));
    }

    #[test]
    fn rule_4_a_preempted_task_keeps_its_place_and_its_ticks() {
        let mut s = with(2);
        let first = s.pick_next_task().unwrap();
        assert!(!s.task_tick(&first));
        s.put_prev_task(first, true);
        let again = s.pick_next_task().unwrap();
        assert_eq!(*again.inner(), 0);
        assert_eq!(ticks_of_a_turn(&mut s, &again), 2);
    }

    #[test]
    fn rule_5_a_yield_or_a_wake_goes_to_the_end_with_a_new_slice() {
        for resched in [false, true] {
            let mut s = with(2);
            let first = s.pick_next_task().unwrap();
            assert!(!s.task_tick(&first));
            let _second = s.pick_next_task().unwrap(); // the first blocks
            s.add_task(Arc::new(RrTask::new(2)));
            s.put_prev_task(first, resched); // and wakes
            assert_eq!(*s.pick_next_task().unwrap().inner(), 2);
            let first = s.pick_next_task().unwrap();
            assert_eq!(*first.inner(), 0);
            assert_eq!(ticks_of_a_turn(&mut s, &first), 3);
        }
    }
}
