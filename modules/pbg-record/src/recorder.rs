//! Recording: the records of the program's tasks, in a table of fixed size.
//!
//! Schedulers write the table under their run queue's lock, and `measure_end` reads it from a task.
//! The fields are relaxed atomics with a single writer, updated by load and store (LOCK in
//! [`task`](sched_core::task)). Each field that the reader sees is exact. If the reader is preempted,
//! or other CPUs run tasks meanwhile, the fields do not belong to one moment. So a measurement should
//! end after its tasks.
//!
//! **Several CPUs.** Two invariants say which CPU writes.
//!
//! - RECORD: the CPU that a task is on writes the fields of its record that a context switch
//!   changes. Another CPU reads or changes them only after the task has left that CPU, for which a
//!   waker spins.
//! - TABLE: spawns, wakes, ticks and preemptions write all other fields under the recorder's own lock, because
//!   these may concern tasks of other CPUs. Examples are the waker, the woken task, and the pending
//!   wakes. The lock is taken within that of a run queue, with interrupts off, and nothing is called
//!   under it.
//!
//! Only the CPU itself writes the figures of its ticks.
//!
//! **Wakers.** A scheduler sees a wake but not its cause. The cause is the running task, or an
//! interrupt that has hit that task. The timer's interrupt first wakes the tasks whose sleep is over
//! and then calls the tick. Both happen on one CPU, whichever queues the woken tasks go to. So a wake
//! counts as the timer's in two cases. One is that the CPU was idle. The other is that a tick follows
//! *closely* on that CPU, within 1/[`WAKE_TICK_RATIO`] of the time between ticks. Only wakes that are
//! close to each other may lie in between. A machine on which an interrupt takes longer shows it by
//! ticks that come unevenly. There the limit is their unevenness, up to 1/64 of the time between ticks.
//! It is 1/64 on each CPU until [`EVEN_TICKS`] intervals between ticks are known. While none is known, the time
//! of the run so far stands for one. Ticks that hit an idle CPU are missed, so there the limit may be too wide.
//!
//! A kernel with exact timers wakes a task between ticks, and preempts the running task at once. A
//! task that hands over its CPU with a wake looks the same. So a wake is *doubtful* if a preemption
//! follows closely. It counts as the running task's, whose record does not name the woken task.
//!
//! Until the next wake, spawn, tick or preemption decides, the wake is *pending*, and the burst that
//! it ended is open. A task's own wake that comes just before a tick is taken for the timer's. If
//! wakes and ticks are independent, and wakes are not close to each other, that is one wake in
//! [`WAKE_TICK_RATIO`], or in 64.

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

/// A wake is close to a tick if the time to it is at most the time between ticks over this number.
pub const WAKE_TICK_RATIO: u64 = 1024;

/// The same if ticks come unevenly, or it is not known yet.
const UNEVEN_TICK_RATIO: u64 = 64;

/// The number of intervals between ticks that tell how evenly they come.
const EVEN_TICKS: u64 = 4;

/// The number of CPUs that can be recorded.
pub const MAX_CPUS: usize = 64;

/// The table of records.
pub struct Recorder {
    records: Box<[Record]>,
    root: Record,
    len: AtomicUsize,
    /// The number of children of recorded tasks that found the table full.
    unrecorded: AtomicUsize,
    /// The time at which the first task was spawned.
    start: Word,
    /// The time from the last tick to that spawn.
    phase: Word,
    /// TABLE: guards all that spawns, wakes, ticks and preemptions write.
    lock: SpinMutex<()>,
    cpus: [Cpu; MAX_CPUS],
}

/// The part of the recorder that belongs to one CPU.
struct Cpu {
    ticks: Ticks,
    /// The pending wakes on this CPU.
    pending: Pending,
}

/// The ticks of a CPU that hit tasks, and their effect.
struct Ticks {
    /// The time of the last tick; 0 if there was none.
    last: Word,
    /// The shortest time between two ticks.
    shortest: Word,
    /// The sum of the times between two ticks that are at most one and a half of the shortest. The
    /// next word is their number.
    sum: Word,
    count: Word,
    /// The number of ticks that asked for the CPU. The next word is the number of preemptions.
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

    /// Notes a tick that hits a task. (Ticks that hit an idle CPU are missed.)
    fn came(&self, now: Counts) {
        let last = self.last.get();
        self.last.set(now.0);
        if last == 0 {
            return;
        }
        let passed = now.0.wrapping_sub(last).max(1);
        let shortest = self.shortest.get();
        if shortest == 0 || passed < shortest / 3 * 2 {
            // The times seen so far had missed ticks in between.
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

    /// Returns the mean time from one tick to the next; 0 if no two were seen.
    fn period(&self) -> u64 {
        self.sum.get() / self.count.get().max(1)
    }

    /// Returns the time from the last tick to `now`, whether it was seen or missed.
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
            // The preemption that one tick asked for may still come.
            (0, 2..) => Kernel::Cooperative,
            (0, 0 | 1) => Kernel::Unknown,
        }
    }

    /// Returns the longest time at which a wake is close to a tick or to another wake. While the time
    /// between ticks is unknown, `so_far` stands for it.
    fn close(&self, so_far: u64) -> u64 {
        let period = match self.period() {
            0 => so_far,
            period => period,
        };
        let uneven = match self.count.get() {
            0..EVEN_TICKS => u64::MAX,
            _ => period.saturating_sub(self.shortest.get()),
        };
        uneven.clamp(period / WAKE_TICK_RATIO, period / UNEVEN_TICK_RATIO)
    }
}

/// The origin of the pending wakes on a CPU.
#[derive(Clone, Copy)]
enum Cause {
    /// The tasks that ran then have woken them.
    Running,
    /// The timer has woken the tasks.
    Timer,
    /// For those that the task with this record seems to have woken, either of them. All others are
    /// as with `Running`.
    Doubtful(&'static Record),
}

/// The pending wakes, from the last to the first. The record of each woken task has the next one.
struct Pending {
    /// The number of the task that was woken last; 0 if no wake is pending.
    head: Word,
    /// The time of the last pending wake.
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

    /// Returns true if `now` is close to the last pending wake, in a run that began at `start`.
    fn is_close(&self, start: &Word, now: Counts) -> bool {
        let so_far = now.0.wrapping_sub(start.get());
        now.0.wrapping_sub(self.pending.last.get()) <= self.ticks.close(so_far)
    }
}

impl Recorder {
    /// Creates an empty table that is never freed, because the scheduler may read it at any time.
    pub fn leak() -> Result<&'static Self, Error> {
        let mut records = reserved(MAX_TASKS)?;
        records.resize_with(MAX_TASKS, Record::new);
        // A vector of one is used because `Box::new` aborts if there is no memory.
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

    /// Takes the lock of TABLE. Interrupts are off, or no scheduler records.
    fn enter(&self) -> SpinMutexGuard<'_, ()> {
        self.lock.lock()
    }

    /// Forgets all records and ticks.
    pub fn clear(&self) {
        self.start.set(0);
        self.phase.set(0);
        self.len.store(0, Relaxed);
        self.unrecorded.store(0, Relaxed);
        self.root.start_as_root();
        for cpu in &self.cpus {
            cpu.ticks.clear();
            cpu.pending.head.set(0);
        }
    }

    /// Returns the root's record. It is written like that of a task, but is no part of the profile.
    pub const fn root(&'static self) -> &'static Record {
        &self.root
    }

    /// Notes a spawn on `cpu`, where the task with the record `parent` runs. Returns the record of
    /// the new task.
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
        self.settle(cpu, Cause::Running, now); // the parent has run since it was woken
        let ordinal = parent.next_ordinal();
        let index = self.len.load(Relaxed);
        if index == 0 {
            self.start.set(now.0);
            self.phase.set(self.cpus[cpu].ticks.phase(now));
            self.root.count_from(now); // only the root can spawn the first task
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

    /// Notes that the task with the record `woken` becomes ready. The wake happens on `cpu`, which
    /// runs the task with the record `running`.
    pub fn woken(
        &'static self,
        cpu: usize,
        woken: &'static Record,
        running: &'static Record,
        now: Counts,
    ) {
        let Some(number) = self.waker(woken) else {
            return; // its record is never read
        };
        let _table = self.enter();
        if woken.is_open() {
            self.settle(woken.pending().cpu, Cause::Running, now);
        }
        let here = &self.cpus[cpu];
        if !here.is_close(&self.start, now) {
            self.settle(cpu, Cause::Running, now);
        }
        if !woken.woken(now) {
            return;
        }
        if ptr::eq(running, &IDLE) {
            return woken.woken_by(Waker::Timer);
        }
        running.note_wake(woken, now);
        woken.set_pending(&PendingWake {
            by: self.waker(running).unwrap_or(Waker::Outside),
            next: here.pending.head.get(),
            cpu,
        });
        here.pending.head.set(number.number());
        here.pending.last.set(now.0);
    }

    /// Notes a tick that hits the running task of this CPU. `asks` is true if the tick asks for the
    /// CPU.
    pub fn tick(&'static self, cpu: usize, asks: bool, now: Counts) {
        let here = &self.cpus[cpu];
        let is_close = here.is_close(&self.start, now);
        here.ticks.came(now);
        here.ticks.asked.add(u64::from(asks));
        let cause = match is_close {
            true => Cause::Timer,
            false => Cause::Running,
        };
        self.decide(cpu, cause, now);
    }

    /// Notes that the task with this record, whose run interval has not ended, was preempted on `cpu`.
    pub fn preempted(&'static self, cpu: usize, record: &'static Record, now: Counts) {
        let here = &self.cpus[cpu];
        here.ticks.preempted.add(1);
        let cause = match here.is_close(&self.start, now) {
            true => Cause::Doubtful(record),
            false => Cause::Running,
        };
        self.decide(cpu, cause, now);
        record.preempted();
    }

    /// Decides the pending wakes on the calling CPU. Only this CPU adds to them, so the lock is not
    /// needed to see that there are none.
    fn decide(&'static self, cpu: usize, cause: Cause, now: Counts) {
        if self.cpus[cpu].pending.head.get() != 0 {
            let _table = self.enter();
            self.settle(cpu, cause, now);
        }
    }

    /// Decides the pending wakes on `cpu`. The lock of TABLE is held.
    fn settle(&'static self, cpu: usize, cause: Cause, now: Counts) {
        let head = &self.cpus[cpu].pending.head;
        let mut number = head.get();
        head.set(0);
        let mut doubtful = 0;
        while let Some(woken) = self.record(number) {
            let PendingWake {
                by: waker, next, ..
            } = woken.pending();
            number = next;
            let running = self.record(waker.number()).unwrap_or(&OUTSIDE);
            let is_in_doubt = matches!(cause, Cause::Doubtful(of) if ptr::eq(of, running));
            doubtful += u64::from(is_in_doubt);
            let is_timers = matches!(cause, Cause::Timer);
            if is_timers || is_in_doubt {
                running.retract_wake(woken);
            }
            woken.woken_by(if is_timers { Waker::Timer } else { waker });
        }
        if let (Cause::Doubtful(of), 1..) = (cause, doubtful) {
            of.note_wakes(Waker::Unknown, doubtful, now);
        }
    }

    /// Returns the root or the task that has this record, if the record is read.
    fn waker(&self, record: &Record) -> Option<Waker> {
        if ptr::eq(record, &self.root) {
            return Some(Waker::Root);
        }
        let index = record.index()?;
        Some(Waker::Task(index as u16))
    }

    /// Returns the record of the root or the task with this number of a [`Waker`].
    fn record(&'static self, number: u64) -> Option<&'static Record> {
        match Waker::of_number(number)? {
            Waker::Root => Some(&self.root),
            Waker::Task(index) => Some(&self.records[usize::from(index)]),
            Waker::Unknown | Waker::Timer | Waker::Outside => None,
        }
    }

    /// Returns the circumstances in which the run began.
    pub fn start(&self) -> Start {
        // All CPUs tick alike, but on one that is mostly idle few ticks hit a task.
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

    /// Returns the number of children of recorded tasks that found the table full.
    pub fn unrecorded(&self) -> u64 {
        self.unrecorded.load(Relaxed) as u64
    }

    /// Returns the records at `now`, in the order in which the tasks were spawned, and the number of
    /// tasks that were left out. `has_cpu` returns true for the record of a task that has a CPU.
    ///
    /// Tasks that share a key are left out, because they could not be told apart. They have the same
    /// label, or their keys collide (see [`TaskKey`] on how unlikely that is). Their children are left
    /// out too, unless they have a label, because a replay could not recognise them. n records take
    /// n log n comparisons.
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
        // The index of each task in the result, for its children and wakers.
        let mut places: Vec<Option<u16>> = reserved(records.len())?;
        for record in records {
            let start = Counts(self.start.get());
            let mut task = record.read(start, now, has_cpu(record))?;
            let mut is_known = !is_shared(record.key());
            if let Place::Child { parent, ordinal } = task.place {
                let parent = places[parent as usize];
                is_known &= parent.is_some() || task.label.is_some();
                // A child without its parent is recognised by its label alone.
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
