//! What is known of each task that is alive: written by itself and by `axtask`'s hook, read by all.
//!
//! What is written belongs to no other value: all is `Relaxed`, and a report may be a moment old here and
//! there.

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
    /// It computes.
    Compute,
    /// It yields.
    Yield,
    /// It sleeps.
    Sleep,
    /// It waits until somebody wakes it.
    Wait,
    /// It wakes somebody.
    Wake,
    /// It takes, has or releases a lock.
    Lock,
    /// It spawns.
    Spawn,
    /// It waits for its children.
    Join,
    /// It changes its priority.
    Priority,
    /// It changes its affinity.
    Affinity,
    /// It ends.
    End,
}

impl Doing {
    /// All of them, in their order.
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

    /// What it is called in the summary.
    pub const fn name(doing: u8) -> &'static str {
        Self::ALL[doing as usize].1
    }
}

/// What is known of a task.
pub struct Record {
    /// In the order of spawns, from 1.
    pub id: u32,
    /// Who spawned it, if that was not main.
    pub parent: Option<Arc<Record>>,
    /// The task, once it was spawned.
    pub task: SpinNoIrq<Option<WeakAxTaskRef>>,
    /// A [`Doing`].
    pub doing: AtomicU8,
    /// When its last step began, since boot.
    pub step_ns: AtomicU64,
    /// Until when it sleeps or waits at most.
    pub until_ns: AtomicU64,
    /// Where it may run, a bit a CPU.
    pub mask: AtomicU32,
    /// Where it runs or ran last.
    pub cpu: AtomicU8,
    /// It has a CPU, since when.
    pub has_cpu: AtomicBool,
    /// Since when it has had a CPU.
    pub entered_ns: AtomicU64,
    /// Since when it has been ready; 0 if it is not, or nobody has seen it yet.
    pub ready_ns: AtomicU64,
    /// Where it waits, alone.
    pub queue: WaitQueue,
    /// Which of its waits it is in, or was last.
    pub wait: AtomicU32,
    /// What it waits for has come.
    pub woken: AtomicBool,
    /// The wait that somebody's wake was for, when that was done.
    pub notified: AtomicU32,
    /// And when it was done.
    pub notified_ns: AtomicU64,
    /// Its children that have not ended.
    pub children: AtomicUsize,
}

impl Record {
    /// Of a task that is about to be spawned.
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

    /// Its state, if it has been spawned and is not reclaimed yet.
    pub fn state(&self) -> Option<TaskState> {
        let task = self.task.lock().as_ref().and_then(WeakAxTaskRef::upgrade);
        task.map(|task| task.state())
    }

    /// Whether it was spawned, and nothing is left of it.
    pub fn is_reclaimed(&self) -> bool {
        let task = self.task.lock();
        task.as_ref().is_some_and(|task| task.strong_count() == 0)
    }
}

/// How many places there are.
pub const PLACES: usize = 96;

/// Who is alive, or not reclaimed yet.
pub static PLACES_OF: [SpinNoIrq<Option<Arc<Record>>>; PLACES] =
    [const { SpinNoIrq::new(None) }; PLACES];

/// The id of the task that each CPU runs; 0 is one that is not of this program's.
pub static RUNS: [AtomicU32; MAX_CPUS] = [const { AtomicU32::new(0) }; MAX_CPUS];
/// How often a task found itself on another CPU than before.
pub static MIGRATIONS: AtomicU64 = AtomicU64::new(0);
/// The id of a task that has two CPUs.
pub static TWICE: AtomicU32 = AtomicU32::new(0);

/// The longest that a ready task has waited, and who that was, doing what.
pub static LONGEST: SpinNoIrq<Longest> = SpinNoIrq::new(Longest {
    ns: 0,
    id: 0,
    doing: 0,
});

/// A wait for a CPU.
#[derive(Clone, Copy)]
pub struct Longest {
    /// How long it was.
    pub ns: u64,
    /// Whose.
    pub id: u32,
    /// What it was about to go on with.
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
