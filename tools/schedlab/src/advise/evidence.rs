//! What several runs of a program say of each of its tasks: does it do the same whatever the
//! policy, does it poll, does it run for as long as it is let?
//!
//! The runs are those of the recordings, one under round robin and one in a kernel that does
//! not preempt, and, of a console that was kept, the replay by the plan. Their orders differ,
//! so what a task does in all of them is its own.
//!
//! 1. A task does the same if it yields as often in all runs, to a tenth, and computes as long, to
//!    a quarter and [`SWITCH_NS`] for each time that it got the CPU or yielded. A kernel that
//!    preempts has guards, which cost a task that allocates much a tenth of its time.
//! 2. One that never yields and has the CPU for less than [`GLANCE_NS`] at a time does not do the
//!    same if it got the CPU more often by a tenth and had it longer by a quarter.
//! 3. Of those that do not do the same, one that has the CPU for less than [`GLANCE_NS`] at a time
//!    in all runs polls; another runs for as long as it is let.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use axsched_ext::pbg::stored::StoredProfile;
use sched_sim::{recorded, time::Clock};
use sched_tests_results::{Followed, PbgLine, ResultLine};

use crate::{
    record::{parse, result_lines},
    simulate::TICK_NS,
};

/// What a switch or a yield may cost, in nanoseconds, under any policy, with an instrument;
/// several times what `make cost` measures.
const SWITCH_NS: f64 = 1_000.0;
/// Who has the CPU for less has looked at something, and not done any work, in nanoseconds.
const GLANCE_NS: f64 = 100_000.0;
/// How much may be different, in parts of the larger: how often, and how long.
const TENTH: f64 = 0.1;
const QUARTER: f64 = 0.25;

/// A task in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub task: String,
    pub run_ns: f64,
    pub dispatches: u64,
    pub yields: u64,
}

/// How a task's work hangs on the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Same,
    Polls,
    AsLet,
}

/// A task that does not do the same in all runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Differs {
    pub task: String,
    pub work: Work,
    /// Its least and most run time, in ms.
    pub run_ms: [f64; 2],
}

/// A boot that recorded and replayed, as its console has it.
#[derive(Clone, Debug)]
pub struct Boot {
    /// `pbg` or `pbg-coop`.
    pub scheduler: String,
    /// Average turnarounds, in ms.
    pub measured: f64,
    pub replayed: f64,
    /// What PBG said of the replay.
    pub said: Followed,
    /// The tasks of the replay.
    pub tasks: Vec<Seen>,
}

/// The tasks of a recording.
pub fn recorded(profile: &StoredProfile) -> Vec<Seen> {
    let clock = Clock::of_frequency(profile.header.frequency_hz);
    // For what they are called.
    let workload = recorded::recorded(profile, clock, TICK_NS);
    let tasks = profile.tasks.iter().zip(workload.jobs);
    tasks
        .map(|(task, job)| Seen {
            task: job.name,
            run_ns: clock.ns(task.figures.run.mean(task.runs) as f64),
            dispatches: task.figures.dispatches.mean(task.runs),
            yields: task.figures.yields.mean(task.runs),
        })
        .collect()
}

/// What a console says; nothing if it has no replay.
pub fn console(file: &Path) -> Result<Option<Boot>> {
    let place = || file.display().to_string();
    let text = std::fs::read(file).with_context(place)?;
    let text = String::from_utf8_lossy(&text).replace('\r', "");
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let said = lines.iter().find_map(|line| match PbgLine::read(line) {
        Ok(PbgLine::Followed(said)) => Some(said),
        _ => None,
    });
    let results = result_lines(&lines);
    let Some(said) = said.filter(|_| !results.is_empty()) else {
        return Ok(None);
    };
    let outcome = parse(&results.join("\n")).map_err(|why| anyhow!("{}: {why}", place()))?;
    let phase = |name: &str| outcome.phases.iter().find(|phase| phase.name() == name);
    let (Some(measure), Some(replay)) = (phase("measure"), phase("replay")) else {
        return Ok(None);
    };
    let tasks = replay.tasks.iter().map(|task| Seen {
        task: task.task.clone(),
        run_ns: task.run_ns as f64,
        dispatches: task.dispatches,
        yields: task.yields,
    });
    Ok(Some(Boot {
        scheduler: replay.run.context.sched.clone(),
        measured: measure.run.avg_turnaround_ns as f64 / 1e6,
        replayed: replay.run.avg_turnaround_ns as f64 / 1e6,
        said,
        tasks: tasks.collect(),
    }))
}

/// The tasks of the first run that do not do the same in all.
pub fn differing(runs: &[Vec<Seen>]) -> Vec<Differs> {
    let Some(first) = runs.first() else {
        return Vec::new();
    };
    let of = |one: &Seen| -> Vec<&Seen> {
        let same = |run: &'_ Vec<Seen>| run.iter().position(|seen| seen.task == one.task);
        runs.iter()
            .filter_map(|run| same(run).map(|place| &run[place]))
            .collect()
    };
    let differing = first.iter().filter_map(|one| {
        let seen = of(one);
        let work = work(&seen);
        let run_ms = seen.iter().map(|seen| seen.run_ns / 1e6);
        (work != Work::Same).then(|| Differs {
            task: one.task.clone(),
            work,
            run_ms: [
                run_ms.clone().fold(f64::INFINITY, f64::min),
                run_ms.fold(0.0, f64::max),
            ],
        })
    });
    differing.collect()
}

fn work(seen: &[&Seen]) -> Work {
    let glances = |seen: &&Seen| seen.run_ns < GLANCE_NS * seen.dispatches.max(1) as f64;
    let polls = seen.iter().all(glances);
    let differ = seen
        .iter()
        .enumerate()
        .any(|(i, a)| seen[..i].iter().any(|b| differ(a, b, polls)));
    match (differ, polls) {
        (false, _) => Work::Same,
        (true, true) => Work::Polls,
        (true, false) => Work::AsLet,
    }
}

fn differ(a: &Seen, b: &Seen, polls: bool) -> bool {
    let beyond = |a: f64, b: f64, part: f64| (a - b).abs() > part * a.max(b);
    if polls && a.yields == 0 && b.yields == 0 {
        return beyond(a.dispatches as f64, b.dispatches as f64, TENTH)
            && a.run_ns.max(b.run_ns) > 1.25 * a.run_ns.min(b.run_ns);
    }
    let times = |seen: &Seen| (seen.dispatches + seen.yields) as f64;
    let switching = SWITCH_NS * (times(a) + times(b));
    let computing = (a.run_ns - b.run_ns).abs() - switching;
    beyond(a.yields as f64, b.yields as f64, TENTH) || computing > QUARTER * a.run_ns.max(b.run_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(run_ms: f64, dispatches: u64, yields: u64) -> Seen {
        Seen {
            task: "a".to_owned(),
            run_ns: run_ms * 1e6,
            dispatches,
            yields,
        }
    }

    fn work_of(runs: &[Seen]) -> Work {
        work(&runs.iter().collect::<Vec<_>>())
    }

    #[test]
    fn rule_1_who_yields_and_computes_as_often_does_the_same() {
        // What a switch costs is in the run times: short4 of realtime.
        let same = [seen(109.1, 500_001, 500_000), seen(76.5, 1, 500_000)];
        assert_eq!(work_of(&same), Work::Same);
        // And what a yield costs that is none: short1 in two kernels.
        assert_eq!(
            work_of(&[seen(8.55, 1, 50_000), seen(6.9, 1, 50_000)]),
            Work::Same
        );
        assert_eq!(
            work_of(&[seen(100.0, 9, 8), seen(124.0, 40, 8)]),
            Work::Same
        );
        assert_eq!(
            work_of(&[seen(100.0, 9, 8), seen(140.0, 40, 8)]),
            Work::AsLet
        );
        assert_eq!(
            work_of(&[seen(1100.0, 34, 11), seen(500.0, 6, 5)]),
            Work::AsLet
        );
        assert_eq!(
            work_of(&[seen(100.0, 9, 20), seen(100.0, 9, 22)]),
            Work::Same
        );
        assert_eq!(
            work_of(&[seen(100.0, 9, 20), seen(100.0, 9, 23)]),
            Work::AsLet
        );
    }

    #[test]
    fn rule_2_who_only_glances_but_more_often_does_not_do_the_same() {
        let [once, thrice] = [seen(0.000_5, 1, 0), seen(0.003, 3, 0)];
        assert_eq!(work_of(&[once.clone(), thrice]), Work::Polls);
        // A short task that was preempted.
        assert_eq!(work_of(&[seen(0.05, 1, 0), seen(0.052, 2, 0)]), Work::Same);
        // One that works, and was preempted.
        assert_eq!(work_of(&[seen(4.0, 1, 0), seen(4.01, 2, 0)]), Work::Same);
        assert_eq!(work_of(&[once]), Work::Same);
    }

    #[test]
    fn rule_3_who_has_the_cpu_for_long_runs_as_long_as_it_is_let() {
        assert_eq!(
            work_of(&[seen(320.0, 81, 80), seen(692.0, 36, 173)]),
            Work::AsLet
        );
        assert_eq!(
            work_of(&[seen(0.3, 81, 80), seen(0.7, 174, 173)]),
            Work::Polls
        );
    }

    #[test]
    fn tasks_are_found_by_their_names() {
        let named = |task: &str, run_ms| Seen {
            task: task.to_owned(),
            ..seen(run_ms, 1, 0)
        };
        let runs = [
            vec![named("a", 100.0), named("b", 100.0)],
            vec![named("b", 300.0), named("a", 100.0)],
            vec![named("c", 1.0)],
        ];
        let expected = Differs {
            task: "b".to_owned(),
            work: Work::AsLet,
            run_ms: [100.0, 300.0],
        };
        assert_eq!(differing(&runs), [expected]);
        assert_eq!(differing(&[]), []);
    }
}
