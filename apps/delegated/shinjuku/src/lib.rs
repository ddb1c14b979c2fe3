//! Shinjuku: one queue for all CPUs, and a task that has run for a quantum goes to its end if others wait.
//!
//! A second class takes the CPUs that are left. One of its tasks gives way as soon as a task of the first
//! class waits.
//!
//! **Source.** Kaffes et al., "Shinjuku: preemptive scheduling for µsecond-scale tail latency" (NSDI 2019), and the
//! policy of that name in ghOSt (SOSP 2021).

#![no_std]

extern crate alloc;

use alloc::collections::VecDeque;

use delegated::{AgentPolicy, Kind, MAX_TASKS, Message, TaskId};
use delegated_common::Class;

/// The most CPUs.
const MAX_CPUS: usize = 64;

/// The task that a CPU was told to run.
#[derive(Clone, Copy)]
struct Running {
    task: TaskId,
    since: u64,
}

/// Preempts tasks of two classes.
pub struct Shinjuku {
    /// The time for which a task runs while others wait, in counts.
    quantum: u64,
    /// The CPUs that run tasks (bit mask).
    cpus: u64,
    now: fn() -> u64,
    /// The tasks of the second class.
    second: &'static Class,
    ready: VecDeque<TaskId>,
    batch: VecDeque<TaskId>,
    running: [Option<Running>; MAX_CPUS],
}

impl Shinjuku {
    /// Creates the policy for these CPUs (bit mask). `now` returns the time in counts. The tasks of
    /// `second` are those of the second class.
    pub fn new(quantum: u64, cpus: u64, now: fn() -> u64, second: &'static Class) -> Self {
        Self {
            quantum,
            cpus,
            now,
            second,
            ready: VecDeque::with_capacity(MAX_TASKS),
            batch: VecDeque::with_capacity(MAX_TASKS),
            running: [None; MAX_CPUS],
        }
    }
}

impl AgentPolicy for Shinjuku {
    fn told(&mut self, message: Message) {
        let task = message.task;
        if message.kind == Kind::REDISCOVER {
            self.ready.clear();
            self.batch.clear();
            self.running = [None; MAX_CPUS];
        } else if message.kind != Kind::TICK {
            let was_running = self.running.get_mut(message.cpu);
            if let Some(running) =
                was_running.filter(|running| running.is_some_and(|r| r.task == task))
            {
                *running = None;
            }
        }
        match message.kind {
            Kind::DEPARTED | Kind::DEAD => self.second.remove(task),
            kind if !kind.is_ready() => {}
            _ if self.second.has(task) => self.batch.push_back(task),
            _ => self.ready.push_back(task),
        }
    }

    fn choose(&mut self, cpu: usize) -> Option<TaskId> {
        if self.cpus >> cpu & 1 == 0 {
            return None;
        }
        let task = self.ready.pop_front().or_else(|| self.batch.pop_front())?;
        let since = (self.now)();
        self.running[cpu] = Some(Running { task, since });
        Some(task)
    }

    fn is_preempted(&mut self, cpu: usize) -> bool {
        let Some(running) = self.running[cpu] else {
            return false;
        };
        let is_over = (self.now)().saturating_sub(running.since) >= self.quantum;
        let is_batch = self.second.has(running.task);
        !self.ready.is_empty() && (is_batch || is_over)
            || !self.batch.is_empty() && is_batch && is_over
    }
}
