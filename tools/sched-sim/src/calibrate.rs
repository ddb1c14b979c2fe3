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

/// A workload that takes as long as recorded under its own policy.
#[derive(Clone, Debug)]
pub struct Calibrated {
    /// The recorded workload, its run intervals made longer or shorter.
    pub workload: Workload,
    /// The largest difference that is left, in parts of a task's recorded time.
    pub rest: f64,
    /// The number of times that all tasks waited for each other when it was played
    /// ([`Outcome::broken_waits`](crate::play::Outcome::broken_waits)).
    pub broken_waits: u64,
}

/// Calibrates `recorded`, whose time on the CPU is that of the recording, on one CPU.
///
/// # Errors
/// See [`PlayError`].
pub fn calibrate(
    recorded: &Workload,
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
    let mut best: Option<Calibrated> = None;
    for _ in 0..ROUNDS {
        let played = play(&workload, policy, plan, costs, machine)?;
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
