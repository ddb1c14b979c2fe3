//! Ticks, timers, interrupts between CPUs and wake-ups.

use std::sync::Arc;

use super::{Act, Ahead, Kind, Machine, Step, Waker};
use crate::model::{Handle, Logged, State, TaskId, What};

impl<'a> Machine<'a> {
    /// Takes the timer's interrupt, if it is due (rule 10). Ticks that were missed with interrupts
    /// off are one tick. Returns true if it was due.
    pub(super) fn timer_interrupt(&mut self, c: usize) -> bool {
        let exact = self.config.is_06();
        let cpu = &mut self.cpus[c];
        let is_tick = cpu.next_tick <= self.now;
        let is_timer = exact && cpu.wheel.keys().next().is_some_and(|key| key.0 <= self.now);
        while cpu.next_tick <= self.now {
            cpu.next_tick += self.config.tick_period;
        }
        if is_tick || is_timer {
            self.on_timer(c, is_tick);
        }
        is_tick || is_timer
    }

    /// Does the common part of the handlers of all kinds of interrupts.
    fn on_timer(&mut self, c: usize, is_tick: bool) {
        let resched = self.config.is_06();
        let cpu = &mut self.cpus[c];
        let later = cpu.wheel.split_off(&(self.now, u64::MAX));
        let expired = std::mem::replace(&mut cpu.wheel, later);
        let wakes = expired.into_values().map(|waker| Act::Wake(waker, resched));
        cpu.acts.extend(wakes);
        cpu.acts.extend(is_tick.then_some(Act::TaskTick));
        cpu.acts.push_back(Act::Release);
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
        self.on_timer(c, true);
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

    /// Does a wake up to its choice of a queue (rule 6).
    pub(super) fn wake(&mut self, c: usize, waker: Waker, resched: bool) {
        let record = &self.tasks[waker.task.0];
        if record.arc.strong_count() == 0 {
            return;
        }
        let (mask, last) = (record.mask, record.last_queue);
        let on = match self.config.is_06() && !mask.has(c) && mask.has(last) {
            true => last,
            false => self.select(c, mask),
        };
        let delay = (self.config.wake_delays)(self.wakes);
        self.wakes += 1;
        if delay == 0 {
            return self.look(c, waker, on, resched);
        }
        self.cpus[c].clock += delay;
        self.cpus[c]
            .acts
            .push_front(Act::Look { waker, on, resched });
    }

    /// Does the rest of the wake up to the point where it may have to spin.
    pub(super) fn look(&mut self, c: usize, waker: Waker, on: usize, resched: bool) {
        let Some(task) = self.tasks[waker.task.0].arc.upgrade() else {
            return;
        };
        let record = &mut self.tasks[waker.task.0];
        if let Some(block) = record.block.as_mut().filter(|block| block.waker == waker) {
            block.woke = true;
        }
        if record.state == State::Blocked {
            record.state = State::Ready;
            self.cpus[c].acts.push_front(Act::Put { task, on, resched });
        }
    }

    /// Does the rest of a wake: puts the task, once it is off its CPU. Until then the waker spins,
    /// or leaves it to that CPU.
    pub(super) fn unblock(&mut self, c: usize, task: Handle<'a>, on: usize, resched: bool) {
        let id = task.id();
        if let Some(busy) = self.tasks[id.0].on_cpu {
            self.wake_spins += 1;
            if self.config.is_06() {
                self.tasks[id.0].stash = Some((task, on));
                return;
            }
            // The waker tries one unit later, so that the other CPU surely goes first.
            self.cpus[c].clock = self.cpus[busy].clock + 1;
            self.cpus[c].acts.push_front(Act::Put { task, on, resched });
            return;
        }
        self.put_woken(c, task, on);
        if (resched || self.config.wake_resched) && on == c {
            let current = self.current(c);
            self.tasks[current.0].need_resched = true;
        }
    }

    fn put_woken(&mut self, c: usize, task: Handle<'a>, on: usize) {
        let id = task.id();
        self.note(c, What::Woken(on), id);
        self.log(c, Logged::Woken(on as u8), id);
        self.put(on, task, self.config.wake_resched);
    }

    /// Ends a switch: the task is off its CPU. A wake that came before puts it now (rule 6).
    pub(super) fn left(&mut self, c: usize, left: TaskId) {
        let record = &mut self.tasks[left.0];
        record.on_cpu = None;
        let Some((task, on)) = record.stash.take() else {
            return;
        };
        self.put_woken(c, task, on);
        if on == c {
            let current = self.current(c);
            self.tasks[current.0].force_resched = true;
            self.cpus[c].acts.push_back(Act::Release);
        }
    }
}
