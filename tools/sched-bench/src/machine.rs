//! One CPU: a scheduler, the task that has the CPU, time, ticks.
//!
//! Tasks run for uneven times, from a twentieth to nearly half a tick, and a tick hits the task that
//! runs when it is due. Otherwise a policy would know the same of all tasks, and an ordered queue
//! would be in order of arrival.

use std::sync::Arc;

use axsched_ext::BaseScheduler;

use crate::clock::{SceneClock, TICK};

/// The rest of a task, beside the scheduler's state: as many bytes as `axtask` 0.3.0-preview.3 has of
/// its own on x86_64, as built for the apps of this tree.
pub type Inner = [u64; 24];

/// Dispatches of each task before a scene begins. With 16 rounds a yield was the same within 2 %,
/// under every policy; with two, the registry's CFS was off by a tenth.
const ROUNDS: usize = 8;

/// Dispatches in addition: a policy may have to see some ticks first.
const LEAST_TURNS: usize = 64;

/// Time between two calls that belong together, in counts.
const LATE: u64 = 5;

/// A CPU with tasks, one of which always runs.
pub struct Machine<S, W> {
    /// The queue of this CPU.
    pub scheduler: S,
    /// The running task.
    pub running: Arc<W>,
    wrap: fn(Inner) -> W,
    /// Time until the next tick.
    until_tick: u64,
    random: u64,
}

impl<W, S: BaseScheduler<SchedItem = Arc<W>>> Machine<S, W> {
    /// Makes a CPU with `tasks` tasks, each of which has run about `ROUNDS` times.
    pub fn new(scheduler: S, wrap: fn(Inner) -> W, tasks: usize) -> Self {
        let mut machine = Self {
            running: Arc::new(wrap(Inner::default())),
            scheduler,
            wrap,
            until_tick: TICK,
            random: 2026,
        };
        // The first has the CPU without a pick, as `main` does.
        for _ in 1..tasks {
            let task = machine.task();
            machine.scheduler.add_task(task);
        }
        for _ in 0..ROUNDS * tasks + LEAST_TURNS {
            machine.work();
            machine.yield_now();
        }
        machine
    }

    /// Makes a new task.
    pub fn task(&self) -> Arc<W> {
        Arc::new((self.wrap)(Inner::default()))
    }

    /// Lets the running task work for a while.
    pub fn work(&mut self) {
        const LEAST: u64 = 50;
        const SPREAD: u64 = 400;
        // xorshift64
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.run(LEAST + self.random % SPREAD);
    }

    /// Lets time pass. The running task runs, or the one that a tick gives the CPU.
    fn run(&mut self, mut time: u64) {
        while time >= self.until_tick {
            time -= self.until_tick;
            SceneClock::advance(self.until_tick);
            self.until_tick = TICK;
            if self.scheduler.task_tick(&self.running) {
                self.preempted();
            }
        }
        self.until_tick -= time;
        SceneClock::advance(time);
    }

    /// Lets the running task run until a tick is due.
    pub fn run_until_tick(&mut self) {
        SceneClock::advance(self.until_tick);
        self.until_tick = TICK;
    }

    /// Lets a little time pass with interrupts off: a tick that is due comes late.
    pub fn pause(&mut self) {
        self.until_tick = self.until_tick.saturating_sub(LATE);
        SceneClock::advance(LATE);
    }

    /// Makes the running task yield.
    pub fn yield_now(&mut self) {
        self.scheduler.put_prev_task(self.running.clone(), false);
        self.next();
    }

    /// Preempts the running task, as a tick has asked for.
    pub fn preempted(&mut self) {
        self.scheduler.put_prev_task(self.running.clone(), true);
        self.next();
    }

    /// Picks the next task, after the running one has ended or was put back.
    pub fn next(&mut self) {
        let next = self.scheduler.pick_next_task();
        self.running = next.expect("a task is ready");
    }
}
