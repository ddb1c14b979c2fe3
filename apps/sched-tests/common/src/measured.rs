//! The figures that a platform measures in a phase: the time of each task, and that of no task.

use crate::trace::Timeline;

/// The figures of a task that has ended. Points in time are since boot.
///
/// The host knows less. The code that fills a field in says what stands in for it there.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The time at which the task first got a CPU.
    pub first_run_ns: u64,
    /// The time at which its work was done.
    pub finish_ns: u64,
    /// The time for which it was on a CPU until then.
    pub run_ns: u64,
    /// The part of that time before the deadline.
    pub run_in_window_ns: u64,
    /// The number of times that it got a CPU from another task until then.
    pub dispatches: u64,
    /// The context switches, including the one that ended it.
    pub switches: u64,
    /// The number of times that its work ended. Any other number than 1 is a bug of the scheduler.
    pub ends: u64,
    /// The time for which the task was on a CPU beyond `run_ns`, within the window: before it was
    /// let in, and after its work was done.
    pub beside_ns: u64,
    /// The times on a CPU and the blocked times, if they were traced.
    pub timeline: Option<Timeline>,
}

/// The CPU time of a phase that belongs to no task's work, summed over all CPUs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unmetered {
    /// Main: it submits the tasks and waits for them.
    pub main_ns: u64,
    /// The kernel's `gc`, which reclaims ended tasks.
    pub gc_ns: u64,
    /// The time in which a CPU had nothing to do.
    pub idle_ns: u64,
    /// All other tasks without a meter, such as the kernel's migration helpers.
    pub other_ns: u64,
}
