//! The steps of a task: its bursts of CPU time, in groups (rule 3).

use alloc::vec::Vec;

use super::weight::Weight;
use pbg_profile::{Ended, Figure, PhaseOrder, StoredTask};
use sched_core::units::Counts;

/// Consecutive bursts of CPU time. Each lasts from one block to the next, or to the exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The number of bursts in one run, at least 1.
    pub times: u64,
    /// The mean length of a burst, rounded down.
    pub run: Counts,
}

/// Appends the steps of `task` (rule 3). These are at least one, and at most one for each phase.
pub fn push_steps(task: &StoredTask, steps: &mut Vec<Step>) {
    let runs = u64::from(task.runs.max(1));
    // The number in one run, rounded to the nearest. A task that blocked 9 times in 10 runs blocks
    // once.
    let once = |total: u64| total.saturating_add(runs / 2) / runs;
    let phases = &task.phases.list;
    if phases.is_empty() || task.phases.order == PhaseOrder::ByEnding {
        let figures = &task.figures;
        let times = if !phases.is_empty() {
            // The last burst ends by the exit. If the exit is unknown, it is one of the blocks.
            let bursts = (phases.iter())
                .filter(|phase| ends_burst(phase.ended))
                .fold(0u64, |sum, phase| sum.saturating_add(phase.intervals));
            once(bursts).max(1)
        } else if figures.blocked.most > 0 {
            once(figures.blocks.total).saturating_add(1)
        } else {
            1 // it never came back from a block, so that block is the exit
        };
        let run = Counts(figures.run.mean(task.runs) / times);
        return steps.push(Step { times, run });
    }
    // The time since the last block, over all runs.
    let mut since = Counts::ZERO;
    for phase in phases {
        if !ends_burst(phase.ended) {
            since += phase.run;
            continue;
        }
        let times = once(phase.intervals).max(1);
        let run = phase.mean_run();
        let first = Counts(since.0 / runs).saturating_add(run);
        since = Counts::ZERO;
        // Only the first burst includes the time up to earlier yields and preemptions.
        if first == run || times == 1 {
            steps.push(Step { times, run: first });
        } else {
            steps.push(Step {
                times: 1,
                run: first,
            });
            steps.push(Step {
                times: times - 1,
                run,
            });
        }
    }
    // The record ends before the task does.
    if phases.last().is_some_and(|last| !ends_burst(last.ended)) {
        let run = Counts(since.0 / runs);
        steps.push(Step { times: 1, run });
    }
}

/// Returns the weight of `task`, which has these `steps` (rule 4).
pub fn weight_of(task: &StoredTask, steps: &[Step]) -> Weight {
    let times = |sum: u64, step: &Step| sum.saturating_add(step.times);
    let bursts = steps.iter().fold(0, times);
    let mean = |figure: Figure| Counts(figure.mean(task.runs));
    let [run, blocked] = [task.figures.run, task.figures.blocked].map(mean);
    Weight::of(run, blocked, bursts - 1)
}

fn ends_burst(ended: Ended) -> bool {
    match ended {
        Ended::Yield | Ended::Preemption => false,
        Ended::Block | Ended::Exit => true,
    }
}
