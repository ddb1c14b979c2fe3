//! A group of tasks that may use a part of the CPUs' time in each period. All other tasks go first.
//!
//! A group that used more than its budget owes the rest, which the next periods pay. A budget that was not used
//! is not kept. So in ten periods the group gets at most ten budgets, and at most one more while it owes.
//!
//! **Source.** The period, the budget and the debt are those of CFS bandwidth control (Turner, Rao and Rao, "CPU
//! bandwidth control for CFS", 2010), with one pool for all CPUs.

#![no_std]

extern crate alloc;

use alloc::collections::VecDeque;
use core::ops::Range;

use delegated::{AgentPolicy, Kind, MAX_TASKS, Message, TaskId};
use delegated_common::Class;

/// The most CPUs.
const MAX_CPUS: usize = 64;

/// A task of the group that runs: since when, and for how long it was charged.
#[derive(Clone, Copy)]
struct Running {
    task: TaskId,
    charged_until: u64,
}

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
    group: &'static Class,
    /// The tasks of the group that are ready.
    limited: VecDeque<TaskId>,
    /// All others that are ready.
    free: VecDeque<TaskId>,
    running: [Option<Running>; MAX_CPUS],
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
            group,
            limited: VecDeque::with_capacity(MAX_TASKS),
            free: VecDeque::with_capacity(MAX_TASKS),
            running: [None; MAX_CPUS],
            cpus,
        }
    }

    /// Charges the group for what it has run until now, and begins the periods that are due.
    fn charge(&mut self) {
        let now = (self.now)();
        for running in self.running.iter_mut().flatten() {
            self.left -= now.saturating_sub(running.charged_until) as i64;
            running.charged_until = now;
        }
        while now >= self.period_end {
            self.left = self.left.min(0) + self.budget;
            self.period_end += self.period;
        }
    }

    /// Returns the time until which no decision can be made, if tasks wait only for the next period and none
    /// runs. The agent may sleep until then.
    pub fn sleeps_until(&self) -> Option<u64> {
        let is_out = self.left <= 0 && self.free.is_empty() && !self.limited.is_empty();
        (is_out && self.running.iter().all(Option::is_none)).then_some(self.period_end)
    }
}

impl AgentPolicy for Bandwidth {
    fn told(&mut self, message: Message) {
        let task = message.task;
        if message.kind == Kind::REDISCOVER {
            self.limited.clear();
            self.free.clear();
            self.running = [None; MAX_CPUS];
        } else if message.kind != Kind::TICK {
            self.charge();
            let is_it =
                |running: &Option<Running>| running.is_some_and(|running| running.task == task);
            if let Some(running) = self.running.iter_mut().find(|running| is_it(running)) {
                *running = None;
            }
        }
        match message.kind {
            Kind::DEPARTED | Kind::DEAD => self.group.remove(task),
            kind if !kind.is_ready() => {}
            _ if self.group.has(task) => self.limited.push_back(task),
            _ => self.free.push_back(task),
        }
    }

    fn choose(&mut self, cpu: usize) -> Option<TaskId> {
        if !self.cpus.contains(&cpu) {
            return None;
        }
        self.charge();
        if let Some(task) = self.free.pop_front() {
            return Some(task);
        }
        if self.left <= 0 {
            return None;
        }
        let task = self.limited.pop_front()?;
        let charged_until = (self.now)();
        self.running[cpu] = Some(Running {
            task,
            charged_until,
        });
        Some(task)
    }

    fn is_preempted(&mut self, cpu: usize) -> bool {
        if self.running[cpu].is_none() {
            return false;
        }
        self.charge();
        self.left <= 0 || !self.free.is_empty()
    }
}
