//! A plan prepared for a replay. The call that starts the replay allocates it in one go, and it
//! never grows.

use alloc::boxed::Box;
use core::ops::Range;

use super::entry::Entry;
use super::watch::{OnSlowReplay, Watch};
use crate::plan::{Plan, Step};
use crate::ready_set::{RANK_BYTES, ReadySet};
use pbg_record::error::{Error, boxed};
use sched_core::units::{Counts, TaskKey};

/// The memory of a planned task, in bytes.
pub const ENTRY_BYTES: usize =
    size_of::<Entry>() + size_of::<(TaskKey, u32)>() + size_of::<Counts>() + RANK_BYTES;
#[cfg(target_pointer_width = "64")]
const _: () = assert!(ENTRY_BYTES == 184);

/// The tasks of a plan. It takes [`ENTRY_BYTES`] a task, with their ranks in the ready set,
/// and 16 bytes a step.
pub struct Table {
    /// The tasks, by rank.
    pub entries: Box<[Entry]>,
    pub steps: Box<[Step]>,
    /// (key, rank), sorted by key.
    by_key: Box<[(TaskKey, u32)]>,
    /// The sort keys by rank: the time before a task at that rank. Sorted within a band.
    sort_keys: Box<[Counts]>,
}

/// Everything that a replay needs. It is not generic, as the call does not know the type of the
/// tasks. The ready set's 520 bytes and some more are in it and not in a box, which would cost one
/// more load in each pick.
pub struct Prepared {
    pub table: Table,
    pub ready_set: ReadySet<()>,
    pub watch: Watch,
}

impl Prepared {
    /// Prepares a plan that `cpus` CPUs will follow.
    pub fn new(plan: &Plan, on_slow_replay: OnSlowReplay, cpus: usize) -> Result<Self, Error> {
        let tasks = plan.tasks();
        // If the user has asked for another order than the shortest first, it may well be slower.
        let on_slow_replay = if plan.is_asked_for() {
            OnSlowReplay::KeepPlan
        } else {
            on_slow_replay
        };
        let measured = tasks.iter().fold(Counts::ZERO, |sum, task| {
            sum.saturating_add(task.turnaround)
        });
        Ok(Self {
            table: Table::new(plan, cpus == 1)?,
            ready_set: ReadySet::new(tasks.len())?,
            watch: Watch::new(on_slow_replay, measured),
        })
    }
}

impl Table {
    /// Makes the table. `counts_yields` is true if rule 8 counts them.
    fn new(plan: &Plan, counts_yields: bool) -> Result<Self, Error> {
        let tasks = plan.tasks();
        let ranked = tasks.iter().enumerate();
        let mut by_key = boxed(ranked.map(|(rank, task)| (task.key, rank as u32)))?;
        by_key.sort_unstable_by_key(|&(key, _)| key);
        let steps = boxed(plan.steps().iter().copied())?;
        let mut entries = boxed(
            tasks
                .iter()
                .map(|task| Entry::new(task, &steps, counts_yields)),
        )?;
        let mut first = 0;
        for band in tasks.chunk_by(|a, b| a.band == b.band) {
            let end = first + band.len();
            for entry in &mut entries[first..end] {
                entry.band = first as u32..end as u32;
            }
            first = end;
        }
        Ok(Self {
            entries,
            steps,
            by_key,
            sort_keys: boxed(tasks.iter().map(|task| task.sort_key))?,
        })
    }

    /// Returns the rank of the task with this key.
    pub fn rank_of(&self, key: TaskKey) -> Option<u32> {
        let found = self.by_key.binary_search_by_key(&key, |&(key, _)| key);
        found.ok().map(|found| self.by_key[found].1)
    }

    /// Returns the rank at which the task of rank `rank` stands with this much before it: the first
    /// rank of its band that has at least as much.
    pub fn ready_rank_of(&self, rank: usize, remaining: Counts) -> usize {
        let Range { start, end } = self.entries[rank].band.clone();
        let band = &self.sort_keys[start as usize..end as usize];
        let at = band.partition_point(|&key| key < remaining);
        start as usize + at.min(band.len() - 1)
    }
}
