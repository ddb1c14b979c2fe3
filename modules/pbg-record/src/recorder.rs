//! Recording: what each task of the program did, in a table of fixed size.
//!
//! The table is written by schedulers under their run queue's lock, and read by
//! `measure_end` from a task. The fields are relaxed atomics (LOCK in
//! [`task`](sched_core::task)), single writer, updated by load and store. If the reader
//! is preempted, or others run meanwhile on other CPUs, each field it reads is exact, but not
//! all are of one moment: a measurement is meant to end after its tasks.
//!
//! **Several CPUs.** RECORD: what a context switch writes of a record is written by the CPU
//! that the task is on, and read or changed by another only when the task has left that: a
//! waker spins until then. TABLE: all else, which is written at spawns, wakes and ticks, may
//! concern tasks of other CPUs (who wakes, who was woken, who waits to be told by whom), and is
//! written under the recorder's own lock; it is taken within a run queue's, with interrupts
//! off, and nothing is called under it. What a CPU's ticks were, only that CPU writes.
//!
//! **Who wakes whom.** A scheduler is told of a wake, and not by whom. It is by the task that has
//! the CPU, or by an interrupt that has hit that task. The timer's interrupt first wakes those who
//! have slept enough and then calls the tick, both on one CPU, whichever queues the woken go to.
//! So a wake is the timer's if a tick follows it there
//! *closely*, within 1/[`CLOSE`] of the time from tick to tick, with nothing but such wakes in
//! between, each close to the next; and if the CPU was idle. Until the next wake, spawn or tick says so,
//! the wake is *pending*, and the burst that it ended is open. A task's own wake that happens to
//! come just before a tick is taken for the timer's: one in [`CLOSE`], where wakes and ticks have
//! nothing to do with each other.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use spin::mutex::{SpinMutex, SpinMutexGuard};

use super::cell::Word;
use super::error::{Error, reserved};
use super::record::{IDLE, OUTSIDE, PendingWake, Record};
use pbg_profile::{Figure, Kernel, Label, MAX_TASKS, Place, Start, StoredTask, Waker};
use sched_core::units::{Counts, TaskKey};

/// A wake is close to a tick within the time from tick to tick over this.
pub const CLOSE: u64 = 1024;

/// How many CPUs can be recorded.
pub const MAX_CPUS: usize = 64;

/// The table of records.
pub struct Recorder {
    records: Box<[Record]>,
    root: Record,
    len: AtomicUsize,
    /// Children of recorded tasks that found the table full.
    unrecorded: AtomicUsize,
    /// When the first task was spawned.
    start: Word,
    /// From the last tick to then.
    phase: Word,
    /// TABLE
    lock: SpinMutex<()>,
    cpus: [Cpu; MAX_CPUS],
}

/// What belongs to one CPU.
struct Cpu {
    ticks: Ticks,
    /// Who was woken from there.
    pending: Pending,
}

/// Ticks as they hit tasks, and what they lead to.
struct Ticks {
    /// When the last one came; 0 if none did.
    last: Word,
    /// The shortest time between two.
    shortest: Word,
    /// The times between two that were no longer than one and a half of that, and how many.
    sum: Word,
    count: Word,
    /// How many asked for the CPU, and how many tasks were preempted.
    asked: Word,
    preempted: Word,
}

impl Ticks {
    const fn new() -> Self {
        const fn zero() -> Word {
            Word::new(0)
        }
        Self {
            last: zero(),
            shortest: zero(),
            sum: zero(),
            count: zero(),
            asked: zero(),
            preempted: zero(),
        }
    }

    fn clear(&self) {
        let words = [&self.last, &self.shortest, &self.sum, &self.count];
        let all = words.into_iter().chain([&self.asked, &self.preempted]);
        all.for_each(|word| word.set(0));
    }

    /// A tick hits a task. (One that hits an idle CPU is not told: then two were missed.)
    fn came(&self, now: Counts) {
        let last = self.last.get();
        self.last.set(now.0);
        if last == 0 {
            return;
        }
        let passed = now.0.wrapping_sub(last).max(1);
        let shortest = self.shortest.get();
        if shortest == 0 || passed < shortest / 3 * 2 {
            // All that were seen had others between that were missed.
            self.sum.set(0);
            self.count.set(0);
        }
        if shortest == 0 || passed < shortest {
            self.shortest.set(passed);
        }
        if passed <= self.shortest.get() / 2 * 3 {
            self.sum.add(passed);
            self.count.add(1);
        }
    }

    /// The mean time from one to the next; 0 if no two were seen.
    fn period(&self) -> u64 {
        self.sum.get() / self.count.get().max(1)
    }

    /// How long a tick was ago, at `now`.
    fn phase(&self, now: Counts) -> u64 {
        match (self.last.get(), self.period()) {
            (0, _) => 0,
            (last, 0) => now.0.wrapping_sub(last),
            (last, period) => now.0.wrapping_sub(last) % period,
        }
    }

    fn kernel(&self) -> Kernel {
        match (self.preempted.get(), self.asked.get()) {
            (1.., _) => Kernel::Preemptive,
            // The last one may still be on its way.
            (0, 2..) => Kernel::Cooperative,
            (0, 0 | 1) => Kernel::Unknown,
        }
    }

    /// How far a wake may be from a tick, or from another wake. While nobody knows how long a tick
    /// is, it is taken for `so_far`.
    fn close(&self, so_far: u64) -> u64 {
        let period = match self.period() {
            0 => so_far,
            period => period,
        };
        period / CLOSE
    }
}

/// The wakes that are pending, from the last to the first. Each record has the next one.
struct Pending {
    /// The number of the first; 0 is nobody.
    head: Word,
    /// When the last of them was woken.
    last: Word,
}

impl Cpu {
    const fn new() -> Self {
        Self {
            ticks: Ticks::new(),
            pending: Pending {
                head: Word::new(0),
                last: Word::new(0),
            },
        }
    }

    /// Whether `now` is close to the last wake that is pending, in a run that began at `start`.
    fn is_close(&self, start: &Word, now: Counts) -> bool {
        let so_far = now.0.wrapping_sub(start.get());
        now.0.wrapping_sub(self.pending.last.get()) <= self.ticks.close(so_far)
    }
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
            start: Word::new(0),
            phase: Word::new(0),
            lock: SpinMutex::new(()),
            cpus: [const { Cpu::new() }; MAX_CPUS],
        });
        Ok(&one.leak()[0])
    }

    /// TABLE. With interrupts off, or while nobody records.
    fn enter(&self) -> SpinMutexGuard<'_, ()> {
        self.lock.lock()
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.len.store(0, Relaxed);
        self.unrecorded.store(0, Relaxed);
        self.root.start_as_root();
        for cpu in &self.cpus {
            cpu.ticks.clear();
            cpu.pending.head.set(0);
        }
    }

    /// The root's record: what it does is written there, and not read.
    pub const fn root(&'static self) -> &'static Record {
        &self.root
    }

    /// A task was spawned on `cpu`, by the one with the record `parent`, who has it; its record.
    pub fn spawned(
        &'static self,
        cpu: usize,
        parent: &'static Record,
        label: Option<&Label>,
        now: Counts,
    ) -> &'static Record {
        if ptr::eq(parent, &OUTSIDE) {
            return &OUTSIDE;
        }
        let _table = self.enter();
        self.settle(cpu, false); // the parent has run since it was woken
        let ordinal = parent.next_ordinal();
        let index = self.len.load(Relaxed);
        if index == 0 {
            self.start.set(now.0);
            self.phase.set(self.cpus[cpu].ticks.phase(now));
            self.root.count_from(now); // who else?
        }
        let Some(record) = self.records.get(index) else {
            self.unrecorded
                .store(self.unrecorded.load(Relaxed) + 1, Relaxed);
            return &OUTSIDE; // rule 4
        };
        let key = match label {
            Some(label) => TaskKey::labelled(label.as_str()),
            None => parent.key().child(ordinal as u32),
        };
        record.start(key, parent, ordinal, index as u64, label, now);
        self.len.store(index + 1, Relaxed);
        record
    }

    /// The task with the record `woken` is made ready on `cpu`, which runs the one with the
    /// record `running`.
    pub fn woken(
        &'static self,
        cpu: usize,
        woken: &'static Record,
        running: &'static Record,
        now: Counts,
    ) {
        let Some(number) = self.waker(woken) else {
            return; // nobody reads it
        };
        let _table = self.enter();
        if woken.is_open() {
            self.settle(woken.pending().cpu, false);
        }
        let here = &self.cpus[cpu];
        if !here.is_close(&self.start, now) {
            self.settle(cpu, false);
        }
        if !woken.woken(now) {
            return;
        }
        if ptr::eq(running, &IDLE) {
            return woken.woken_by(Waker::Timer);
        }
        running.wakes(woken, now);
        woken.is_pending(&PendingWake {
            by: self.waker(running).unwrap_or(Waker::Outside),
            next: here.pending.head.get(),
            cpu,
        });
        here.pending.head.set(number.number());
        here.pending.last.set(now.0);
    }

    /// A tick hits the task that has this CPU, and has asked for the CPU or not.
    pub fn tick(&'static self, cpu: usize, asks: bool, now: Counts) {
        let here = &self.cpus[cpu];
        let is_close = here.is_close(&self.start, now);
        here.ticks.came(now);
        here.ticks.asked.add(u64::from(asks));
        let _table = self.enter();
        self.settle(cpu, is_close);
    }

    /// The task with this record was preempted on `cpu`.
    pub fn preempted(&self, cpu: usize, record: &Record) {
        record.preempted();
        self.cpus[cpu].ticks.preempted.add(1);
    }

    /// Who is pending on `cpu` was woken by the timer, or by who had the CPU.
    fn settle(&'static self, cpu: usize, by_timer: bool) {
        let head = &self.cpus[cpu].pending.head;
        let mut number = head.get();
        head.set(0);
        while let Some(woken) = self.record(number) {
            let PendingWake {
                by: waker, next, ..
            } = woken.pending();
            number = next;
            if !by_timer {
                woken.woken_by(waker);
                continue;
            }
            let running = self.record(waker.number()).unwrap_or(&OUTSIDE);
            running.has_not_woken(woken);
            woken.woken_by(Waker::Timer);
        }
    }

    /// Who has this record, if it is read.
    fn waker(&self, record: &Record) -> Option<Waker> {
        if ptr::eq(record, &self.root) {
            return Some(Waker::Root);
        }
        let index = record.index()?;
        Some(Waker::Task(index as u16))
    }

    /// The record of the one with this number of a [`Waker`].
    fn record(&'static self, number: u64) -> Option<&'static Record> {
        match Waker::of_number(number)? {
            Waker::Root => Some(&self.root),
            Waker::Task(index) => Some(&self.records[usize::from(index)]),
            Waker::Unknown | Waker::Timer | Waker::Outside => None,
        }
    }

    /// How the run began.
    pub fn start(&self) -> Start {
        // All CPUs tick alike; but one that mostly idles sees few ticks that hit a task.
        let by_ticks = |cpu: &&Cpu| cpu.ticks.count.get();
        let period =
            (self.cpus.iter().rev().max_by_key(by_ticks)).map_or(0, |cpu| cpu.ticks.period());
        let figures = [period, self.phase.get(), self.start.get()];
        let [tick, phase, age] = figures.map(Figure::once);
        let kernels = self.cpus.iter().map(|cpu| cpu.ticks.kernel());
        let kernel = kernels.fold(Kernel::Unknown, |all, of_cpu| match (all, of_cpu) {
            (Kernel::Preemptive, _) | (_, Kernel::Preemptive) => Kernel::Preemptive,
            (Kernel::Cooperative, _) | (_, Kernel::Cooperative) => Kernel::Cooperative,
            (Kernel::Unknown, Kernel::Unknown) => Kernel::Unknown,
        });
        Start {
            tick,
            phase,
            age,
            kernel,
        }
    }

    /// Children of recorded tasks that found the table full.
    pub fn unrecorded(&self) -> u64 {
        self.unrecorded.load(Relaxed) as u64
    }

    /// The records at `now`, in the order in which the tasks were spawned; `has_cpu` tells those
    /// of the tasks that have a CPU. Second, how many were left out.
    ///
    /// Tasks that share a key are, since none of them could be told from the others:
    /// those with the same label, or (see [`TaskKey`] on how unlikely that is) whose
    /// keys collide. And so are their children, but for those with a label of their
    /// own: a replay has nothing to know them by. Cost: n log n.
    pub fn read(
        &self,
        now: Counts,
        has_cpu: impl Fn(&Record) -> bool,
    ) -> Result<(Vec<StoredTask>, u64), Error> {
        let records = &self.records[..self.len.load(Relaxed)];
        let mut keys: Vec<TaskKey> = reserved(records.len())?;
        keys.extend(records.iter().map(|record| record.key()));
        keys.sort_unstable();
        let is_shared = |key: TaskKey| {
            let first = keys.partition_point(|&k| k < key);
            keys.get(first + 1) == Some(&key)
        };
        let mut tasks: Vec<StoredTask> = reserved(records.len())?;
        // Where the tasks went, for their children.
        let mut places: Vec<Option<u16>> = reserved(records.len())?;
        for record in records {
            let start = Counts(self.start.get());
            let mut task = record.read(start, now, has_cpu(record))?;
            let mut is_known = !is_shared(record.key());
            if let Place::Child { parent, ordinal } = task.place {
                let parent = places[parent as usize];
                is_known &= parent.is_some() || task.label.is_some();
                // A child without its parent is found by its label alone.
                task.place = parent.map_or(Place::Several, |parent| Place::Child {
                    parent: u32::from(parent),
                    ordinal,
                });
            }
            if !is_known {
                places.push(None);
                continue;
            }
            places.push(Some(tasks.len() as u16));
            tasks.push(task);
        }
        for task in &mut tasks {
            let place = |index: u16| places.get(usize::from(index)).copied().flatten();
            task.phases.renumber(place);
            if let Some(spawned) = &mut task.spawned {
                spawned.after = spawned.after.renumbered(place);
            }
        }
        let left_out = (records.len() - tasks.len()) as u64;
        Ok((tasks, left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::super::phase_list::RECORDED_PHASES;
    use super::super::record::Burst;
    use super::*;
    use pbg_profile::{Ended, Figure, PhaseOrder, Spawned, StoredPhase, Wakes, Woken};

    /// Plays `(kind, counts)`: `r` runs and yields, `p` runs and is preempted, `b`
    /// runs and blocks for 100, `.` runs for its exit; a wait of 10 before each.
    fn played(steps: &[(char, u64)]) -> StoredTask {
        played_on(Recorder::leak().unwrap(), steps)
    }

    fn played_on(recorder: &'static Recorder, steps: &[(char, u64)]) -> StoredTask {
        recorder.clear();
        let mut now = 1000;
        let record = recorder.spawned(0, recorder.root(), None, Counts(now));
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
                recorder.woken(0, record, &IDLE, Counts(now));
            }
        }
        let (mut tasks, left_out) = recorder.read(Counts(now), |_| false).unwrap();
        assert_eq!((tasks.len(), left_out), (1, 0));
        tasks.remove(0)
    }

    fn phases(task: &StoredTask) -> Vec<(Ended, u64, u64, u64)> {
        let tuple = |p: &StoredPhase| (p.ended, p.intervals, p.run.0, p.blocked.0);
        task.phases.list.iter().map(tuple).collect()
    }

    /// The last burst adds two at most, and a list that grows cannot be refused.
    #[test]
    fn room_for_all_phases_is_asked_for_at_once() {
        let record = Recorder::leak().unwrap();
        let record = record.spawned(0, record.root(), None, Counts(0));
        record.begins(Counts(0));
        let list = record.read_phases(1, Counts(1)).unwrap().list;
        assert_eq!(list.len(), 1);
        assert!(list.capacity() >= RECORDED_PHASES + 4);
    }

    #[test]
    fn rule_3_run_ready_and_blocked_are_kept_apart() {
        let task = played(&[('r', 5), ('p', 7), ('r', 1), ('b', 20), ('r', 4), ('.', 3)]);
        let once = |figure: Figure| (figure.total, figure.least, figure.most);
        let each = task.figures.to_array().map(once);
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
    fn rule_3_the_last_run_interval_of_a_burst_is_told_from_those_before() {
        let task = played(&[('r', 50), ('r', 50), ('b', 2), ('r', 50), ('.', 3)]);
        let expected = [
            (Ended::Yield, 2, 100, 0),
            (Ended::Block, 1, 2, 100),
            (Ended::Yield, 1, 50, 0),
            (Ended::Exit, 1, 3, 0),
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
        let record = recorder.spawned(0, recorder.root(), None, Counts(1000));
        recorder.woken(0, record, &IDLE, Counts(1005)); // it only changes queues
        record.begins(Counts(1010));
        record.ends(Counts(1015));
        recorder.woken(0, record, &IDLE, Counts(1115));
        recorder.woken(0, record, &IDLE, Counts(1130)); // and again
        let (tasks, _) = recorder.read(Counts(1140), |_| false).unwrap();
        let figures = tasks[0].figures.to_array().map(|figure| figure.total);
        assert_eq!(figures, [5, 10, 100, 1, 0, 0, 1]);
        assert_eq!(phases(&tasks[0]), [(Ended::Block, 1, 5, 100)]);
    }

    #[test]
    fn rule_3_the_time_of_a_burst_is_shared_without_overflow() {
        let burst = Burst {
            run: 1 << 62,
            intervals: 1025,
            preemptions: 1,
        };
        let wakes = Wakes::default();
        let [yields, last] = burst.split(Ended::Block, 7, Counts::ZERO, wakes);
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
        recorder.spawned(0, again, None, Counts(1));
        let steps = [('r', 6), ('p', 2), ('b', 6), ('.', 3)];
        assert_eq!(played_on(recorder, &steps), played(&steps));
        let child = recorder.spawned(0, again, None, Counts(1));
        let key = TaskKey::ROOT.child(0).child(0);
        assert_eq!(child.key(), key);
    }

    #[test]
    fn rule_4_a_table_that_was_full_is_empty_again() {
        let recorder = Recorder::leak().unwrap();
        for _ in 0..2 {
            recorder.clear();
            assert_eq!(recorder.unrecorded(), 0);
            for _ in 0..MAX_TASKS + 2 {
                recorder.spawned(0, recorder.root(), None, Counts(1));
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

    const TICK: u64 = 1_000_000;

    /// A recorder that knows how long a tick is, and its tasks: the first has the CPU.
    fn ticking(tasks: usize) -> (&'static Recorder, Vec<&'static Record>, u64) {
        let recorder = Recorder::leak().unwrap();
        recorder.clear();
        (1..=3).for_each(|n| recorder.tick(0, false, Counts(n * TICK)));
        let now = 3 * TICK + 7;
        let tasks: Vec<_> = (0..tasks)
            .map(|_| recorder.spawned(0, recorder.root(), None, Counts(now)))
            .collect();
        recorder.root().ends(Counts(now));
        tasks[0].begins(Counts(now));
        // All others have run, and block.
        for task in &tasks[1..] {
            task.begins(Counts(now));
            task.ends(Counts(now));
        }
        (recorder, tasks, now)
    }

    fn wakers(recorder: &'static Recorder, now: u64) -> Vec<Vec<Waker>> {
        let (tasks, _) = recorder.read(Counts(now), |_| false).unwrap();
        let of = |task: &StoredTask| {
            let list = task.phases.list.iter();
            list.filter(|phase| phase.ended == Ended::Block)
                .map(|phase| phase.woken_by)
                .collect()
        };
        tasks.iter().map(of).collect()
    }

    fn wakes(recorder: &'static Recorder, now: u64) -> Wakes {
        let (tasks, _) = recorder.read(Counts(now), |_| false).unwrap();
        let wakes = tasks[0].phases.list.iter().map(|phase| phase.wakes);
        wakes.fold(Wakes::default(), Wakes::merged)
    }

    #[test]
    fn a_wake_is_the_timers_if_a_tick_follows_closely_even_after_others() {
        let (recorder, tasks, _) = ticking(12);
        let close = TICK / CLOSE;
        let mut now = 4 * TICK - 11 * close;
        for task in &tasks[1..] {
            recorder.woken(0, task, tasks[0], Counts(now));
            now += close;
        }
        recorder.tick(0, false, Counts(now));
        let found = wakers(recorder, now);
        assert!(found[0].is_empty());
        assert!(
            found[1..].iter().all(|by| by[..] == [Waker::Timer]),
            "{found:?}"
        );
        assert_eq!(wakes(recorder, now), Wakes::default());
    }

    #[test]
    fn a_wake_is_a_tasks_if_no_tick_follows_closely_and_counts_as_one_of_its() {
        let close = TICK / CLOSE;
        for (gap, is_timers) in [(close, true), (close + 1, false)] {
            let (recorder, tasks, now) = ticking(3);
            recorder.woken(0, tasks[1], tasks[0], Counts(now));
            // It says what the first one was; what it is itself the tick says.
            let later = 4 * TICK - gap;
            recorder.woken(0, tasks[2], tasks[0], Counts(later));
            recorder.tick(0, false, Counts(4 * TICK));
            let by = if is_timers {
                Waker::Timer
            } else {
                Waker::Task(0)
            };
            assert_eq!(
                wakers(recorder, 5 * TICK),
                [vec![], vec![Waker::Task(0)], vec![by]]
            );
            // The first was when it began, the second when it had run until then.
            let woken = [(1, now), (2, later)].map(|(index, at)| Woken {
                whom: Waker::Task(index),
                count: 1,
                after: Counts(at - now),
            });
            let expected = Wakes::of(woken.into_iter().take(2 - usize::from(is_timers)));
            assert_eq!(wakes(recorder, 5 * TICK), expected);
        }
    }

    /// It runs at once elsewhere, blocks, and is woken from there, while nothing happens where it
    /// was woken first.
    #[test]
    fn a_wake_that_is_pending_on_one_cpu_is_settled_by_the_next_from_another() {
        let (recorder, tasks, now) = ticking(4);
        (1..=3).for_each(|n| recorder.tick(1, false, Counts(n * TICK)));
        recorder.woken(0, tasks[1], tasks[0], Counts(now));
        tasks[1].begins(Counts(now + 1));
        tasks[1].ends(Counts(now + 2));
        recorder.woken(1, tasks[1], tasks[2], Counts(now + 3));
        recorder.tick(0, false, Counts(now + 4)); // close, and too late
        recorder.tick(1, false, Counts(now + 5));
        let found = wakers(recorder, now + TICK);
        assert_eq!(found[1], [Waker::Task(0), Waker::Timer]);
    }

    #[test]
    fn who_has_a_cpu_shows_where_nobody_says_so() {
        let recorder = Recorder::leak().unwrap();
        recorder.clear();
        let record = recorder.spawned(0, recorder.root(), None, Counts(1000));
        let run = |now| {
            let (tasks, _) = recorder.read(Counts(now), |_| false).unwrap();
            tasks[0].figures.run.total
        };
        record.begins(Counts(1010));
        assert_eq!(run(1017), 7);
        record.ends(Counts(1020));
        assert_eq!(run(2000), 10);
        record.begins(Counts(2000));
        assert_eq!(run(2005), 15);
    }

    #[test]
    fn who_wakes_while_nobody_runs_is_the_timer_and_a_stranger_is_outside() {
        let (recorder, tasks, now) = ticking(3);
        recorder.woken(0, tasks[1], &IDLE, Counts(now));
        recorder.woken(0, tasks[2], &OUTSIDE, Counts(now + TICK / 2));
        recorder.spawned(0, recorder.root(), None, Counts(now + TICK / 2 + 1));
        let found = wakers(recorder, now + TICK);
        assert_eq!(found[1..3], [[Waker::Timer], [Waker::Outside]]);
    }

    #[test]
    fn a_task_says_when_it_was_spawned_and_what_its_parent_had_done_by_then() {
        let (recorder, tasks, now) = ticking(1);
        let root = recorder.root();
        tasks[0].ends(Counts(now + 100));
        // The root had run since the first spawn; now it waits for the task, twice.
        root.begins(Counts(now + 100));
        root.ends(Counts(now + 130));
        tasks[0].begins(Counts(now + 130));
        recorder.woken(0, root, tasks[0], Counts(now + 500));
        tasks[0].ends(Counts(now + 520));
        root.begins(Counts(now + 520));
        recorder.spawned(0, root, None, Counts(now + 525));
        let (tasks, _) = recorder
            .read(Counts(now + 600), |of| ptr::eq(of, root))
            .unwrap();
        let spawned = tasks.iter().map(|task| task.spawned.unwrap());
        let told = |spawned: Spawned| (spawned.figures().map(|figure| figure.total), spawned.after);
        let found: Vec<_> = spawned.map(told).collect();
        assert_eq!(
            found,
            [
                ([0; 4], Waker::Unknown),
                ([525, 35, 1, 500], Waker::Task(0))
            ]
        );
        let start = recorder.start();
        let figures = start.figures().map(|figure| figure.total);
        assert_eq!(figures, [TICK, 7, 3 * TICK + 7]);
    }

    #[test]
    fn a_tick_is_the_mean_of_those_with_none_missed_between() {
        let ticks = Ticks::new();
        assert_eq!((ticks.period(), ticks.phase(Counts(5))), (0, 0));
        // Three were missed at first, and two later.
        for at in [1_000, 5_000, 6_010, 7_000, 10_000, 10_990] {
            ticks.came(Counts(at));
        }
        assert_eq!(ticks.period(), (1_010 + 990 + 990) / 3);
        assert_eq!(ticks.phase(Counts(10_990 + 2 * 996 + 5)), 5);
    }

    #[test]
    fn a_kernel_preempts_if_somebody_was_and_does_not_if_ticks_asked_in_vain() {
        let (recorder, tasks, now) = ticking(1);
        assert_eq!(recorder.start().kernel, Kernel::Unknown);
        recorder.tick(0, true, Counts(now));
        assert_eq!(recorder.start().kernel, Kernel::Unknown);
        recorder.tick(0, true, Counts(now + TICK));
        assert_eq!(recorder.start().kernel, Kernel::Cooperative);
        recorder.preempted(0, tasks[0]);
        assert_eq!(recorder.start().kernel, Kernel::Preemptive);
    }

    #[test]
    fn rule_4_wakers_are_what_a_full_record_forgets_first() {
        // Two take turns to end its waits: more phases than there is room for.
        let (recorder, tasks, now) = ticking(3);
        recorder.woken(0, tasks[2], &IDLE, Counts(now));
        let mut at = now;
        for n in 0..20 {
            tasks[2].begins(Counts(at));
            at += 100;
            tasks[2].ends(Counts(at));
            recorder.woken(
                0,
                tasks[2],
                tasks[n % 2],
                Counts(at + TICK / 100 * n as u64),
            );
            at += TICK;
        }
        let (read, _) = recorder.read(Counts(at), |_| false).unwrap();
        let list = &read[2].phases.list;
        assert_eq!(read[2].phases.order, PhaseOrder::AsRun);
        let found: Vec<_> = list.iter().map(|p| (p.intervals, p.woken_by)).collect();
        assert_eq!(found, [(1, Waker::Timer), (20, Waker::Unknown)]);
    }

    #[test]
    fn a_run_interval_that_is_still_open_counts_until_now() {
        let recorder = Recorder::leak().unwrap();
        recorder.clear();
        let record = recorder.spawned(0, recorder.root(), None, Counts(1000));
        record.begins(Counts(1010));
        let (tasks, _) = recorder
            .read(Counts(1017), |of| ptr::eq(of, record))
            .unwrap();
        let figures = tasks[0].figures;
        assert_eq!((figures.run.total, figures.ready.total), (7, 10));
    }

    #[test]
    fn tasks_that_share_a_key_are_left_out_with_whom_they_spawned() {
        let recorder = Recorder::leak().unwrap();
        recorder.clear();
        let label = Label::new("twin").unwrap();
        let spawn = |parent, label| recorder.spawned(0, parent, label, Counts(1));
        let root = recorder.root();
        let by_itself = Label::new("by itself").unwrap();
        let first = spawn(root, Some(&label));
        let child = spawn(first, None);
        spawn(child, None);
        spawn(child, Some(&by_itself));
        let other = spawn(root, None);
        spawn(root, Some(&label));
        spawn(other, None);
        let (tasks, left_out) = recorder.read(Counts(2), |_| false).unwrap();
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
