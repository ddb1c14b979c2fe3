//! Shinjuku: one queue for all CPUs, and a task that has run for a quantum goes to its end if others wait.
//!
//! A second class takes the CPUs that are left. One of its tasks gives way as soon as a task of the first
//! class waits.
//!
//! **Source.** Kaffes et al., "Shinjuku: preemptive scheduling for µsecond-scale tail latency" (NSDI 2019), and the
//! policy of that name in ghOSt (SOSP 2021).

#![no_std]

use delegated::{AgentPolicy, Message, TaskId};
use delegated_common::{Class, Classes, Running};

/// Preempts tasks of two classes.
pub struct Shinjuku {
    /// The time for which a task runs while others wait, in counts.
    quantum: u64,
    /// The CPUs that run tasks (bit mask).
    cpus: u64,
    now: fn() -> u64,
    /// The members are the tasks of the second class.
    tasks: Classes,
}

impl Shinjuku {
    /// Creates the policy for these CPUs (bit mask). `now` returns the time in counts. The tasks of
    /// `second` are those of the second class.
    pub fn new(quantum: u64, cpus: u64, now: fn() -> u64, second: &'static Class) -> Self {
        Self {
            quantum,
            cpus,
            now,
            tasks: Classes::new(second),
        }
    }
}

impl AgentPolicy for Shinjuku {
    fn told(&mut self, message: Message) {
        self.tasks.told(message);
    }

    fn choose(&mut self, cpu: usize) -> Option<TaskId> {
        if self.cpus >> cpu & 1 == 0 {
            return None;
        }
        let first = self.tasks.others.pop_front();
        let task = first.or_else(|| self.tasks.members.pop_front())?;
        let since = (self.now)();
        self.tasks.running[cpu] = Some(Running { task, since });
        Some(task)
    }

    fn is_preempted(&mut self, cpu: usize) -> bool {
        let Some(running) = self.tasks.running[cpu] else {
            return false;
        };
        let is_over = (self.now)().saturating_sub(running.since) >= self.quantum;
        let is_second = self.tasks.is_member(running.task);
        !self.tasks.others.is_empty() && (is_second || is_over)
            || !self.tasks.members.is_empty() && is_second && is_over
    }
}
