//! The checks at each pick, and while tasks wait.

use std::{ptr, sync::Arc};

use super::{Machine, Record, Step, Why};
use crate::model::{Handle, Label, State, TaskId, Violation};

impl<'a> Machine<'a> {
    pub(super) fn ready_on(&self, c: usize) -> Vec<Label> {
        self.labels(|task| task.queued_on == Some(c))
    }

    /// Checks a pick for every fault, and accounts for waits.
    pub(super) fn check_pick(&mut self, c: usize, next: &Handle<'_>, why: Why) -> Step {
        let label = next.label().clone();
        let id = label.id;
        let known = self
            .tasks
            .get(id.0)
            .is_some_and(|task| ptr::addr_eq(task.arc.as_ptr(), Arc::as_ptr(next)));
        if !known {
            return Err(Violation::Unknown { task: label });
        }
        let task = &self.tasks[id.0];
        if task.state != State::Ready {
            let found = task.state;
            return Err(Violation::NotReady { task: label, found });
        }
        if let Some(found) = task.on_cpu.filter(|&on| on != c) {
            return Err(Violation::StillOnCpu {
                task: label,
                cpu: c,
                found,
            });
        }
        if let Some(found) = self.required_cpu(task).filter(|&on| on != c) {
            return Err(Violation::PreemptedElsewhere {
                task: label,
                cpu: c,
                found,
            });
        }
        let Some(queue) = task.queued_on.filter(|&on| on == c || self.config.stealing) else {
            let found = task.queued_on;
            return Err(Violation::NotQueuedHere {
                task: label,
                cpu: c,
                found,
            });
        };
        // A task that was preempted here may continue here, since its next step may be to migrate.
        if !task.mask.has(c) && task.preempted_on != Some(c) {
            let allowed = task.mask;
            return Err(Violation::WrongCpu {
                task: label,
                cpu: c,
                allowed,
            });
        }

        if !self.config.is_checked {
            self.note_wait(id);
        } else {
            self.check_wait(id)?;
            self.cpus[queue].queued.retain(|&queued| queued != id);
        }
        let again = id == self.current(c);
        let is_turn = !again || why == Why::Yield || !self.config.is_06();
        self.cpus[queue].ready -= 1;
        self.cpus[queue].dispatches += 1;
        self.cpus[queue].turns += u64::from(is_turn);
        let task = &mut self.tasks[id.0];
        task.queued_on = None;
        task.preempted_on = None;
        task.report.dispatches += 1;
        if !self.config.is_checked {
            return Ok(());
        }
        self.check_waits(queue)?;

        let ready = self.ready_on(c);
        // Before its first pick a scheduler cannot tell that it runs (rule 1).
        let was_picked = self.tasks[id.0].report.dispatches > 1;
        let repicked = again && was_picked && why == Why::Yield;
        if repicked && !ready.is_empty() && !self.config.repick_after_yield {
            return Err(Violation::Repicked { task: label, ready });
        }
        let cpu = &mut self.cpus[c];
        if id != cpu.gc || ready.is_empty() {
            cpu.gc_streak = 0;
            return Ok(());
        }
        cpu.gc_streak += 1;
        let streak = cpu.gc_streak;
        if streak > self.config.max_gc_streak {
            return Err(Violation::GcMonopolises {
                cpu: c,
                streak,
                ready,
            });
        }
        Ok(())
    }

    pub(super) fn check_waits(&mut self, queue: usize) -> Step {
        for i in 0..self.cpus[queue].queued.len() {
            self.check_wait(self.cpus[queue].queued[i])?;
        }
        Ok(())
    }

    /// Notes the wait so far of a queued task for its report. Returns it in dispatches and in time.
    fn note_wait(&mut self, id: TaskId) -> (u64, u64) {
        let task = &mut self.tasks[id.0];
        let queue = task.queued_on.expect("model: only queued tasks wait");
        let dispatches = self.cpus[queue].turns - task.turns_before;
        let time = self.now - task.ready_since;
        task.report.max_wait = task.report.max_wait.max(time);
        task.report.max_wait_dispatches = task.report.max_wait_dispatches.max(dispatches);
        (dispatches, time)
    }

    /// Checks the wait so far of a queued task against the bound.
    fn check_wait(&mut self, id: TaskId) -> Step {
        let (dispatches, time) = self.note_wait(id);
        let task = &self.tasks[id.0];
        let bound = self.config.max_wait;
        let within = |found: u64, limit: Option<u64>| limit.is_none_or(|limit| found <= limit);
        let own = bound.own_bursts * task.longest_burst;
        if within(dispatches, bound.dispatches) && within(time, bound.time.map(|time| time + own)) {
            return Ok(());
        }
        Err(Violation::Starved {
            task: task.report.label.clone(),
            dispatches,
            time,
            bound,
        })
    }

    /// Returns the CPU that a task must run on next, if it was preempted.
    fn required_cpu(&self, task: &Record<'_>) -> Option<usize> {
        task.preempted_on.filter(|_| self.config.preempted_stay)
    }

    /// Checks that no CPU idles for longer than [`Config::max_idle_beside`] while any task is ready, be it one task or
    /// several in turn. A CPU that has something to do in its idle task does not idle. A task that its CPU
    /// puts back is ready once the CPU has picked another one.
    ///
    /// [`Config::max_idle_beside`]: crate::model::Config::max_idle_beside
    pub(super) fn check_idle(&mut self) -> Step {
        let Some(bound) = self.config.max_idle_beside else {
            return Ok(());
        };
        for c in 0..self.cpus.len() {
            let idles = Arc::ptr_eq(&self.cpus[c].current, &self.cpus[c].idle);
            let beside = idles.then(|| self.longest_beside(c)).flatten();
            let Some((id, since)) = beside else {
                self.cpus[c].beside_since = None;
                continue;
            };
            let since = since.min(*self.cpus[c].beside_since.get_or_insert(self.now));
            let time = self.now.saturating_sub(since);
            if time > bound {
                return Err(Violation::IdleBeside {
                    cpu: c,
                    task: self.tasks[id.0].report.label.clone(),
                    time,
                    bound,
                });
            }
        }
        Ok(())
    }

    /// Returns the ready task beside which this idle CPU has idled for longest, and since when. The
    /// task may run on the CPU.
    fn longest_beside(&self, c: usize) -> Option<(TaskId, u64)> {
        let queued = self.cpus.iter().flat_map(|cpu| {
            let current = cpu.current.id();
            (cpu.queued.iter().copied()).filter(move |&id| id != current)
        });
        let may_run = |&id: &TaskId| match self.required_cpu(&self.tasks[id.0]) {
            Some(on) => on == c,
            None => self.tasks[id.0].mask.has(c),
        };
        let since = |id: TaskId| self.cpus[c].current_since.max(self.tasks[id.0].ready_since);
        let each = queued.filter(may_run).map(|id| (id, since(id)));
        each.min_by_key(|&(_, since)| since)
    }

    /// Checks a task's number of owners. A scheduler may remember the last pick until the next one, beyond a migration
    /// and, on another CPU, an exit.
    pub(super) fn check_owners(&self, task: &Handle<'_>, expected: usize) -> Step {
        let found = Arc::strong_count(task);
        let id = Some(task.id());
        let remember = self.cpus.iter().filter(|cpu| cpu.picked == id).count();
        if (expected..=expected + remember).contains(&found) {
            return Ok(());
        }
        Err(Violation::HandleKept {
            task: task.label().clone(),
            expected,
            found,
        })
    }
}
