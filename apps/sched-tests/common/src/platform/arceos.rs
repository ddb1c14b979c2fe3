//! The platform that counts: tasks of `axtask`, metered by its own hook.

use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicBool, Ordering::*},
    time::Duration,
};

use axtask::{AxTaskExt, AxTaskRef, TaskInner, TaskState, WaitQueue, WeakAxTaskRef};
use kernel_guard::NoPreempt;

pub use axstd::{print, println};
pub use axtask::yield_now;

use crate::meter::{Hook, Meter};

pub use crate::meter::Figures;

/// The policy's name in result lines.
pub const SCHED: &str = if cfg!(feature = "sched_pbg_coop") {
    "pbg-coop"
} else {
    axsched::NAME
};

/// What the clock counts.
pub const TIMING: &str = crate::config::TIMING;

/// Enough for a workload; the default of 256 KiB would limit the task count.
const STACK_BYTES: usize = 64 * 1024;

/// The number of CPUs.
pub fn cpus() -> usize {
    axhal::cpu_num()
}

/// The rate of the CPU's counter, in Hz. Where one counts for wall time and one
/// for events, as on aarch64, both have it.
pub fn counter_hz() -> u64 {
    axhal::time::nanos_to_ticks(axhal::time::NANOS_PER_SEC)
}

/// Nanoseconds since boot.
pub fn now_ns() -> u64 {
    axhal::time::monotonic_time_nanos()
}

/// Blocks the calling task for at least `duration`: ArceOS wakes it at a timer tick.
pub fn sleep(duration: Duration) {
    axtask::sleep(duration);
}

/// Keeps tasks from starting until all of them are submitted.
///
/// On one CPU it is enough that the submitter is not preempted, and the workload
/// pays nothing. On several the tasks wait in a queue and their account starts
/// when they are let through.
pub struct Gate {
    open: AtomicBool,
    waiting: WaitQueue,
}

impl Gate {
    /// A gate, shut if there is more than one CPU.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            open: AtomicBool::new(cpus() == 1),
            waiting: WaitQueue::new(),
        })
    }

    /// A gate that nobody waits at.
    pub fn opened() -> Arc<Self> {
        let gate = Self::new();
        gate.open.store(true, Release);
        gate
    }

    /// Runs `submit_all`; no task that it spawns behind this gate starts before it is done.
    pub fn submit<R>(&self, submit_all: impl FnOnce() -> R) -> R {
        let guard = NoPreempt::new();
        let submitted = submit_all();
        drop(guard);
        if !self.open.swap(true, Release) {
            self.waiting.notify_all(false);
        }
        submitted
    }

    fn pass(&self, meter: &Meter) {
        if !self.open.load(Acquire) {
            self.waiting.wait_until(|| self.open.load(Acquire));
        }
        if cpus() > 1 {
            meter.restart();
        }
    }
}

/// How long a join waits before it looks again: until the next tick.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Spawns a metered task behind `gate`.
pub fn spawn(name: &str, gate: &Arc<Gate>, body: impl FnOnce() + Send + 'static) -> Handle {
    spawn_until(now_ns(), None, name, gate, body)
}

/// Spawns a metered task behind `gate`, of a phase that started at `start_ns`; its CPU
/// time before `deadline_ns` is kept apart. Both are times since boot. The deadline
/// does not end the task.
pub fn spawn_until(
    start_ns: u64,
    deadline_ns: Option<u64>,
    name: &str,
    gate: &Arc<Gate>,
    body: impl FnOnce() + Send + 'static,
) -> Handle {
    let deadline_ticks = deadline_ns.map_or(u64::MAX, axhal::time::nanos_to_ticks);
    let meter = Arc::new(Meter::new(start_ns, deadline_ticks));
    let hook = Hook(meter.clone());
    let (gate, own) = (gate.clone(), meter.clone());
    let entry = move || {
        gate.pass(&own);
        body();
        own.finish();
    };
    let mut task = TaskInner::new(entry, name.into(), STACK_BYTES);
    *task.task_ext_mut() = Some(AxTaskExt::from_impl(hook));
    Handle {
        task: axtask::spawn_task(task),
        meter,
    }
}

/// A task to be joined. While it is held, gc cannot reclaim the task and spins.
pub struct Handle {
    task: AxTaskRef,
    meter: Arc<Meter>,
}

impl Handle {
    /// Keeps an eye on the task without keeping it.
    pub fn watch(&self) -> Watch {
        Watch {
            task: Arc::downgrade(&self.task),
            meter: self.meter.clone(),
        }
    }

    /// Waits for the end of the task and returns its figures.
    ///
    /// `axtask`'s own `join` looks whether the task has exited and then leaves its
    /// waker, without looking again: an exit in between, on another CPU or after a
    /// preemption, wakes nobody. Counted time cannot come between other than it did
    /// the last time; elsewhere the task is looked at every tick. With several CPUs
    /// not even that is safe: on a busy host one sleeper in some thousands is never
    /// woken, under stock schedulers, too. So there the joiner yields until it is time.
    pub fn join(self) -> Figures {
        if TIMING == "icount" {
            self.task.join();
        }
        while self.task.state() != TaskState::Exited {
            if cpus() > 1 {
                yield_now();
            } else {
                axtask::sleep(LOOK_AGAIN);
            }
        }
        // On another CPU it may still be in its last context switch.
        while self.meter.on_cpu() {
            yield_now();
        }
        self.meter.figures()
    }
}

/// A view of a task that does not hinder gc.
pub struct Watch {
    task: WeakAxTaskRef,
    meter: Arc<Meter>,
}

impl Watch {
    /// The task's state, or `None` once gc has reclaimed it.
    pub fn state(&self) -> Option<TaskState> {
        self.task.upgrade().map(|task| task.state())
    }

    /// The figures so far.
    pub fn figures(&self) -> Figures {
        self.meter.figures()
    }
}

/// Ends the application. The verdict is in the result lines; a guest has no exit status.
pub fn finish(_pass: bool) {}
