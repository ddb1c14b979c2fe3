//! The steps of tasks: idle, helpers and programs.

use super::{Act, Ahead, Future, Kind, MAIN, MASKS, Machine, Step};
use crate::model::{CpuMask, Handle, Left, Op, State, TaskId, What};

/// A number of permits that does not run out.
const FOR_ALL: u64 = u64::MAX / 2;

impl<'a> Machine<'a> {
    /// Takes a step of idle, as `run_idle` does: picks once after each interrupt, then waits for
    /// the next.
    pub(super) fn idle_step(&mut self, c: usize) -> Step {
        let cpu = &mut self.cpus[c];
        if std::mem::take(&mut cpu.idle_picks) {
            self.yield_current(c)
        } else {
            cpu.ahead = Ahead::Idles;
            cpu.clock = cpu.next_interrupt(self.config.is_06());
            Ok(())
        }
    }

    /// Takes the steps of a migration helper, as `migrate_entry` does, and its exit (rule 9).
    pub(super) fn helper_step(&mut self, c: usize, migrated: Option<Handle<'a>>) {
        let Some(task) = migrated else {
            self.exit(c);
            return;
        };
        let id = task.id();
        let on = self.select(c, self.tasks[id.0].mask);
        self.note(c, What::Migrated(on), id);
        self.put(on, task, false);
        self.spend(c);
        self.cpus[c].acts.push_back(Act::Release);
    }

    pub(super) fn program_step(&mut self, c: usize, id: TaskId, op: Op) -> Step {
        let now = self.now;
        let task = &mut self.tasks[id.0];
        match op {
            Op::Run(units) => {
                self.compute(c, id, units);
                let task = &mut self.tasks[id.0];
                if task.done == units {
                    task.done = 0;
                    task.pc += 1;
                }
                return Ok(());
            }
            Op::Yield => {
                task.pc += 1;
                return self.yield_current(c);
            }
            Op::YieldUntil { look, .. } if task.done < look => {
                self.compute(c, id, look);
                return Ok(());
            }
            Op::YieldUntil { queue, .. } => {
                task.done = 0;
                if self.wait_queues.get(&queue).is_none_or(|w| w.permits == 0) {
                    return self.yield_current(c);
                }
                task.pc += 1;
            }
            Op::Sleep(units) => {
                self.sleep(c, now + units);
                return Ok(());
            }
            Op::SleepUntil { queue, units } => {
                if self.wait_queues.get(&queue).is_none_or(|w| w.permits == 0) {
                    self.sleep(c, now + units).looks_again = true;
                    return Ok(());
                }
                task.pc += 1;
            }
            Op::Wait { queue, timeout } => {
                let future = Future::Wait {
                    queue,
                    deadline: timeout.map(|units| now + units),
                    listening: false,
                    timer: None,
                };
                self.block_on(c, future);
                return Ok(());
            }
            Op::Join(n) => {
                if let Some(Some(child)) = task.handles.get(n) {
                    let child = child.id();
                    self.block_on(c, Future::Join(child));
                    return Ok(());
                }
                task.pc += 1;
            }
            Op::Notify { queue, resched } => {
                if task.done > 0 {
                    // This is the second half of a notification that yields.
                    task.done = 0;
                    task.pc += 1;
                    return self.yield_current(c);
                }
                let yields = resched && !self.config.is_06();
                if yields {
                    task.done = 1;
                } else {
                    task.pc += 1;
                }
                self.notify(c, queue, resched && !yields);
            }
            Op::Open { queue } => {
                task.pc += 1;
                self.open(c, queue);
            }
            Op::Mark => {
                task.pc += 1;
                task.mark = now;
                return Ok(());
            }
            Op::SleepSince(units) => {
                let deadline = task.mark + units;
                self.sleep(c, deadline);
                return Ok(());
            }
            Op::CountDown { queue, of } => {
                task.pc += 1;
                let latch = self.wait_queues.entry(queue).or_default();
                latch.counts += 1;
                if latch.counts == of {
                    self.notify(c, queue, false);
                }
            }
            Op::Again { steps, times } => {
                if task.again < times {
                    task.again += 1;
                    task.pc -= steps;
                } else {
                    task.again = 0;
                    task.pc += 1;
                }
                return Ok(());
            }
            Op::Spawn(program) => {
                task.pc += 1;
                let name = program.name.clone();
                let all = CpuMask::first(self.config.cpus);
                let child = self.new_task(&name, Kind::Program(program), all);
                self.alive += 1;
                self.tasks[child.id().0].held = 1;
                self.tasks[id.0].handles.push(Some(child.clone()));
                let on = self.select(c, all);
                self.add(c, child, on);
            }
            Op::DropHandle(n) => {
                task.pc += 1;
                if let Some(child) = task.handles.get_mut(n).and_then(Option::take) {
                    self.tasks[child.id().0].held -= 1;
                }
            }
            Op::Migrate(mask) => {
                let mask = CpuMask(mask.0 & CpuMask::first(self.config.cpus).0);
                if task.done == 0 && mask.0 != 0 {
                    // The task may lose the CPU before the second half.
                    task.done = 1;
                    task.mask = mask;
                    MASKS.with_borrow_mut(|masks| masks[id.0] = mask);
                } else {
                    task.done = 0;
                    task.pc += 1;
                    if !task.mask.has(c) {
                        return self.migrate_current(c, id);
                    }
                }
            }
            Op::PreemptOff => {
                task.pc += 1;
                task.preempt_off += 1;
            }
            Op::PreemptOn => {
                task.pc += 1;
                task.preempt_off = task.preempt_off.saturating_sub(1);
            }
            Op::SetPriority(priority) => {
                task.pc += 1;
                let cpu = &mut self.cpus[c];
                let set = cpu.scheduler.set_priority(&cpu.current, priority);
                task.report.priorities_set += u64::from(set);
            }
            Op::Call(what) => {
                task.pc += 1;
                (self.config.on_call)(what);
            }
            Op::Exit => {
                self.exit(c);
                return Ok(());
            }
        }
        self.spend(c);
        self.cpus[c].acts.push_back(Act::Release);
        Ok(())
    }

    /// Computes what is left of these time units, up to the next interrupt. An earlier one cuts it
    /// short.
    fn compute(&mut self, c: usize, id: TaskId, units: u64) {
        let (cpu, task) = (&mut self.cpus[c], &mut self.tasks[id.0]);
        let next = cpu.next_interrupt(self.config.is_06());
        let part = (units - task.done).min(next - self.now);
        cpu.ahead = Ahead::Computes(units);
        cpu.clock += part;
        task.done += part;
    }

    /// Adds a permit, and wakes one waiter that is not woken yet.
    fn notify(&mut self, c: usize, queue: u32, resched: bool) {
        let waiters = self.wait_queues.entry(queue).or_default();
        waiters.permits += 1;
        if let Some((waker, notified)) = waiters.listeners.iter_mut().find(|l| !l.1) {
            *notified = true;
            self.cpus[c].acts.push_back(Act::Wake(*waker, resched));
        }
    }

    /// Opens a wait queue for ever, and wakes all waiters.
    pub(super) fn open(&mut self, c: usize, queue: u32) {
        let waiters = self.wait_queues.entry(queue).or_default();
        waiters.permits = FOR_ALL;
        for (waker, notified) in &mut waiters.listeners {
            if !std::mem::replace(notified, true) {
                self.cpus[c].acts.push_back(Act::Wake(*waker, false));
            }
        }
    }

    /// Migrates, as `migrate_current` does (rule 9). The helper is made, but neither added nor
    /// picked.
    pub(super) fn migrate_current(&mut self, c: usize, id: TaskId) -> Step {
        let migrated = self.cpus[c].current.clone();
        let all = CpuMask::first(self.config.cpus);
        let helper = self.new_task("migration", Kind::Helper(Some(migrated)), all);
        self.alive += 1;
        let task = &mut self.tasks[id.0];
        task.state = State::Ready;
        self.spend(c);
        self.switch_to(c, helper, Left::Migrated)
    }

    /// Exits, as `exit_current` does (rule 7), after the task's function has returned.
    pub(super) fn exit(&mut self, c: usize) {
        let id = self.current(c);
        let handles = std::mem::take(&mut self.tasks[id.0].handles);
        for child in handles.into_iter().flatten() {
            self.tasks[child.id().0].held -= 1;
        }
        self.alive -= 1;
        self.note(c, What::Exited, id);
        self.spend(c);
        let task = &mut self.tasks[id.0];
        task.report.finished = Some(self.now);
        if matches!(task.kind, Kind::Program(_)) {
            self.makespan = self.now;
        }
        if id == MAIN {
            self.block_on(c, Future::Never);
            return;
        }
        task.state = State::Exited;
        let joiner = task.joiner.take();
        let acts = &mut self.cpus[c].acts;
        acts.extend(joiner.map(|waker| Act::Wake(waker, false)));
        acts.extend([Act::ExitList, Act::ExitResched]);
    }
}
