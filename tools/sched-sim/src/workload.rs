//! A workload: the behaviour of a program, task by task.

use std::collections::BTreeMap;

use crate::bound::{self, Bound, bound};

/// A program to be played.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Tasks, parents before their children; those of one parent in the order in which it
    /// spawns them.
    pub jobs: Vec<Job>,
    /// The time, in nanoseconds, of each look of the kernel's gc at an ended task, after which gc
    /// yields and looks again. `None` unless main keeps the handles of its tasks until all have ended.
    pub gc_look_ns: Option<f64>,
}

/// A task and its behaviour.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its label, or its place in the tree of spawns.
    pub name: String,
    /// The label that the program gives it, if any.
    pub label: Option<String>,
    /// Index of the task that spawns it; `None` is main.
    pub parent: Option<usize>,
    /// The time at which main spawns it. Other tasks spawn their children where their steps say so,
    /// or else when they begin.
    pub arrival: Arrival,
    /// Its run intervals, in this order.
    pub steps: Vec<Work>,
}

/// The time at which main spawns a task, always after the one before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// After main has computed for this time since the task before, in nanoseconds.
    After(f64),
    /// At this time, in nanoseconds since the first task, like a request from outside. The task
    /// counts as submitted then, even if main gets a CPU only later.
    At(f64),
    /// After this task has woken main once more.
    When(usize),
}

/// Run intervals that are alike. In each the task computes, and then gives up the CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// The number of these run intervals, at least 1.
    pub times: u64,
    /// The time that the task computes in each, in nanoseconds, without the cost of switching.
    pub run_ns: f64,
    /// The end of each run interval.
    pub then: Then,
    /// The wakes in some of them, evenly spread.
    pub wakes: [Wakes; 2],
}

/// The wakes of a task by another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wakes {
    /// The number of wakes, over all these run intervals.
    pub count: u64,
    /// The woken task; `None` if there are too many to tell. Then the tasks that wait for the waker
    /// are woken in turn.
    pub whom: Option<Peer>,
    /// The time that the waker computes in the run interval before, in nanoseconds.
    pub after_ns: f64,
}

/// A task that waits for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// The main task, which has no index.
    Main,
    /// The task with this index.
    Task(usize),
}

/// The end of a run interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Then {
    /// The task yields, and stays ready.
    Yield,
    /// The task sleeps until the first tick after this number of nanoseconds.
    Sleep(f64),
    /// The task waits until this task has woken it once more, or has ended.
    Wait(usize),
    /// The task looks if this task has ended, and if not, it yields or sleeps and looks again. The
    /// number of these run intervals is that of the recording. When it is played, the task looks as
    /// often as it has to.
    Poll {
        /// The index of the awaited task.
        awaited: usize,
        /// The time that it sleeps after a look, in nanoseconds; 0 if it yields.
        sleep_ns: f64,
    },
    /// The task spawns this task, and its run interval does not end.
    Spawn(usize),
    /// The task ends, as it has no more work.
    Exit,
}

impl Workload {
    /// Returns the least average turnaround on `cpus` CPUs (see [`crate::bound`]). A task that
    /// another task spawns has no known arrival, and counts with the time that it computes and
    /// sleeps.
    pub fn bound(&self, cpus: usize) -> Bound {
        let runs = self.jobs.iter().map(|job| job.run_ns() as u64);
        self.bound_of(runs, cpus)
    }

    /// Returns the bound if the tasks compute for these times, in nanoseconds.
    pub fn bound_of(&self, runs_ns: impl Iterator<Item = u64>, cpus: usize) -> Bound {
        let jobs = self.jobs.iter().zip(self.arrivals_ns()).zip(runs_ns);
        let jobs = jobs.map(|((job, arrival), run_ns)| job.for_bound(arrival, run_ns));
        bound(&jobs.collect::<Vec<_>>(), cpus)
    }

    /// Returns the number of waits by waker and waiter.
    pub fn waits(&self) -> BTreeMap<(usize, Peer), u64> {
        let mut waits = BTreeMap::new();
        let mut add = |waker, waiter, times| *waits.entry((waker, waiter)).or_default() += times;
        for (waiter, job) in self.jobs.iter().enumerate() {
            for work in &job.steps {
                if let Then::Wait(waker) = work.then {
                    add(waker, Peer::Task(waiter), work.times);
                }
            }
            if let (None, Arrival::When(waker)) = (job.parent, job.arrival) {
                add(waker, Peer::Main, 1);
            }
        }
        waits
    }

    /// Returns the arrival of each task, in nanoseconds since the first; `None` if it depends on
    /// how the others run. The time that main computes between two spawns in one go is left out, as
    /// it does not delay an arrival.
    fn arrivals_ns(&self) -> Vec<Option<u64>> {
        // Until main first sleeps or waits.
        let mut is_first_go = true;
        let times = self.jobs.iter().map(|job| {
            if job.parent.is_some() {
                return None;
            }
            match job.arrival {
                Arrival::After(_) => is_first_go.then_some(0),
                Arrival::At(due) => {
                    is_first_go = false;
                    Some(due as u64)
                }
                Arrival::When(_) => {
                    is_first_go = false;
                    None
                }
            }
        });
        times.collect()
    }
}

impl Job {
    /// Returns the number of its run intervals.
    pub fn intervals(&self) -> u64 {
        let own = self.steps.iter().filter(|work| work.ends_an_interval());
        own.map(|work| work.times).sum()
    }

    /// Returns the time that it computes, in nanoseconds.
    pub fn run_ns(&self) -> f64 {
        let run = |work: &Work| work.times as f64 * work.run_ns;
        self.steps.iter().map(run).sum()
    }

    /// Returns the job for a bound, in which all computing between two sleeps is one step. The
    /// times are scaled so that it computes for `run_ns` in all.
    fn for_bound(&self, submitted_ns: Option<u64>, run_ns: u64) -> bound::Job {
        let own_ns = self.run_ns();
        let factor = if own_ns > 0.0 {
            run_ns as f64 / own_ns
        } else {
            0.0
        };
        let (mut computes, mut left_ns) = (0.0, run_ns);
        let mut steps = Vec::new();
        let mut add = |times: u64, each_ns: f64, sleep_ns: f64| {
            let Some(most) = left_ns.checked_div(times) else {
                return;
            };
            let step = bound::Step {
                run_ns: ((each_ns * factor) as u64).min(most),
                sleep_ns: sleep_ns as u64,
            };
            left_ns -= times * step.run_ns;
            steps.push((times, step));
        };
        for work in &self.steps {
            match work.then {
                Then::Sleep(ns) => {
                    add(1, computes + work.run_ns, ns);
                    add(work.times - 1, work.run_ns, ns);
                    computes = 0.0;
                }
                // A look is no work that must be done.
                Then::Poll { .. } => {}
                Then::Yield | Then::Wait(_) | Then::Spawn(_) | Then::Exit => {
                    computes += work.times as f64 * work.run_ns;
                }
            }
        }
        // The computing after that, and the rest of rounding.
        steps.push((
            1,
            bound::Step {
                run_ns: left_ns,
                sleep_ns: 0,
            },
        ));
        bound::Job {
            submitted_ns,
            steps,
        }
    }

    /// Returns the tasks whose ends it polls for.
    pub fn polls(&self) -> impl Iterator<Item = usize> {
        self.steps.iter().filter_map(|work| match work.then {
            Then::Poll { awaited, .. } => Some(awaited),
            _ => None,
        })
    }

    /// Returns the time that it computes without looks, in nanoseconds.
    pub fn work_ns(&self) -> f64 {
        let works = self.steps.iter().filter(|work| !work.is_poll());
        works.map(|work| work.times as f64 * work.run_ns).sum()
    }

    /// Makes each run interval but its looks `times` as long.
    pub fn scale(&mut self, times: f64) {
        for work in self.steps.iter_mut().filter(|work| !work.is_poll()) {
            work.run_ns *= times;
            let wakes = work.wakes.iter_mut();
            wakes.for_each(|wakes| wakes.after_ns *= times);
        }
    }

    /// Makes each run interval longer, or shorter, but not shorter than nothing.
    pub fn lengthen_intervals(&mut self, by_ns: f64) {
        for work in &mut self.steps {
            if work.ends_an_interval() {
                work.run_ns = (work.run_ns + by_ns).max(0.0);
            }
        }
    }
}

impl Work {
    /// Creates run intervals without wakes.
    pub fn new(times: u64, run_ns: f64, then: Then) -> Self {
        Self {
            times,
            run_ns,
            then,
            wakes: [Wakes::default(); 2],
        }
    }

    const fn is_poll(&self) -> bool {
        matches!(self.then, Then::Poll { .. })
    }

    fn ends_an_interval(&self) -> bool {
        !matches!(self.then, Then::Spawn(_))
    }
}

/// Returns how many of `count` evenly spread things are in the first `part` of `whole`.
pub fn portion(count: u64, part: u64, whole: u64) -> u64 {
    (u128::from(count) * u128::from(part) / u128::from(whole.max(1))) as u64
}
