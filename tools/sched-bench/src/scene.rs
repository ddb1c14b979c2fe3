//! The measured operations, and a scene for each: the operation many times, with the steps that
//! must happen between two of them. Before each there are as many tasks, ready or running, as
//! before the first.

use std::fmt;
use std::sync::Arc;

use axsched_ext::BaseScheduler;

use crate::machine::Machine;
use crate::measured;

/// A measured operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A spawn, which enqueues a new task.
    Add,
    /// A yield: the put of the running task and the pick after it.
    Yield,
    /// A wake-up: the put of a task that does not run.
    Put,
    /// A pick without a put before it, as after the running task has blocked.
    Pick,
    /// A tick of the timer, without the preemption that it may ask for.
    Tick,
    /// The running task gets another nice value.
    Renice,
}

impl Operation {
    /// Every operation, in the order of the declaration.
    pub const ALL: [Self; 6] = [
        Self::Add,
        Self::Yield,
        Self::Put,
        Self::Pick,
        Self::Tick,
        Self::Renice,
    ];

    /// Returns its name on the command line.
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

/// Returns the nice value of the `i`th time: each of the forty in turn, far from the one before.
pub const fn nice(i: u64) -> isize {
    (i * 17 % 40) as isize - 20
}

/// Plays the scene of an operation.
pub fn play<W, S>(operation: Operation, times: u64, machine: &mut Machine<S, W>)
where
    S: BaseScheduler<SchedItem = Arc<W>>,
{
    let mut scene = Scene {
        sleeper: machine.task(),
        machine,
    };
    // The sleeper has run before, too.
    scene.wake();
    scene.block();
    for i in 0..times {
        scene.machine.work();
        match operation {
            Operation::Add => scene.add(),
            Operation::Yield => scene.yield_now(),
            Operation::Put => scene.put(),
            Operation::Pick => scene.pick(),
            Operation::Tick => scene.tick(),
            Operation::Renice => scene.renice(nice(i), nice(i + 1)),
        }
    }
}

/// A machine, and one more task, which sleeps.
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

    fn yield_now(&mut self) {
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
        self.block();
    }

    fn pick(&mut self) {
        self.wake();
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
        // The first change may be cheaper: nice 0 takes less to compute.
        let machine = &mut *self.machine;
        machine.scheduler.set_priority(&machine.running, from);
        machine.pause();
        measured::set_priority(&mut machine.scheduler, &machine.running, to);
        machine.yield_now();
    }

    /// Wakes the sleeper.
    fn wake(&mut self) {
        let task = self.sleeper.clone();
        self.machine.scheduler.put_prev_task(task, false);
    }

    /// Puts the running task to sleep in place of the sleeper.
    fn block(&mut self) {
        self.sleeper = self.machine.running.clone();
        self.machine.next();
    }
}

#[cfg(test)]
mod tests {
    use axsched_upstream::{RRScheduler, RRTask};

    use super::*;
    use crate::{schedulers, stock::Stock};

    /// Ticks of the registry's round robin preempt, and its queue is a list that would hold a task
    /// twice.
    #[test]
    fn scene_leaves_as_many_tasks_as_there_were() {
        for operation in Operation::ALL {
            for tasks in [1, 2, 7] {
                for times in [0, 1, 5, 100] {
                    let scheduler = Stock(RRScheduler::<_, 2>::new());
                    let mut machine = Machine::new(scheduler, RRTask::new, tasks);
                    play(operation, times, &mut machine);
                    let mut ready = 0;
                    while let Some(task) = machine.scheduler.pick_next_task() {
                        assert!(!Arc::ptr_eq(&task, &machine.running), "it runs");
                        ready += 1;
                    }
                    assert_eq!(
                        ready,
                        tasks - 1,
                        "{operation}, {tasks} tasks, {times} times"
                    );
                }
            }
        }
    }

    #[test]
    fn every_nice_value_is_used() {
        let mut values: Vec<_> = (7..47).map(nice).collect();
        assert!(values.windows(2).all(|pair| pair[0].abs_diff(pair[1]) > 10));
        values.sort_unstable();
        assert_eq!(values, (-20..=19).collect::<Vec<_>>());
    }

    /// No scheduler panics. Those with nice values are reniced.
    #[test]
    fn every_scheduler_plays_every_scene() {
        for entry in schedulers::all() {
            let name = entry.name;
            let has_nice = ["coop", "cfs", "eevdf", "stock-cfs"].contains(&name);
            let operations: Vec<_> = entry.operations().collect();
            assert_eq!(operations.contains(&Operation::Renice), has_nice, "{name}");
            let count = Operation::ALL.len() - usize::from(!has_nice);
            assert_eq!(operations.len(), count, "{name}");
            for operation in operations {
                for tasks in [1, 3, 70] {
                    (entry.play)(operation, tasks, 200);
                }
            }
        }
    }
}
