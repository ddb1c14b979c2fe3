//! A recording without the time of its own scheduler.
//!
//! The time of a run interval contains the cost of the switch to it under the recorded policy, and
//! of the begin of a sleep. These costs depend on the number of ready tasks. So the recording is
//! played under its own policy, and each task's run intervals are made shorter or longer until it
//! has the recorded time on the CPU.

use crate::{
    costs::YieldCost,
    play::{Machine, PlayError, play},
    policies::Policy,
    workload::Workload,
};
use axsched_ext::pbg::stored::StoredProfile;

/// The largest number of runs.
pub const ROUNDS: usize = 12;
/// The largest difference of a task's time from the recorded one, in parts of it.
pub const TOLERANCE: f64 = 0.000_2;
/// The largest difference of the average turnaround from the recorded one, in parts of it, that does
/// not ask for an explanation.
pub const CLOSE: f64 = 0.002;
/// The longest time for which gc looks at an ended task, in nanoseconds.
const MOST_GC_LOOK_NS: f64 = 2_000.0;
/// The largest number of guesses of that time.
const GUESSES: usize = 4;

/// A workload that takes as long as recorded under its own policy.
#[derive(Clone, Debug)]
pub struct Calibrated {
    /// The recorded workload, its run intervals made longer or shorter.
    pub workload: Workload,
    /// The largest difference that is left, in parts of a task's recorded time.
    pub rest: f64,
    /// The difference of the average turnaround from the recorded one, in parts of that.
    pub off: f64,
    /// The mean difference of a task's turnaround from the recorded one, without its sign, in parts of
    /// the recorded average.
    off_each: f64,
    /// The number of times that all tasks waited for each other when it was played
    /// ([`Outcome::broken_waits`](crate::play::Outcome::broken_waits)).
    pub broken_waits: u64,
}

/// Calibrates `recorded`, whose time on the CPU is that of the recording, on one CPU.
/// `turnarounds_ns` are the recorded ones.
///
/// A recording does not tell if main keeps the handles of its tasks, in which case gc yields from the
/// first end on until the last. That is assumed if the tasks end too early without it, and if gc's
/// looks can take so long that each task ends when it did.
///
/// # Errors
/// See [`PlayError`].
pub fn calibrate(
    recorded: &Workload,
    turnarounds_ns: &[f64],
    policy: &Policy,
    plan: &StoredProfile,
    costs: &YieldCost,
    machine: &Machine,
) -> Result<Calibrated, PlayError> {
    let with = |gc_look_ns| {
        let workload = Workload {
            gc_look_ns,
            ..recorded.clone()
        };
        calibrate_times(&workload, turnarounds_ns, policy, plan, costs, machine)
    };
    let dropped = with(None)?;
    if dropped.off >= -CLOSE {
        return Ok(dropped);
    }
    // The average grows with the time of a look. Each guess comes from the last two.
    let (mut before, mut look_ns) = ((0.0, with(Some(0.0))?.off), 100.0);
    for _ in 0..GUESSES {
        let kept = with(Some(look_ns))?;
        if kept.off.abs() <= CLOSE / 2.0 {
            return Ok(match kept.off_each < dropped.off_each / 4.0 {
                true => kept,
                false => dropped,
            });
        }
        let slope = (kept.off - before.1) / (look_ns - before.0);
        before = (look_ns, kept.off);
        look_ns -= kept.off / slope;
        if !(0.0..=MOST_GC_LOOK_NS).contains(&look_ns) {
            break;
        }
    }
    Ok(dropped)
}

/// Makes the run intervals longer or shorter until each task has its time.
fn calibrate_times(
    recorded: &Workload,
    turnarounds_ns: &[f64],
    policy: &Policy,
    plan: &StoredProfile,
    costs: &YieldCost,
    machine: &Machine,
) -> Result<Calibrated, PlayError> {
    let expected: Vec<f64> = recorded.jobs.iter().map(|job| job.run_ns()).collect();
    let mut workload = recorded.clone();
    let first = costs.switched_ns(recorded.jobs.len() as u64) + machine.hook_ns as f64;
    workload
        .jobs
        .iter_mut()
        .for_each(|job| job.lengthen_intervals(-first));
    let all_ns = turnarounds_ns.iter().sum::<f64>().max(1.0);
    let mut best: Option<Calibrated> = None;
    for _ in 0..ROUNDS {
        let played = play(&workload, policy, plan, costs, machine)?;
        let turnarounds = played.tasks.iter().zip(turnarounds_ns);
        let off = turnarounds.map(|(task, ns)| (task.finish_ns - task.submit_ns) as f64 - ns);
        let off: Vec<f64> = off.collect();
        let mut rest = 0.0_f64;
        let mut next = workload.clone();
        for ((job, task), expected) in next.jobs.iter_mut().zip(&played.tasks).zip(&expected) {
            let missing = expected - task.run_ns as f64;
            rest = rest.max(missing.abs() / expected.max(1.0));
            job.lengthen_intervals(missing / job.intervals().max(1) as f64);
        }
        if best.as_ref().is_none_or(|best| rest < best.rest) {
            best = Some(Calibrated {
                workload,
                rest,
                off: off.iter().sum::<f64>() / all_ns,
                off_each: off.iter().map(|off| off.abs()).sum::<f64>() / all_ns,
                broken_waits: played.broken_waits,
            });
        }
        if rest <= TOLERANCE {
            break;
        }
        workload = next;
    }
    Ok(best.expect("it was played once"))
}
