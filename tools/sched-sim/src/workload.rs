//! What a program does, task by task: of a recording, less what the recording's own scheduler
//! took.

use axsched_ext::pbg::stored::{Ended, PhaseOrder, Place, StoredProfile, StoredTask};

use crate::{
    bound::{self, Bound},
    time::Clock,
};

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

impl Workload {
    /// How low the average turnaround can be on so many CPUs. Where tasks spawn others nobody
    /// knows when, only that each takes as long as it computes.
    pub fn bound(&self, cpus: usize) -> Bound {
        bound::of_jobs(
            &self
                .jobs
                .iter()
                .map(|job| (0, job.run_ns() as u64))
                .collect::<Vec<_>>(),
            cpus,
            self.is_submitted_at_once(),
        )
    }

    /// Whether main spawns all tasks.
    pub fn is_submitted_at_once(&self) -> bool {
        self.jobs.iter().all(|job| job.parent.is_none())
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
    // What a preemption cut off of the run interval that goes on afterwards: no business of the
    // program's.
    let mut cut_ns = 0.0;
    let mut steps = Vec::new();
    for phase in &task.phases.list {
        let run_ns = clock.ns(phase.run.0 as f64) / runs;
        if phase.ended == Ended::Preemption {
            cut_ns += run_ns;
            continue;
        }
        let times = (phase.intervals as f64 / runs).round().max(1.0);
        steps.push(Work {
            times: times as u64,
            run_ns: (run_ns + std::mem::take(&mut cut_ns)) / times,
            then: match phase.ended {
                Ended::Preemption | Ended::Yield => Then::Yield,
                Ended::Block => {
                    // It was woken at a tick, up to one after it had slept enough.
                    let blocked = clock.ns(phase.blocked.0 as f64) / runs / times;
                    Then::Sleep((blocked - tick_ns as f64 / 2.0).max(1.0))
                }
                Ended::Exit => Then::Exit,
            },
        });
    }
    if cut_ns > 0.0 {
        steps.push(Work {
            times: 1,
            run_ns: cut_ns,
            then: Then::Exit,
        });
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use axsched_ext::{
        pbg::stored::{Figures, Phases, StoredPhase},
        units::{Counts, TaskKey},
    };

    const TICK_NS: u64 = 10_000_000;
    const MS: u64 = 1_000_000;

    /// `(ending, run intervals, run in ms, blocked in ms)`, all sums over the runs.
    fn played(runs: u32, order: PhaseOrder, phases: &[(Ended, u64, u64, u64)]) -> Vec<Work> {
        let phase = |&(ended, intervals, run, blocked): &(Ended, u64, u64, u64)| {
            StoredPhase::new(ended, intervals, Counts(run * MS), Counts(blocked * MS))
        };
        let task = StoredTask {
            key: TaskKey::ROOT.child(0),
            label: None,
            place: Place::Root { ordinal: 0 },
            runs,
            priority: None,
            deadline: None,
            figures: Figures::default(),
            phases: Phases {
                order,
                list: phases.iter().map(phase).collect(),
            },
            spawned: None,
        };
        steps(&task, Clock::of_frequency(1_000_000_000), TICK_NS)
    }

    fn work(times: u64, run_ms: f64, then: Then) -> Work {
        Work {
            times,
            run_ns: run_ms * MS as f64,
            then,
        }
    }

    #[test]
    fn steps_are_the_mean_of_the_runs_and_no_time_is_lost_to_rounding() {
        let exit = (Ended::Exit, 3, 30, 0);
        let found = played(3, PhaseOrder::AsRun, &[(Ended::Yield, 4, 1200, 0), exit]);
        assert_eq!(
            found,
            [work(1, 400.0, Then::Yield), work(1, 10.0, Then::Exit)]
        );
        let found = played(3, PhaseOrder::AsRun, &[(Ended::Yield, 1, 300, 0), exit]);
        assert_eq!(
            found,
            [work(1, 100.0, Then::Yield), work(1, 10.0, Then::Exit)]
        );
        let found = played(2, PhaseOrder::AsRun, &[(Ended::Yield, 10, 100, 0)]);
        assert_eq!(found, [work(5, 10.0, Then::Yield)]);
    }

    #[test]
    fn a_wait_is_half_a_tick_shorter_than_it_was() {
        let found = played(1, PhaseOrder::AsRun, &[(Ended::Block, 4, 8, 100)]);
        assert_eq!(found, [work(4, 2.0, Then::Sleep(20.0 * MS as f64))]);
        let found = played(2, PhaseOrder::AsRun, &[(Ended::Block, 2, 2, 4)]);
        assert_eq!(found, [work(1, 1.0, Then::Sleep(1.0))]);
    }

    #[test]
    fn what_a_preemption_cut_goes_on() {
        let cut = (Ended::Preemption, 5, 500, 0);
        let found = played(1, PhaseOrder::AsRun, &[cut, (Ended::Yield, 2, 100, 0)]);
        assert_eq!(found, [work(2, 300.0, Then::Yield)]);
        assert_eq!(
            played(1, PhaseOrder::AsRun, &[cut]),
            [work(1, 500.0, Then::Exit)]
        );
        let phases = [(Ended::Yield, 1, 1, 0), cut, (Ended::Exit, 1, 2, 0)];
        let found = played(1, PhaseOrder::ByEnding, &phases);
        let run_ns: f64 = found.iter().map(|work| work.run_ns).sum();
        assert_eq!(run_ns, 503.0 * MS as f64);
    }

    #[test]
    fn without_an_order_yields_are_dealt_out_between_the_sleeps() {
        let phases = [
            (Ended::Yield, 7, 70, 0),
            (Ended::Block, 2, 6, 50),
            (Ended::Exit, 1, 4, 0),
        ];
        let found = played(1, PhaseOrder::ByEnding, &phases);
        let sleep = Then::Sleep(20.0 * MS as f64);
        let expected = [
            work(2, 10.0, Then::Yield),
            work(1, 3.0, sleep),
            work(2, 10.0, Then::Yield),
            work(1, 3.0, sleep),
            work(3, 10.0, Then::Yield),
            work(1, 4.0, Then::Exit),
        ];
        assert_eq!(found, expected);
    }
}
