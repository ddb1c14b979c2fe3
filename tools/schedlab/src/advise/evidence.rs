//! Evidence from several runs of a program about each of its tasks. A task does the same work under
//! every policy, polls, or runs until it is stopped.
//!
//! The runs are those of the recordings, one under round robin and one in a kernel that does not
//! preempt, and the replay of each console that was kept. Their orders differ, so behaviour that
//! all of them share belongs to the task itself.
//!
//! 1. A task does the same work if its numbers of yields differ by at most a tenth between the
//!    runs, and its run times by at most a quarter. [`SWITCH_NS`] for each time that it got the CPU
//!    or yielded is allowed beyond that. A quarter is needed because a kernel that preempts has
//!    guards, which cost a task that allocates much a tenth of its time.
//! 2. Another rule holds if a task never yields, and has the CPU for less than [`GLANCE_NS`] at a
//!    time. It does not do the same work if in one run it got the CPU more often by a tenth, and
//!    the run times differ by a quarter.
//! 3. A task that does not do the same work polls if each yield that one run has beyond another
//!    took less than [`GLANCE_NS`]. If it never yields, the same holds for each time that it got the
//!    CPU. Otherwise it runs until it is stopped.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use axsched_ext::pbg::stored::StoredProfile;
use sched_sim::{recorded, time::Clock};
use sched_tests_results::{Followed, PbgLine, ResultLine};

use crate::{
    record::{parse, result_lines},
    simulate::TICK_NS,
};

/// The most that a switch or a yield may cost, in nanoseconds, under any policy, with an
/// instrument: several times the cost that `make cost` measures.
const SWITCH_NS: f64 = 1_000.0;
/// A task that has the CPU for less, in nanoseconds, has looked at something and done no work.
const GLANCE_NS: f64 = 100_000.0;
/// The differences that are allowed, as parts of the larger value: of counts, and of times.
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

/// How the work of a task depends on the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Same,
    Polls,
    /// It runs until it is stopped.
    AsLet,
}

/// A task that does not do the same work in all runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Differs {
    pub task: String,
    pub work: Work,
    /// Its least and most run time, in ms.
    pub run_ms: [f64; 2],
}

/// A boot that recorded and replayed, from its console.
#[derive(Clone, Debug)]
pub struct Boot {
    /// `pbg` or `pbg-coop`.
    pub scheduler: String,
    /// Average turnarounds, in ms.
    pub measured: f64,
    pub replayed: f64,
    /// PBG's line about the replay.
    pub said: Followed,
    /// The tasks of the replay.
    pub tasks: Vec<Seen>,
}

/// Returns the tasks of a recording.
pub fn recorded(profile: &StoredProfile) -> Vec<Seen> {
    let clock = Clock::of_frequency(profile.header.frequency_hz);
    // The workload names the tasks.
    let workload = recorded::recorded(profile, profile, clock, TICK_NS);
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

/// Reads a console. Returns `None` if it has no replay.
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

/// Returns the tasks of the first run that do not do the same work in all runs.
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
    let glances = seen.iter().all(glances);
    let differ = seen
        .iter()
        .enumerate()
        .any(|(i, a)| seen[..i].iter().any(|b| differ(a, b, glances)));
    match differ {
        false => Work::Same,
        true if is_polling(seen) => Work::Polls,
        true => Work::AsLet,
    }
}

/// Returns true if the times of the runs with the most looks and the fewest differ by little for each
/// look (rule 3).
fn is_polling(seen: &[&Seen]) -> bool {
    let yields = seen.iter().any(|seen| seen.yields > 0);
    let looks = |seen: &&&Seen| if yields { seen.yields } else { seen.dispatches };
    let (Some(least), Some(most)) = (seen.iter().min_by_key(looks), seen.iter().max_by_key(looks))
    else {
        return false;
    };
    let more = (looks(&most) - looks(&least)) as f64;
    more > 0.0 && (most.run_ns - least.run_ns).abs() < GLANCE_NS * more
}

fn differ(a: &Seen, b: &Seen, glances: bool) -> bool {
    let beyond = |a: f64, b: f64, part: f64| (a - b).abs() > part * a.max(b);
    if glances && a.yields == 0 && b.yields == 0 {
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

    /// Fails unless a task with these run times in ms, dispatches and yields in two runs does this
    /// work.
    #[track_caller]
    fn assert_work(runs: [(f64, u64, u64); 2], expected: Work) {
        let seen = runs.map(|(run_ms, dispatches, yields)| seen(run_ms, dispatches, yields));
        assert_eq!(work(&seen.each_ref()), expected, "{runs:?}");
    }

    #[test]
    fn rule_1_same_yields_and_computing_are_the_same_work() {
        // The cost of a switch is in the run times: short4 of realtime.
        assert_work([(109.1, 500_001, 500_000), (76.5, 1, 500_000)], Work::Same);
        // So is that of a yield that does not switch: short1 in two kernels.
        assert_work([(8.55, 1, 50_000), (6.9, 1, 50_000)], Work::Same);
        assert_work([(100.0, 9, 8), (124.0, 40, 8)], Work::Same);
        assert_work([(100.0, 9, 8), (140.0, 40, 8)], Work::AsLet);
        assert_work([(1100.0, 34, 11), (500.0, 6, 5)], Work::AsLet);
        assert_work([(100.0, 9, 20), (100.0, 9, 22)], Work::Same);
        assert_work([(100.0, 9, 20), (100.0, 9, 23)], Work::Polls);
    }

    #[test]
    fn rule_2_more_glances_are_not_the_same_work() {
        assert_work([(0.000_5, 1, 0), (0.003, 3, 0)], Work::Polls);
        // A short task that was preempted.
        assert_work([(0.05, 1, 0), (0.052, 2, 0)], Work::Same);
        // A task that works, and was preempted.
        assert_work([(4.0, 1, 0), (4.01, 2, 0)], Work::Same);
        assert_eq!(work(&[&seen(0.000_5, 1, 0)]), Work::Same);
    }

    #[test]
    fn rule_3_task_whose_yields_take_long_runs_as_long_as_it_is_let() {
        assert_work([(320.0, 81, 80), (692.0, 36, 173)], Work::AsLet);
        assert_work([(692.0, 1, 0), (320.0, 33, 0)], Work::AsLet);
        assert_work([(0.3, 81, 80), (0.7, 174, 173)], Work::Polls);
        // It works when it has seen what it looked for.
        assert_work([(20.3, 81, 80), (20.7, 174, 173)], Work::Polls);
        assert_work([(20.0, 1, 20), (120.0, 20, 400_000)], Work::Polls);
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
