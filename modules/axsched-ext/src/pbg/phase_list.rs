//! The phases of a record: run intervals that ended alike, run-length compressed as they come, in
//! room of fixed size.
//!
//! A phase takes in another like it; when [`RECORDED_PHASES`] are full, phases that only differ in
//! who ended their waits become one, and when that is not enough, one phase is left for each
//! ending. It never fails.

use super::cell::Word;
use super::stored::{Ended, PhaseOrder, StoredPhase, Waker, Wakes, Woken};
use crate::units::Counts;

/// The most phases that are recorded of a task. Eight, because a program that does
/// more different things one after the other is told by averages just as well, and
/// each costs 72 bytes a task.
pub const RECORDED_PHASES: usize = 8;

/// One wait of so many is no reason not to say who ended all the others.
const FEW: u64 = 64;

/// One phase, as a record keeps it.
pub struct PhaseCell {
    /// How its run intervals ended, and, above 16 bits, who ended the waits.
    kinds: Word,
    intervals: Word,
    run: Word,
    blocked: Word,
    wakes: WakesCell,
}

/// [`Wakes`], as a record keeps them.
pub struct WakesCell {
    /// Whom, in 16 bits each.
    whom: Word,
    counts: [Word; 2],
    after: [Word; 2],
}

impl WakesCell {
    pub const fn new() -> Self {
        Self {
            whom: Word::new(0),
            counts: [const { Word::new(0) }; 2],
            after: [const { Word::new(0) }; 2],
        }
    }

    pub fn get(&self) -> Wakes {
        let woken = |i: usize| Woken {
            whom: waker(self.whom.get() >> (16 * i)),
            count: self.counts[i].get(),
            after: Counts(self.after[i].get()),
        };
        Wakes::of([0, 1].map(woken).into_iter().filter(|one| one.count > 0))
    }

    pub fn set(&self, wakes: Wakes) {
        let mut all = [Woken::default(); 2];
        all.iter_mut().zip(wakes.iter()).for_each(|(a, b)| *a = *b);
        self.whom
            .set(all[0].whom.number() | all[1].whom.number() << 16);
        for (i, woken) in all.iter().enumerate() {
            self.counts[i].set(woken.count);
            self.after[i].set(woken.after.0);
        }
    }
}

/// The waker with the number in these lowest 16 bits.
pub fn waker(bits: u64) -> Waker {
    Waker::of_number(bits & 0xffff).unwrap_or_default()
}

impl PhaseCell {
    pub const fn new() -> Self {
        Self {
            kinds: Word::new(0),
            intervals: Word::new(0),
            run: Word::new(0),
            blocked: Word::new(0),
            wakes: WakesCell::new(),
        }
    }

    pub fn get(&self) -> StoredPhase {
        let kinds = self.kinds.get();
        let ended = Ended::ALL[kinds as u16 as usize % Ended::ALL.len()];
        let [run, blocked] = [&self.run, &self.blocked].map(|time| Counts(time.get()));
        StoredPhase {
            woken_by: waker(kinds >> 16),
            wakes: self.wakes.get(),
            ..StoredPhase::new(ended, self.intervals.get(), run, blocked)
        }
    }

    pub fn set(&self, phase: &StoredPhase) {
        let by = phase.woken_by.number();
        self.kinds.set(phase.ended as u64 | by << 16);
        self.intervals.set(phase.intervals);
        self.run.set(phase.run.0);
        self.blocked.set(phase.blocked.0);
        self.wakes.set(phase.wakes);
    }

    fn add(&self, phase: &StoredPhase) {
        let before = self.get();
        let mut sum = before;
        sum.add(phase);
        // Where there is no room to tell them apart, a few do not hide who ended the others.
        if sum.woken_by == Waker::Unknown {
            let few = |few: &StoredPhase, many: &StoredPhase| few.intervals <= many.intervals / FEW;
            sum.woken_by = match () {
                () if few(phase, &before) => before.woken_by,
                () if few(&before, phase) => phase.woken_by,
                () => Waker::Unknown,
            };
        }
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
