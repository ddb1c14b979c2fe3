//! What is recorded of one task.
//!
//! **What a context switch pays for.** Only three numbers change at each: BALANCE,
//! the number of run intervals, and the end of the last one. All else follows from them,
//! at the rarer events and when the record is read: yields are the run intervals that
//! neither a preemption nor a block nor the exit ended; the time ready is what is
//! left of a task's life without its time on the CPU and its time blocked.
//!
//! BALANCE: `run` is the sum of the ends of a record's run intervals less the sum of their
//! beginnings, modulo 2^64. So it is the time on the CPU exactly while the task has
//! not got it; while it has, the present reading is missing.
//!
//! **Phases.** From one block to the next is a burst: some yields, then the block.
//! A burst has one sum of time, and is noted as two phases, the run intervals that
//! yielded and the one that blocked, to which the time goes in equal parts. A run interval
//! that a preemption cuts goes on when the task is back: that is no business of the
//! program's. A phase takes in another like it (`PhaseCell::is_like`); when
//! [`RECORDED_PHASES`] are full, the record coarsens to one phase for each ending, and
//! never fails.

use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use super::cell::{LabelCell, Word};
use super::error::{Error, reserved};
use super::stored::{
    Ended, Figure, Figures, Label, PhaseOrder, Phases, Place, StoredPhase, StoredTask,
};
use crate::units::{Counts, TaskKey};

/// The most phases that are recorded of a task. Eight, because a program that does
/// more different things one after the other is told by averages just as well, and
/// each costs 32 bytes a task.
pub const RECORDED_PHASES: usize = 8;

/// What a recorded task takes, in bytes; all of [`MAX_TASKS`](super::MAX_TASKS) together 1.75 MiB.
pub const RECORD_BYTES: usize = 448;
const _: () = assert!(size_of::<Record>() == RECORD_BYTES);

/// What a recorded task takes in the profile that is made of it, in bytes.
pub const STORED_BYTES: usize = 600;
const _: () =
    assert!(size_of::<StoredTask>() + STORED_PHASES * size_of::<StoredPhase>() == STORED_BYTES);

/// The recorded phases, and the two that the last burst may have, which ends with the record.
const STORED_PHASES: usize = RECORDED_PHASES + 2;

/// Run intervals that ended alike, as a record keeps them.
#[derive(Default)]
struct PhaseCell {
    ended: Word,
    intervals: Word,
    run: Word,
    blocked: Word,
}

impl PhaseCell {
    fn get(&self) -> StoredPhase {
        StoredPhase {
            ended: Ended::ALL[self.ended.get() as usize % Ended::ALL.len()],
            intervals: self.intervals.get(),
            run: Counts(self.run.get()),
            blocked: Counts(self.blocked.get()),
        }
    }

    fn set(&self, phase: &StoredPhase) {
        self.ended.set(phase.ended as u64);
        self.intervals.set(phase.intervals);
        self.run.set(phase.run.0);
        self.blocked.set(phase.blocked.0);
    }

    fn add(&self, phase: &StoredPhase) {
        self.intervals.add(phase.intervals);
        self.run.add(phase.run.0);
        self.blocked.add(phase.blocked.0);
    }

    /// Whether its run intervals ended as those of `other` did, and were on average between
    /// half and twice as long: a task that changes its ways begins a phase.
    fn is_like(&self, other: &StoredPhase) -> bool {
        let mine = self.get();
        let (a, b) = (mine.mean_run().0, other.mean_run().0);
        mine.ended == other.ended && a / 2 <= b && b / 2 <= a
    }
}

/// What is known of one task. Aligned, so that the first line of the cache holds
/// all that a context switch writes.
#[repr(align(64))]
pub struct Record {
    /// The time on the CPU, by BALANCE.
    run: Word,
    intervals: Word,
    /// When the last run interval ended; before the first, when the task was spawned.
    ended: Word,
    blocked: Word,
    blocks: Word,
    preemptions: Word,
    /// `run`, `intervals` and `preemptions` when the last burst ended.
    noted: [Word; 3],

    key: Word,
    spawned: Word,
    /// Index of the parent's record, or [`NOBODY`], and the place among its spawns.
    parent: Word,
    ordinal: Word,
    children: Word,
    /// Index of this record.
    index: Word,
    label: LabelCell,
    /// How many of `phases` there are, and whether they stand by ending.
    count: Word,
    by_ending: Word,
    phases: [PhaseCell; RECORDED_PHASES],
}

/// In place of an index: the root, or one who is not in the table.
const NOBODY: u64 = u64::MAX;

/// The record of everybody who has none: what is written there is never read.
pub static OUTSIDE: Record = Record::new();

/// A reference to somebody's record that can be changed: by one writer at a time, as
/// all that a task carries is.
pub struct RecordRef(AtomicPtr<Record>);

impl RecordRef {
    /// A reference to [`OUTSIDE`].
    pub const fn nowhere() -> Self {
        Self(AtomicPtr::new((&raw const OUTSIDE).cast_mut()))
    }

    /// The record that it refers to.
    #[inline(always)]
    pub fn get(&self) -> &'static Record {
        // SAFETY: only references that live for good are ever stored.
        unsafe { &*self.0.load(Relaxed) }
    }

    /// Refers to this record from now on.
    #[inline(always)]
    pub fn set(&self, record: &'static Record) {
        self.0.store((&raw const *record).cast_mut(), Relaxed);
    }
}

impl Record {
    pub const fn new() -> Self {
        const fn zero() -> Word {
            Word::new(0)
        }
        Self {
            run: zero(),
            intervals: zero(),
            ended: zero(),
            blocked: zero(),
            blocks: zero(),
            preemptions: zero(),
            noted: [const { zero() }; 3],
            key: zero(),
            spawned: zero(),
            parent: zero(),
            ordinal: zero(),
            children: zero(),
            index: Word::new(NOBODY),
            label: LabelCell::new(),
            count: zero(),
            by_ending: zero(),
            phases: [const {
                PhaseCell {
                    ended: zero(),
                    intervals: zero(),
                    run: zero(),
                    blocked: zero(),
                }
            }; RECORDED_PHASES],
        }
    }

    /// A task begins that was spawned by the one with the record `parent`; all that was
    /// recorded here before is forgotten.
    pub fn start(
        &self,
        key: TaskKey,
        parent: &Self,
        ordinal: u64,
        index: u64,
        label: Option<&Label>,
        now: Counts,
    ) {
        for word in [
            &self.run,
            &self.intervals,
            &self.blocked,
            &self.blocks,
            &self.preemptions,
            &self.noted[0],
            &self.noted[1],
            &self.noted[2],
            &self.children,
            &self.count,
            &self.by_ending,
        ] {
            word.set(0);
        }
        self.key.set(key.to_bits());
        self.spawned.set(now.0);
        self.ended.set(now.0);
        self.parent.set(parent.index().map_or(NOBODY, u64::from));
        self.ordinal.set(ordinal);
        self.index.set(index);
        self.label.set(label);
    }

    /// From now on it is the root's, who has spawned nobody yet.
    pub fn start_as_root(&self) {
        self.key.set(TaskKey::ROOT.to_bits());
        self.children.set(0);
    }

    /// Who the task is.
    pub fn key(&self) -> TaskKey {
        TaskKey::from_bits(self.key.get())
    }

    /// The task spawns another: how many it had spawned before.
    pub fn next_ordinal(&self) -> u64 {
        let ordinal = self.children.get();
        self.children.set(ordinal + 1);
        ordinal
    }

    /// Its run interval begins.
    #[inline(always)]
    pub fn begins(&self, now: Counts) {
        self.run.set(self.run.get().wrapping_sub(now.0));
        self.intervals.add(1);
    }

    /// Its run interval ends, for whatever reason.
    #[inline(always)]
    pub fn ends(&self, now: Counts) {
        self.run.add(now.0);
        self.ended.set(now.0);
    }

    /// The CPU was taken from it; the run interval ends at the dispatch that follows.
    pub fn preempted(&self) {
        self.preemptions.add(1);
    }

    /// It is ready again, after a block.
    pub fn woken(&self, now: Counts) {
        if self.index.get() == NOBODY {
            return; // nobody reads it
        }
        let [_, intervals, _] = self.burst();
        if intervals == 0 {
            return; // it has not run since it was last ready: it only changed queues
        }
        let blocked = now - Counts(self.ended.get());
        self.blocks.add(1);
        self.blocked.add(blocked.0);
        self.ended.set(now.0); // what follows is time ready
        self.note(Ended::Block, self.run.get(), blocked);
    }

    /// Run time, run intervals and preemptions since the last burst ended.
    fn burst(&self) -> [u64; 3] {
        let now = [self.run.get(), self.intervals.get(), self.preemptions.get()];
        core::array::from_fn(|i| now[i].wrapping_sub(self.noted[i].get()))
    }

    /// A burst ended; `run` is the time on the CPU by then.
    fn note(&self, ended: Ended, run: u64, blocked: Counts) {
        let [_, intervals, preemptions] = self.burst();
        let spent = run.wrapping_sub(self.noted[0].get());
        let [yields, last] = split(ended, spent, intervals, preemptions, blocked);
        self.noted[0].set(run);
        self.noted[1].set(self.intervals.get());
        self.noted[2].set(self.preemptions.get());
        if yields.intervals > 0 {
            self.push(&yields);
        }
        self.push(&last);
    }

    fn push(&self, phase: &StoredPhase) {
        let count = self.count.get() as usize;
        if self.by_ending.get() == 0 {
            if let Some(last) = count.checked_sub(1).map(|last| &self.phases[last])
                && last.is_like(phase)
            {
                return last.add(phase);
            }
            if let Some(free) = self.phases.get(count) {
                free.set(phase);
                return self.count.set(count as u64 + 1);
            }
            self.by_ending.set(1);
            let all: [StoredPhase; RECORDED_PHASES] =
                core::array::from_fn(|i| self.phases[i].get());
            self.count.set(0);
            all.iter().for_each(|phase| self.add_by_ending(phase));
        }
        self.add_by_ending(phase);
    }

    fn add_by_ending(&self, phase: &StoredPhase) {
        let count = self.count.get() as usize;
        let same = |p: &&PhaseCell| p.ended.get() == phase.ended as u64;
        match self.phases[..count].iter().find(same) {
            Some(same) => same.add(phase),
            None => {
                self.phases[count].set(phase); // there are fewer endings than phases
                self.count.set(count as u64 + 1);
            }
        }
    }

    /// Its place in the table, for records of the table.
    fn index(&self) -> Option<u32> {
        let index = self.index.get();
        (index != NOBODY).then_some(index as u32)
    }

    /// What it says at `now`; `runs` is whether the task has the CPU.
    pub fn read(&self, now: Counts, runs: bool) -> Result<StoredTask, Error> {
        let spawned = Counts(self.spawned.get());
        let (run, ended) = if runs {
            (self.run.get().wrapping_add(now.0), now)
        } else {
            (self.run.get(), Counts(self.ended.get()))
        };
        let [intervals, preemptions, blocks, blocked] = [
            &self.intervals,
            &self.preemptions,
            &self.blocks,
            &self.blocked,
        ]
        .map(Word::get);
        let life = ended - spawned;
        let last = u64::from(intervals > 0);
        let figures = Figures {
            run: Figure::once(run),
            ready: Figure::once(life.0.saturating_sub(run).saturating_sub(blocked)),
            blocked: Figure::once(blocked),
            dispatches: Figure::once(intervals),
            yields: Figure::once(intervals.saturating_sub(preemptions + blocks + last)),
            preemptions: Figure::once(preemptions),
            blocks: Figure::once(blocks),
        };
        Ok(StoredTask {
            key: self.key(),
            label: self.label.get(),
            place: match self.parent.get() {
                NOBODY => Place::Root {
                    ordinal: self.ordinal.get() as u32,
                },
                parent => Place::Child {
                    parent: parent as u32,
                    ordinal: self.ordinal.get() as u32,
                },
            },
            runs: 1,
            priority: None,
            deadline: None,
            figures,
            phases: self.read_phases(run)?,
        })
    }

    /// The phases, with the last burst, which ends with the record.
    pub fn read_phases(&self, run: u64) -> Result<Phases, Error> {
        let mut list = reserved(STORED_PHASES)?;
        list.extend(
            self.phases[..self.count.get() as usize]
                .iter()
                .map(PhaseCell::get),
        );
        let by_ending = self.by_ending.get() != 0;
        let [_, intervals, preemptions] = self.burst();
        if intervals > 0 {
            let spent = run.wrapping_sub(self.noted[0].get());
            let last = split(Ended::Exit, spent, intervals, preemptions, Counts::ZERO);
            list.extend(last.into_iter().filter(|phase| phase.intervals > 0));
        }
        let order = PhaseOrder::AsRun;
        let phases = Phases { order, list };
        Ok(if by_ending {
            phases.coarsened()
        } else {
            phases
        })
    }
}

/// The two phases of a burst.
pub fn split(
    ended: Ended,
    run: u64,
    intervals: u64,
    preemptions: u64,
    blocked: Counts,
) -> [StoredPhase; 2] {
    let intervals = intervals.saturating_sub(preemptions).max(1);
    let yields = intervals - 1;
    // run / run intervals × yields, without overflow.
    let yielded = (u128::from(run) * u128::from(yields) / u128::from(intervals)) as u64;
    let phase = |ended, intervals, run, blocked| StoredPhase {
        ended,
        intervals,
        run: Counts(run),
        blocked,
    };
    [
        phase(Ended::Yield, yields, yielded, Counts::ZERO),
        phase(ended, 1, run - yielded, blocked),
    ]
}
