//! A task of a profile, and its figures.

use core::num::NonZeroU8;

use super::phases::Phases;
use super::text::Label;
use super::waker::Waker;
use sched_core::units::{Counts, TaskKey};

/// The place of a task in the tree of spawns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A child of the root, its `ordinal`-th spawn, counted from 0.
    Root {
        /// The number of tasks that the root had spawned before.
        ordinal: u32,
    },
    /// A child of another task of the profile.
    Child {
        /// The index of the parent, which is below that of the child.
        parent: u32,
        /// The number of tasks that the parent had spawned before.
        ordinal: u32,
    },
    /// The place differed between runs, so only the label identifies the task.
    Several,
}

/// A task of a profile.
///
/// The seven figures are kept in a form that merges exactly; see [`Figure`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTask {
    /// The identity of the task on every run. No other task of the profile has the same.
    pub key: TaskKey,
    /// The name that the program gave it.
    pub label: Option<Label>,
    /// The place of the task in the tree of spawns.
    pub place: Place,
    /// The number of runs in which it was seen, from 1 to the profile's runs.
    pub runs: u32,
    /// The priority that the user has set. Tasks of priority 1 go strictly before those of
    /// priority 2, and so on to 255. Tasks without a priority go last.
    pub priority: Option<NonZeroU8>,
    /// The user's deadline, counted from the task's spawn.
    pub deadline: Option<Counts>,
    /// True if a replay has shown that the task's work depends on the order of the tasks. It used more
    /// than twice its recorded CPU time or yields, or slept more often. It polls, or runs until it is
    /// stopped.
    pub varies: bool,
    /// The sums of its times and events.
    pub figures: Figures,
    /// Its run intervals, in order.
    pub phases: Phases,
    /// The time of its spawn, and the state of its parent then.
    pub spawned: Spawned,
}

/// The time at which a task was spawned, and the state of its parent at that time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spawned {
    /// The time since the first spawn of the run, in counts.
    pub at: Figure,
    /// The time that its parent had been on a CPU, in counts. For the root it counts from the
    /// first spawn.
    pub parent_run: Figure,
    /// How often its parent had blocked. For the root it counts from the first spawn.
    pub parent_blocks: Figure,
    /// The time of its parent's last wake, in counts since the first spawn; 0 if never woken.
    pub parent_woken: Figure,
    /// The waker of its parent's last wait, if the parent had blocked.
    pub after: Waker,
}

impl Spawned {
    /// Returns the figures over the runs of both.
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

    /// Returns the figures, in the order in which they are stored.
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
    /// Returns the mean time from its spawn to its end. This is the time that it was on a CPU,
    /// ready and blocked.
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

/// The times of a task and the numbers of its events, over its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Time on a CPU, in counts.
    pub run: Figure,
    /// Time ready and waiting for a CPU, in counts.
    pub ready: Figure,
    /// Time blocked, in counts.
    pub blocked: Figure,
    /// How often it was dispatched, which is the number of its run intervals.
    pub dispatches: Figure,
    /// How often it yielded.
    pub yields: Figure,
    /// How often it was preempted.
    pub preemptions: Figure,
    /// How often it blocked and was woken.
    pub blocks: Figure,
}

impl Figures {
    /// The number of figures.
    pub const COUNT: usize = 7;
    /// The names of the figures, in the order of [`to_array`](Self::to_array).
    pub const NAMES: [&'static str; Self::COUNT] = [
        "run",
        "ready",
        "blocked",
        "dispatches",
        "yields",
        "preemptions",
        "blocks",
    ];

    /// Returns all figures, in the order in which they are stored.
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

    /// Creates figures from an array in the order of [`to_array`](Self::to_array).
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
/// A figure has total, least and most rather than mean and deviation. These merge exactly, in
/// any order, with an addition and two comparisons. Totals stop at 2^64 − 1 (at 1 GHz after
/// 584 years).
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
    /// Creates the figure of one run.
    pub const fn once(value: u64) -> Self {
        Self {
            total: value,
            least: value,
            most: value,
        }
    }

    /// Returns the mean over `runs`, the runs of the task, rounded down; 0 for no runs.
    pub const fn mean(self, runs: u32) -> u64 {
        match runs {
            0 => 0,
            runs => self.total / runs as u64,
        }
    }

    /// Returns the difference between the most and the least, which is 0 if all runs were alike.
    pub const fn spread(self) -> u64 {
        self.most.saturating_sub(self.least)
    }

    /// Returns the figure over the runs of both.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        Self {
            total: self.total.saturating_add(other.total),
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }
}
