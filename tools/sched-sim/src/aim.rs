//! The figures that an order can be made for. Less is better in all of them.

use crate::{bound::waiting::Needs, play::Outcome, workload::Workload};

/// The figure that an order makes small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// The average turnaround.
    Average,
    /// The time until the last task has ended.
    Makespan,
    /// The largest turnaround as a multiple of the time that its task computes.
    Slowdown,
    /// The sum of the times by which tasks end after their deadlines.
    Deadlines,
}

impl Aim {
    /// All aims, by their names.
    pub const ALL: [(&'static str, Self); 4] = [
        ("average", Self::Average),
        ("makespan", Self::Makespan),
        ("slowdown", Self::Slowdown),
        ("deadlines", Self::Deadlines),
    ];

    /// Returns the figure of a run, in nanoseconds or as a multiple. A deadline counts from the
    /// submission of its task.
    pub fn value(self, outcome: &Outcome, workload: &Workload, deadlines: &[Option<f64>]) -> f64 {
        let tasks = || outcome.tasks.iter();
        let turnarounds = || tasks().map(|task| (task.finish_ns - task.submit_ns) as f64);
        match self {
            Self::Average => outcome.average_ns(),
            Self::Makespan => tasks().map(|task| task.finish_ns).max().unwrap_or(0) as f64,
            Self::Slowdown => {
                let runs = workload.jobs.iter().map(|job| job.run_ns().max(1.0));
                let slowdowns = turnarounds().zip(runs).map(|(time, run)| time / run);
                slowdowns.fold(1.0, f64::max)
            }
            Self::Deadlines => {
                let due = turnarounds().zip(deadlines);
                let late = due.filter_map(|(time, due)| Some((time - (*due)?).max(0.0)));
                late.sum()
            }
        }
    }

    /// Returns a lower bound of the figure on `cpus` CPUs. Without needs, the waits of tasks for each
    /// other are left out.
    pub fn bound(
        self,
        workload: &Workload,
        needs: Option<&Needs>,
        deadlines: &[Option<f64>],
        cpus: usize,
    ) -> f64 {
        let by_needs = |of: &dyn Fn(&Needs) -> f64| needs.map_or(0.0, of);
        match self {
            Self::Average => {
                let plain = workload.bound(cpus).average_ns;
                by_needs(&|needs| needs.average_ns(cpus)).max(plain)
            }
            Self::Makespan => by_needs(&|needs| needs.makespan_ns(cpus)),
            Self::Slowdown => by_needs(&|needs| needs.slowdown(cpus)).max(1.0),
            Self::Deadlines => by_needs(&|needs| needs.tardiness_ns(deadlines, cpus)),
        }
    }
}
