//! A task of a profile, and its figures.

use core::num::NonZeroU8;

use super::phases::Phases;
use super::text::Label;
use super::waker::Waker;
use sched_core::units::{Counts, TaskKey};

/// Where a task stands in the tree of spawns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A child of the root, its `ordinal`-th spawn, counted from 0.
    Root {
        /// How many the root had spawned before.
        ordinal: u32,
    },
    /// A child of another task of the profile.
    Child {
        /// That task's index, below this one's.
        parent: u32,
        /// How many it had spawned before.
        ordinal: u32,
    },
    /// Not at the same place in all runs: only its label tells who it is.
    Several,
}

/// A task of a profile.
///
/// The seven figures are kept so that merging is exact: see [`Figure`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTask {
    /// Its identity on every run. No other task of the profile has the same.
    pub key: TaskKey,
    /// What the program called it.
    pub label: Option<Label>,
    /// The task that spawned it.
    pub place: Place,
    /// In how many runs it was seen: from 1 to the profile's runs.
    pub runs: u32,
    /// The user's: tasks of priority 1 go strictly before those of priority 2,
    /// and so on to 255; all of them strictly before the rest, who have none.
    pub priority: Option<NonZeroU8>,
    /// The user's deadline, counted from the task's spawn.
    pub deadline: Option<Counts>,
    /// What it did.
    pub figures: Figures,
    /// How it did it.
    pub phases: Phases,
    /// When it was spawned, and what its parent had done by then.
    pub spawned: Spawned,
}

/// When a task was spawned, and what its parent had done by then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spawned {
    /// Since the first spawn of the run, in counts.
    pub at: Figure,
    /// How long its parent had been on a CPU, in counts; the root since that first spawn.
    pub parent_run: Figure,
    /// How often its parent had blocked; the root since that first spawn.
    pub parent_blocks: Figure,
    /// When its parent had last been woken, in counts since that first spawn; 0 if never.
    pub parent_woken: Figure,
    /// The waker of its parent's last wait, if the parent had blocked.
    pub after: Waker,
}

impl Spawned {
    /// Both together.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        Self {
            at: self.at.merged(other.at),
            parent_run: self.parent_run.merged(other.parent_run),
            parent_blocks: self.parent_blocks.merged(other.parent_blocks),
            parent_woken: self.parent_woken.merged(other.parent_woken),
            after: self.after.merged(other.after),
        }
    }

    /// The figures, in the order in which they are stored.
    pub const fn figures(&self) -> [Figure; 4] {
        [
            self.at,
            self.parent_run,
            self.parent_blocks,
            self.parent_woken,
        ]
    }
}

impl StoredTask {
    /// From its spawn to its end, on average over its runs: its time on a CPU, ready and
    /// blocked.
    pub fn turnaround(&self) -> Counts {
        let Figures {
            run,
            ready,
            blocked,
            ..
        } = self.figures;
        let parts = [run, ready, blocked].map(|part| Counts(part.mean(self.runs)));
        parts.into_iter().fold(Counts::ZERO, Counts::saturating_add)
    }
}

/// What a task did, as figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Time on a CPU, in counts.
    pub run: Figure,
    /// Time ready and waiting for a CPU, in counts.
    pub ready: Figure,
    /// Time blocked, in counts.
    pub blocked: Figure,
    /// How many run intervals it had: how often a CPU was given to it, again included.
    pub dispatches: Figure,
    /// How often it yielded.
    pub yields: Figure,
    /// How often it was preempted.
    pub preemptions: Figure,
    /// How often it blocked and was woken.
    pub blocks: Figure,
}

impl Figures {
    /// How many there are.
    pub const COUNT: usize = 7;
    /// What they are called, in the order of [`to_array`](Self::to_array).
    pub const NAMES: [&'static str; Self::COUNT] = [
        "run",
        "ready",
        "blocked",
        "dispatches",
        "yields",
        "preemptions",
        "blocks",
    ];

    /// All of them, in the order in which they are stored.
    pub const fn to_array(&self) -> [Figure; Self::COUNT] {
        [
            self.run,
            self.ready,
            self.blocked,
            self.dispatches,
            self.yields,
            self.preemptions,
            self.blocks,
        ]
    }

    /// The opposite of [`to_array`](Self::to_array).
    pub const fn from_array(figures: [Figure; Self::COUNT]) -> Self {
        let [run, ready, blocked, dispatches, yields, preemptions, blocks] = figures;
        Self {
            run,
            ready,
            blocked,
            dispatches,
            yields,
            preemptions,
            blocks,
        }
    }
}

/// A quantity over the runs in which a task was seen.
///
/// Total, least and most rather than mean and deviation: these merge exactly, in
/// any order, with an addition and two comparisons. Totals stop at 2^64 − 1 (at
/// 1 GHz after 584 years).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figure {
    /// The sum over the runs.
    pub total: u64,
    /// The value of the run that had the least.
    pub least: u64,
    /// The value of the run that had the most.
    pub most: u64,
}

impl Figure {
    /// The figure of one run.
    pub const fn once(value: u64) -> Self {
        Self {
            total: value,
            least: value,
            most: value,
        }
    }

    /// The mean over `runs` (the task's), rounded down; 0 for no runs.
    pub const fn mean(self, runs: u32) -> u64 {
        match runs {
            0 => 0,
            runs => self.total / runs as u64,
        }
    }

    /// From the least to the most: 0 if all runs were alike.
    pub const fn spread(self) -> u64 {
        self.most.saturating_sub(self.least)
    }

    /// The figure over the runs of both.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        Self {
            total: self.total.saturating_add(other.total),
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }
}
