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
//! **Wakers.** A scheduler is told of a wake, and not of its cause. That is the task that has
//! the CPU, or an interrupt that has hit that task. The timer's interrupt first wakes the tasks that
//! have slept enough and then calls the tick, both on one CPU, whichever queues the woken go to.
//! So a wake is the timer's if a tick follows it there
//! *closely*, within 1/[`WAKE_TICK_RATIO`] of the time from tick to tick, with nothing but such wakes in
//! between, each close to the next; and if the CPU was idle. Until the next wake, spawn or tick says so,
//! the wake is *pending*, and the burst that it ended is open. A task's own wake that happens to
//! come just before a tick is taken for the timer's: one in [`WAKE_TICK_RATIO`], where wakes and ticks have
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
pub const WAKE_TICK_RATIO: u64 = 1024;

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
    /// The tasks that were woken from there.
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
        period / WAKE_TICK_RATIO
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
            task.spawned.after = task.spawned.after.renumbered(place);
        }
        let left_out = (records.len() - tasks.len()) as u64;
        Ok((tasks, left_out))
    }
}

#[cfg(test)]
mod tests;
