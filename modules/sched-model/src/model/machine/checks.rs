//! What must hold at each pick, and while somebody waits.

use std::sync::Arc;

use super::{Machine, Record, Step, Why};
use crate::model::{Label, ModelScheduler, ModelTask, State, TaskId, Violation};

impl<S: ModelScheduler, F: FnMut(ModelTask) -> S::Task> Machine<'_, S, F> {
    pub(super) fn ready_on(&self, c: usize) -> Vec<Label> {
        self.labels(|task| task.queued_on == Some(c))
    }

    /// Everything that can be wrong with a pick, and the books on waiting.
    pub(super) fn check_pick(&mut self, c: usize, next: &Arc<S::Task>, why: Why) -> Step {
        let label = next.label().clone();
        let id = label.id;
        let known = self
            .tasks
            .get(id.0)
            .is_some_and(|task| task.arc.as_ptr() == Arc::as_ptr(next));
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
        if let Some(found) = self.stays_on(task).filter(|&on| on != c) {
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
        // Who was preempted here may go on here: what it does next may be to migrate.
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
        self.cpus[queue].ready -= 1;
        self.cpus[queue].dispatches += 1;
        let task = &mut self.tasks[id.0];
        task.queued_on = None;
        task.preempted_on = None;
        task.report.dispatches += 1;
        if !self.config.is_checked {
            return Ok(());
        }
        self.check_waits(queue)?;

        let ready = self.ready_on(c);
        let again = why == Why::Yield && id == self.current(c);
        if again && !ready.is_empty() && !self.config.repick_after_yield {
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

    /// The wait so far of a queued task, for its report: in dispatches, and in time.
    fn note_wait(&mut self, id: TaskId) -> (u64, u64) {
        let task = &mut self.tasks[id.0];
        let queue = task.queued_on.expect("model: only queued tasks wait");
        let dispatches = self.cpus[queue].dispatches - task.dispatches_before;
        let time = self.now - task.ready_since;
        task.report.max_wait = task.report.max_wait.max(time);
        task.report.max_wait_dispatches = task.report.max_wait_dispatches.max(dispatches);
        (dispatches, time)
    }

    /// Holds the wait so far of a queued task against the bound.
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

    /// The CPU that a task must run on next, if it was preempted.
    fn stays_on(&self, task: &Record<S::Task>) -> Option<usize> {
        task.preempted_on.filter(|_| self.config.preempted_stay)
    }

    /// Nobody idles for longer than [`Config::max_idle_beside`] beside a task, nor beside now one and now
    /// another without a moment in which nobody is ready. A CPU that has something to do in its idle
    /// task does not idle, and who is put back by their CPU is ready once that has picked another.
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

    /// Of those who are ready and may run on this CPU, which idles, the one beside whom it has idled for
    /// longest, and since when.
    fn longest_beside(&self, c: usize) -> Option<(TaskId, u64)> {
        let queued = self.cpus.iter().flat_map(|cpu| {
            let current = cpu.current.id();
            (cpu.queued.iter().copied()).filter(move |&id| id != current)
        });
        let may_run = |&id: &TaskId| match self.stays_on(&self.tasks[id.0]) {
            Some(on) => on == c,
            None => self.tasks[id.0].mask.has(c),
        };
        let since = |id: TaskId| self.cpus[c].current_since.max(self.tasks[id.0].ready_since);
        let each = queued.filter(may_run).map(|id| (id, since(id)));
        each.min_by_key(|&(_, since)| since)
    }

    /// A scheduler may remember whom its CPU picked last until that picks again: beyond a migration
    /// and, on another CPU, an exit.
    pub(super) fn check_owners(&self, task: &Arc<S::Task>, expected: usize) -> Step {
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
