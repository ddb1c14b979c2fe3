//! A group of tasks that may use a part of the CPUs' time in each period. All other tasks go first.
//!
//! A group that used more than its budget owes the rest, which the next periods pay. A budget that was not used
//! is not kept. So in ten periods the group gets at most ten budgets, and at most one more while it owes.
//!
//! **Source.** The period, the budget and the debt are those of CFS bandwidth control (Turner, Rao and Rao, "CPU
//! bandwidth control for CFS", 2010), with one pool for all CPUs.

#![no_std]

use core::ops::Range;

use delegated::{AgentPolicy, Kind, Message, TaskId};
use delegated_common::{Class, Classes, Running};

/// Limits a group of tasks. All times are in counts.
pub struct Bandwidth {
    period: u64,
    /// The time that the group may use on all CPUs together in a period.
    budget: i64,
    /// The rest of it; negative while the group owes.
    left: i64,
    /// The end of the present period.
    period_end: u64,
    now: fn() -> u64,
    /// The members are the tasks of the group. Those that run were charged until `since`.
    tasks: Classes,
    /// The CPUs that run tasks.
    cpus: Range<usize>,
}

impl Bandwidth {
    /// Creates the policy for these CPUs. The tasks of `group` may use `budget` in each `period`.
    pub fn new(
        period: u64,
        budget: u64,
        cpus: Range<usize>,
        now: fn() -> u64,
        group: &'static Class,
    ) -> Self {
        Self {
            period,
            budget: budget as i64,
            left: budget as i64,
            period_end: now() + period,
            now,
            tasks: Classes::new(group),
            cpus,
        }
    }

    /// Charges the group for what it has run until now, and begins the periods that are due.
    fn charge(&mut self) {
        let now = (self.now)();
        for running in self.tasks.running.iter_mut().flatten() {
            self.left -= now.saturating_sub(running.since) as i64;
            running.since = now;
        }
        while now >= self.period_end {
            self.left = self.left.min(0) + self.budget;
            self.period_end += self.period;
        }
    }

    /// Returns the time until which no decision can be made, if tasks wait only for the next period and none
    /// runs. The agent may sleep until then.
    pub fn sleeps_until(&self) -> Option<u64> {
        let tasks = &self.tasks;
        let is_out = self.left <= 0 && tasks.others.is_empty() && !tasks.members.is_empty();
        (is_out && tasks.running.iter().all(Option::is_none)).then_some(self.period_end)
    }
}

impl AgentPolicy for Bandwidth {
    fn told(&mut self, message: Message) {
        if message.kind() != Kind::TICK {
            self.charge();
        }
        self.tasks.told(message);
    }

    fn choose(&mut self, cpu: usize) -> Option<TaskId> {
        if !self.cpus.contains(&cpu) {
            return None;
        }
        self.charge();
        if let Some(task) = self.tasks.others.pop_front() {
            return Some(task);
        }
        if self.left <= 0 {
            return None;
        }
        let task = self.tasks.members.pop_front()?;
        let since = (self.now)();
        self.tasks.running[cpu] = Some(Running { task, since });
        Some(task)
    }

    fn is_preempted(&mut self, cpu: usize) -> bool {
        if self.tasks.running[cpu].is_none() {
            return false;
        }
        self.charge();
        self.left <= 0 || !self.tasks.others.is_empty()
    }
}
