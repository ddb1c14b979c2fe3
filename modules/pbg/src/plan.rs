//! The plan: a pure function of the profile.
//!
//! A plan is an order of tasks that makes their average turnaround on one CPU as
//! small as it can be. The user may constrain it with priorities, and with deadlines
//! by which tasks must have ended.
//!
//!  1. **Expected.** A task is expected to use the mean of its runs. A promise is
//!     checked with the most that it used in any of them.
//!  2. **Priority.** The tasks of one priority are a class, and those without a
//!     priority are the last class. Classes go strictly one after the other.
//!  3. **Steps.** The CPU time of a task is cut at its blocks into bursts. A yield
//!     ends no burst, because a planned task keeps the CPU across its own yields. A
//!     preemption ends none, because it is not the task's doing. Consecutive bursts
//!     from the same phase are a step. Where the order of the phases is unknown, the
//!     task has one step of equal bursts.
//!  4. **Shortest first.** A class in which no task has a deadline is a band for each of its groups
//!     (rule 9), mostly one. The tasks of a band are ranked by the time before them, and a replay
//!     orders them by the part of it that remains. The time before a task is the rest of its burst,
//!     plus a part of its CPU time after that. The part is the task's weight: R / (R + Z × n /
//!     [`BLOCKS_IN_FULL`]), where R is its CPU time, Z its blocked time, and n the number of
//!     blocks. A job, which is never blocked for long, counts in full and is planned as one step of
//!     one burst. Almost nothing counts of a server, which blocks often and for longer than it
//!     runs.
//!  5. **Equal is by arrival.** If the times before several tasks of a band differ by at
//!     most 1/[`TIE_FRACTION`] of the least, the first spawned goes first.
//!  6. **Deadlines.** In a class in which some task has a deadline, every task is a
//!     band by itself. The order is one in which every task ends in time and, of
//!     those orders, one with the least average turnaround.
//!  7. **In time.** A task is in time if a sum does not exceed its deadline. The sum adds
//!     the most CPU time of all tasks before it, of its class or another, to its own. It
//!     also includes the most time that the task was blocked.
//!  8. **Too much.** If no order has every task in time, the fewest possible are late.
//!     They lose their deadline, are ranked by rule 6 without it, and are named
//!     in [`Plan::late`].
//!  9. **Waits.** Tasks that wait for others are in groups, one strictly after the other.
//!     The profile's [order](pbg_profile::StoredOrder) gives them. It also replaces rules 6
//!     and 8, and the tasks that are late by it are named. Without an order, the groups
//!     follow from the recorded waits ([`waits`], [`groups`]). A class with deadlines
//!     ignores those.
//! 10. **Stages.** A task of a stream ([`waits`], rule 2) is a stage. Stages wait for each other at
//!     every item, so a preemption of one by another gains little and costs a context switch. In a
//!     band of stages alone the tasks do not preempt each other between ticks
//!     ([`SmpPbgScheduler`](crate::SmpPbgScheduler), rule 2).
//!
//! **Sources of rule 4.** For tasks that never block, shortest first has the least
//! average turnaround (Smith, Various optimizers for single-stage production, 1956).
//! With late arrivals that holds if the remaining time is compared (Schrage, 1968). For
//! tasks that block there is no such theorem, but the same exchange argument. The task
//! that goes first costs the others the CPU time that it uses before they end, and the
//! later time of a sleeper costs them nothing. R / (R + Z) is the share of its own time
//! in which a task uses the CPU.
//!
//! The factor n was found by comparing many programs
//! (`docs/adr/0013-weighed-by-blocked-time.md`). A task of few bursts ends after those, so
//! letting a long one go first because it soon blocks costs all the others. The app
//! `batch` shows this: a quarter of its jobs block four times. Ordered by next bursts, as
//! SJF does, its average turnaround is 903 ms; by all that remains it is 813 ms (x86_64,
//! full scale). If a task has many bursts, another task may wait for each answer.
//!
//! **Sources of rules 6 and 8.** Rule 6 is Smith's backward rule, from the same paper: of
//! the tasks that may be last, the longest is last. It finds an order if there is one.
//! There is one if the order of deadlines is in time (Jackson, Scheduling a production
//! line to minimize maximum tardiness, 1955; today EDF). Rule 8 is Moore's algorithm in
//! Hodgson's form (Moore, An n job, one machine sequencing algorithm for minimizing the
//! number of late jobs, 1968). It adds the tasks by deadline, and whenever the task just
//! added is late, it gives up the longest so far.
//!
//! **Why rule 7 is a promise.** While a task is ready and does not run, one of a lower
//! rank runs, and those have a bounded amount to do. So the task ends at most that much
//! later than it would alone. This holds whenever the tasks are spawned and however they
//! block. The times of rule 7 may come from different runs. Then the promise is on the
//! safe side: a task that would just have been in time may be named late. For tasks that
//! are spawned together and never block, the promise is exact, and no order has more of
//! them in time.
//!
//! **Why rule 8 harms no other task.** Sort the tasks that are kept by deadline, and put
//! those that are given up behind them. In that order all kept tasks are in time. So an
//! order exists, and Smith's rule finds the best. A task in `late` is late in that one
//! too. Otherwise that order would have fewer late tasks than the fewest.
//!
//! **Which time is least.** By rule 6 the average turnaround is least when every task
//! takes its most, as rule 7 assumes. Smith's rule needs the same length for both
//! questions. With the mean for one and the most for the other, putting the longest last
//! could cost a shorter task its deadline.
//!
//! **Cost.** A plan of n tasks takes n log n comparisons, and more if tasks wait for each other
//! ([`groups`]). It has 64 bytes a task, 24 a late task and 16 a step. A task has at least one step
//! and at most [`MAX_PHASES`](pbg_profile::MAX_PHASES). Making the plan takes 40 more bytes a task,
//! and 16 more if any task has a deadline. A replay of n tasks with deadlines has n bands.
//!
//! **Limits.** The promises leave out three things that the plan does not know, so leave
//! room for them.
//!
//! - Tasks outside the plan have their share of the CPU.
//! - Whenever a task or one of lower rank becomes ready, it may take a tick until the CPU
//!   is taken from a task of higher rank.
//! - Blocked time may depend on the order, as for a task that waits for another.
//!
//! Within a class with deadlines, a task that arrives late does not take over by its
//! remaining time, because that could break a promise. The largest deadline, 2^64 − 1,
//! counts as none.

pub mod groups;
mod order;
mod steps;
#[cfg(test)]
mod tests;
pub mod waits;
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
    /// The band of the task, from 0 without gaps. Bands are strict: no task runs while
    /// one of a lower band is ready. The tasks of one band have consecutive ranks and are
    /// ordered by the time before them (rule 4).
    pub band: u16,
    /// True if all tasks of its band are stages (rule 10).
    pub is_among_stages: bool,
    /// The time that is before the task at first, or before the shortest task that counts
    /// as equal. Within a band it never decreases from rank to rank, so a binary search
    /// finds the place of any remaining time.
    pub sort_key: Counts,
    /// The time on the CPU that it is expected to use in all: the mean of its runs.
    pub run: Counts,
    /// The most that it used in any run.
    pub most: Counts,
    /// How long it lived, from its spawn to its end: the mean of its runs.
    pub turnaround: Counts,
    /// How often it yielded in the run in which it yielded most.
    pub yields: u64,
    /// The part of its time after a burst that is before it (rule 4). If that is not the
    /// whole, each block ends a burst of its steps.
    pub weight: Weight,
    /// The range of [`Plan::steps`] that belongs to the task, in the order in which the
    /// steps run. It is never empty.
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

/// An order of tasks. A task's place in it is its rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    tasks: Vec<PlannedTask>,
    steps: Vec<Step>,
    late: Vec<Late>,
    is_asked_for: bool,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    use core::mem::size_of;
    assert!(size_of::<PlannedTask>() == 64 && size_of::<Step>() == 16 && size_of::<Late>() == 24);
};

impl Plan {
    /// Makes the plan of a profile that keeps its rules
    /// ([`validate`](StoredProfile::validate)). The plan has every task once, by rank. The
    /// same profile has the same plan on every machine. For the cost see the module's
    /// documentation.
    ///
    /// # Errors
    /// Returns [`Error::NoMemory`] if there is no memory for the plan.
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
                group: 0,
                place: place as u16,
                sort_key: weight.before(steps[first].run, run),
                weight,
                steps: first as u32..steps.len() as u32,
                due: due.flatten().unwrap_or(NO_DUE),
                late: due == Some(None), // blocked for longer than it may take
                is_stage: false,
                rank: 0,
            });
        }
        group(profile, &mut order)?;
        order.sort_unstable_by_key(|task| (task.class, task.sort_key, task.place));

        // The sum is wider than a time. If it saturated, every task with the largest deadline but
        // one would be in time.
        let mut end: u128 = 0;
        let mut band = 0;
        let mut is_asked_for = false;
        for class in order.chunk_by_mut(|a, b| a.class == b.class) {
            let is_due = |task: &&Candidate| task.late || task.due != NO_DUE;
            let due = class.iter().filter(is_due).count();
            // A stored order was searched with the deadlines known, and may have other tasks late.
            let strict = due > 0 && profile.order.is_none();
            is_asked_for |= due > 0 || class.len() < stored.len();
            let mut most_late = due;
            if strict {
                give_up_late(class, stored, end, &mut longest);
                longest_last(class, stored, end, &mut longest);
                most_late = class.iter().filter(|task| task.late).count();
            } else {
                class.sort_unstable_by_key(|task| (task.group, task.sort_key, task.place));
                for group in class.chunk_by_mut(|a, b| a.group == b.group) {
                    equal_by_arrival(group);
                    let are_stages = group.iter().all(|task| task.is_stage);
                    group.iter_mut().for_each(|task| task.is_stage = are_stages);
                }
            }
            late.try_reserve_exact(most_late)
                .map_err(|_| Error::NoMemory)?;
            let mut last_group = class[0].group;
            for candidate in class {
                band += u16::from(!strict && candidate.group != last_group);
                last_group = candidate.group;
                let task = &stored[candidate.place as usize];
                let figures = &task.figures;
                end += figures.run.most as u128;
                let is_beyond = candidate.due != NO_DUE && end > candidate.due as u128;
                if let (true, Some(deadline)) = (candidate.late || is_beyond, task.deadline) {
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
                    is_among_stages: candidate.is_stage,
                    sort_key: candidate.sort_key,
                    run: Counts(figures.run.mean(task.runs)),
                    most: most(task),
                    turnaround: task.turnaround(),
                    yields: figures.yields.most,
                    weight: candidate.weight,
                    steps: candidate.steps.clone(),
                });
                band += u16::from(strict);
            }
            band += u16::from(!strict);
        }
        Ok(Self {
            tasks,
            steps,
            late,
            is_asked_for,
        })
    }

    /// Returns true if the user has asked for another order than the one with the least average
    /// turnaround, by priorities or deadlines.
    pub const fn is_asked_for(&self) -> bool {
        self.is_asked_for
    }

    /// Returns the tasks by rank. The ready task of the lowest rank runs.
    pub fn tasks(&self) -> &[PlannedTask] {
        &self.tasks
    }

    /// Returns the steps of all tasks; see [`PlannedTask::steps`].
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns the tasks that do not end in time, by rank.
    pub fn late(&self) -> &[Late] {
        &self.late
    }
}

/// Gives each task its group, and marks the stages. The candidates are in the order of the profile.
fn group(profile: &StoredProfile, order: &mut [Candidate]) -> Result<(), Error> {
    let edges = waits::edges(profile)?;
    let runs = profile.header.runs;
    for edge in edges.iter().filter(|edge| edge.is_stream(runs)) {
        for task in [edge.waker, edge.waiter] {
            order[usize::from(task)].is_stage = true;
        }
    }
    if let Some(stored) = &profile.order {
        for (candidate, &group) in order.iter_mut().zip(&stored.groups) {
            candidate.group = group;
        }
        return Ok(());
    }
    if edges.iter().all(|edge| !edge.counts(runs)) {
        return Ok(());
    }
    let counting = || {
        let counting = edges.iter().filter(|edge| edge.counts(runs));
        counting.flat_map(|edge| {
            let ahead = groups::Edge {
                before: edge.waker,
                after: edge.waiter,
                rest: edge.rest.map_or(0, |rest| rest.0),
            };
            let back = groups::Edge {
                before: edge.waiter,
                after: edge.waker,
                rest: 0,
            };
            core::iter::once(ahead).chain(edge.is_stream(runs).then_some(back))
        })
    };
    let mut list = reserved(counting().count())?;
    list.extend(counting());
    drop(edges);
    let mut tasks = reserved(order.len())?;
    let of = order.iter().zip(&profile.tasks);
    tasks.extend(of.map(|(candidate, stored)| groups::Task {
        run: stored.figures.run.mean(stored.runs),
        alone: candidate.sort_key.0,
    }));
    let groups = groups::groups(&tasks, list)?;
    for (candidate, group) in order.iter_mut().zip(groups) {
        candidate.group = group;
    }
    Ok(())
}
