//! What a task did, one run interval after the other.

use alloc::vec::Vec;

use super::waker::{Waker, Wakes};
use sched_core::units::Counts;

/// How a run interval ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Ended {
    /// The task yielded.
    Yield = 0,
    /// It was preempted.
    Preemption = 1,
    /// It blocked.
    Block = 2,
    /// It exited.
    Exit = 3,
}

impl Ended {
    /// All, by their number in a profile.
    pub const ALL: [Self; 4] = [Self::Yield, Self::Preemption, Self::Block, Self::Exit];
}

/// Run intervals of a task, one after the other, that ended alike and took about as long.
///
/// Sums and not means, over the runs in which the task was seen: they merge exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredPhase {
    /// How each of them ended.
    pub ended: Ended,
    /// How many there were, at least 1. Divide by the task's runs for one run.
    pub intervals: u64,
    /// Their time on a CPU, in counts.
    pub run: Counts,
    /// The time blocked after them, in counts; 0 unless they ended so.
    pub blocked: Counts,
    /// The waker that ended the waits; [`Waker::Unknown`] unless they ended in one.
    pub woken_by: Waker,
    /// The tasks that it woke during these run intervals.
    pub wakes: Wakes,
}

impl StoredPhase {
    /// Run intervals of which no more is known.
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

    /// A run interval, on average, rounded down.
    pub const fn mean_run(&self) -> Counts {
        Counts(match self.intervals {
            0 => 0,
            intervals => self.run.0 / intervals,
        })
    }

    /// The time blocked after one of them, on average, rounded down.
    pub const fn mean_blocked(&self) -> Counts {
        Counts(match self.intervals {
            0 => 0,
            intervals => self.blocked.0 / intervals,
        })
    }

    /// The same with other numbers for tasks; one that has none is not known.
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

/// In which order phases stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PhaseOrder {
    /// In the order in which they ran.
    #[default]
    AsRun,
    /// One for each way to end, whenever that was: what is left of runs that
    /// went differently.
    ByEnding,
}

/// What a task did, run interval by run interval, run-length compressed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// What the order of the list says.
    pub order: PhaseOrder,
    /// At most [`MAX_PHASES`](super::MAX_PHASES); none if nobody recorded them.
    pub list: Vec<StoredPhase>,
}

impl Phases {
    /// Whether these are the same steps, however long each took.
    pub(super) fn has_shape_of(&self, other: &Self) -> bool {
        let steps = |phases: &[StoredPhase]| phases.len();
        self.order == other.order
            && steps(&self.list) == steps(&other.list)
            && (self.list.iter().zip(&other.list)).all(|(a, b)| a.ended == b.ended)
    }

    /// Other numbers for the tasks that woke it and that it woke, or, for `None`, nobody.
    pub fn renumber(&mut self, number: impl Fn(u16) -> Option<u16>) {
        for phase in &mut self.list {
            *phase = phase.renumbered(&number);
        }
    }

    /// The same run intervals without their order: at most four phases, by how they
    /// ended. Allocates nothing.
    ///
    /// This is how phases are added that do not match step by step. It loses
    /// what it must and no more, so that merging depends on no order: if all
    /// profiles have the same steps, the sums are step by step, and otherwise by
    /// ending, whichever two come first.
    #[must_use]
    pub fn coarsened(mut self) -> Self {
        self.order = PhaseOrder::ByEnding;
        // A stable order is not needed (equal endings are added up), a sort that
        // allocates is not wanted.
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
