//! One CPU: a scheduler, the task that has the CPU, time, ticks.
//!
//! Tasks run for uneven times, from a twentieth to nearly half a tick, and a tick hits whoever
//! runs when it is due: otherwise all that a policy knows of tasks would be the same, and a queue
//! in order of it a queue in order of arrival.

use std::sync::Arc;

use axsched_ext::BaseScheduler;

use crate::clock::{SceneClock, TICK};

/// What a task carries besides the scheduler's state: as many bytes as `axtask`
/// 0.3.0-preview.3 has of its own on x86_64, as built for the apps of this tree.
pub type Inner = [u64; 24];

/// Until a scene begins all have had the CPU so often. With 16 rounds a yield was the same within
/// 2 %, under every policy; with two, the registry's CFS was off by a tenth.
const ROUNDS: usize = 8;

/// And so often at least: a policy may have to see some ticks first.
const LEAST_TURNS: usize = 64;

/// Between two calls that belong together, in counts.
const LATE: u64 = 5;

/// A CPU with tasks, one of which always runs.
pub struct Machine<S, W> {
    /// The queue of this CPU.
    pub scheduler: S,
    /// Who has the CPU.
    pub running: Arc<W>,
    wrap: fn(Inner) -> W,
    /// Time until the next tick.
    until_tick: u64,
    random: u64,
}

impl<W, S: BaseScheduler<SchedItem = Arc<W>>> Machine<S, W> {
    /// A CPU with so many tasks, each of which has run, about [`ROUNDS`] times.
    pub fn new(scheduler: S, wrap: fn(Inner) -> W, tasks: usize) -> Self {
        let mut machine = Self {
            running: Arc::new(wrap(Inner::default())),
            scheduler,
            wrap,
            until_tick: TICK,
            random: 2026,
        };
        // The first has the CPU without ever being picked, as `main` does.
        for _ in 1..tasks {
            let task = machine.task();
            machine.scheduler.add_task(task);
        }
        for _ in 0..ROUNDS * tasks + LEAST_TURNS {
            machine.work();
            machine.yields();
        }
        machine
    }

    /// A new task.
    pub fn task(&self) -> Arc<W> {
        Arc::new((self.wrap)(Inner::default()))
    }

    /// The running task works for a while.
    pub fn work(&mut self) {
        const LEAST: u64 = 50;
        const SPREAD: u64 = 400;
        // xorshift64
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.run(LEAST + self.random % SPREAD);
    }

    /// The running task, or whom a tick gives the CPU, runs for so long.
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

    /// The running task runs until a tick is due.
    pub fn run_until_tick(&mut self) {
        SceneClock::advance(self.until_tick);
        self.until_tick = TICK;
    }

    /// A little time passes, with interrupts off: a tick that is due comes late.
    pub fn pause(&mut self) {
        self.until_tick = self.until_tick.saturating_sub(LATE);
        SceneClock::advance(LATE);
    }

    /// The running task yields.
    pub fn yields(&mut self) {
        self.scheduler.put_prev_task(self.running.clone(), false);
        self.next();
    }

    /// A tick has asked for the CPU.
    pub fn preempted(&mut self) {
        self.scheduler.put_prev_task(self.running.clone(), true);
        self.next();
    }

    /// The running task has ended; who runs next.
    pub fn next(&mut self) {
        let next = self.scheduler.pick_next_task();
        self.running = next.expect("somebody is ready");
    }
}
