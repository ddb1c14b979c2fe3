//! The plan: a pure function of the profile.
//!
//! A plan is an order of tasks, made so that their average turnaround is the
//! least on one CPU, under what the user has asked for: priorities, and deadlines
//! at which a task must have ended.
//!
//!  1. **Expected.** A task is expected to use what it used on average over its
//!     runs. A promise is checked with the most that it used in any of them.
//!  2. **Priority.** The tasks of one priority are a class, those without one the
//!     last. Classes go strictly one after the other.
//!  3. **Steps.** What a task does is cut at its blocks, into bursts of CPU time:
//!     a task keeps the CPU across its own yields, and being preempted is not its
//!     doing, so time before those counts to the burst that they are in. Bursts
//!     that follow one another and come from the same phase are a step. Where the
//!     order of the phases is not known, the task has one step, of equal bursts.
//!  4. **Shortest first.** A class in which no task has a deadline is one band:
//!     its tasks are ranked by what is before them, and a replay orders them by what
//!     remains of it. Before a task is the burst that it is in, and of its CPU time
//!     after that a part, the task's weight: R / (R + Z × n / [`BLOCKS_IN_FULL`]),
//!     where R is all its CPU time, Z the time that it is blocked, and n how often. So
//!     it is all of it for a task that is never blocked for long (a job), which is
//!     planned as one step of one burst; and next to nothing for one that is
//!     blocked again and again, and for longer than it runs (a server).
//!  5. **Equal is by arrival.** If the times before several tasks of a band differ by at
//!     most 1/[`TIE_FRACTION`] of the least, the first spawned goes first.
//!  6. **Deadlines.** In a class in which some task has a deadline, every task
//!     is a band by itself, and the order is one in which every task ends in
//!     time; of those orders, one with the least average turnaround.
//!  7. **In time** is a task if the most of all classes before, of the tasks before it
//!     in its class, and of itself, and the most time that it was ever blocked, do
//!     not exceed its deadline together.
//!  8. **Too much.** If no order has every task in time, as few as can be are late.
//!     They lose their deadline, are ranked by rule 6 without it, and are named
//!     in [`Plan::late`].
//!
//! **Sources.** Rule 4: for tasks that never block, shortest first has the least
//! average turnaround (Smith, Various optimizers for single-stage production, 1956),
//! with late arrivals if what remains is compared (Schrage, 1968). For tasks that
//! block there is no such theorem, but the same argument of exchange: the task that goes first
//! costs the others the CPU time that it uses before they end, and the later time of a sleeper
//! costs them nothing. R / (R + Z) is the share of its own time in which
//! it uses the CPU. That Z counts by the number of blocks is a weighing of many programs
//! (`docs/adr/0013-weighed-by-blocked-time.md`): a task of few bursts is over after
//! those, and to let a long one go first because it waits soon costs all the others (by
//! next bursts, as SJF orders them, the app `batch`, in which a quarter of the jobs waits
//! four times, has an average turnaround of 903 ms, and of 813 ms by all that remains;
//! x86_64, full scale); of many, another task may wait for each answer. Rule 6 is
//! Smith's backward rule, from the
//! same paper: of the tasks that may be last, the longest is. It finds an order if
//! there is one, that is, if the order of deadlines is one (Jackson, Scheduling
//! a production line to minimize maximum tardiness, 1955; today EDF). Rule 8 is
//! Moore's algorithm in Hodgson's form (Moore, An n job, one machine sequencing
//! algorithm for minimizing the number of late jobs, 1968): add the tasks by deadline,
//! and whenever the one just added is late, give up the longest so far.
//!
//! **Why rule 7 is a promise.** While a task is ready and does not run, one of a
//! lower rank runs, and those have only so much to do. So it ends at most that much
//! later than it would alone, whenever it and the others were spawned and however
//! they block. The times of rule 7 may be of different runs: then the promise is on
//! the safe side, and a task may be named late that would just have been in time.
//! For tasks that were spawned together and never block it is exact: those are late
//! of which no order has more in time.
//!
//! **Why rule 8 harms no other task.** The tasks that are not given up, by deadline, and
//! then the others, is an order with the former in time; so one exists, and Smith's
//! rule finds the best. A task in `late` is late there too: were it not, that order
//! would have fewer late tasks than the fewest.
//!
//! **Which time is least.** By rule 6 the average turnaround is least when every task
//! takes its most, as rule 7 assumes. Smith's rule needs one and the same length
//! for both questions: with the mean for one and the most for the other, putting
//! the longest last may cost a shorter one its deadline.
//!
//! **Cost.** n tasks: n log n comparisons. A plan has 64 bytes a task, 16 a step (at
//! least one a task, at most [`MAX_PHASES`](pbg_profile::MAX_PHASES)) and 24 a late
//! task; making it takes 40 more a task, and 16 more if any has a deadline.
//! A replay of n tasks with deadlines is one of n bands.
//!
//! **Limits.** What the plan does not know is not in its promises: tasks outside the
//! plan, which have their share of the CPU; the tick that it may take, each time that a
//! task or one of lower rank becomes ready, until the CPU is taken from one of higher
//! rank; and blocked time that depends on the order, as
//! that of a task that waits for another. Leave room for it. Within a class with
//! deadlines a task that arrives late does not take over by what remains of it,
//! as that could break a promise. The largest deadline, 2^64 − 1, is none.

mod order;
mod steps;
#[cfg(test)]
mod tests;
mod weight;

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::ops::Range;

pub use order::TIE_FRACTION;
pub use steps::Step;
pub use weight::{BLOCKS_IN_FULL, Weight};

use order::{
    Candidate, NO_DUE, NO_PRIORITY, deadline, equal_by_arrival, give_up_late, longest_last, most,
};
use pbg_profile::{StoredProfile, StoredTask};
use pbg_record::error::{Error, reserved};
use sched_core::units::{Counts, TaskKey};
use steps::{push_steps, weight_of};

/// One task of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedTask {
    /// The key of the task.
    pub key: TaskKey,
    /// Bands are strict: no task runs while one of a lower band is ready. Tasks of
    /// one band stand together and are ordered among themselves by what is before
    /// them (rule 4). Counted from 0 without gaps.
    pub band: u32,
    /// Where in its band it stands: what is before it at first, or before the shortest
    /// task that counts as equal. Within a band it never decreases from rank to rank, so
    /// the place of any remaining time is found by binary search.
    pub sort_key: Counts,
    /// The time on the CPU that it is expected to use in all: the mean of its runs.
    pub run: Counts,
    /// The most that it used in any run.
    pub most: Counts,
    /// How long it lived, from its spawn to its end: the mean of its runs.
    pub turnaround: Counts,
    /// How often it yielded in the run in which it yielded most.
    pub yields: u64,
    /// What part of its time after a burst is before it (rule 4). If it is not all of
    /// it, each block ends a burst of its steps.
    pub weight: Weight,
    /// Which of [`Plan::steps`] are its own, in the order in which they run; at
    /// least one.
    pub steps: Range<u32>,
}

/// A task that does not end in time (rule 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// The key of the task.
    pub key: TaskKey,
    /// When it should have ended, counted from its spawn.
    pub deadline: Counts,
    /// When it ends by the plan, counted alike: the sum of rule 7. Always later.
    pub end: Counts,
}

/// An order of tasks; the place in it is the rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    tasks: Vec<PlannedTask>,
    steps: Vec<Step>,
    late: Vec<Late>,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    use core::mem::size_of;
    assert!(size_of::<PlannedTask>() == 64 && size_of::<Step>() == 16 && size_of::<Late>() == 24);
};

impl Plan {
    /// The plan of a profile that keeps its rules
    /// ([`validate`](StoredProfile::validate)): every task once, by rank. The
    /// same profile has the same plan, on every machine.
    ///
    /// # Errors
    /// [`Error::NoMemory`]. Cost: see the module's documentation.
    pub fn of(profile: &StoredProfile) -> Result<Self, Error> {
        let stored = &profile.tasks;
        let phases = |task: &StoredTask| task.phases.list.len().max(1);
        let mut steps = reserved(stored.iter().map(phases).sum())?;
        let mut order = reserved(stored.len())?;
        let mut tasks = reserved(stored.len())?;
        let mut late = Vec::new();
        let mut longest = BinaryHeap::new();
        if stored.iter().any(|task| deadline(task).is_some()) {
            longest
                .try_reserve_exact(stored.len())
                .map_err(|_| Error::NoMemory)?;
        }

        for (place, task) in stored.iter().enumerate() {
            let first = steps.len();
            push_steps(task, &mut steps);
            let run = Counts(task.figures.run.mean(task.runs));
            let weight = weight_of(task, &steps[first..]);
            if weight == Weight::WHOLE {
                steps.truncate(first);
                steps.push(Step { times: 1, run });
            }
            let due =
                deadline(task).map(|deadline| deadline.0.checked_sub(task.figures.blocked.most));
            order.push(Candidate {
                class: task.priority.map_or(NO_PRIORITY, |p| p.get().into()),
                place: place as u32,
                sort_key: weight.before(steps[first].run, run),
                weight,
                steps: first as u32..steps.len() as u32,
                due: due.flatten().unwrap_or(NO_DUE),
                late: due == Some(None), // blocked for longer than it may take
                rank: 0,
            });
        }
        order.sort_unstable_by_key(|task| (task.class, task.sort_key, task.place));

        // Wider than a time: with sums that saturate, every task with the largest deadline but one
        // would be in time.
        let mut end: u128 = 0;
        let mut band = 0;
        for class in order.chunk_by_mut(|a, b| a.class == b.class) {
            let strict = class.iter().any(|task| task.late || task.due != NO_DUE);
            if strict {
                give_up_late(class, stored, end, &mut longest);
                longest_last(class, stored, end, &mut longest);
                late.try_reserve_exact(class.iter().filter(|task| task.late).count())
                    .map_err(|_| Error::NoMemory)?;
            } else {
                equal_by_arrival(class);
            }
            for candidate in class {
                let task = &stored[candidate.place as usize];
                let figures = &task.figures;
                end += figures.run.most as u128;
                if let (true, Some(deadline)) = (candidate.late, task.deadline) {
                    let end = end + figures.blocked.most as u128;
                    let end = Counts(u64::try_from(end).unwrap_or(u64::MAX));
                    late.push(Late {
                        key: task.key,
                        deadline,
                        end,
                    });
                }
                tasks.push(PlannedTask {
                    key: task.key,
                    band,
                    sort_key: candidate.sort_key,
                    run: Counts(figures.run.mean(task.runs)),
                    most: most(task),
                    turnaround: task.turnaround(),
                    yields: figures.yields.most,
                    weight: candidate.weight,
                    steps: candidate.steps.clone(),
                });
                band += strict as u32;
            }
            band += !strict as u32;
        }
        Ok(Self { tasks, steps, late })
    }

    /// The tasks by rank. The lower of two ready ones runs.
    pub fn tasks(&self) -> &[PlannedTask] {
        &self.tasks
    }

    /// The steps of all tasks; see [`PlannedTask::steps`].
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The tasks that do not end in time, by rank.
    pub fn late(&self) -> &[Late] {
        &self.late
    }
}
