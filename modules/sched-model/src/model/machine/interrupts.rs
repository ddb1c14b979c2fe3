//! Ticks, timers, interrupts between CPUs and wake-ups.

use std::sync::Arc;

use super::{Act, Ahead, Kind, Machine, Step, Waker};
use crate::model::{Logged, ModelScheduler, ModelTask, State, What};

impl<S: ModelScheduler, F: FnMut(ModelTask) -> S::Task> Machine<'_, S, F> {
    /// Takes a tick (rule 10). Ticks that were missed with interrupts off are one tick.
    pub(super) fn timer_interrupt(&mut self, c: usize) {
        let cpu = &mut self.cpus[c];
        while cpu.next_tick <= self.now {
            cpu.next_tick += self.config.tick_period;
        }
        self.on_timer_tick(c);
    }

    /// Does the common part of the handlers of both kinds of interrupts.
    fn on_timer_tick(&mut self, c: usize) {
        let cpu = &mut self.cpus[c];
        let later = cpu.wheel.split_off(&(self.now, u64::MAX));
        let expired = std::mem::replace(&mut cpu.wheel, later);
        cpu.acts.extend(expired.into_values().map(Act::Wake));
        cpu.acts.extend([Act::TaskTick, Act::Release]);
        cpu.idle_picks = Arc::ptr_eq(&cpu.current, &cpu.idle);
    }

    /// Sends an interrupt to a CPU (rule 14).
    pub(super) fn send_interrupt(&mut self, to: usize) {
        assert!(to < self.cpus.len(), "model: interrupt of CPU {to}");
        let delays = (self.config.interrupts)(self.interrupts);
        self.interrupts += 1;
        for delay in delays.into_iter().flatten() {
            let at = self.now + delay.max(1);
            let arrivals = &mut self.cpus[to].interrupts;
            let place = arrivals.partition_point(|&other| other <= at);
            arrivals.insert(place, at);
            self.cut_short(to, at);
        }
    }

    /// Ends the CPU's activity up to its clock at this time, if the time is earlier and an
    /// interrupt can end it.
    fn cut_short(&mut self, c: usize, at: u64) {
        let id = self.current(c);
        let cpu = &mut self.cpus[c];
        let Some(too_far) = cpu.clock.checked_sub(at) else {
            return;
        };
        match cpu.ahead {
            Ahead::Nothing => return,
            Ahead::Idles => {}
            Ahead::Computes(units) => {
                let task = &mut self.tasks[id.0];
                if task.done == 0 && too_far > 0 {
                    task.pc -= 1; // it was done with the step
                    task.done = units;
                }
                task.done -= too_far;
            }
        }
        cpu.clock = at;
    }

    /// Takes the interrupts that have arrived, as one (rule 14). Returns true if there were any.
    pub(super) fn interrupted(&mut self, c: usize) -> bool {
        let now = self.now;
        let cpu = &mut self.cpus[c];
        let arrived = cpu.interrupts.partition_point(|&at| at <= now);
        if arrived == 0 {
            return false;
        }
        cpu.interrupts.drain(..arrived);
        let id = cpu.current.id();
        self.note(c, What::Interrupted, id);
        self.on_timer_tick(c);
        true
    }

    pub(super) fn task_tick(&mut self, c: usize) -> Step {
        let id = self.current(c);
        if !matches!(self.tasks[id.0].kind, Kind::Idle) {
            let cpu = &mut self.cpus[c];
            let resched = cpu.scheduler.task_tick(&cpu.current);
            self.note(c, What::Ticked(resched), id);
            self.tasks[id.0].need_resched |= resched;
        }
        self.check_waits(c)
    }

    /// Does `AxWaker::wake` up to its choice of a queue (rule 6).
    pub(super) fn wake(&mut self, c: usize, waker: Waker) {
        let record = &self.tasks[waker.task.0];
        if record.arc.strong_count() == 0 {
            return;
        }
        let on = self.select(record.mask);
        let delay = (self.config.wake_delays)(self.wakes);
        self.wakes += 1;
        if delay == 0 {
            return self.look(c, waker, on);
        }
        self.cpus[c].clock += delay;
        self.cpus[c].acts.push_front(Act::Look { waker, on });
    }

    /// Does the rest of the wake up to the point where it may have to spin.
    pub(super) fn look(&mut self, c: usize, waker: Waker, on: usize) {
        let Some(task) = self.tasks[waker.task.0].arc.upgrade() else {
            return;
        };
        let record = &mut self.tasks[waker.task.0];
        if let Some(block) = record.block.as_mut().filter(|block| block.waker == waker) {
            block.woke = true;
        }
        if record.state == State::Blocked {
            record.state = State::Ready;
            self.cpus[c].acts.push_front(Act::Put { task, on });
        }
    }

    /// Does the rest of a wake: spins until the task is off its CPU, then puts it.
    pub(super) fn unblock(&mut self, c: usize, task: Arc<S::Task>, on: usize) {
        let id = task.id();
        if let Some(busy) = self.tasks[id.0].on_cpu {
            // The waker tries one unit later, so that the other CPU surely goes first.
            self.cpus[c].clock = self.cpus[busy].clock + 1;
            self.cpus[c].acts.push_front(Act::Put { task, on });
            self.wake_spins += 1;
            return;
        }
        let resched = self.config.wake_resched;
        self.note(c, What::Woken(on), id);
        self.log(c, Logged::Woken(on as u8), id);
        self.put(on, task, resched);
        if resched && on == c {
            let current = self.current(c);
            self.tasks[current.0].need_resched = true;
        }
    }
}
