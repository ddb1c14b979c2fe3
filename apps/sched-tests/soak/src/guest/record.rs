//! A record of each task that is alive, written by the task and by `axtask`'s hook, read by all.
//!
//! No value depends on another, so all are `Relaxed`. A report may be a moment old here and there.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

use axtask::{TaskExt, TaskState, WaitQueue, WeakAxTaskRef};
use extern_trait::extern_trait;
use kspin::SpinNoIrq;

use super::clock::now_ns;

/// As many as `make` allows.
pub const MAX_CPUS: usize = 8;

/// An act of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Doing {
    /// It has not had a CPU yet.
    Start,
    /// It computes numbers.
    Compute,
    /// It yields its CPU.
    Yield,
    /// It sleeps for a time.
    Sleep,
    /// It waits until another task wakes it.
    Wait,
    /// It wakes another task.
    Wake,
    /// It takes, has or releases a lock.
    Lock,
    /// It spawns a task.
    Spawn,
    /// It waits for its children.
    Join,
    /// It changes its priority.
    Priority,
    /// It changes its affinity.
    Affinity,
    /// It ends its work.
    End,
}

impl Doing {
    /// All acts, in their order.
    pub const ALL: [(Self, &'static str); 12] = [
        (Self::Start, "start"),
        (Self::Compute, "compute"),
        (Self::Yield, "yield"),
        (Self::Sleep, "sleep"),
        (Self::Wait, "wait"),
        (Self::Wake, "wake"),
        (Self::Lock, "lock"),
        (Self::Spawn, "spawn"),
        (Self::Join, "join"),
        (Self::Priority, "priority"),
        (Self::Affinity, "affinity"),
        (Self::End, "end"),
    ];

    /// Returns its name in the summary.
    pub const fn name(doing: u8) -> &'static str {
        Self::ALL[doing as usize].1
    }
}

/// The record of a task.
pub struct Record {
    /// Its number in the order of spawns, from 1.
    pub id: u32,
    /// The task that spawned it, if that was not main.
    pub parent: Option<Arc<Record>>,
    /// The task, once it was spawned.
    pub task: SpinNoIrq<Option<WeakAxTaskRef>>,
    /// Its act, a [`Doing`].
    pub doing: AtomicU8,
    /// When its last step began, since boot.
    pub step_ns: AtomicU64,
    /// The latest time until which it sleeps or waits.
    pub until_ns: AtomicU64,
    /// The CPUs on which it may run, a bit each.
    pub mask: AtomicU32,
    /// The CPU on which it runs or ran last.
    pub cpu: AtomicU8,
    /// True while it has a CPU.
    pub has_cpu: AtomicBool,
    /// The time since which it has had a CPU.
    pub entered_ns: AtomicU64,
    /// The time since which it has been ready. 0 if it is not, or if the hook has not seen it yet.
    pub ready_ns: AtomicU64,
    /// The queue in which it waits, alone.
    pub queue: WaitQueue,
    /// The number of its current or last wait.
    pub wait: AtomicU32,
    /// True once the event that it waits for has come.
    pub woken: AtomicBool,
    /// The number of the wait for which it was woken last.
    pub notified: AtomicU32,
    /// The time of that wake.
    pub notified_ns: AtomicU64,
    /// Its children that have not ended.
    pub children: AtomicUsize,
}

impl Record {
    /// Makes the record of a task that is about to be spawned.
    pub fn new(id: u32, parent: Option<Arc<Self>>, mask: u32) -> Self {
        let now = now_ns();
        Self {
            id,
            parent,
            task: SpinNoIrq::new(None),
            doing: AtomicU8::new(Doing::Start as u8),
            step_ns: AtomicU64::new(now),
            until_ns: AtomicU64::new(0),
            mask: AtomicU32::new(mask),
            cpu: AtomicU8::new(u8::MAX),
            has_cpu: AtomicBool::new(false),
            entered_ns: AtomicU64::new(0),
            ready_ns: AtomicU64::new(now),
            queue: WaitQueue::new(),
            wait: AtomicU32::new(0),
            woken: AtomicBool::new(false),
            notified: AtomicU32::new(0),
            notified_ns: AtomicU64::new(0),
            children: AtomicUsize::new(0),
        }
    }

    /// Returns its state, if it has been spawned and is not reclaimed yet.
    pub fn state(&self) -> Option<TaskState> {
        let task = self.task.lock().as_ref().and_then(WeakAxTaskRef::upgrade);
        task.map(|task| task.state())
    }

    /// Returns true if it was spawned and is reclaimed.
    pub fn is_reclaimed(&self) -> bool {
        let task = self.task.lock();
        task.as_ref().is_some_and(|task| task.strong_count() == 0)
    }
}

/// The number of places.
pub const PLACES: usize = 96;

/// The tasks that are alive or not reclaimed yet.
pub static PLACES_OF: [SpinNoIrq<Option<Arc<Record>>>; PLACES] =
    [const { SpinNoIrq::new(None) }; PLACES];

/// The id of the task that each CPU runs; 0 for a task that does not belong to this program.
pub static RUNS: [AtomicU32; MAX_CPUS] = [const { AtomicU32::new(0) }; MAX_CPUS];
/// How often a task found itself on another CPU than before.
pub static MIGRATIONS: AtomicU64 = AtomicU64::new(0);
/// The id of a task that has two CPUs.
pub static TWICE: AtomicU32 = AtomicU32::new(0);

/// The longest wait of a ready task for a CPU.
pub static LONGEST: SpinNoIrq<Longest> = SpinNoIrq::new(Longest {
    ns: 0,
    id: 0,
    doing: 0,
});

/// A wait for a CPU.
#[derive(Clone, Copy)]
pub struct Longest {
    /// The length of the wait.
    pub ns: u64,
    /// The id of the task.
    pub id: u32,
    /// The act with which the task was about to go on.
    pub doing: u8,
}

/// `axtask`'s hook in a task.
pub struct Hook(pub Arc<Record>);

#[extern_trait]
impl TaskExt for Hook {
    fn on_enter(&self) {
        let (record, now, cpu) = (&*self.0, now_ns(), axhal::percpu::this_cpu_id());
        if record.has_cpu.swap(true, Relaxed) {
            TWICE.store(record.id, Relaxed);
        }
        record.entered_ns.store(now, Relaxed);
        let before = record.cpu.swap(cpu as u8, Relaxed);
        if before != cpu as u8 && before != u8::MAX {
            MIGRATIONS.fetch_add(1, Relaxed);
        }
        RUNS[cpu].store(record.id, Relaxed);
        let ready_ns = record.ready_ns.swap(0, Relaxed);
        if ready_ns == 0 {
            return;
        }
        let waited = now.saturating_sub(ready_ns);
        let mut longest = LONGEST.lock();
        if waited > longest.ns {
            *longest = Longest {
                ns: waited,
                id: record.id,
                doing: record.doing.load(Relaxed),
            };
        }
    }

    fn on_leave(&self) {
        let (record, cpu) = (&*self.0, axhal::percpu::this_cpu_id());
        record.has_cpu.store(false, Relaxed);
        RUNS[cpu].store(0, Relaxed);
        // Still the current task, and its state is set already.
        let is_ready = axtask::current().state() == TaskState::Ready;
        let ready_ns = if is_ready { now_ns() } else { 0 };
        record.ready_ns.store(ready_ns, Relaxed);
    }
}
