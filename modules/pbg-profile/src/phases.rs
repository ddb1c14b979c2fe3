//! The run intervals of a task, in phases.

use alloc::vec::Vec;

use super::waker::{Waker, Wakes};
use sched_core::units::Counts;

/// The event that ended a run interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Ended {
    /// The task yielded the CPU.
    Yield = 0,
    /// The task was preempted.
    Preemption = 1,
    /// The task blocked.
    Block = 2,
    /// The task exited.
    Exit = 3,
}

impl Ended {
    /// All endings, by their number in a profile.
    pub const ALL: [Self; 4] = [Self::Yield, Self::Preemption, Self::Block, Self::Exit];
}

/// Consecutive run intervals of a task that ended alike and took about as long.
///
/// Times and counts are sums over the runs in which the task was seen. Unlike means, sums merge
/// exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredPhase {
    /// The event that ended each of them.
    pub ended: Ended,
    /// The number of run intervals, at least 1. Divide by the task's runs for one run.
    pub intervals: u64,
    /// Their time on a CPU, in counts.
    pub run: Counts,
    /// The time blocked after them, in counts; 0 unless they ended by a block.
    pub blocked: Counts,
    /// The waker that ended the waits; [`Waker::Unknown`] unless they ended by a block.
    pub woken_by: Waker,
    /// The tasks that the task woke during these run intervals.
    pub wakes: Wakes,
}

impl StoredPhase {
    /// Creates a phase of which no waker and no wake is known.
    pub const fn new(ended: Ended, intervals: u64, run: Counts, blocked: Counts) -> Self {
        Self {
            ended,
            intervals,
            run,
            blocked,
            woken_by: Waker::Unknown,
            wakes: Wakes::NONE,
        }
    }

    /// Returns the mean length of a run interval, rounded down.
    pub const fn mean_run(&self) -> Counts {
        Counts(match self.intervals {
            0 => 0,
            intervals => self.run.0 / intervals,
        })
    }

    /// Returns the mean time blocked after a run interval, rounded down.
    pub const fn mean_blocked(&self) -> Counts {
        Counts(match self.intervals {
            0 => 0,
            intervals => self.blocked.0 / intervals,
        })
    }

    /// Returns this phase with another number for each task. A task without a number becomes
    /// unknown.
    #[must_use]
    pub(super) fn renumbered(self, number: impl Fn(u16) -> Option<u16>) -> Self {
        Self {
            woken_by: self.woken_by.renumbered(&number),
            wakes: self.wakes.renumbered(&number),
            ..self
        }
    }

    /// Adds the intervals, times and wakes of another phase. Counts and times stay at their most.
    pub fn add(&mut self, other: &Self) {
        self.intervals = self.intervals.saturating_add(other.intervals);
        self.run += other.run;
        self.blocked += other.blocked;
        self.woken_by = self.woken_by.merged(other.woken_by);
        self.wakes = self.wakes.merged(other.wakes);
    }
}

/// The order of the phases in a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PhaseOrder {
    /// In the order in which they ran.
    #[default]
    AsRun,
    /// One phase for each ending, without an order in time. This is left of runs that differed.
    ByEnding,
}

/// The run intervals of a task, run-length compressed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// The meaning of the order of the list.
    pub order: PhaseOrder,
    /// At most [`MAX_PHASES`](super::MAX_PHASES) phases, or none if they were not recorded.
    pub list: Vec<StoredPhase>,
}

impl Phases {
    /// Returns true if both have the same steps, however long each took.
    pub(super) fn has_shape_of(&self, other: &Self) -> bool {
        let steps = |phases: &[StoredPhase]| phases.len();
        self.order == other.order
            && steps(&self.list) == steps(&other.list)
            && (self.list.iter().zip(&other.list)).all(|(a, b)| a.ended == b.ended)
    }

    /// Gives other numbers to the tasks that woke this task and that it woke. A task for which
    /// `number` returns `None` becomes unknown.
    pub fn renumber(&mut self, number: impl Fn(u16) -> Option<u16>) {
        for phase in &mut self.list {
            *phase = phase.renumbered(&number);
        }
    }

    /// Returns the same run intervals without their order, as at most one phase for each of the
    /// four endings. Allocates nothing.
    ///
    /// Phases that do not match step by step are added in this form. So merging does not depend on
    /// an order. If all profiles have the same steps, each step has its own sum. Otherwise each
    /// ending has one, whichever two profiles come first.
    #[must_use]
    pub fn coarsened(mut self) -> Self {
        self.order = PhaseOrder::ByEnding;
        // A stable sort would allocate. It is not needed, because equal endings are added up.
        self.list.sort_unstable_by_key(|phase| phase.ended);
        self.list.dedup_by(|later, kept| {
            let same = later.ended == kept.ended;
            if same {
                kept.add(later);
            }
            same
        });
        self
    }
}
