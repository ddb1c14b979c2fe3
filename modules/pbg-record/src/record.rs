//! The record of one task.
//!
//! **Cost of a context switch.** A switch changes only four numbers: BALANCE, the number of run
//! intervals, and the times at which the last one began and ended. The other figures follow from
//! these at rarer events and when the record is read. Yields are the run intervals that neither a
//! preemption nor a block nor the exit ended. The time ready is the task's life less its time on
//! the CPU and its time blocked.
//!
//! BALANCE: `run` is the sum of the ends of a record's run intervals less the sum of their starts,
//! modulo 2^64. While the task has no CPU, that is its time on the CPU. While it has one, the
//! present reading is missing. (The root's value is off by a constant, because its first start is
//! missing, so only differences of it mean something.)
//!
//! **Phases.** A burst lasts from one block to the next: some yields, then the block. A burst
//! becomes two phases: the run intervals that yielded, and the one that blocked. The start of the
//! last run interval tells the two apart. A preemption is not the program's doing, so the run
//! interval that it cuts goes on when the task is dispatched again. In a burst with a preemption
//! the length of the last run interval is unknown, and all run intervals get equal parts of the
//! time.
//!
//! **Wakers.** A wake comes from the running task, or from a timer interrupt that hit that task.
//! Which of them it was shows only afterwards ([`recorder`](super::recorder)). Until then the burst
//! before the wait is *open*: it is in no phase yet.

// This file is long because a record has one writer, whose writes are all here.

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

/// The memory of a recorded task in bytes. All [`MAX_TASKS`](pbg_profile::MAX_TASKS) together take
/// 4 MiB.
pub const RECORD_BYTES: usize = 1024;
const _: () = assert!(size_of::<Record>() == RECORD_BYTES);

/// The most memory of a recorded task in the profile, in bytes.
pub const STORED_BYTES: usize = 1184;
const _: () =
    assert!(size_of::<StoredTask>() + STORED_PHASES * size_of::<StoredPhase>() == STORED_BYTES);

/// The most phases of a recorded task in the profile. These are the recorded phases, and the two of
/// the last burst, which ends with the record.
const STORED_PHASES: usize = RECORDED_PHASES + 2;

/// The record of one task. It is aligned so that a context switch writes only to its first cache
/// line.
#[repr(align(64))]
pub struct Record {
    /// The time on the CPU, by BALANCE.
    run: Word,
    intervals: Word,
    /// The time at which the last run interval ended or, before the first, the time of the spawn.
    ended: Word,
    /// The time at which the last run interval began.
    began: Word,
    blocked: Word,
    blocks: Word,
    preemptions: Word,
    /// The values of `run`, `intervals` and `preemptions` when the last burst ended.
    noted: [Word; 3],

    key: Word,
    spawned: Word,
    /// The index of the parent's record, or [`NO_PARENT`], and from bit 32 on the place among its
    /// spawns.
    place: Word,
    children: Word,
    /// The index of this record, or [`NOBODY`].
    index: Word,
    label: LabelCell,
    /// The time that its parent had been on a CPU when it was spawned, as [`Spawned`] has it. The
    /// next word is the number of the parent's blocks.
    parent_run: Word,
    parent_blocks: Word,
    /// The time of the parent's last wake before that; 0 is never.
    parent_woken: Word,
    /// The number of the [`Waker`] that ended its last wait, and from bit 16 on that of the waker
    /// that had ended its parent's.
    wakers: Word,
    /// The time at which it was last woken; 0 is never.
    last_woken: Word,
    /// The tasks that it has woken in this burst.
    wakes: WakesCell,
    phases: PhaseList,
    open: OpenBurst,
}

/// A burst that ended in a wait, while the waker is not known yet.
struct OpenBurst {
    /// The run intervals that yielded, and the one that blocked. The burst is open if there is a
    /// second phase.
    phases: [PhaseCell; 2],
    /// The waker's `wakes` before this wake.
    before: WakesCell,
    /// A [`PendingWake`], in 16 bits for each field.
    pending: Word,
}

/// A wake that came from a task or from the timer. Which of them it was is not known yet.
pub(crate) struct PendingWake {
    /// The waker unless it was the timer.
    pub(crate) by: Waker,
    /// The number of the task whose wake is the next pending one.
    pub(crate) next: u64,
    /// The CPU on which the task was woken.
    pub(crate) cpu: usize,
}

/// Stands for the index of the root, and of a task that is not in the table.
const NOBODY: u64 = u64::MAX;
/// Stands for the index of a parent that is not in the table.
const NO_PARENT: u64 = u32::MAX as u64;

/// The record of every task that has none of its own. Its contents are never read.
pub static OUTSIDE: Record = Record::new();

/// The record of an idle CPU. Its contents are never read.
pub static IDLE: Record = Record::new();

/// A reference to a record. It can be changed by one writer at a time, as all state in a task can.
pub struct RecordRef(AtomicPtr<Record>);

impl RecordRef {
    /// Creates a reference to [`OUTSIDE`].
    pub const fn nowhere() -> Self {
        Self(AtomicPtr::new((&raw const OUTSIDE).cast_mut()))
    }

    /// Returns the record that it refers to.
    #[inline(always)]
    pub fn get(&self) -> &'static Record {
        // SAFETY: only references that live for good are ever stored.
        unsafe { &*self.0.load(Relaxed) }
    }

    /// Makes it refer to another record.
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

    /// Forgets the old contents, and starts the record of a task that the task with the record
    /// `parent` has spawned.
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
        // The parent runs, so its reading is added (BALANCE).
        self.parent_run.set(parent.run.get().wrapping_add(now.0));
        self.parent_blocks.set(parent.blocks.get());
        self.parent_woken.set(parent.last_woken.get());
        self.wakers.set(parent.last_waker().number() << 16);
    }

    /// Forgets the old contents, and starts the record of the root, which has spawned no task yet.
    pub fn start_as_root(&self) {
        self.forget();
        self.key.set(TaskKey::ROOT.to_bits());
        // The root runs, so its next wait ends a run interval.
        self.intervals.set(1);
    }

    /// Forgets the times of the root when it spawns its first task. The root has the CPU.
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

    /// Counts a spawn of the task, and returns the number of its spawns before.
    pub fn next_ordinal(&self) -> u64 {
        let ordinal = self.children.get();
        self.children.set(ordinal + 1);
        ordinal
    }

    /// Begins a run interval of the task.
    #[inline(always)]
    pub fn begin_interval(&self, now: Counts) {
        self.run.set(self.run.get().wrapping_sub(now.0));
        self.began.set(now.0);
        self.intervals.add(1);
    }

    /// Ends the run interval of the task, for any reason.
    #[inline(always)]
    pub fn end_interval(&self, now: Counts) {
        self.run.add(now.0);
        self.ended.set(now.0);
    }

    /// Counts a preemption of the task. Its run interval ends at the dispatch that follows.
    pub fn preempted(&self) {
        self.preemptions.add(1);
    }

    /// Notes that the task is ready again after a block, and opens the burst that ended in the
    /// block until [`woken_by`](Self::woken_by).
    ///
    /// Returns false if the task has only changed queues, because it has not run since it was last
    /// ready.
    pub fn woken(&self, now: Counts) -> bool {
        let burst = self.burst(self.run.get());
        if burst.intervals == 0 {
            return false;
        }
        let blocked = now - Counts(self.ended.get());
        self.blocks.add(1);
        self.blocked.add(blocked.0);
        let last_run = self.ended.get().wrapping_sub(self.began.get());
        self.ended.set(now.0); // from now on it is ready
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

    /// Notes the waker that ended the last wait, and closes the burst.
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

    /// Notes the wake that ended the open burst.
    pub(crate) fn set_pending(&self, wake: &PendingWake) {
        let bits = wake.by.number() | wake.next << 16 | (wake.cpu as u64) << 32;
        self.open.pending.set(bits);
    }

    /// Returns the wake that [`set_pending`](Self::set_pending) has noted.
    pub(crate) fn pending(&self) -> PendingWake {
        let bits = self.open.pending.get();
        PendingWake {
            by: waker(bits),
            next: bits >> 16 & 0xffff,
            cpu: (bits >> 32) as usize,
        }
    }

    /// Returns true if a burst is open.
    pub fn is_open(&self) -> bool {
        self.open.phases[1].is_some()
    }

    /// Notes that the task seems to wake the task with the record `woken`.
    pub fn note_wake(&self, woken: &Self, now: Counts) {
        woken.open.before.copy(&self.wakes);
        let whom = woken
            .index()
            .map_or(Waker::Root, |index| Waker::Task(index as u16));
        self.note_wakes(whom, 1, now);
    }

    /// Adds wakes of this task at `now`.
    pub(crate) fn note_wakes(&self, whom: Waker, count: u64, now: Counts) {
        // A preemption ends no run interval of a phase.
        let run = self.run.get().wrapping_add(now.0);
        let burst = self.burst(run);
        let after = match burst.yields() {
            0 => burst.run,
            _ => (now - Counts(self.began.get())).0,
        };
        self.wakes.add_one(Woken {
            whom,
            count,
            after: Counts(after.saturating_mul(count)),
        });
    }

    /// Takes a wake back that may come from an interrupt. The last of several wakes is taken back first.
    pub fn retract_wake(&self, woken: &Self) {
        self.wakes.copy(&woken.open.before);
    }

    /// Returns the burst since the end of the last one, if the time on the CPU is now `run`.
    fn burst(&self, run: u64) -> Burst {
        let since = |now: u64, noted: &Word| now.wrapping_sub(noted.get());
        Burst {
            run: since(run, &self.noted[0]),
            intervals: since(self.intervals.get(), &self.noted[1]),
            preemptions: since(self.preemptions.get(), &self.noted[2]),
        }
    }

    /// Returns the waker that ended its last wait.
    fn last_waker(&self) -> Waker {
        waker(self.wakers.get())
    }

    fn set_last_waker(&self, waker: Waker) {
        let after = self.wakers.get() >> 16 << 16;
        self.wakers.set(after | waker.number());
    }

    /// Returns the index of the record in the table, if it is in the table.
    pub fn index(&self) -> Option<u32> {
        let index = self.index.get();
        (index != NOBODY).then_some(index as u32)
    }

    /// Returns the contents of the record at `now`, for a run that began at `start`. Other tasks are
    /// named by the index of their record.
    ///
    /// `has_cpu` is true if the task is known to have a CPU. If that is not known, BALANCE shows it.
    /// It is below 0 without the present reading, because no task has run longer than the counter.
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
            varies: false,
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

    /// Returns the phases, with the open burst and the last burst, which ends with the record at
    /// `ended`. The wake that ended the open burst is taken for the running task's, since no tick has
    /// followed.
    pub fn read_phases(&self, run: u64, ended: Counts) -> Result<Phases, Error> {
        let phases = PhaseList::new();
        phases.copy(&self.phases);
        if self.is_open() {
            let open = [PhaseCell::new(), PhaseCell::new()];
            for (phase, of_record) in open.iter().zip(&self.open.phases) {
                phase.copy(of_record);
            }
            open[1].set_waker(self.pending().by);
            let are_there = open.iter().filter(|phase| phase.is_some());
            are_there.for_each(|phase| phases.push(phase));
        }
        let mut list: Vec<StoredPhase> = reserved(STORED_PHASES)?;
        list.extend(phases.iter());
        let burst = self.burst(run);
        if burst.intervals > 0 {
            let last_run = ended.0.wrapping_sub(self.began.get());
            let last = burst.split(Ended::Exit, last_run, Counts::ZERO, self.wakes.get());
            list.extend(last.into_iter().filter(|phase| phase.intervals > 0));
        }
        let order = phases.order();
        let phases = Phases { order, list };
        Ok(match order {
            PhaseOrder::AsRun => phases,
            PhaseOrder::ByEnding => phases.coarsened(),
        })
    }
}

/// The figures of a burst, from one block to the next.
pub(crate) struct Burst {
    /// The time on the CPU, in counts.
    pub(crate) run: u64,
    pub(crate) intervals: u64,
    pub(crate) preemptions: u64,
}

impl Burst {
    /// Returns the number of its run intervals that yielded.
    const fn yields(&self) -> u64 {
        self.intervals
            .saturating_sub(self.preemptions)
            .saturating_sub(1)
    }

    /// Splits the burst into two phases: the run intervals that yielded, and the last one. The last
    /// one took `last_run` if there was no preemption. All run intervals get equal parts of the
    /// wakes, and the last one gets the remainder.
    pub(crate) fn split(
        &self,
        ended: Ended,
        last_run: u64,
        blocked: Counts,
        wakes: Wakes,
    ) -> [StoredPhase; 2] {
        let yields = self.yields();
        let intervals = yields + 1;
        // The product of 128 bits cannot overflow.
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
