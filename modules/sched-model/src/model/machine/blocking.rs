//! Blocking: futures, timers, and the wait of gc.

use std::{ops::Range, sync::Arc};

use super::{Act, BlockOn, Future, Kind, MAIN, Machine, Poll, Record, Step, TimerKey, Waker, Why};
use crate::model::{State, TaskId, Violation, What};

/// The longest wait of gc on the newer line: 100 ms.
const GC_TICKS: u64 = 10;

impl<'a> Machine<'a> {
    /// Starts a `block_on`. The next step polls it.
    pub(super) fn block_on(&mut self, c: usize, future: Future) -> &mut BlockOn<'a> {
        let id = self.current(c);
        self.wakers += 1;
        self.tasks[id.0].block.insert(BlockOn {
            future,
            waker: Waker {
                task: id,
                serial: self.wakers,
            },
            woke: false,
            polled: false,
            looks_again: false,
            _keeps: self.cpus[c].current.clone(),
        })
    }

    pub(super) fn sleep(&mut self, c: usize, deadline: u64) -> &mut BlockOn<'a> {
        let timer = None;
        self.block_on(c, Future::Sleep { deadline, timer })
    }

    /// Takes a step of a `block_on` (rule 5): polls it, and in a later step parks, or yields if
    /// woken between.
    pub(super) fn block_step(&mut self, c: usize, id: TaskId) -> Step {
        let mut block = self.tasks[id.0].block.take().expect("model: no block_on");
        if !block.polled
            && self.config.gc_look_cost > 0
            && let Future::Gc { looked, .. } = &mut block.future
        {
            // The time passes in a step before that of the poll, as a switch ends gc's time there.
            *looked = !*looked;
            if *looked {
                let cpu = &mut self.cpus[c];
                cpu.clock += cpu.exited.len() as u64 * self.config.gc_look_cost;
                self.tasks[id.0].block = Some(block);
                return Ok(());
            }
        }
        if !block.polled {
            let poll = self.poll(c, &mut block)?;
            block.polled = matches!(poll, Poll::Pending);
            match poll {
                Poll::Ready => {
                    self.spend(c);
                    let task = &mut self.tasks[id.0];
                    task.pc += usize::from(!block.looks_again);
                    self.cpus[c].acts.push_back(Act::Release);
                    return Ok(());
                }
                Poll::Pending => {
                    self.spend(c);
                    if self.config.is_06() {
                        return self.park(c, id, block);
                    }
                    self.tasks[id.0].block = Some(block);
                    return Ok(());
                }
                Poll::Yield => {
                    self.tasks[id.0].block = Some(block);
                    return self.yield_current(c);
                }
            }
        }
        self.park(c, id, block)
    }

    /// Parks the task, or yields if it was woken since the poll.
    fn park(&mut self, c: usize, id: TaskId, mut block: BlockOn<'a>) -> Step {
        block.polled = false;
        // On the newer line nothing comes between the two.
        let woke = std::mem::take(&mut block.woke) && !self.config.is_06();
        let task = &mut self.tasks[id.0];
        task.block = Some(block);
        if woke {
            return self.yield_current(c);
        }
        if self.config.preempt && task.preempt_off > 0 {
            let task = task.report.label.clone();
            return Err(Violation::BlockedUnderGuard { task });
        }
        task.state = State::Blocked;
        self.note(c, What::Blocked, id);
        self.resched(c, Why::Other)
    }

    pub(super) fn poll(&mut self, c: usize, block: &mut BlockOn<'a>) -> Step<Poll> {
        let waker = block.waker;
        Ok(match &mut block.future {
            Future::Never => Poll::Pending,
            Future::Gc { timer, .. } => return self.poll_gc(c, waker, timer),
            Future::Join(child) => {
                let child = &mut self.tasks[child.0];
                if child.state == State::Exited {
                    Poll::Ready
                } else {
                    child.joiner = Some(waker);
                    Poll::Pending
                }
            }
            Future::Sleep { deadline, .. } if self.config.is_06() => {
                if *deadline <= self.now {
                    Poll::Ready
                } else {
                    self.arm(c, *deadline, waker);
                    Poll::Pending
                }
            }
            Future::Sleep { deadline, timer } => match *timer {
                // A wake on another CPU looks into the wrong wheel and ends the sleep, whatever the
                // time. So it is in axtask.
                Some(key) if !self.cpus[c].wheel.contains_key(&key) => Poll::Ready,
                Some(_) => Poll::Pending,
                None if *deadline <= self.now => Poll::Ready,
                None => {
                    *timer = Some(self.arm(c, *deadline, waker));
                    Poll::Pending
                }
            },
            Future::Wait {
                queue,
                deadline,
                listening,
                timer,
            } => {
                let wheels = self.wheels(c);
                let waiters = self.wait_queues.entry(*queue).or_default();
                if *listening {
                    let place = waiters.listeners.iter().position(|(w, _)| *w == waker);
                    let place = place.expect("model: a listener stays until polled");
                    let notified = waiters.listeners[place].1;
                    let timed_out = timer.is_some_and(|key| {
                        let mut wheels = self.cpus[wheels.clone()].iter();
                        !wheels.any(|cpu| cpu.wheel.contains_key(&key))
                    });
                    if !notified && !timed_out {
                        return Ok(Poll::Pending);
                    }
                    waiters.listeners.remove(place);
                    *listening = false;
                    if let Some(key) = timer.take() {
                        for cpu in &mut self.cpus[wheels] {
                            cpu.wheel.remove(&key);
                        }
                    }
                }
                if waiters.permits > 0 {
                    waiters.permits -= 1;
                    return Ok(Poll::Ready);
                }
                if deadline.is_some_and(|deadline| deadline <= self.now) {
                    return Ok(Poll::Ready);
                }
                waiters.listeners.push_back((waker, false));
                *listening = true;
                *timer = deadline.map(|deadline| self.arm(c, deadline, waker));
                Poll::Pending
            }
        })
    }

    /// Opens the wait queue of the first task that waits, since the run would otherwise never end.
    /// Returns false if only main waits.
    pub(super) fn break_deadlock(&mut self) -> bool {
        let waits_at = |task: &Record| match &task.block.as_ref()?.future {
            Future::Wait { queue, .. } if task.state == State::Blocked => Some(*queue),
            _ => None,
        };
        let programs = self.tasks.iter().skip(MAIN.0 + 1);
        let first = programs
            .filter(|task| matches!(task.kind, Kind::Program(_)))
            .find_map(waits_at);
        let Some(queue) = first else {
            return false;
        };
        self.broken_waits += 1;
        self.open(0, queue);
        true
    }

    pub(super) fn arm(&mut self, c: usize, deadline: u64, waker: Waker) -> TimerKey {
        self.timers += 1;
        let key = (deadline, self.timers);
        self.cpus[c].wheel.insert(key, waker);
        key
    }

    /// Returns the wheels that a call on this CPU looks into: its own, or all (rule 13).
    fn wheels(&self, c: usize) -> Range<usize> {
        match self.config.is_06() {
            true => 0..self.cpus.len(),
            false => c..c + 1,
        }
    }

    /// Polls gc, as `poll_gc` does (rule 8).
    pub(super) fn poll_gc(
        &mut self,
        c: usize,
        waker: Waker,
        timer: &mut Option<TimerKey>,
    ) -> Step<Poll> {
        if let Some(key) = timer.take() {
            self.cpus[c].wheel.remove(&key);
            return Ok(Poll::Ready);
        }
        for _ in 0..self.cpus[c].exited.len() {
            let Some(task) = self.cpus[c].exited.pop_front() else {
                break;
            };
            let id = task.id();
            if Arc::strong_count(&task) == 1 {
                drop(task);
                self.note(c, What::Freed, id);
            } else {
                // One owner is the list, and the others are the handles that other tasks hold.
                self.check_owners(&task, 1 + self.tasks[id.0].held)?;
                self.cpus[c].exited.push_back(task);
            }
        }
        self.cpus[c].gc_waker = Some(waker);
        if self.config.is_06() {
            let deadline = self.now + GC_TICKS * self.config.tick_period;
            *timer = Some(self.arm(c, deadline, waker));
            return Ok(Poll::Pending);
        }
        Ok(if self.cpus[c].exited.is_empty() {
            Poll::Pending
        } else {
            Poll::Yield
        })
    }
}
