//! The trace of a run: the states of tasks, and the last events.

use std::{collections::VecDeque, fmt};

use super::Label;

/// The states of `axtask`'s tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Current on some CPU.
    Running,
    /// Waiting for a CPU.
    Ready,
    /// Waiting for a wake-up.
    Blocked,
    /// Ended for good, and not released yet.
    Exited,
}

/// A kind of event of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Added to the queue of this CPU.
    Spawned(usize),
    /// Became current, also as a helper that was not picked, or kept the CPU.
    Dispatched,
    /// Gave the CPU up and stayed ready.
    Yielded,
    /// Lost the CPU to a preemption.
    Preempted,
    /// Lost the CPU in a way that a scheduler cannot tell from a yield (rule 6).
    Forced,
    /// Gave the CPU up to wait.
    Blocked,
    /// Was put on the queue of this CPU by a waker.
    Woken(usize),
    /// Was put on the queue of this CPU by its migration helper.
    Migrated(usize),
    /// Was shown a tick, and asked for rescheduling if true.
    Ticked(bool),
    /// Was current when an interrupt between CPUs came.
    Interrupted,
    /// Reached the end of its program.
    Exited,
    /// Was released by `gc`.
    Freed,
}

/// One line of a [`Trace`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The time, in time units.
    pub time: u64,
    /// The CPU that caused it.
    pub cpu: usize,
    /// The kind of event.
    pub what: What,
    /// The task that it happened to.
    pub task: Label,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, tail) = match self.what {
            What::Spawned(on) => ("spawn", format!(" -> c{on}")),
            What::Dispatched => ("dispatch", String::new()),
            What::Yielded => ("yield", String::new()),
            What::Preempted => ("preempt", String::new()),
            What::Forced => ("force", String::new()),
            What::Blocked => ("block", String::new()),
            What::Woken(on) => ("wake", format!(" -> c{on}")),
            What::Migrated(on) => ("migrate", format!(" -> c{on}")),
            What::Ticked(true) => ("tick", " resched".into()),
            What::Ticked(false) => ("tick", String::new()),
            What::Interrupted => ("interrupt", String::new()),
            What::Exited => ("exit", String::new()),
            What::Freed => ("free", String::new()),
        };
        write!(f, "{} c{} {verb} {}{tail}", self.time, self.cpu, self.task)
    }
}

/// The last events of a run, oldest first; prints one per line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// The number of events before these that were not kept.
    pub earlier: u64,
    /// The events that were kept.
    pub events: VecDeque<Event>,
}

impl Trace {
    pub(super) fn push(&mut self, keep: usize, event: Event) {
        self.events.push_back(event);
        if self.events.len() > keep {
            self.events.pop_front();
            self.earlier += 1;
        }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.earlier > 0 {
            writeln!(f, "({} earlier events)", self.earlier)?;
        }
        for event in &self.events {
            writeln!(f, "{event}")?;
        }
        Ok(())
    }
}
