//! The phases of a record: run intervals that ended alike, run-length compressed as they come, in
//! room of fixed size.
//!
//! A phase absorbs another one like it. When [`RECORDED_PHASES`] are full, phases that differ only
//! in their wakers become one. If that is not enough, one phase is left for each ending. So adding
//! never fails.
//!
//! A phase that several have become names the waker that ended three quarters of its waits, and
//! none that ended less than half. One pass finds it (Boyer and Moore, MJRTY, 1981): each wait votes
//! for the phase's waker or against it, and one that is outvoted is replaced. A few wakes have a wrong
//! waker: on several CPUs a task may leave a timer behind, which wakes it once more. That wake may be
//! taken for the interrupted task's.
//!
//! Most waits are like the last one, and are added word by word, in a few dozen instructions. A
//! phase is unpacked only if there is something to sort.

use super::cell::Word;
use pbg_profile::{Ended, PhaseOrder, StoredPhase, Waker, Wakes, Woken};
use sched_core::units::Counts;

/// The most phases that are recorded of a task. A phase costs 72 bytes a task, and averages
/// describe a program with more than eight phases just as well.
pub const RECORDED_PHASES: usize = 8;

/// One phase, as a record keeps it.
pub(crate) struct PhaseCell {
    /// The [`Ended`] of its run intervals. From bit 16 on it has the number of the waker that most of
    /// its waits vote for, and from bit 32 on the number of waits less the votes.
    kinds: Word,
    intervals: Word,
    run: Word,
    blocked: Word,
    wakes: WakesCell,
}

/// [`Wakes`], as a record keeps them.
pub(crate) struct WakesCell {
    /// The numbers of the woken tasks, in 16 bits each.
    whom: Word,
    counts: [Word; 2],
    after: [Word; 2],
}

impl WakesCell {
    pub(crate) const fn new() -> Self {
        Self {
            whom: Word::new(0),
            counts: [const { Word::new(0) }; 2],
            after: [const { Word::new(0) }; 2],
        }
    }

    pub(crate) fn get(&self) -> Wakes {
        let woken = |i: usize| Woken {
            whom: waker(self.whom.get() >> (16 * i)),
            count: self.counts[i].get(),
            after: Counts(self.after[i].get()),
        };
        Wakes::of([0, 1].map(woken).into_iter().filter(|one| one.count > 0))
    }

    /// Forgets all wakes.
    #[inline]
    pub(crate) fn clear(&self) {
        self.whom.set(0);
        self.words().for_each(|word| word.set(0));
    }

    /// Replaces the wakes by those of the other cell.
    #[inline]
    pub(crate) fn copy(&self, other: &Self) {
        self.whom.set(other.whom.get());
        for (to, from) in self.words().zip(other.words()) {
            to.set(from.get());
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.counts[0].get() == 0
    }

    /// Adds the wakes of one task.
    #[inline]
    pub(crate) fn add_one(&self, woken: Woken) {
        let (whom, number) = (self.whom.get(), woken.whom.number());
        let is_there = |i: &usize| self.counts[*i].get() > 0 && whom >> (16 * i) & 0xffff == number;
        match (0..2).find(is_there) {
            Some(i) => {
                grow(&self.counts[i], woken.count);
                grow(&self.after[i], woken.after.0);
            }
            None if self.is_empty() => {
                self.whom.set(number);
                self.counts[0].set(woken.count);
                self.after[0].set(woken.after.0);
            }
            None => self.set(self.get().merged(Wakes::of([woken]))),
        }
    }

    /// Adds the wakes of the other cell.
    #[inline]
    fn add(&self, other: &Self) {
        let whom = self.whom.get();
        // Both have the same tasks, and the same number of them.
        let are_alike =
            whom == other.whom.get() && (self.counts[1].get() == 0) == (other.counts[1].get() == 0);
        match () {
            () if other.is_empty() => {}
            () if self.is_empty() => self.copy(other),
            () if are_alike => self
                .words()
                .zip(other.words())
                .for_each(|(a, b)| grow(a, b.get())),
            () => self.set(self.get().merged(other.get())),
        }
    }

    fn words(&self) -> impl Iterator<Item = &Word> {
        self.counts.iter().chain(&self.after)
    }

    pub(crate) fn set(&self, wakes: Wakes) {
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

/// Adds to a word, and stops at the largest value.
fn grow(word: &Word, by: u64) {
    word.set(word.get().saturating_add(by));
}

/// Returns the waker with the number in the lowest 16 bits.
pub(crate) fn waker(bits: u64) -> Waker {
    Waker::of_number(bits & 0xffff).unwrap_or_default()
}

impl PhaseCell {
    pub(crate) const fn new() -> Self {
        Self {
            kinds: Word::new(0),
            intervals: Word::new(0),
            run: Word::new(0),
            blocked: Word::new(0),
            wakes: WakesCell::new(),
        }
    }

    pub(crate) fn get(&self) -> StoredPhase {
        let [run, blocked] = [&self.run, &self.blocked].map(|time| Counts(time.get()));
        let intervals = self.intervals.get();
        let is_known = self.doubt() <= intervals / 2;
        StoredPhase {
            woken_by: if is_known {
                self.waker()
            } else {
                Waker::Unknown
            },
            wakes: self.wakes.get(),
            ..StoredPhase::new(self.ended(), intervals, run, blocked)
        }
    }

    /// Returns the waker that most of its waits vote for.
    fn waker(&self) -> Waker {
        waker(self.kinds.get() >> 16)
    }

    /// Returns the number of its waits less the votes for its waker.
    fn doubt(&self) -> u64 {
        self.kinds.get() >> 32
    }

    fn votes(&self) -> u64 {
        self.intervals.get().saturating_sub(self.doubt())
    }

    fn set_kinds(&self, ended: Ended, waker: Waker, doubt: u64) {
        let doubt = doubt.min(u32::MAX.into());
        self.kinds
            .set(ended as u64 | waker.number() << 16 | doubt << 32);
    }

    pub(crate) fn set(&self, phase: &StoredPhase) {
        self.set_kinds(phase.ended, phase.woken_by, 0);
        self.intervals.set(phase.intervals);
        self.run.set(phase.run.0);
        self.blocked.set(phase.blocked.0);
        self.wakes.set(phase.wakes);
    }

    /// Sets the phase of a burst without yields: one run interval, and the wait after it.
    #[inline]
    pub(crate) fn set_block(&self, run: Counts, blocked: Counts, wakes: &WakesCell) {
        self.kinds.set(Ended::Block as u64);
        self.intervals.set(1);
        self.run.set(run.0);
        self.blocked.set(blocked.0);
        self.wakes.copy(wakes);
    }

    /// Empties the cell.
    #[inline]
    pub(crate) fn clear(&self) {
        self.intervals.set(0);
    }

    /// Returns true if the cell has a phase.
    #[inline]
    pub(crate) fn is_some(&self) -> bool {
        self.intervals.get() > 0
    }

    /// Sets the waker that ended the waits, if the phase ended by blocks.
    #[inline]
    pub(crate) fn set_waker(&self, waker: Waker) {
        if self.ended() == Ended::Block {
            self.kinds.set(Ended::Block as u64 | waker.number() << 16);
        }
    }

    fn ended(&self) -> Ended {
        Ended::ALL[self.kinds.get() as u16 as usize % Ended::ALL.len()]
    }

    fn kind(&self) -> Kind {
        Kind {
            ended: self.ended(),
            woken_by: self.kinds.get() >> 16 & 0xffff,
            mean_run: self.run.get() / self.intervals.get().max(1),
        }
    }

    pub(crate) fn copy(&self, other: &Self) {
        self.kinds.set(other.kinds.get());
        self.intervals.set(other.intervals.get());
        self.run.set(other.run.get());
        self.blocked.set(other.blocked.get());
        self.wakes.copy(&other.wakes);
    }

    /// Adds a phase that is [the same](Detail::is_same_phase) as this one.
    #[inline]
    fn add(&self, other: &Self) {
        // A new wait has no doubt, so equal words have the same waker.
        if u64::from(self.kinds.get() as u32) != other.kinds.get() {
            return self.add_of_others(other);
        }
        grow(&self.intervals, other.intervals.get());
        grow(&self.run, other.run.get());
        grow(&self.blocked, other.blocked.get());
        self.wakes.add(&other.wakes);
    }

    /// Adds a phase that has another waker, or doubt of its own. There is no room to tell the wakers
    /// apart, so the one with more votes stays.
    #[cold]
    fn add_of_others(&self, other: &Self) {
        let (waker, votes) = match (self.waker() == other.waker(), self.votes(), other.votes()) {
            (true, mine, its) => (self.waker(), mine.saturating_add(its)),
            (false, mine, its) if mine >= its => (self.waker(), mine - its),
            (false, mine, its) => (other.waker(), its - mine),
        };
        let mut sum = self.get();
        sum.add(&other.get());
        self.set(&sum);
        self.set_kinds(sum.ended, waker, sum.intervals - votes);
    }
}

/// The properties by which phases are told apart.
#[derive(Clone, Copy)]
struct Kind {
    ended: Ended,
    woken_by: u64,
    mean_run: u64,
}

/// The properties that the phases of a list distinguish. They become fewer when the list is full.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
enum Detail {
    /// Phases distinguish the ending, the length and the waker.
    Wakers = 0,
    /// Phases distinguish the ending and the length.
    Lengths = 1,
    /// Phases distinguish only the ending.
    Endings = 2,
}

impl Detail {
    /// Returns true if the run intervals of both belong into one phase. They must have ended alike,
    /// and the mean of the ones must be between half and twice that of the others.
    fn is_same_phase(self, one: Kind, other: Kind) -> bool {
        let (a, b) = (one.mean_run, other.mean_run);
        let is_as_long = a / 2 <= b && b / 2 <= a;
        one.ended == other.ended
            && match self {
                Self::Wakers => is_as_long && one.woken_by == other.woken_by,
                Self::Lengths => is_as_long,
                Self::Endings => true,
            }
    }
}

/// Phases in the order in which they ran, or by ending. The list has one writer at a time.
pub(crate) struct PhaseList {
    /// The number of `cells` in use.
    count: Word,
    /// The present [`Detail`] as a number.
    detail: Word,
    cells: [PhaseCell; RECORDED_PHASES],
}

impl PhaseList {
    pub(crate) const fn new() -> Self {
        Self {
            count: Word::new(0),
            detail: Word::new(Detail::Wakers as u64),
            cells: [const { PhaseCell::new() }; RECORDED_PHASES],
        }
    }

    /// Forgets all phases.
    pub(crate) fn clear(&self) {
        self.count.set(0);
        self.detail.set(Detail::Wakers as u64);
    }

    /// Returns the order of the phases.
    pub(crate) fn order(&self) -> PhaseOrder {
        match self.detail() {
            Detail::Endings => PhaseOrder::ByEnding,
            Detail::Wakers | Detail::Lengths => PhaseOrder::AsRun,
        }
    }

    /// Replaces the phases by those of the other list.
    pub(crate) fn copy(&self, other: &Self) {
        self.count.set(other.count.get());
        self.detail.set(other.detail.get());
        for (to, from) in self.cells.iter().zip(&other.cells) {
            to.copy(from);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = StoredPhase> {
        self.cells[..self.len()].iter().map(PhaseCell::get)
    }

    /// Adds the phase that came last. This costs a comparison. When the list is full for the first
    /// and the second time, it looks at all phases.
    pub(crate) fn push(&self, phase: &PhaseCell) {
        loop {
            if let Some(place) = self.place_of(phase.kind()) {
                return self.cells[place].add(phase);
            }
            if let Some(free) = self.cells.get(self.len()) {
                free.copy(phase);
                return self.count.add(1);
            }
            // This ends: by ending there are fewer phases than there is room for.
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

    /// Returns the index of the phase that absorbs this one, if there is one. In an order only the
    /// last phase can, and without an order the one like it.
    fn place_of(&self, phase: Kind) -> Option<usize> {
        let detail = self.detail();
        let is_same = |place: &usize| detail.is_same_phase(self.cells[*place].kind(), phase);
        match detail {
            Detail::Endings => (0..self.len()).find(is_same),
            Detail::Wakers | Detail::Lengths => self.len().checked_sub(1).filter(is_same),
        }
    }

    /// Joins phases that the next coarser [`Detail`] does not distinguish.
    #[cold]
    fn coarsen(&self) {
        let coarser = match self.detail() {
            Detail::Wakers => Detail::Lengths,
            Detail::Lengths | Detail::Endings => Detail::Endings,
        };
        self.detail.set(coarser as u64);
        self.count.set(0);
        // A cell is overwritten only by itself or after it has been pushed.
        self.cells.iter().for_each(|cell| self.push(cell));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives wakes of one of few tasks, so that several wakes name the same task.
    fn woken() -> impl Strategy<Value = Woken> {
        let whom = prop_oneof![
            8 => (0..3_u16).prop_map(Waker::Task),
            1 => Just(Waker::Root),
            1 => Just(Waker::Unknown),
        ];
        let count = prop_oneof![8 => 1..9_u64, 1 => Just(u64::MAX)];
        (whom, count, 0..u64::MAX).prop_map(|(whom, count, after)| Woken {
            whom,
            count,
            after: Counts(after),
        })
    }

    fn wakes() -> impl Strategy<Value = Wakes> {
        prop::collection::vec(woken(), 0..4).prop_map(Wakes::of)
    }

    fn cell(wakes: Wakes) -> WakesCell {
        let cell = WakesCell::new();
        cell.set(wakes);
        cell
    }

    /// Gives a phase that mostly has the same length, because most phases are like the last one.
    fn block() -> impl Strategy<Value = StoredPhase> {
        let run = prop_oneof![6 => Just(100), 1 => 0..1000_u64];
        let waker = prop_oneof![6 => Just(Waker::Task(1)), 1 => woken().prop_map(|one| one.whom)];
        (run, 0..1000_u64, waker, wakes()).prop_map(|(run, blocked, woken_by, wakes)| {
            let phase = StoredPhase::new(Ended::Block, 1, Counts(run), Counts(blocked));
            StoredPhase {
                woken_by,
                wakes,
                ..phase
            }
        })
    }

    proptest! {
        #[test]
        fn wakes_added_word_by_word_are_the_sum(all in prop::collection::vec(wakes(), 1..6)) {
            let sum = cell(Wakes::NONE);
            let by_one = cell(Wakes::NONE);
            let mut expected = Wakes::NONE;
            for wakes in all {
                expected = expected.merged(wakes);
                sum.add(&cell(wakes));
                wakes.iter().for_each(|woken| by_one.add_one(*woken));
                prop_assert_eq!(sum.get(), expected);
                prop_assert_eq!(by_one.get(), expected);
            }
            by_one.clear();
            prop_assert!(by_one.is_empty());
            prop_assert_eq!(by_one.get(), Wakes::NONE);
        }

        /// Wherever the waits are that others ended, a phase names the waker of three quarters, and none
        /// of less than half.
        #[test]
        fn phase_names_the_waker_of_most_waits(wakers in prop::collection::vec(0..6_u16, 1..200)) {
            let list = PhaseList::new();
            list.detail.set(Detail::Lengths as u64);
            let wakers: Vec<_> = wakers.iter().map(|waker| Waker::Task(waker.saturating_sub(3))).collect();
            for waker in &wakers {
                let cell = PhaseCell::new();
                cell.set_block(Counts(100), Counts(0), &self::cell(Wakes::NONE));
                cell.set_waker(*waker);
                list.push(&cell);
            }
            let ended = |by| wakers.iter().filter(|waker| **waker == by).count();
            let most = (0..3).map(Waker::Task).max_by_key(|by| ended(*by)).unwrap();
            let named = list.iter().next().unwrap().woken_by;
            if 4 * ended(most) >= 3 * wakers.len() {
                prop_assert_eq!(named, most);
            } else if named != Waker::Unknown {
                prop_assert!(2 * ended(named) >= wakers.len());
            }
        }

        /// No time or count of a pushed phase is lost, however few phases are left.
        #[test]
        fn phases_add_up_to_what_was_pushed(all in prop::collection::vec(block(), 1..60)) {
            let list = PhaseList::new();
            let mut expected = StoredPhase::new(Ended::Block, 0, Counts::ZERO, Counts::ZERO);
            for phase in &all {
                let cell = PhaseCell::new();
                cell.set_block(phase.run, phase.blocked, &self::cell(phase.wakes));
                cell.set_waker(phase.woken_by);
                prop_assert_eq!(cell.get(), *phase);
                list.push(&cell);
                expected.add(phase);
            }
            let mut sum = StoredPhase::new(Ended::Block, 0, Counts::ZERO, Counts::ZERO);
            list.iter().for_each(|phase| sum.add(&phase));
            let figures = |phase: &StoredPhase| (phase.intervals, phase.run, phase.blocked);
            prop_assert_eq!(figures(&sum), figures(&expected));
            let woken = |phase: &StoredPhase| {
                phase.wakes.iter().fold(0_u64, |sum, woken| sum.saturating_add(woken.count))
            };
            prop_assert_eq!(woken(&sum), woken(&expected));
        }
    }
}
