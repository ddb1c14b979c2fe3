//! What a program does, task by task: of a recording, less what the recording's own scheduler
//! took.

use axsched_ext::pbg::stored::{Ended, PhaseOrder, Place, StoredPhase, StoredProfile, StoredTask};

use crate::time::Clock;

/// A program to be played.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Tasks, parents before their children.
    pub jobs: Vec<Job>,
}

/// What a task does.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its label, or its place in the tree of spawns.
    pub name: String,
    /// What the program calls it, if it does.
    pub label: Option<String>,
    /// Index of the task that spawns it; `None` is the root.
    pub parent: Option<usize>,
    /// In this order.
    pub steps: Vec<Work>,
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
}

/// What ends a run interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Then {
    /// It yields.
    Yield,
    /// It sleeps, for so many nanoseconds; until the first tick after that.
    Sleep(f64),
    /// It ends.
    Exit,
}

impl Workload {
    /// The mean run of a recording, with what switching cost still in it.
    pub fn recorded(profile: &StoredProfile, clock: Clock, tick_ns: u64) -> Self {
        let mut paths: Vec<String> = Vec::new();
        let jobs = profile.tasks.iter().map(|task| {
            let path = match task.place {
                Place::Root { ordinal } => ordinal.to_string(),
                Place::Child { parent, ordinal } => format!("{}.{ordinal}", paths[parent as usize]),
                Place::Several => task.key.to_string(),
            };
            paths.push(path.clone());
            let label = task.label.map(|label| label.to_string());
            Job {
                name: label.clone().unwrap_or(path),
                label,
                parent: match task.place {
                    Place::Child { parent, .. } => Some(parent as usize),
                    Place::Root { .. } | Place::Several => None,
                },
                steps: steps(task, clock, tick_ns),
            }
        });
        Self {
            jobs: jobs.collect(),
        }
    }
}

impl Job {
    /// How many run intervals it has.
    pub fn intervals(&self) -> u64 {
        self.steps.iter().map(|work| work.times).sum()
    }

    /// The time that it computes, in nanoseconds.
    pub fn run_ns(&self) -> f64 {
        let run = |work: &Work| work.times as f64 * work.run_ns;
        self.steps.iter().map(run).sum()
    }

    /// Computes so much longer in each run interval, or shorter, but never less than nothing.
    pub fn lengthen_intervals(&mut self, by_ns: f64) {
        for work in &mut self.steps {
            work.run_ns = (work.run_ns + by_ns).max(0.0);
        }
    }
}

/// The steps of a task, the mean of its runs.
fn steps(task: &StoredTask, clock: Clock, tick_ns: u64) -> Vec<Work> {
    let runs = f64::from(task.runs);
    let work = |phase: &StoredPhase| {
        let intervals = phase.intervals as f64;
        Work {
            times: (intervals / runs).round().max(1.0) as u64,
            run_ns: clock.ns(phase.run.0 as f64) / intervals,
            then: match phase.ended {
                // The interval goes on when the task is back: no business of the program's.
                Ended::Preemption | Ended::Yield => Then::Yield,
                Ended::Block => {
                    // It was woken at a tick, up to one after it had slept enough.
                    let blocked = clock.ns(phase.blocked.0 as f64) / intervals;
                    Then::Sleep((blocked - tick_ns as f64 / 2.0).max(1.0))
                }
                Ended::Exit => Then::Exit,
            },
        }
    };
    let steps: Vec<Work> = task.phases.list.iter().map(work).collect();
    match task.phases.order {
        PhaseOrder::AsRun => steps,
        PhaseOrder::ByEnding => spread(&steps),
    }
}

/// The order is not known: yields are dealt out evenly between the sleeps.
fn spread(steps: &[Work]) -> Vec<Work> {
    let find = |is: fn(Then) -> bool| steps.iter().find(|work| is(work.then)).copied();
    let yields = find(|then| then == Then::Yield);
    let sleeps = find(|then| matches!(then, Then::Sleep(_)));
    let exit = find(|then| then == Then::Exit);
    let mut spread = Vec::new();
    match (yields, sleeps) {
        (Some(yields), Some(sleeps)) => {
            // Before each sleep, and before the end.
            let parts = sleeps.times + 1;
            for part in 0..parts {
                let done = |part: u64| {
                    (u128::from(yields.times) * u128::from(part) / u128::from(parts)) as u64
                };
                let times = done(part + 1) - done(part);
                spread.extend((times > 0).then_some(Work { times, ..yields }));
                spread.extend((part < sleeps.times).then_some(Work { times: 1, ..sleeps }));
            }
        }
        (one, other) => spread.extend(one.into_iter().chain(other)),
    }
    spread.extend(exit);
    spread
}
