//! The phases of a record: run intervals that ended alike, run-length compressed as they come, in
//! room of fixed size.
//!
//! A phase takes in another like it; when [`RECORDED_PHASES`] are full, phases that only differ in
//! who ended their waits become one, and when that is not enough, one phase is left for each
//! ending. It never fails.

use super::cell::Word;
use super::stored::{Ended, PhaseOrder, StoredPhase, Waker, Wakes};
use crate::units::Counts;

/// The most phases that are recorded of a task. Eight, because a program that does
/// more different things one after the other is told by averages just as well, and
/// each costs 40 bytes a task.
pub const RECORDED_PHASES: usize = 8;

/// One phase, as a record keeps it.
pub struct PhaseCell {
    /// How its run intervals ended, who ended the waits and whom they woke: 16 bits each, from
    /// the lowest.
    kinds: Word,
    intervals: Word,
    run: Word,
    blocked: Word,
    wakes: Word,
}

impl PhaseCell {
    pub const fn new() -> Self {
        Self {
            kinds: Word::new(0),
            intervals: Word::new(0),
            run: Word::new(0),
            blocked: Word::new(0),
            wakes: Word::new(0),
        }
    }

    pub fn get(&self) -> StoredPhase {
        let kinds = self.kinds.get();
        let ended = Ended::ALL[kinds as u16 as usize % Ended::ALL.len()];
        let [run, blocked] = [&self.run, &self.blocked].map(|time| Counts(time.get()));
        let waker = |bits: u64| Waker::of_number(bits & 0xffff).unwrap_or_default();
        StoredPhase {
            woken_by: waker(kinds >> 16),
            wakes: Wakes {
                count: self.wakes.get(),
                whom: waker(kinds >> 32),
            },
            ..StoredPhase::new(ended, self.intervals.get(), run, blocked)
        }
    }

    pub fn set(&self, phase: &StoredPhase) {
        let [by, whom] = [phase.woken_by, phase.wakes.whom].map(Waker::number);
        self.kinds.set(phase.ended as u64 | by << 16 | whom << 32);
        self.intervals.set(phase.intervals);
        self.run.set(phase.run.0);
        self.blocked.set(phase.blocked.0);
        self.wakes.set(phase.wakes.count);
    }

    fn add(&self, phase: &StoredPhase) {
        let mut sum = self.get();
        sum.add(phase);
        self.set(&sum);
    }
}

/// What phases tell apart: the longer a task goes on changing, the less.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
enum Detail {
    /// How their run intervals ended, how long they were, and who ended the waits.
    Wakers = 0,
    /// How they ended, and how long they were.
    Lengths = 1,
    /// How they ended.
    Endings = 2,
}

impl Detail {
    /// Whether the run intervals of both belong into one phase: they ended alike, and the ones
    /// were on average between half and twice as long as the others. A task that changes its
    /// ways begins a phase.
    fn joins(self, one: &StoredPhase, other: &StoredPhase) -> bool {
        let (a, b) = (one.mean_run().0, other.mean_run().0);
        let is_as_long = a / 2 <= b && b / 2 <= a;
        one.ended == other.ended
            && match self {
                Self::Wakers => is_as_long && one.woken_by == other.woken_by,
                Self::Lengths => is_as_long,
                Self::Endings => true,
            }
    }
}

/// Phases in the order in which they ran, or by ending. One writer at a time.
pub struct PhaseList {
    /// How many of `cells` there are.
    count: Word,
    /// A [`Detail`].
    detail: Word,
    cells: [PhaseCell; RECORDED_PHASES],
}

impl PhaseList {
    pub const fn new() -> Self {
        Self {
            count: Word::new(0),
            detail: Word::new(Detail::Wakers as u64),
            cells: [const { PhaseCell::new() }; RECORDED_PHASES],
        }
    }

    /// Forgets all.
    pub fn clear(&self) {
        self.count.set(0);
        self.detail.set(Detail::Wakers as u64);
    }

    /// In which order they stand.
    pub fn order(&self) -> PhaseOrder {
        match self.detail() {
            Detail::Endings => PhaseOrder::ByEnding,
            Detail::Wakers | Detail::Lengths => PhaseOrder::AsRun,
        }
    }

    /// Whether one that came after the other would be taken in by it.
    pub fn joins(&self, one: &StoredPhase, other: &StoredPhase) -> bool {
        self.detail().joins(one, other)
    }

    pub fn iter(&self) -> impl Iterator<Item = StoredPhase> {
        self.cells[..self.len()].iter().map(PhaseCell::get)
    }

    /// Adds what came last. Cost: a comparison, but when the room is full for the first and the
    /// second time, where all are looked at.
    pub fn push(&self, phase: &StoredPhase) {
        loop {
            if let Some(place) = self.place_of(phase) {
                return self.cells[place].add(phase);
            }
            if let Some(free) = self.cells.get(self.len()) {
                free.set(phase);
                return self.count.add(1);
            }
            // By ending there are fewer than there is room for.
            self.coarsen();
        }
    }

    fn len(&self) -> usize {
        self.count.get() as usize
    }

    fn detail(&self) -> Detail {
        match self.detail.get() {
            0 => Detail::Wakers,
            1 => Detail::Lengths,
            _ => Detail::Endings,
        }
    }

    /// Which takes it in, if any does: the last, or, without an order, the one like it.
    fn place_of(&self, phase: &StoredPhase) -> Option<usize> {
        let detail = self.detail();
        let joins = |place: &usize| detail.joins(&self.cells[*place].get(), phase);
        match detail {
            Detail::Endings => (0..self.len()).find(joins),
            Detail::Wakers | Detail::Lengths => self.len().checked_sub(1).filter(joins),
        }
    }

    /// The same phases, told apart by less.
    fn coarsen(&self) {
        let coarser = match self.detail() {
            Detail::Wakers => Detail::Lengths,
            Detail::Lengths | Detail::Endings => Detail::Endings,
        };
        let phases: [StoredPhase; RECORDED_PHASES] = core::array::from_fn(|i| self.cells[i].get());
        self.detail.set(coarser as u64);
        self.count.set(0);
        // There is room for as many as there were.
        phases.iter().for_each(|phase| self.push(phase));
    }
}
