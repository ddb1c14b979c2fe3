//! The figures that a platform measures in a phase: the time of each task, and that of no task.

use crate::trace::Timeline;

/// The figures of a task that has ended; points in time are since boot.
///
/// The host knows less; what stands in for it is said where it is filled in.
#[derive(Clone, Debug)]
pub struct Figures {
    /// When the task first got a CPU.
    pub first_run_ns: u64,
    /// When its work was done.
    pub finish_ns: u64,
    /// How long it was on a CPU until then.
    pub run_ns: u64,
    /// How much of it lies before the deadline.
    pub run_in_window_ns: u64,
    /// How often it got a CPU from another task until then.
    pub dispatches: u64,
    /// Context switches, including the one that ended it.
    pub switches: u64,
    /// How often its work ended; anything but 1 is a scheduler's bug.
    pub ends: u64,
    /// How long the task was on a CPU beyond `run_ns`, within the window: before it was let in, and
    /// after its work was done.
    pub beside_ns: u64,
    /// When it was on a CPU and when it was blocked, if that was traced.
    pub timeline: Option<Timeline>,
}

/// The CPU time of a phase that no task's work had, of all CPUs together.
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
