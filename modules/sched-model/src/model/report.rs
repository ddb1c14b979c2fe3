//! The report of a run.

use super::{Label, Log, Trace};

/// The report of one task. Times are in time units since boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskReport {
    /// The name and number of the task.
    pub label: Label,
    /// The time at which it was made.
    pub submitted: u64,
    /// The time at which it first became current.
    pub first_run: Option<u64>,
    /// The time at which its program ended; `None` for gc.
    pub finished: Option<u64>,
    /// The time that it was current, its calls and switches included.
    pub run_time: u64,
    /// The longest time that it was ready and not current.
    pub max_wait: u64,
    /// The largest number of picks of other tasks while it waited.
    pub max_wait_dispatches: u64,
    /// The number of times that it was picked.
    pub dispatches: u64,
    /// The number of switches to it from another task.
    pub switches: u64,
    /// The number of times that it gave the CPU up and stayed ready.
    pub yields: u64,
    /// The number of times that it was preempted.
    pub preemptions: u64,
    /// The number of its [`Op::SetPriority`](super::Op::SetPriority) that were accepted.
    pub priorities_set: u64,
}

impl TaskReport {
    /// Returns the time from submission to the end.
    pub fn turnaround(&self) -> Option<u64> {
        Some(self.finished? - self.submitted)
    }
}

/// The report of a finished run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// All tasks but the idle ones, in the order in which they were made.
    pub tasks: Vec<TaskReport>,
    /// The number of switches from one task to another, idle and helpers included.
    pub switches: u64,
    /// The number of them with a program at either end that is not main's.
    pub program_switches: u64,
    /// The number of picks that returned a task.
    pub dispatches: u64,
    /// The number of steps of all CPUs: calls or parts of them, pieces of programs, ticks.
    pub steps: u64,
    /// The time at which the last program ended.
    pub makespan: u64,
    /// The number of wakes that had to wait for a CPU to finish switching away.
    pub wake_spins: u64,
    /// The number of interrupts that CPUs have asked for, of each other or of themselves.
    pub interrupts: u64,
    /// The number of wait queues that were opened to break a deadlock:
    /// [`Config::breaks_deadlocks`].
    ///
    /// [`Config::breaks_deadlocks`]: super::Config::breaks_deadlocks
    pub broken_waits: u64,
    /// The last events, if they were kept.
    pub trace: Trace,
    /// The first switches and wakes, if they were kept.
    pub log: Log,
}

impl Report {
    /// Returns the first task of this name.
    pub fn task(&self, name: &str) -> Option<&TaskReport> {
        self.tasks.iter().find(|task| &*task.label.name == name)
    }
}
