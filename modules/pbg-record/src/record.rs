//! What is recorded of one task.
//!
//! **What a context switch pays for.** Only four numbers change at each: BALANCE,
//! the number of run intervals, and where the last one began and ended. All else follows from
//! them, at the rarer events and when the record is read: yields are the run intervals that
//! neither a preemption nor a block nor the exit ended; the time ready is what is
//! left of a task's life without its time on the CPU and its time blocked.
//!
//! BALANCE: `run` is the sum of the ends of a record's run intervals less the sum of their
//! beginnings, modulo 2^64. So it is the time on the CPU exactly while the task has
//! not got it; while it has, the present reading is missing. (The root's is off by a
//! constant, as its first beginning is missing: only differences of it mean something.)
//!
//! **Phases.** From one block to the next is a burst: some yields, then the block.
//! A burst is noted as two phases, the run intervals that yielded and the one that blocked,
//! which is told from the others by its beginning. A run interval that a preemption cuts goes on
//! when the task is back: that is no business of the program's. Where that has happened in a
//! burst, nobody knows how long its last run interval was, and the time goes to all in equal
//! parts.
//!
//! **Wakers.** Whether a task has woken another, or the timer's interrupt that hit that task,
//! shows afterwards ([`recorder`](super::recorder)). Until then the burst that the wait ended is
//! *open*: it is in no phase yet.

// Long: one record has one writer, and all that it writes is here.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use super::cell::{LabelCell, Word};
use super::error::{Error, reserved};
use super::phase_list::{PhaseCell, PhaseList, RECORDED_PHASES, WakesCell, waker};
use pbg_profile::{
    Ended, Figure, Figures, Label, PhaseOrder, Phases, Place, Spawned, StoredPhase, StoredTask,
    Waker, Wakes, Woken,
};
use sched_core::units::{Counts, TaskKey};

/// What a recorded task takes, in bytes; all of [`MAX_TASKS`](pbg_profile::MAX_TASKS) together 4 MiB.
pub const RECORD_BYTES: usize = 1024;
const _: () = assert!(size_of::<Record>() == RECORD_BYTES);

/// What a recorded task takes in the profile that is made of it, in bytes.
pub const STORED_BYTES: usize = 1344;
const _: () =
    assert!(size_of::<StoredTask>() + STORED_PHASES * size_of::<StoredPhase>() == STORED_BYTES);

/// The recorded phases, the two of a burst that is still open, and the two that the last burst
/// may have, which ends with the record.
const STORED_PHASES: usize = RECORDED_PHASES + 4;

/// What is known of one task. Aligned, so that the first line of the cache holds
/// all that a context switch writes.
#[repr(align(64))]
pub struct Record {
    /// The time on the CPU, by BALANCE.
    run: Word,
    intervals: Word,
    /// When the last run interval ended; before the first, when the task was spawned.
    ended: Word,
    /// When the last run interval began.
    began: Word,
    blocked: Word,
    blocks: Word,
    preemptions: Word,
    /// `run`, `intervals` and `preemptions` when the last burst ended.
    noted: [Word; 3],

    key: Word,
    spawned: Word,
    /// The index of the parent's record, or [`NO_PARENT`], and, above 32 bits, the place among its
    /// spawns.
    place: Word,
    children: Word,
    /// Index of this record.
    index: Word,
    label: LabelCell,
    /// What its parent had done when it was spawned, as [`Spawned`] has it.
    parent_run: Word,
    parent_blocks: Word,
    /// When its parent had last been woken; 0 is never.
    parent_woken: Word,
    /// The number of the [`Waker`] who ended its last wait, and, above 16 bits, of the one who had
    /// ended its parent's.
    wakers: Word,
    /// When it was last woken; 0 is never.
    last_woken: Word,
    /// The tasks that it has woken in this burst.
    wakes: WakesCell,
    phases: PhaseList,
    open: OpenBurst,
}

/// A burst that ended in a wait, while it is not known who ended the wait.
struct OpenBurst {
    /// The run intervals that yielded, and the one that blocked. It is open if there is such a
    /// one.
    phases: [PhaseCell; 2],
    /// What the waker's `wakes` was before.
    before: WakesCell,
    /// A [`PendingWake`], 16 bits each.
    pending: Word,
}

/// A wake of which it is not known whether it was an interrupt.
pub(crate) struct PendingWake {
    /// Who it was if not.
    pub(crate) by: Waker,
    /// The number of the one who is pending after this one.
    pub(crate) next: u64,
    /// Where that was.
    pub(crate) cpu: usize,
}

/// In place of an index: the root, or one who is not in the table.
const NOBODY: u64 = u64::MAX;
/// The same for a parent's.
const NO_PARENT: u64 = u32::MAX as u64;

/// The record of everybody who has none: what is written there is never read.
pub static OUTSIDE: Record = Record::new();

/// That of an idle CPU: the same.
pub static IDLE: Record = Record::new();

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
    /// Creates the record of a task that has not started.
    pub(crate) const fn new() -> Self {
        const fn zero() -> Word {
            Word::new(0)
        }
        Self {
            run: zero(),
            intervals: zero(),
            ended: zero(),
            began: zero(),
            blocked: zero(),
            blocks: zero(),
            preemptions: zero(),
            noted: [const { zero() }; 3],
            key: zero(),
            spawned: zero(),
            place: zero(),
            children: zero(),
            index: Word::new(NOBODY),
            label: LabelCell::new(),
            parent_run: zero(),
            parent_blocks: zero(),
            parent_woken: zero(),
            wakers: zero(),
            last_woken: zero(),
            wakes: WakesCell::new(),
            phases: PhaseList::new(),
            open: OpenBurst {
                phases: [const { PhaseCell::new() }; 2],
                before: WakesCell::new(),
                pending: zero(),
            },
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
        self.forget();
        self.key.set(key.to_bits());
        self.spawned.set(now.0);
        self.ended.set(now.0);
        let parents_index = parent.index().map_or(NO_PARENT, u64::from);
        self.place.set(parents_index | ordinal << 32);
        self.index.set(index);
        self.label.set(label);
        // It is the parent that has the CPU.
        self.parent_run.set(parent.run.get().wrapping_add(now.0));
        self.parent_blocks.set(parent.blocks.get());
        self.parent_woken.set(parent.last_woken.get());
        self.wakers.set(parent.last_waker().number() << 16);
    }

    /// From now on it is the root's, who has spawned nobody yet.
    pub fn start_as_root(&self) {
        self.forget();
        self.key.set(TaskKey::ROOT.to_bits());
        // It runs: a wait of its own ends a run interval.
        self.intervals.set(1);
    }

    /// The root, which has the CPU, spawns its first task: what it has done so far does not count.
    pub fn count_from(&self, now: Counts) {
        self.run.set(0_u64.wrapping_sub(now.0));
        self.noted[0].set(self.run.get());
        self.blocks.set(0);
        self.last_woken.set(0);
        self.set_last_waker(Waker::Unknown);
    }

    fn forget(&self) {
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
            &self.wakers,
            &self.last_woken,
        ] {
            word.set(0);
        }
        self.wakes.clear();
        self.phases.clear();
        self.open.phases[1].clear();
    }

    /// Returns the key of the task.
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
        self.began.set(now.0);
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

    /// It is ready again, after a block: the burst that ended in the block is open until
    /// [`woken_by`](Self::woken_by). False if it has not run since it was last ready, and only
    /// changed queues.
    pub fn woken(&self, now: Counts) -> bool {
        let burst = self.burst(self.run.get());
        if burst.intervals == 0 {
            return false;
        }
        let blocked = now - Counts(self.ended.get());
        self.blocks.add(1);
        self.blocked.add(blocked.0);
        let last_run = self.ended.get().wrapping_sub(self.began.get());
        self.ended.set(now.0); // what follows is time ready
        self.last_woken.set(now.0);
        let [yielded, waited] = &self.open.phases;
        if burst.yields() == 0 {
            yielded.clear();
            waited.set_block(Counts(burst.run), blocked, &self.wakes);
        } else {
            let phases = burst.split(Ended::Block, last_run, blocked, self.wakes.get());
            yielded.set(&phases[0]);
            waited.set(&phases[1]);
        }
        self.noted[0].set(self.run.get());
        self.noted[1].set(self.intervals.get());
        self.noted[2].set(self.preemptions.get());
        self.wakes.clear();
        true
    }

    /// It was woken by this one. The burst is closed.
    pub fn woken_by(&self, waker: Waker) {
        self.set_last_waker(waker);
        let [yielded, waited] = &self.open.phases;
        if !waited.is_some() {
            return;
        }
        if yielded.is_some() {
            self.phases.push(yielded);
        }
        waited.set_waker(waker);
        self.phases.push(waited);
        waited.clear();
    }

    /// While its burst is open.
    pub(crate) fn is_pending(&self, wake: &PendingWake) {
        let bits = wake.by.number() | wake.next << 16 | (wake.cpu as u64) << 32;
        self.open.pending.set(bits);
    }

    /// What [`is_pending`](Self::is_pending) was told.
    pub(crate) fn pending(&self) -> PendingWake {
        let bits = self.open.pending.get();
        PendingWake {
            by: waker(bits),
            next: bits >> 16 & 0xffff,
            cpu: (bits >> 32) as usize,
        }
    }

    /// Whether a burst is open.
    pub fn is_open(&self) -> bool {
        self.open.phases[1].is_some()
    }

    /// It wakes the one with the record `woken`, as it seems.
    pub fn wakes(&self, woken: &Self, now: Counts) {
        woken.open.before.copy(&self.wakes);
        let whom = woken
            .index()
            .map_or(Waker::Root, |index| Waker::Task(index as u16));
        self.wakes.and(Woken {
            whom,
            count: 1,
            after: now - Counts(self.began.get()),
        });
    }

    /// It has not: that was an interrupt. Of several, the last is taken back first.
    pub fn has_not_woken(&self, woken: &Self) {
        self.wakes.copy(&woken.open.before);
    }

    /// Since the last burst ended, if the time on the CPU is now `run`.
    fn burst(&self, run: u64) -> Burst {
        let since = |now: u64, noted: &Word| now.wrapping_sub(noted.get());
        Burst {
            run: since(run, &self.noted[0]),
            intervals: since(self.intervals.get(), &self.noted[1]),
            preemptions: since(self.preemptions.get(), &self.noted[2]),
        }
    }

    /// The phases of the burst that is open, if one is.
    fn open_phases(&self) -> impl Iterator<Item = StoredPhase> {
        let is_open = self.is_open();
        let phases = self.open.phases.iter();
        let phases = phases.filter(move |phase| is_open && phase.is_some());
        phases.map(PhaseCell::get)
    }

    /// Returns the waker that ended its last wait.
    fn last_waker(&self) -> Waker {
        waker(self.wakers.get())
    }

    fn set_last_waker(&self, waker: Waker) {
        let after = self.wakers.get() >> 16 << 16;
        self.wakers.set(after | waker.number());
    }

    /// Its place in the table, for records of the table.
    pub fn index(&self) -> Option<u32> {
        let index = self.index.get();
        (index != NOBODY).then_some(index as u32)
    }

    /// What it says at `now`, of a run that began at `start`; `has_cpu` is whether the task has a
    /// CPU. Tasks are named by the index of their record.
    ///
    /// Where it has one is not known, it shows: without the present reading BALANCE is below 0,
    /// as no task has run for longer than the counter has.
    pub fn read(&self, start: Counts, now: Counts, has_cpu: bool) -> Result<StoredTask, Error> {
        let spawned = Counts(self.spawned.get());
        let run = self.run.get();
        let (run, ended) = if has_cpu || (run as i64) < 0 {
            (run.wrapping_add(now.0), now)
        } else {
            (run, Counts(self.ended.get()))
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
        let [parent_run, parent_blocks] =
            [&self.parent_run, &self.parent_blocks].map(|word| Figure::once(word.get()));
        Ok(StoredTask {
            key: self.key(),
            label: self.label.get(),
            place: {
                let (parent, ordinal) = (self.place.get() as u32, (self.place.get() >> 32) as u32);
                match u64::from(parent) {
                    NO_PARENT => Place::Root { ordinal },
                    _ => Place::Child { parent, ordinal },
                }
            },
            runs: 1,
            priority: None,
            deadline: None,
            figures,
            phases: self.read_phases(run, ended)?,
            spawned: Spawned {
                at: Figure::once((spawned - start).0),
                parent_run,
                parent_blocks,
                parent_woken: Figure::once(match self.parent_woken.get() {
                    0 => 0,
                    woken => (Counts(woken) - start).0,
                }),
                after: waker(self.wakers.get() >> 16),
            },
        })
    }

    /// The phases, with the burst that is open, of which nobody knows whose wake ended it, and
    /// the last one, which ends with the record at `ended`.
    pub fn read_phases(&self, run: u64, ended: Counts) -> Result<Phases, Error> {
        let mut list: Vec<StoredPhase> = reserved(STORED_PHASES)?;
        list.extend(self.phases.iter());
        for phase in self.open_phases() {
            match list.last_mut() {
                Some(last) if self.phases.joins(last, &phase) => last.add(&phase),
                _ => list.push(phase),
            }
        }
        let burst = self.burst(run);
        if burst.intervals > 0 {
            let last_run = ended.0.wrapping_sub(self.began.get());
            let last = burst.split(Ended::Exit, last_run, Counts::ZERO, self.wakes.get());
            list.extend(last.into_iter().filter(|phase| phase.intervals > 0));
        }
        let order = self.phases.order();
        let phases = Phases { order, list };
        Ok(match order {
            PhaseOrder::AsRun => phases,
            PhaseOrder::ByEnding => phases.coarsened(),
        })
    }
}

/// What a task did from one block to the next.
pub(crate) struct Burst {
    /// Time on the CPU, in counts.
    pub(crate) run: u64,
    pub(crate) intervals: u64,
    pub(crate) preemptions: u64,
}

impl Burst {
    /// How many of its run intervals yielded.
    const fn yields(&self) -> u64 {
        self.intervals
            .saturating_sub(self.preemptions)
            .saturating_sub(1)
    }

    /// Its two phases: the run intervals that yielded, and the last, which lasted for `last_run`
    /// if nothing was preempted. The wakes go to all in equal parts, and what is left to the
    /// last.
    pub(crate) fn split(
        &self,
        ended: Ended,
        last_run: u64,
        blocked: Counts,
        wakes: Wakes,
    ) -> [StoredPhase; 2] {
        let yields = self.yields();
        let intervals = yields + 1;
        // Without overflow.
        let share = |of: u64| (u128::from(of) * u128::from(yields) / u128::from(intervals)) as u64;
        let yielded = match self.preemptions {
            0 if yields == 0 => 0,
            0 => self.run.saturating_sub(last_run),
            _ => share(self.run),
        };
        let phase = |ended, intervals, run, blocked, wakes| StoredPhase {
            wakes,
            ..StoredPhase::new(ended, intervals, Counts(run), blocked)
        };
        let [earlier, later] = wakes.split(yields, intervals);
        [
            phase(Ended::Yield, yields, yielded, Counts::ZERO, earlier),
            phase(ended, 1, self.run - yielded, blocked, later),
        ]
    }
}
