//! The rules that every [`BaseScheduler`](sched_core::BaseScheduler) must keep, as a suite to run
//! against any of them.
//!
//! The first rules call a scheduler by hand, the way `axtask` would. The others run programs on the
//! [`model`](crate::model) of `axtask`, where all its checks apply. Nothing is lost, duplicated, or
//! picked while it is not ready. Every program ends, and every dead task is released. No task waits
//! longer than the policy [promises](Promises). The programs of rules 14 to 24, 26 and 27 run on
//! both lines of ArceOS.
//!
//! 1. `empty_pick_is_none`: an empty scheduler picks nothing, however often it is asked.
//! 2. `every_add_is_picked_once`: each added task comes out, once.
//! 3. `put_and_pick_conserve`: yields, preemptions, blocks, wakes, ticks, removals and changes of
//!    priority come in any order. A pick returns one of the ready tasks, and `None` only if there
//!    is none.
//! 4. `remove_of_absent_is_none`: removing a task that was never added, was picked, or was removed
//!    returns `None` and changes nothing.
//! 5. `remove_of_present_returns_it`: and no pick returns it afterwards.
//! 6. `add_after_remove_works`: a removed task can be added, and removed, again.
//! 7. `drop_releases_the_queued`: dropping a scheduler drops its tasks.
//! 8. `the_dead_are_let_go`: once another task was picked, or none, the scheduler has no handle of
//!    the one that left.
//! 9. `a_lone_task_may_be_ticked_for_ever`: it remains pickable.
//! 10. `queues_are_independent`: a task comes out of the scheduler that it went into.
//! 11. `a_put_needs_no_pick_before`: `main` and migration helpers are put without having been
//!     picked, and helpers without having been added.
//! 12. `init_is_harmless`: every other rule runs without `init`. With it nothing changes.
//! 13. `any_priority_is_answered`: with true or false, but the task stays.
//! 14. `yielders_take_turns`: a task that yields is not picked again while another is ready, but
//!     for [`Promises::repick_after_yield`].
//! 15. `gc_stops_no_task`: on the older line it busy-yields while a dead task's handle is held, and
//!     the other tasks make progress.
//! 16. `sleepers_wake`: also when all tasks sleep, and when one never does.
//! 17. `the_notified_wake`: a chain of notifications is passed on, with and without a yield of the
//!     notifier.
//! 18. `late_tasks_get_their_turn`: they run even after other tasks have run for long.
//! 19. `families_end`: a deep and a broad tree of spawns and joins ends.
//! 20. `a_block_may_turn_into_a_yield`: on the older line, if the wake comes before the task parks.
//! 21. `preemption_respects_the_guard`: and comes once the guard is released.
//! 22. `the_preempted_stay_ready`: long runs side by side, with and without preemption.
//! 23. `migrants_arrive`: also when their helper is preempted.
//! 24. `a_wake_may_ask_for_rescheduling`: see
//!     [`Config::wake_resched`](crate::model::Config::wake_resched).
//! 25. `a_job_gets_done_beside_yielders`: the job runs beside 1, 2, 3, 10 and 100 tasks that do
//!     nothing but yield, and a `gc` that spins over a held handle. They delay it by no more than
//!     the policy [promises](Promises::done_beside).
//! 26. `no_task_waits_for_longer_than_promised`: hogs, workers, yielders, sleepers and late tasks
//!     run beside each other for hundreds of ticks.
//! 27. `random_programs`: all of it mixed, on machines of all kinds.
//!
//! A scheduler that follows another crate's copy of the trait needs a newtype
//! that forwards the seven calls.
//!
//! ```
//! # use std::{collections::VecDeque, ops::Deref, sync::Arc};
//! # use sched_core::BaseScheduler;
//! # use sched_model::model::ModelTask;
//! # struct Task(ModelTask);
//! # impl Deref for Task { type Target = ModelTask; fn deref(&self) -> &ModelTask { &self.0 } }
//! # #[derive(Default)] struct Fifo(VecDeque<Arc<Task>>);
//! # impl BaseScheduler for Fifo {
//! #     type SchedItem = Arc<Task>;
//! #     fn init(&mut self) {}
//! #     fn add_task(&mut self, task: Arc<Task>) { self.0.push_back(task) }
//! #     fn remove_task(&mut self, task: &Arc<Task>) -> Option<Arc<Task>> {
//! #         let place = self.0.iter().position(|t| Arc::ptr_eq(t, task))?;
//! #         self.0.remove(place)
//! #     }
//! #     fn pick_next_task(&mut self) -> Option<Arc<Task>> { self.0.pop_front() }
//! #     fn put_prev_task(&mut self, task: Arc<Task>, _: bool) { self.0.push_back(task) }
//! #     fn task_tick(&mut self, _: &Arc<Task>) -> bool { false }
//! #     fn set_priority(&mut self, _: &Arc<Task>, _: isize) -> bool { false }
//! # }
//! use sched_model::conformance::{Promises, check};
//!
//! let promises = Promises {
//!     random_programs: 20,
//!     ..Promises::default()
//! };
//! check(&promises, |_cpu| Fifo::default(), Task).unwrap();
//! ```

mod by_hand;
pub mod loads;
mod programs;
mod promises;
mod rng;
mod subject;

pub use promises::{Beside, Broken, Coverage, Load, NotConformant, Promises};
pub use rng::Rng;

use crate::model::{ModelScheduler, ModelTask};
use subject::{Holds, Subject};

type Rule<S> = (&'static str, fn(&mut Subject<'_, S>) -> Holds);

/// Names the rules after their functions, so that the two cannot differ.
macro_rules! named {
    ($($module:ident: $($rule:ident),*;)*) => { [$($((stringify!($rule), $module::$rule),)*)*] };
}

fn rules<S: ModelScheduler>() -> [Rule<S>; 27] {
    named![
        by_hand:
        empty_pick_is_none,
        every_add_is_picked_once,
        put_and_pick_conserve,
        remove_of_absent_is_none,
        remove_of_present_returns_it,
        add_after_remove_works,
        drop_releases_the_queued,
        the_dead_are_let_go,
        a_lone_task_may_be_ticked_for_ever,
        queues_are_independent,
        a_put_needs_no_pick_before,
        init_is_harmless,
        any_priority_is_answered;
        programs:
        yielders_take_turns,
        gc_stops_no_task,
        sleepers_wake,
        the_notified_wake,
        late_tasks_get_their_turn,
        families_end,
        a_block_may_turn_into_a_yield,
        preemption_respects_the_guard,
        the_preempted_stay_ready,
        migrants_arrive,
        a_wake_may_ask_for_rescheduling,
        a_job_gets_done_beside_yielders,
        no_task_waits_for_longer_than_promised,
        random_programs;
    ]
}

/// Checks a scheduler against every rule, in order.
///
/// `make` builds the scheduler of a CPU and `wrap` is the policy's `Task::new`, both as for
/// [`run`](crate::model::run). Each run starts with the call of `wrap` for the idle task of CPU 0.
/// So state that is shared between schedulers is best reset in `make(0)`.
///
/// # Errors
///
/// The first rule that does not hold, with the reason.
pub fn check<S: ModelScheduler>(
    promises: &Promises,
    mut make: impl FnMut(usize) -> S,
    mut wrap: impl FnMut(ModelTask) -> S::Task,
) -> Result<Coverage, Box<NotConformant>> {
    let mut subject = Subject {
        promises,
        make: &mut make,
        wrap: &mut wrap,
        coverage: Coverage::default(),
    };
    for (index, (name, holds)) in rules().into_iter().enumerate() {
        holds(&mut subject).map_err(|broken| {
            Box::new(NotConformant {
                rule: index + 1,
                name,
                broken,
            })
        })?;
        subject.coverage.rules += 1;
    }
    Ok(subject.coverage)
}
