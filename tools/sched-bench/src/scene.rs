//! The operations that are measured, and a scene for each: so many times the operation, with what
//! must happen between two of them. Before each there are as many tasks, ready or running, as
//! before the first.

use std::fmt;
use std::sync::Arc;

use axsched_ext::BaseScheduler;

use crate::machine::Machine;
use crate::measured;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A spawn.
    Add,
    /// A put and the pick after it.
    Yield,
    /// A wake-up: the put of a task that does not run.
    Put,
    /// After the running task has blocked: a pick with no put before it.
    Pick,
    /// A tick of the timer, but for the preemption that it may ask for.
    Tick,
    /// The running task gets another nice value.
    Renice,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Add,
        Self::Yield,
        Self::Put,
        Self::Pick,
        Self::Tick,
        Self::Renice,
    ];

    /// As in the figures' file and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Yield => "yield",
            Self::Put => "put",
            Self::Pick => "pick",
            Self::Tick => "tick",
            Self::Renice => "renice",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The nice value of the `i`th time: each of the forty in turn, far from the one before.
pub const fn nice(i: u64) -> isize {
    (i * 17 % 40) as isize - 20
}

/// Plays a scene with the operation so many times.
pub fn play<W, S>(operation: Operation, times: u64, machine: &mut Machine<S, W>)
where
    S: BaseScheduler<SchedItem = Arc<W>>,
{
    let mut scene = Scene {
        sleeper: machine.task(),
        machine,
    };
    // Who sleeps has run before, too.
    scene.wakes();
    scene.blocks();
    for i in 0..times {
        scene.machine.work();
        match operation {
            Operation::Add => scene.add(),
            Operation::Yield => scene.yields(),
            Operation::Put => scene.put(),
            Operation::Pick => scene.pick(),
            Operation::Tick => scene.tick(),
            Operation::Renice => scene.renice(nice(i), nice(i + 1)),
        }
    }
}

/// A machine, and a task more, that sleeps.
struct Scene<'a, S, W> {
    machine: &'a mut Machine<S, W>,
    sleeper: Arc<W>,
}

impl<W, S: BaseScheduler<SchedItem = Arc<W>>> Scene<'_, S, W> {
    /// The running task spawns one and ends.
    fn add(&mut self) {
        let task = self.machine.task();
        measured::add(&mut self.machine.scheduler, task);
        self.machine.work();
        self.machine.next();
    }

    fn yields(&mut self) {
        let task = self.machine.running.clone();
        measured::put(&mut self.machine.scheduler, task);
        self.machine.pause();
        let next = measured::pick(&mut self.machine.scheduler);
        self.machine.running = next.expect("the yielder is ready");
    }

    /// The running task wakes the sleeper and sleeps in its place.
    fn put(&mut self) {
        let task = self.sleeper.clone();
        measured::put(&mut self.machine.scheduler, task);
        self.machine.work();
        self.blocks();
    }

    fn pick(&mut self) {
        self.wakes();
        self.machine.work();
        let next = measured::pick(&mut self.machine.scheduler).expect("the sleeper is awake");
        self.sleeper = std::mem::replace(&mut self.machine.running, next);
    }

    fn tick(&mut self) {
        self.machine.run_until_tick();
        if measured::tick(&mut self.machine.scheduler, &self.machine.running) {
            self.machine.preempted();
        }
    }

    /// The running task gets a nice value, runs a little, gets another, and yields.
    fn renice(&mut self, from: isize, to: isize) {
        // A first one may be cheaper: of nice 0, a change has less to compute.
        let machine = &mut *self.machine;
        machine.scheduler.set_priority(&machine.running, from);
        machine.pause();
        measured::set_priority(&mut machine.scheduler, &machine.running, to);
        machine.yields();
    }

    /// The sleeper wakes.
    fn wakes(&mut self) {
        let task = self.sleeper.clone();
        self.machine.scheduler.put_prev_task(task, false);
    }

    /// The running task sleeps.
    fn blocks(&mut self) {
        self.sleeper = self.machine.running.clone();
        self.machine.next();
    }
}
