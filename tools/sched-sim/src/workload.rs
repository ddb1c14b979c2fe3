//! What a program does, task by task.

use std::collections::BTreeMap;

use crate::bound::{self, Bound, bound};

/// A program to be played.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Tasks, parents before their children; those of one parent in the order in which it
    /// spawns them.
    pub jobs: Vec<Job>,
}

/// What a task does.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its label, or its place in the tree of spawns.
    pub name: String,
    /// What the program calls it, if it does.
    pub label: Option<String>,
    /// Index of the task that spawns it; `None` is main.
    pub parent: Option<usize>,
    /// When main spawns it. A task spawns its own where its steps say so, or, if they do
    /// not, when it begins.
    pub arrival: Arrival,
    /// In this order.
    pub steps: Vec<Work>,
}

/// When main spawns a task, which is after the one before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// When it has computed for so long after that, in nanoseconds.
    After(f64),
    /// At a time, in nanoseconds since the first: as a request does, which nobody here waits
    /// for. It is submitted then, if main gets a CPU only later.
    At(f64),
    /// When main has been woken by this task once more.
    When(usize),
}

/// Run intervals that are alike: it computes, then gives the CPU away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// How many there are, at least 1.
    pub times: u64,
    /// How long it computes in each, in nanoseconds, without what switching costs.
    pub run_ns: f64,
    /// And then.
    pub then: Then,
    /// Whom it wakes in some of them, evenly spread.
    pub wakes: [Wakes; 2],
}

/// How often a task wakes another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wakes {
    /// How often.
    pub count: u64,
    /// Whom; `None` if they are more than can be told: then those in turn who wait for it.
    pub whom: Option<Peer>,
    /// When it has computed for so long in the run interval, in nanoseconds.
    pub after_ns: f64,
}

/// Somebody who waits for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// Main.
    Main,
    /// The task with this index.
    Task(usize),
}

/// What ends a run interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Then {
    /// It yields.
    Yield,
    /// It sleeps, for so many nanoseconds; until the first tick after that.
    Sleep(f64),
    /// It waits until this task has woken it once more, or has ended.
    Wait(usize),
    /// It spawns this task, and goes on: no run interval ends.
    Spawn(usize),
    /// It ends.
    Exit,
}

impl Workload {
    /// How low the average turnaround can be on so many CPUs: see [`bound`](crate::bound). Of
    /// tasks of which nobody knows when they come, as where others spawn them, only that each
    /// takes as long as it computes and sleeps.
    pub fn bound(&self, cpus: usize) -> Bound {
        let runs = self.jobs.iter().map(|job| job.run_ns() as u64);
        self.bound_of(runs, cpus)
    }

    /// The same if the tasks have these times on a CPU, in nanoseconds.
    pub fn bound_of(&self, runs_ns: impl Iterator<Item = u64>, cpus: usize) -> Bound {
        let jobs = self.jobs.iter().zip(self.arrivals_ns()).zip(runs_ns);
        let jobs = jobs.map(|((job, arrival), run_ns)| job.for_bound(arrival, run_ns));
        bound(&jobs.collect::<Vec<_>>(), cpus)
    }

    /// How often who waits for whom: by the waker and the waiter.
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

    /// When each task comes, in nanoseconds since the first; `None` if that depends on how the
    /// others run. What main computes between two spawns is left out where they are in one go: nobody
    /// comes the later for it.
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
    /// How many run intervals it has.
    pub fn intervals(&self) -> u64 {
        let own = self.steps.iter().filter(|work| work.ends_an_interval());
        own.map(|work| work.times).sum()
    }

    /// The time that it computes, in nanoseconds.
    pub fn run_ns(&self) -> f64 {
        let run = |work: &Work| work.times as f64 * work.run_ns;
        self.steps.iter().map(run).sum()
    }

    /// As a bound sees it: what it computes between two sleeps is one step. It computes for `run_ns` in
    /// all, by one factor more than here or less.
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
                Then::Yield | Then::Wait(_) | Then::Spawn(_) | Then::Exit => {
                    computes += work.times as f64 * work.run_ns;
                }
            }
        }
        // Computing after that, and what rounding left.
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

    /// Computes so much longer in each run interval, or shorter, but never less than nothing.
    pub fn lengthen_intervals(&mut self, by_ns: f64) {
        for work in &mut self.steps {
            if work.ends_an_interval() {
                work.run_ns = (work.run_ns + by_ns).max(0.0);
            }
        }
    }
}

impl Work {
    /// Run intervals that wake nobody.
    pub fn new(times: u64, run_ns: f64, then: Then) -> Self {
        Self {
            times,
            run_ns,
            then,
            wakes: [Wakes::default(); 2],
        }
    }

    fn ends_an_interval(&self) -> bool {
        !matches!(self.then, Then::Spawn(_))
    }
}

/// How many of `count` that are evenly spread fall to the first `part` of `whole`.
pub fn portion(count: u64, part: u64, whole: u64) -> u64 {
    (u128::from(count) * u128::from(part) / u128::from(whole.max(1))) as u64
}
