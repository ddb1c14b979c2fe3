//! Recording: what each task of the program did, in a table of fixed size.
//!
//! The table is written by the scheduler under the run queue's lock, and read by
//! `measure_end` from a task. The fields are relaxed atomics (LOCK in
//! [`task`](crate::task)), single writer, updated by load and store. If the reader
//! is preempted, each field it reads is exact, but not all are of one moment: a
//! measurement is meant to end after its tasks.
//!
//! **What a context switch pays for.** Only three numbers change at each: BALANCE,
//! the number of bursts, and the end of the last one. All else follows from them,
//! at the rarer events and when the record is read: yields are the bursts that
//! neither a preemption nor a block nor the exit ended; the time ready is what is
//! left of a task's life without its time on the CPU and its time blocked.
//!
//! BALANCE: `run` is the sum of the ends of a record's bursts less the sum of their
//! beginnings, modulo 2^64. So it is the time on the CPU exactly while the task has
//! not got it; while it has, the present reading is missing.
//!
//! **Phases.** From one block to the next is a stretch: some yields, then the block.
//! A stretch has one sum of time, and is noted as two phases, the bursts that
//! yielded and the one that blocked, to which the time goes in equal parts. A burst
//! that a preemption cuts goes on when the task is back: that is no business of the
//! program's. A phase takes in another like it ([`Phase::is_like`]); when
//! [`MAX_PHASES`] are full, the record coarsens to one phase for each ending, and
//! never fails.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::Release};

use super::reserved;
use super::stored::{
    Ended, Figure, Figures, Label, PhaseOrder, Phases, Place, StoredPhase, StoredTask,
};
use crate::syscall::Error;
use crate::units::{Counts, TaskKey};

/// The most tasks that are recorded and planned.
pub const MAX_TASKS: usize = 4096;

/// The most phases that are recorded of a task. Eight, because a program that does
/// more different things one after the other is told by averages just as well, and
/// each costs 32 bytes a task.
pub const MAX_PHASES: usize = 8;

/// What a recorded task takes, in bytes; all of [`MAX_TASKS`] together 1.75 MiB.
pub const RECORD_BYTES: usize = 448;
const _: () = assert!(size_of::<Record>() == RECORD_BYTES);

/// A number with one writer at a time.
#[derive(Default)]
struct Word(AtomicU64);

impl Word {
    #[inline(always)]
    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
    #[inline(always)]
    fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }
    #[inline(always)]
    fn add(&self, by: u64) {
        self.set(self.get().wrapping_add(by));
    }
}

/// A label or none, with one writer at a time. The length is written last, so that an
/// interrupt finds the whole label or none.
pub struct LabelCell {
    len: AtomicU64,
    bytes: [Word; 4],
}

impl LabelCell {
    /// None.
    pub const fn new() -> Self {
        Self {
            len: AtomicU64::new(0),
            bytes: [const { Word(AtomicU64::new(0)) }; 4],
        }
    }

    /// From now on this one.
    pub fn set(&self, label: Option<&Label>) {
        let text = label.map_or(&[][..], |label| label.as_str().as_bytes());
        let mut bytes = [0; 32];
        bytes[..text.len()].copy_from_slice(text);
        self.len.store(0, Release);
        for (word, bytes) in self.bytes.iter().zip(bytes.as_chunks().0) {
            word.set(u64::from_le_bytes(*bytes));
        }
        self.len.store(text.len() as u64, Release);
    }

    /// The label.
    pub fn get(&self) -> Option<Label> {
        let len = self.len.load(Relaxed) as usize;
        if len == 0 {
            return None;
        }
        let mut bytes = [0; 32];
        for (word, bytes) in self.bytes.iter().zip(bytes.as_chunks_mut().0) {
            *bytes = word.get().to_le_bytes();
        }
        Label::new(core::str::from_utf8(bytes.get(..len)?).ok()?).ok()
    }
}

/// Bursts that ended alike, as a record keeps them.
#[derive(Default)]
struct Phase {
    ended: Word,
    bursts: Word,
    run: Word,
    blocked: Word,
}

impl Phase {
    fn get(&self) -> StoredPhase {
        StoredPhase {
            ended: Ended::ALL[self.ended.get() as usize % Ended::ALL.len()],
            bursts: self.bursts.get(),
            run: Counts(self.run.get()),
            blocked: Counts(self.blocked.get()),
        }
    }

    fn set(&self, phase: &StoredPhase) {
        self.ended.set(phase.ended as u64);
        self.bursts.set(phase.bursts);
        self.run.set(phase.run.0);
        self.blocked.set(phase.blocked.0);
    }

    fn add(&self, phase: &StoredPhase) {
        self.bursts.add(phase.bursts);
        self.run.add(phase.run.0);
        self.blocked.add(phase.blocked.0);
    }

    /// Whether its bursts ended as those of `other` did, and were on average between
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
    /// BALANCE.
    run: Word,
    bursts: Word,
    /// When the last burst ended; before the first, when the task was spawned.
    ended: Word,
    blocked: Word,
    blocks: Word,
    preemptions: Word,
    /// `run`, `bursts` and `preemptions` when the last stretch ended.
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
    phases: [Phase; MAX_PHASES],
}

/// In place of an index: the root, or one who is not in the table.
const NOBODY: u64 = u64::MAX;

/// The record of everybody who has none: what is written there is never read.
pub static OUTSIDE: Record = Record::new();

/// A reference to somebody's record that can be changed: by one writer at a time, as
/// all that a task carries is.
pub struct Recorded(AtomicPtr<Record>);

impl Recorded {
    /// To [`OUTSIDE`].
    pub const fn nowhere() -> Self {
        Self(AtomicPtr::new((&raw const OUTSIDE).cast_mut()))
    }

    /// The record.
    #[inline(always)]
    pub fn get(&self) -> &'static Record {
        // SAFETY: only references that live for good are ever stored.
        unsafe { &*self.0.load(Relaxed) }
    }

    /// From now on this one.
    #[inline(always)]
    pub fn set(&self, record: &'static Record) {
        self.0.store((&raw const *record).cast_mut(), Relaxed);
    }
}

impl Record {
    const fn new() -> Self {
        const fn zero() -> Word {
            Word(AtomicU64::new(0))
        }
        Self {
            run: zero(),
            bursts: zero(),
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
            index: Word(AtomicU64::new(NOBODY)),
            label: LabelCell::new(),
            count: zero(),
            by_ending: zero(),
            phases: [const {
                Phase {
                    ended: zero(),
                    bursts: zero(),
                    run: zero(),
                    blocked: zero(),
                }
            }; MAX_PHASES],
        }
    }

    /// Its burst begins.
    #[inline(always)]
    pub fn begins(&self, now: Counts) {
        self.run.set(self.run.get().wrapping_sub(now.0));
        self.bursts.add(1);
    }

    /// Its burst ends, for whatever reason.
    #[inline(always)]
    pub fn ends(&self, now: Counts) {
        self.run.add(now.0);
        self.ended.set(now.0);
    }

    /// The CPU was taken from it; the burst ends at the dispatch that follows.
    pub fn preempted(&self) {
        self.preemptions.add(1);
    }

    /// It is ready again, after a block.
    pub fn woken(&self, now: Counts) {
        if self.index.get() == NOBODY {
            return; // nobody reads it
        }
        let [_, bursts, _] = self.stretch();
        if bursts == 0 {
            return; // it has not run since it was last ready: it only changed queues
        }
        let blocked = now - Counts(self.ended.get());
        self.blocks.add(1);
        self.blocked.add(blocked.0);
        self.ended.set(now.0); // what follows is time ready
        self.note(Ended::Block, self.run.get(), blocked);
    }

    /// Run time, bursts and preemptions since the last stretch ended.
    fn stretch(&self) -> [u64; 3] {
        let now = [self.run.get(), self.bursts.get(), self.preemptions.get()];
        core::array::from_fn(|i| now[i].wrapping_sub(self.noted[i].get()))
    }

    /// A stretch ended; `run` is the time on the CPU by then.
    fn note(&self, ended: Ended, run: u64, blocked: Counts) {
        let [_, bursts, preemptions] = self.stretch();
        let spent = run.wrapping_sub(self.noted[0].get());
        let [yields, last] = split(ended, spent, bursts, preemptions, blocked);
        self.noted[0].set(run);
        self.noted[1].set(self.bursts.get());
        self.noted[2].set(self.preemptions.get());
        if yields.bursts > 0 {
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
            let all: [StoredPhase; MAX_PHASES] = core::array::from_fn(|i| self.phases[i].get());
            self.count.set(0);
            all.iter().for_each(|phase| self.add_by_ending(phase));
        }
        self.add_by_ending(phase);
    }

    fn add_by_ending(&self, phase: &StoredPhase) {
        let count = self.count.get() as usize;
        let same = |p: &&Phase| p.ended.get() == phase.ended as u64;
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
    fn read(&self, now: Counts, runs: bool) -> Result<StoredTask, Error> {
        let spawned = Counts(self.spawned.get());
        let (run, ended) = if runs {
            (self.run.get().wrapping_add(now.0), now)
        } else {
            (self.run.get(), Counts(self.ended.get()))
        };
        let [bursts, preemptions, blocks, blocked] =
            [&self.bursts, &self.preemptions, &self.blocks, &self.blocked].map(Word::get);
        let life = ended - spawned;
        let last = u64::from(bursts > 0);
        let figures = Figures {
            run: Figure::once(run),
            ready: Figure::once(life.0.saturating_sub(run).saturating_sub(blocked)),
            blocked: Figure::once(blocked),
            dispatches: Figure::once(bursts),
            yields: Figure::once(bursts.saturating_sub(preemptions + blocks + last)),
            preemptions: Figure::once(preemptions),
            blocks: Figure::once(blocks),
        };
        Ok(StoredTask {
            key: TaskKey::from_bits(self.key.get()),
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
            latest: None,
            figures,
            phases: self.read_phases(run)?,
        })
    }

    /// The phases, with the last stretch, which ends with the record.
    fn read_phases(&self, run: u64) -> Result<Phases, Error> {
        let mut list = reserved(MAX_PHASES + 2)?;
        list.extend(
            self.phases[..self.count.get() as usize]
                .iter()
                .map(Phase::get),
        );
        let by_ending = self.by_ending.get() != 0;
        let [_, bursts, preemptions] = self.stretch();
        if bursts > 0 {
            let spent = run.wrapping_sub(self.noted[0].get());
            let last = split(Ended::Exit, spent, bursts, preemptions, Counts::ZERO);
            list.extend(last.into_iter().filter(|phase| phase.bursts > 0));
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

/// The two phases of a stretch.
fn split(
    ended: Ended,
    run: u64,
    bursts: u64,
    preemptions: u64,
    blocked: Counts,
) -> [StoredPhase; 2] {
    let bursts = bursts.saturating_sub(preemptions).max(1);
    let yields = bursts - 1;
    // run / bursts × yields, without overflow.
    let yielded = (u128::from(run) * u128::from(yields) / u128::from(bursts)) as u64;
    let phase = |ended, bursts, run, blocked| StoredPhase {
        ended,
        bursts,
        run: Counts(run),
        blocked,
    };
    [
        phase(Ended::Yield, yields, yielded, Counts::ZERO),
        phase(ended, 1, run - yielded, blocked),
    ]
}

/// The table of records.
pub struct Recorder {
    records: Box<[Record]>,
    root: Record,
    len: AtomicUsize,
    /// Children of recorded tasks that found the table full.
    unrecorded: AtomicUsize,
}

impl Recorder {
    /// An empty table, for good: the scheduler may look at it at any time.
    pub fn leak() -> Result<&'static Self, Error> {
        let mut records = reserved(MAX_TASKS)?;
        records.resize_with(MAX_TASKS, Record::new);
        // A vector of one, because `Box::new` aborts where memory is short.
        let mut one = reserved(1)?;
        one.push(Self {
            records: records.into_boxed_slice(),
            root: Record::new(),
            len: AtomicUsize::new(0),
            unrecorded: AtomicUsize::new(0),
        });
        Ok(&one.leak()[0])
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.len.store(0, Relaxed);
        self.unrecorded.store(0, Relaxed);
        self.root.key.set(TaskKey::ROOT.to_bits());
        self.root.children.set(0);
    }

    /// The root's record: what it does is written there, and not read.
    pub const fn root(&'static self) -> &'static Record {
        &self.root
    }

    /// A task was spawned by the one with the record `parent`; its record.
    pub fn spawned(
        &'static self,
        parent: &'static Record,
        label: Option<&Label>,
        now: Counts,
    ) -> &'static Record {
        if ptr::eq(parent, &OUTSIDE) {
            return &OUTSIDE;
        }
        let ordinal = parent.children.get();
        parent.children.set(ordinal + 1);
        let index = self.len.load(Relaxed);
        let Some(record) = self.records.get(index) else {
            self.unrecorded
                .store(self.unrecorded.load(Relaxed) + 1, Relaxed);
            return &OUTSIDE; // rule 4
        };
        let key = match label {
            Some(label) => TaskKey::labelled(label.as_str()),
            None => TaskKey::from_bits(parent.key.get()).child(ordinal as u32),
        };
        for word in [
            &record.run,
            &record.bursts,
            &record.blocked,
            &record.blocks,
            &record.preemptions,
            &record.noted[0],
            &record.noted[1],
            &record.noted[2],
            &record.children,
            &record.count,
            &record.by_ending,
        ] {
            word.set(0);
        }
        record.key.set(key.to_bits());
        record.spawned.set(now.0);
        record.ended.set(now.0);
        record.parent.set(parent.index().map_or(NOBODY, u64::from));
        record.ordinal.set(ordinal);
        record.index.set(index as u64);
        record.label.set(label);
        self.len.store(index + 1, Relaxed);
        record
    }

    /// Children of recorded tasks that found the table full.
    pub fn unrecorded(&self) -> u64 {
        self.unrecorded.load(Relaxed) as u64
    }

    /// The records at `now`, in the order in which the tasks were spawned; `running`
    /// is that of the task that has the CPU. Second, how many were left out.
    ///
    /// Tasks that share a key are, since none of them could be told from the others:
    /// those with the same label, or (see [`TaskKey`] on how unlikely that is) whose
    /// keys collide. And so are their children, but for those with a label of their
    /// own: a replay has nothing to know them by. Cost: n log n.
    pub fn read(&self, now: Counts, running: &Record) -> Result<(Vec<StoredTask>, u64), Error> {
        let records = &self.records[..self.len.load(Relaxed)];
        let mut keys: Vec<u64> = reserved(records.len())?;
        keys.extend(records.iter().map(|record| record.key.get()));
        keys.sort_unstable();
        let is_shared = |key: u64| {
            let first = keys.partition_point(|&k| k < key);
            keys.get(first + 1) == Some(&key)
        };
        let mut tasks: Vec<StoredTask> = reserved(records.len())?;
        // Where the tasks went, for their children.
        let mut places: Vec<Option<u32>> = reserved(records.len())?;
        for record in records {
            let mut task = record.read(now, ptr::eq(record, running))?;
            let mut is_known = !is_shared(record.key.get());
            if let Place::Child { parent, ordinal } = task.place {
                let parent = places[parent as usize];
                is_known &= parent.is_some() || task.label.is_some();
                // A child without its parent is found by its label alone.
                task.place =
                    parent.map_or(Place::Several, |parent| Place::Child { parent, ordinal });
            }
            if !is_known {
                places.push(None);
                continue;
            }
            places.push(Some(tasks.len() as u32));
            tasks.push(task);
        }
        let left_out = (records.len() - tasks.len()) as u64;
        Ok((tasks, left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays `(kind, counts)`: `r` runs and yields, `p` runs and is preempted, `b`
    /// runs and blocks for 100, `.` runs for its exit; a wait of 10 before each.
    fn played(steps: &[(char, u64)]) -> StoredTask {
        played_on(Recorder::leak().unwrap(), steps)
    }

    fn played_on(recorder: &'static Recorder, steps: &[(char, u64)]) -> StoredTask {
        recorder.clear();
        let mut now = 1000;
        let record = recorder.spawned(recorder.root(), None, Counts(now));
        for &(kind, run) in steps {
            now += 10;
            record.begins(Counts(now));
            now += run;
            if kind == 'p' {
                record.preempted();
            }
            record.ends(Counts(now));
            if kind == 'b' {
                now += 100;
                record.woken(Counts(now));
            }
        }
        let (mut tasks, left_out) = recorder.read(Counts(now), &OUTSIDE).unwrap();
        assert_eq!((tasks.len(), left_out), (1, 0));
        tasks.remove(0)
    }

    fn phases(task: &StoredTask) -> Vec<(Ended, u64, u64, u64)> {
        let tuple = |p: &StoredPhase| (p.ended, p.bursts, p.run.0, p.blocked.0);
        task.phases.list.iter().map(tuple).collect()
    }

    /// The last stretch adds two at most, and a list that grows cannot be refused.
    #[test]
    fn room_for_all_phases_is_asked_for_at_once() {
        let record = Recorder::leak().unwrap();
        let record = record.spawned(record.root(), None, Counts(0));
        record.begins(Counts(0));
        let list = record.read_phases(1).unwrap().list;
        assert_eq!(list.len(), 1);
        assert!(list.capacity() >= MAX_PHASES + 2);
    }

    #[test]
    fn rule_3_run_ready_and_blocked_are_kept_apart() {
        let task = played(&[('r', 5), ('p', 7), ('r', 1), ('b', 20), ('r', 4), ('.', 3)]);
        let once = |figure: Figure| (figure.total, figure.least, figure.most);
        let each = task.figures.each().map(once);
        // run, ready, blocked, dispatches, yields, preemptions, blocks
        let expected = [40, 60, 100, 6, 3, 1, 1].map(|value| (value, value, value));
        assert_eq!(each, expected);
    }

    #[test]
    fn rule_3_phases_tell_yields_blocks_and_the_exit() {
        let task = played(&[('r', 6), ('r', 6), ('b', 6), ('p', 2), ('.', 3)]);
        let expected = [
            (Ended::Yield, 2, 12, 0),
            (Ended::Block, 1, 6, 100),
            (Ended::Exit, 1, 5, 0),
        ];
        assert_eq!(phases(&task), expected);
    }

    #[test]
    fn rule_3_like_phases_are_one_and_a_change_begins_another() {
        let mut steps = [('b', 50); 100].to_vec();
        steps.extend([('b', 500); 10]);
        steps.push(('.', 1));
        let expected = [
            (Ended::Block, 100, 5000, 10_000),
            (Ended::Block, 10, 5000, 1000),
            (Ended::Exit, 1, 1, 0),
        ];
        assert_eq!(phases(&played(&steps)), expected);
    }

    #[test]
    fn rule_3_shorter_is_a_change_too() {
        let mut steps = [('b', 500); 10].to_vec();
        steps.extend([('b', 50); 100]);
        steps.push(('.', 1));
        let expected = [
            (Ended::Block, 10, 5000, 1000),
            (Ended::Block, 100, 5000, 10_000),
            (Ended::Exit, 1, 1, 0),
        ];
        assert_eq!(phases(&played(&steps)), expected);
    }

    #[test]
    fn rule_3_only_who_has_run_has_blocked_and_then_time_ready_goes_on() {
        let recorder = Recorder::leak().unwrap();
        recorder.clear();
        let record = recorder.spawned(recorder.root(), None, Counts(1000));
        record.woken(Counts(1005)); // it only changes queues
        record.begins(Counts(1010));
        record.ends(Counts(1015));
        record.woken(Counts(1115));
        record.woken(Counts(1130)); // and again
        let (tasks, _) = recorder.read(Counts(1140), &OUTSIDE).unwrap();
        let figures = tasks[0].figures.each().map(|figure| figure.total);
        assert_eq!(figures, [5, 10, 100, 1, 0, 0, 1]);
        assert_eq!(phases(&tasks[0]), [(Ended::Block, 1, 5, 100)]);
    }

    #[test]
    fn rule_3_the_time_of_a_stretch_is_shared_without_overflow() {
        let [yields, last] = split(Ended::Block, 1 << 62, 1024, 0, Counts::ZERO);
        assert_eq!((yields.run.0, last.run.0), (1023 << 52, 1 << 52));
    }

    #[test]
    fn rule_3_a_record_that_is_used_again_says_nothing_of_the_task_before() {
        let recorder = Recorder::leak().unwrap();
        let before: Vec<_> = (0..100)
            .flat_map(|i| [('r', 1 << (i % 9)), ('p', 3), ('b', 1)])
            .collect();
        played_on(recorder, &before);
        let again = &recorder.records[0];
        recorder.spawned(again, None, Counts(1));
        let steps = [('r', 6), ('p', 2), ('b', 6), ('.', 3)];
        assert_eq!(played_on(recorder, &steps), played(&steps));
        let child = recorder.spawned(again, None, Counts(1));
        let key = TaskKey::ROOT.child(0).child(0);
        assert_eq!(child.key.get(), key.to_bits());
    }

    #[test]
    fn rule_4_a_table_that_was_full_is_empty_again() {
        let recorder = Recorder::leak().unwrap();
        for _ in 0..2 {
            recorder.clear();
            assert_eq!(recorder.unrecorded(), 0);
            for _ in 0..MAX_TASKS + 2 {
                recorder.spawned(recorder.root(), None, Counts(1));
            }
            assert_eq!(recorder.unrecorded(), 2);
        }
    }

    #[test]
    fn rule_4_a_record_that_is_full_coarsens() {
        let steps: Vec<_> = (0..100)
            .flat_map(|i| [('r', 1 << (i % 9)), ('b', 1)])
            .chain([('.', 7)])
            .collect();
        let task = played(&steps);
        assert_eq!(task.phases.order, PhaseOrder::ByEnding);
        let endings: Vec<_> = phases(&task).iter().map(|p| (p.0, p.1)).collect();
        let expected = [(Ended::Yield, 100), (Ended::Block, 100), (Ended::Exit, 1)];
        assert_eq!(endings, expected);
        let sum: u64 = phases(&task).iter().map(|p| p.2).sum();
        assert_eq!(sum, task.figures.run.total, "no time is lost");
    }

    #[test]
    fn a_burst_that_is_still_open_counts_until_now() {
        let recorder = Recorder::leak().unwrap();
        recorder.clear();
        let record = recorder.spawned(recorder.root(), None, Counts(1000));
        record.begins(Counts(1010));
        let (tasks, _) = recorder.read(Counts(1017), record).unwrap();
        let figures = tasks[0].figures;
        assert_eq!((figures.run.total, figures.ready.total), (7, 10));
    }

    #[test]
    fn tasks_that_share_a_key_are_left_out_with_whom_they_spawned() {
        let recorder = Recorder::leak().unwrap();
        recorder.clear();
        let label = Label::new("twin").unwrap();
        let spawn = |parent, label| recorder.spawned(parent, label, Counts(1));
        let root = recorder.root();
        let by_itself = Label::new("by itself").unwrap();
        let first = spawn(root, Some(&label));
        let child = spawn(first, None);
        spawn(child, None);
        spawn(child, Some(&by_itself));
        let other = spawn(root, None);
        spawn(root, Some(&label));
        spawn(other, None);
        let (tasks, left_out) = recorder.read(Counts(2), &OUTSIDE).unwrap();
        let keys: Vec<_> = tasks.iter().map(|task| task.key).collect();
        let other = TaskKey::ROOT.child(1);
        let expected = [TaskKey::labelled("by itself"), other, other.child(0)];
        assert_eq!(keys, expected);
        assert_eq!(tasks[0].place, Place::Several);
        let (parent, ordinal) = (1, 0);
        assert_eq!(tasks[2].place, Place::Child { parent, ordinal });
        assert_eq!(left_out, 4);
    }
}
