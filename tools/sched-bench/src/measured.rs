//! The calls that Callgrind counts: it collects from the entry of one of these functions to its
//! return. A scene calls them for what it measures, and the scheduler itself for all the rest.
//!
//! Each has a `black_box(())`, which is no instruction. Without it the compiler drops the call of a
//! tick that does nothing.
//!
//! Beside the scheduler's own instructions, the return is counted. A call is counted as well where
//! the compiler has not inlined the scheduler's code into the function.

use std::hint::black_box;

use axsched_ext::BaseScheduler;

/// The functions, as `--toggle-collect` wants them.
pub const COLLECTED: &str = "sched_bench::measured::*";

/// Calls [`BaseScheduler::add_task`] for a new task.
#[inline(never)]
pub fn add<S: BaseScheduler>(scheduler: &mut S, task: S::SchedItem) {
    black_box(());
    scheduler.add_task(task);
}

/// Calls [`BaseScheduler::put_prev_task`] for a task that is not preempted.
#[inline(never)]
pub fn put<S: BaseScheduler>(scheduler: &mut S, task: S::SchedItem) {
    black_box(());
    scheduler.put_prev_task(task, false);
}

/// Calls [`BaseScheduler::pick_next_task`], and returns the task that it dequeues.
#[inline(never)]
pub fn pick<S: BaseScheduler>(scheduler: &mut S) -> Option<S::SchedItem> {
    black_box(());
    scheduler.pick_next_task()
}

/// Calls [`BaseScheduler::task_tick`] for the current task. Returns true if the policy asks to
/// preempt the current task.
#[inline(never)]
pub fn tick<S: BaseScheduler>(scheduler: &mut S, current: &S::SchedItem) -> bool {
    black_box(());
    scheduler.task_tick(current)
}

/// Calls [`BaseScheduler::set_priority`] for a task. Returns true if the policy takes the priority.
#[inline(never)]
pub fn set_priority<S: BaseScheduler>(
    scheduler: &mut S,
    task: &S::SchedItem,
    priority: isize,
) -> bool {
    black_box(());
    scheduler.set_priority(task, priority)
}
