//! Tasks, the queues that they go into, and the ways in which a task gives its CPU up.

use std::sync::Arc;

use super::{Act, Kind, MAIN, MASKS, Machine, Record, Step, Why};
use crate::model::{
    CpuMask, Event, Handle, Label, Left, Logged, ModelTask, Program, State, TaskId, TaskReport,
    Violation, What,
};

impl<'a> Machine<'a> {
    /// Makes a task, as `TaskInner::new(..).into_arc()` does.
    pub(super) fn new_task(&mut self, name: &str, kind: Kind<'a>, mask: CpuMask) -> Handle<'a> {
        let inner = ModelTask::new(self.tasks.len(), name);
        let label = inner.label.clone();
        let longest_burst = match &kind {
            _ if !self.config.is_checked => 0,
            Kind::Program(program) => program.longest_burst(self.config),
            Kind::Idle | Kind::Gc | Kind::Helper(_) => {
                Program::new(name, []).longest_burst(self.config)
            }
        };
        let task = (self.wrap)(inner);
        MASKS.with_borrow_mut(|masks| masks.push(mask));
        self.tasks.push(Record {
            kind,
            arc: Arc::downgrade(&task),
            state: State::Ready,
            mask,
            on_cpu: None,
            queued_on: None,
            preempted_on: None,
            ready_since: self.now,
            turns_before: 0,
            last_queue: 0,
            stash: None,
            need_resched: false,
            force_resched: false,
            preempt_off: 0,
            pc: 0,
            done: 0,
            mark: 0,
            again: 0,
            longest_burst,
            block: None,
            handles: Vec::new(),
            held: 0,
            joiner: None,
            report: TaskReport {
                label,
                submitted: self.now,
                first_run: None,
                finished: None,
                run_time: 0,
                max_wait: 0,
                max_wait_dispatches: 0,
                dispatches: 0,
                switches: 0,
                yields: 0,
                preemptions: 0,
                priorities_set: 0,
            },
        });
        task
    }

    pub(super) fn current(&self, c: usize) -> TaskId {
        self.cpus[c].current.id()
    }

    pub(super) fn labels(&self, which: impl Fn(&Record<'_>) -> bool) -> Vec<Label> {
        let chosen = self.tasks.iter().filter(|task| which(task));
        chosen.map(|task| task.report.label.clone()).collect()
    }

    pub(super) fn note(&mut self, cpu: usize, what: What, id: TaskId) {
        if self.config.trace_events == 0 {
            return;
        }
        let event = Event {
            time: self.now,
            cpu,
            what,
            task: self.tasks[id.0].report.label.clone(),
        };
        self.trace.push(self.config.trace_events, event);
    }

    /// Adds a record to the log, with this time.
    pub(super) fn log(&mut self, cpu: usize, what: Logged, id: TaskId) {
        let most = self.config.log_records;
        if most > 0 {
            self.log.push(most, self.now, cpu, what, id);
        }
    }

    /// Adds the cost of a call to the CPU's clock.
    pub(super) fn spend(&mut self, c: usize) {
        self.cpus[c].clock += self.config.call_cost;
    }

    /// Chooses a queue, as `select_run_queue` does (rule 12).
    pub(super) fn select(&mut self, c: usize, mask: CpuMask) -> usize {
        if self.config.cpus == 1 {
            return 0;
        }
        if self.config.is_06() && mask.has(c) {
            return c;
        }
        loop {
            let index = self.choices % self.config.cpus;
            self.choices += 1;
            if mask.has(index) {
                return index;
            }
        }
    }

    /// Notes that a task goes into a queue; from here on it must come out.
    pub(super) fn enqueue(&mut self, on: usize, id: TaskId) {
        let task = &mut self.tasks[id.0];
        assert_eq!(task.state, State::Ready, "model: put {}", task.report.label);
        assert_eq!(task.queued_on, None, "model: put {}", task.report.label);
        task.queued_on = Some(on);
        task.last_queue = on;
        task.ready_since = self.now;
        task.turns_before = self.cpus[on].turns;
        self.cpus[on].ready += 1;
        if self.config.is_checked {
            self.cpus[on].queued.push(id);
        }
    }

    pub(super) fn add(&mut self, c: usize, task: Handle<'a>, on: usize) {
        let id = task.id();
        self.enqueue(on, id);
        self.note(c, What::Spawned(on), id);
        self.log(c, Logged::Spawned(on as u8), id);
        self.cpus[on].scheduler.add_task(task);
    }

    pub(super) fn put(&mut self, on: usize, task: Handle<'a>, preempt: bool) {
        self.enqueue(on, task.id());
        self.cpus[on].scheduler.put_prev_task(task, preempt);
    }

    /// Yields, as `yield_current` does (rule 3). Idle is made ready but not put (rule 11).
    pub(super) fn yield_current(&mut self, c: usize) -> Step {
        let id = self.current(c);
        self.tasks[id.0].report.yields += 1;
        if self.must_leave(c, id) {
            return self.migrate_current(c, id);
        }
        self.give_up(c, What::Yielded, Why::Yield)
    }

    /// Returns true if the current task migrates instead of going into this queue (rule 9).
    fn must_leave(&self, c: usize, id: TaskId) -> bool {
        self.config.is_06() && !self.tasks[id.0].mask.has(c)
    }

    /// Releases a guard, as `current_check_preempt_pending` does (rule 4).
    pub(super) fn release(&mut self, c: usize) -> Step {
        let id = self.current(c);
        let task = &mut self.tasks[id.0];
        let is_wanted = task.need_resched || task.force_resched;
        if !self.config.preempt || !is_wanted || task.preempt_off > 0 {
            return Ok(());
        }
        let what = match std::mem::take(&mut task.force_resched) {
            true => What::Forced,
            false => What::Preempted,
        };
        task.report.preemptions += 1;
        if self.must_leave(c, id) {
            return self.migrate_current(c, id);
        }
        self.give_up(c, what, Why::Other)
    }

    /// Puts the current task back, as `put_task_with_state(current, Running, what == Preempted)`
    /// does, and picks.
    pub(super) fn give_up(&mut self, c: usize, what: What, why: Why) -> Step {
        let id = self.current(c);
        let task = &mut self.tasks[id.0];
        assert_eq!(task.state, State::Running, "model: {}", task.report.label);
        task.state = State::Ready;
        if !matches!(task.kind, Kind::Idle) {
            self.note(c, what, id);
            let current = self.cpus[c].current.clone();
            self.tasks[id.0].preempted_on = (what == What::Preempted).then_some(c);
            self.put(c, current, what == What::Preempted);
        }
        let delay = (self.config.pick_delays)(self.gave_up);
        self.gave_up += 1;
        if delay == 0 {
            return self.resched(c, why);
        }
        self.cpus[c].clock += delay;
        self.cpus[c].acts.push_front(Act::Pick(why));
        Ok(())
    }

    /// Picks a task, checks it and switches to it, as `resched` does.
    pub(super) fn resched(&mut self, c: usize, why: Why) -> Step {
        let next = self.cpus[c].scheduler.pick_next_task();
        self.cpus[c].picked = next.as_ref().map(|task| task.id());
        if let Some(next) = next {
            self.check_pick(c, &next, why)?;
            return self.take_on(c, next, why);
        }
        // A task that went in here may have gone on to another CPU's queue.
        if self.cpus[c].ready > 0 && !self.config.stealing {
            let ready = self.ready_on(c);
            return Err(Violation::IdleWhileReady { cpu: c, ready });
        }
        let idle = self.cpus[c].idle.clone();
        self.take_on(c, idle, why)
    }

    fn take_on(&mut self, c: usize, next: Handle<'a>, why: Why) -> Step {
        self.spend(c);
        let cpu = &mut self.cpus[c];
        cpu.clock += self.config.pick_cost(cpu.ready);
        let left = match why {
            Why::Yield => Left::Yielded,
            Why::Other => Left::Preempted,
        };
        self.switch_to(c, next, left)
    }

    /// Switches, as `switch_to` does, for a pick and for a migration helper. A task that is still
    /// ready has yielded or was preempted.
    pub(super) fn switch_to(&mut self, c: usize, next: Handle<'a>, ready: Left) -> Step {
        let now = self.now;
        let (from, to) = (self.current(c), next.id());
        let task = &mut self.tasks[to.0];
        task.need_resched = false;
        task.state = State::Running;
        task.report.first_run.get_or_insert(now);
        // An idle task that continues to idle would fill the trace and say nothing.
        if from != to || !matches!(self.tasks[to.0].kind, Kind::Idle) {
            self.note(c, What::Dispatched, to);
        }
        if from == to {
            return Ok(());
        }
        if self.config.log_records > 0 {
            let left = match self.tasks[from.0].state {
                State::Blocked => Left::Blocked,
                State::Exited => Left::Exited,
                State::Ready | State::Running => ready,
            };
            self.log(c, Logged::Switched(left), to);
        }
        self.tasks[to.0].on_cpu = Some(c);
        let cpu = &mut self.cpus[c];
        cpu.clock += self.config.switch_cost;
        cpu.leaving = Some(from);
        let left = std::mem::replace(&mut cpu.current, next);
        let since = std::mem::replace(&mut cpu.current_since, now);
        self.acts_on(c);
        let task = &mut self.tasks[from.0];
        task.report.run_time += now - since;
        self.tasks[to.0].report.switches += 1;
        self.switches += 1;
        let is_program =
            |id: TaskId| id != MAIN && matches!(self.tasks[id.0].kind, Kind::Program(_));
        self.program_switches += u64::from(is_program(from) || is_program(to));
        let task = &self.tasks[from.0];
        // Axtask asserts this, too: the task that is left must have an owner besides the CPU. That
        // is a queue, its own `block_on` or the list of the exited.
        match Arc::strong_count(&left) {
            found @ 0..=1 => Err(Violation::Lost {
                task: task.report.label.clone(),
                found,
            }),
            _ => Ok(()),
        }
    }
}
