//! PACE: round robin whose slice is the shorter the more tasks are ready.
//!
//! 1. Ready tasks run in the order in which they became ready. A task that yields, wakes or is
//!    preempted goes to the end.
//! 2. A turn has [`PERIOD_TICKS`] / n ticks, but at least one, where n is the number of tasks
//!    that are ready at the tick, the running one included.
//!
//! **Bound.** With n ready tasks each runs again after one turn of each other, of at most
//! `PERIOD_TICKS` / 2 ticks.
//!
//! It is a crate of its own that uses what any other can: `sched-core`, and `sched-model` to test it.

use std::sync::Arc;

use sched_core::BaseScheduler;
use sched_core::event::{Adapter, Policy, Return, TaskRef, Tick, Tracks};
use sched_core::queue::Queue;
use sched_core::task::Task;
use sched_model::conformance::{Promises, check};
use sched_model::model::MaxWait;

/// A task under [`PaceScheduler`].
pub type PaceTask<T> = Task<T, ()>;
/// The scheduler.
pub type PaceScheduler<T> = Adapter<Pace<T>>;

/// In which all are to have had a turn, as long as there is a tick for each.
pub const PERIOD_TICKS: usize = 12;

/// See the [module documentation](self).
pub struct Pace<T> {
    ready: Queue<T, ()>,
    /// How many stand in `ready`.
    waiting: usize,
    /// Ticks of the present turn.
    used: usize,
}

impl<T> Policy for Pace<T> {
    type Inner = T;
    type State = ();
    const NAME: &'static str = "PACE";
    const TRACKS: Tracks = Tracks::Nothing;
    const NEW: Self = Self {
        ready: Queue::new(),
        waiting: 0,
        used: 0,
    };

    fn spawned(&mut self, task: TaskRef<Self>) {
        self.waiting += 1;
        self.ready.push_back(task);
    }
    fn returned(&mut self, task: TaskRef<Self>, _: Return) {
        self.spawned(task);
    }
    fn dispatch(&mut self) -> Option<TaskRef<Self>> {
        self.used = 0;
        let next = self.ready.pop_front();
        self.waiting -= usize::from(next.is_some());
        next
    }
    fn ticked(&mut self, _running: &TaskRef<Self>) -> Tick {
        self.used += 1;
        let ready = self.waiting + 1;
        Tick::reschedule_if(ready > 1 && self.used >= (PERIOD_TICKS / ready).max(1))
    }
    fn remove(&mut self, task: &TaskRef<Self>) -> Option<TaskRef<Self>> {
        let removed = self.ready.remove(task);
        self.waiting -= usize::from(removed.is_some());
        removed
    }
}

#[test]
fn conforms() {
    let promises = Promises {
        max_wait: |load| MaxWait {
            dispatches: Some(load.tasks),
            ..MaxWait::default()
        },
        ..Promises::default()
    };
    let coverage = check(&promises, |_| PaceScheduler::new(), PaceTask::new).unwrap();
    assert_eq!(coverage.rules, 27);
    assert!(coverage.preemptions > 200, "{coverage:?}");
}

fn with(n: u32) -> PaceScheduler<u32> {
    let mut s = PaceScheduler::new();
    (0..n).for_each(|i| s.add_task(Arc::new(PaceTask::new(i))));
    s
}

#[test]
fn rule_1_order_of_readiness() {
    let mut s = with(3);
    for (expected, preempt) in [(0, true), (1, false), (2, true), (0, false)] {
        let task = s.pick_next_task().unwrap();
        assert_eq!(*task.inner(), expected);
        s.put_prev_task(task, preempt);
    }
}

#[test]
fn rule_2_a_turn_is_shorter_the_more_are_ready() {
    for (ready, ticks) in [(2, 6), (3, 4), (5, 2), (12, 1), (20, 1)] {
        let mut s = with(ready);
        for _ in 0..2 {
            let task = s.pick_next_task().unwrap();
            assert!((1..ticks).all(|_| !s.task_tick(&task)), "{ready}");
            assert!(s.task_tick(&task), "{ready}");
            s.put_prev_task(task, true);
        }
    }
    let mut s = with(2);
    let blocked = s.pick_next_task().unwrap();
    let other = s.pick_next_task().unwrap();
    assert!((0..100).all(|_| !s.task_tick(&other)));
    assert!(s.remove_task(&blocked).is_none());
}
