//! The platform that counts: tasks of `axtask`, metered by its own hook.

use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*},
    time::Duration,
};

use axtask::{AxTaskExt, AxTaskRef, TaskInner, TaskState, WeakAxTaskRef};
use kernel_guard::{NoPreempt, NoPreemptIrqSave};

pub use axstd::{print, println};
pub use axtask::yield_now;

use crate::{
    config, events,
    ledger::{self, MAX_CPUS},
    meter::{Hook, Meter},
    trace,
};

pub use crate::measured::{Figures, Unmetered};

/// The name of the policy in result lines.
pub const SCHED: &str = if cfg!(feature = "sched_pbg_coop") {
    "pbg-coop"
} else {
    axsched::NAME
};

/// The unit of time: `icount`, an instruction, or `real`.
pub const TIMING: &str = config::TIMING;

/// The stack of a task. It is enough for a workload; the default of 256 KiB would limit the task
/// count.
const STACK_BYTES: usize = 64 * 1024;

/// Returns the number of CPUs.
pub fn cpus() -> usize {
    axhal::cpu_num()
}

/// Returns the rate of the CPU's counter, in Hz. Where one counter serves for wall time and one for
/// events, as on aarch64, both have it.
pub fn counter_hz() -> u64 {
    axhal::time::nanos_to_ticks(axhal::time::NANOS_PER_SEC)
}

/// Returns the nanoseconds since boot.
pub fn now_ns() -> u64 {
    axhal::time::monotonic_time_nanos()
}

/// True if several CPUs share the work.
pub const IS_BALANCED: bool = cfg!(feature = "balanced");

/// Blocks the calling task for at least `duration`: ArceOS wakes it at a timer tick.
///
/// It sleeps in a loop, because `axtask` wakes a task too early if it has changed its CPU
/// meanwhile.
pub fn sleep(duration: Duration) {
    if !IS_BALANCED {
        return axtask::sleep(duration);
    }
    let until = axhal::time::wall_time() + duration;
    while axhal::time::wall_time() < until {
        axtask::sleep_until(until);
    }
}

/// Blocks main, which carries no meter, for at least `duration`, and books the time as idle.
pub fn main_sleeps(duration: Duration) {
    ledger::main_waits(|| sleep(duration));
}

/// A queue in which tasks wait, blocked, for a condition.
///
/// It is `axtask`'s own with two differences. A task that wakes others does not give its CPU away, and
/// a lost wake delays a task instead of blocking it for ever.
pub struct WaitQueue(axtask::WaitQueue);

/// The longest time before a wait looks again, in real time. On a crowded host one wake in some
/// thousands is lost with several CPUs, under stock schedulers too.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

impl WaitQueue {
    /// Makes an empty queue.
    #[expect(clippy::new_without_default, reason = "no caller needs it")]
    pub const fn new() -> Self {
        Self(axtask::WaitQueue::new())
    }

    /// Blocks the calling task until `condition` holds. Returns at once if it holds already.
    pub fn wait_until(&self, mut condition: impl FnMut() -> bool) {
        if TIMING == "icount" {
            self.0.wait_until(condition);
        } else {
            while self.0.wait_timeout_until(LOOK_AGAIN, &mut condition) {}
        }
    }

    /// Wakes one task, which looks at its condition again. Called after a change of it.
    pub fn wake_one(&self) {
        self.0.notify_one(false);
    }

    /// Wakes all tasks, which look at their conditions again.
    pub fn wake_all(&self) {
        self.0.notify_all(false);
    }
}

/// Keeps tasks from starting until all of them are submitted.
///
/// On one CPU it is enough that the submitter is not preempted, and the workload pays nothing. On
/// several CPUs the tasks wait in a queue, and their account starts when they are let through.
pub struct Gate {
    open: AtomicBool,
    waiting: WaitQueue,
}

impl Gate {
    /// Makes a gate, which is closed if there is more than one CPU.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            open: AtomicBool::new(cpus() == 1),
            waiting: WaitQueue::new(),
        })
    }

    /// Makes a gate at which no task has to wait.
    pub fn opened() -> Arc<Self> {
        let gate = Self::new();
        gate.open.store(true, Release);
        gate
    }

    /// Submits tasks by `submit_all`. None that it spawns behind this gate starts before it
    /// returns.
    pub fn submit<R>(&self, submit_all: impl FnOnce() -> R) -> R {
        let guard = NoPreempt::new();
        let submitted = submit_all();
        drop(guard);
        if !self.open.swap(true, Release) {
            self.waiting.wake_all();
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

/// A count-down latch, at which main waits for the tasks.
///
/// Main must not hold a handle of a task that has ended, since `gc` spins while a handle is held. It
/// must not spin itself, and must not miss an end. `axtask`'s own `join` needs the handle, and looks
/// at the state only before it leaves its waker. Here the last act of a task counts down, and the
/// task that brings the count to 0 wakes main. The queue looks at the count again after it has
/// enqueued main.
struct Latch {
    missing: AtomicUsize,
    /// The time at which the last task that has come was done, in ticks.
    latest: AtomicU64,
    is_open: AtomicBool,
    opened: WaitQueue,
}

impl Latch {
    /// Makes a latch that waits for `count` tasks.
    fn new(count: usize) -> Arc<Self> {
        Arc::new(Self {
            missing: AtomicUsize::new(count),
            latest: AtomicU64::new(0),
            is_open: AtomicBool::new(count == 0),
            opened: WaitQueue::new(),
        })
    }

    /// Finishes `meter` and counts down. The last task to come calls `at_last` with the latest of
    /// the readings, and opens the latch. On several CPUs another task may have the latest one.
    ///
    /// Interrupts are off from the reading to the end of `at_last`. So on one CPU no task runs
    /// between the last reading and the end of the account, even if the host stops the CPU there.
    fn count_down(&self, meter: &Meter, at_last: impl FnOnce(u64)) {
        let guard = NoPreemptIrqSave::new();
        self.latest.fetch_max(meter.finish(), Relaxed);
        let is_last = self.missing.fetch_sub(1, AcqRel) == 1;
        if is_last {
            at_last(self.latest.load(Relaxed));
        }
        drop(guard);
        if is_last {
            self.is_open.store(true, Release);
            self.opened.wake_all();
        }
    }

    /// Waits until the latch is open. The writes of all tasks that came are visible then.
    fn wait(&self) {
        self.opened.wait_until(|| self.is_open.load(Acquire));
    }
}

/// Spawns a metered task behind `gate`, in a set of its own.
pub fn spawn(name: &str, gate: &Arc<Gate>, body: impl FnOnce() + Send + 'static) -> Handle {
    spawn_in(&TaskSet::new(1, now_ns(), None), name, gate, body)
}

/// Spawns a task without a meter into the queue of the calling CPU. From then on it may run on any
/// CPU.
pub fn spawn_beside(name: &str, body: impl FnOnce() + Send + 'static) {
    let task = TaskInner::new(body, name.into(), STACK_BYTES);
    let (anywhere, _here_until_it_is_spawned) = (task.cpumask(), NoPreempt::new());
    task.set_cpumask(axtask::AxCpuMask::one_shot(axhal::percpu::this_cpu_id()));
    axtask::spawn_task(task).set_cpumask(anywhere);
}

/// Calls `run` with preemption off.
pub fn without_preemption<R>(run: impl FnOnce() -> R) -> R {
    let _guard = NoPreempt::new();
    run()
}

/// The tasks of a phase: when it started, its deadline, and when the work of all is done.
pub struct TaskSet {
    start_ns: u64,
    deadline_ns: Option<u64>,
    /// The latch that counts down when a task's work is done.
    done: Arc<Latch>,
}

impl TaskSet {
    /// Makes a set of `tasks` tasks, of a phase that started at `start_ns`. The CPU time of each before
    /// `deadline_ns` is kept apart. Both are times since boot. The deadline ends no task.
    pub fn new(tasks: usize, start_ns: u64, deadline_ns: Option<u64>) -> Self {
        Self {
            start_ns,
            deadline_ns,
            done: Latch::new(tasks),
        }
    }

    /// Returns the start of the phase, since boot.
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Returns the time until which a task's CPU time counts for the window, since boot, if there
    /// is one.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.deadline_ns
    }

    /// Makes main wait until the work of all is done.
    pub fn wait_for_all(&self) {
        ledger::main_waits(|| self.done.wait());
    }
}

/// Spawns a metered task of `set` behind `gate`.
pub fn spawn_in(
    set: &TaskSet,
    name: &str,
    gate: &Arc<Gate>,
    body: impl FnOnce() + Send + 'static,
) -> Handle {
    let deadline_ticks = (set.deadline_ns).map_or(u64::MAX, axhal::time::nanos_to_ticks);
    let meter = Arc::new(Meter::new(set.start_ns, deadline_ticks));
    let hook = Hook(meter.clone());
    let (gate, own, done) = (gate.clone(), meter.clone(), set.done.clone());
    let entry = move || {
        watch_ticks();
        if trace::IS_KEPT {
            watch_state(own.clone());
        }
        gate.pass(&own);
        body();
        done.count_down(&own, ledger::close);
    };
    let mut task = TaskInner::new(entry, name.into(), STACK_BYTES);
    *task.task_ext_mut() = Some(AxTaskExt::from_impl(hook));
    Handle {
        watch: Watch {
            task: Arc::downgrade(&axtask::spawn_task(task)),
            meter,
        },
        done: set.done.clone(),
    }
}

/// A task that can be joined. It does not keep the task, so that gc can reclaim it.
pub struct Handle {
    watch: Watch,
    done: Arc<Latch>,
}

impl Handle {
    /// Returns a view of the task for another thread.
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// Waits until the work of all tasks of its [`TaskSet`] is done, and returns the figures
    /// of this one.
    pub fn join(self) -> Figures {
        self.done.wait();
        self.watch.figures()
    }

    /// Holds the task, as axtask's own join handles do. Returns `None` once gc has reclaimed it.
    pub fn hold(&self) -> Option<Held> {
        self.watch.task.upgrade().map(Held)
    }
}

/// A hold on a task. While one exists after the task's end, gc looks for the task again and again.
pub struct Held(#[expect(dead_code, reason = "its drop is what matters")] AxTaskRef);

/// A view of a task that does not hinder gc.
#[derive(Clone)]
pub struct Watch {
    task: WeakAxTaskRef,
    meter: Arc<Meter>,
}

impl Watch {
    /// Returns the task's state, or `None` once gc has reclaimed it.
    pub fn state(&self) -> Option<TaskState> {
        self.task.upgrade().map(|task| task.state())
    }

    /// Returns true if gc has reclaimed the task.
    pub fn is_reclaimed(&self) -> bool {
        self.task.strong_count() == 0
    }

    /// Returns the figures so far.
    pub fn figures(&self) -> Figures {
        self.meter.figures()
    }
}

// --- The time of a phase -------------------------------------------------------

/// The times of the last two timer ticks, in ticks of the hardware counter. Used on one CPU only.
static LAST_TICKS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Makes the instrument see each timer tick of this CPU. Called by main, and by each task as it
/// begins, because there is no other way onto the further CPUs.
fn watch_ticks() {
    static WATCHED: [AtomicBool; MAX_CPUS] = [const { AtomicBool::new(false) }; MAX_CPUS];
    let _guard = NoPreempt::new();
    if !WATCHED[axhal::percpu::this_cpu_id()].swap(true, Relaxed) {
        axtask::register_timer_callback(|_| {
            let now = axhal::time::current_ticks();
            let [before, last] = &LAST_TICKS;
            before.store(last.load(Relaxed), Relaxed);
            last.store(now, Relaxed);
            ledger::ticked(now);
        });
    }
}

/// Makes each timer tick of this CPU check whether the calling task is blocked. This is for traced
/// runs only, because the check is never taken off the ticks again.
fn watch_state(meter: Arc<Meter>) {
    let task = Arc::downgrade(&axtask::current().clone());
    axtask::register_timer_callback(move |_| {
        // This is called only for a task that left its CPU blocked, which its waker keeps.
        meter.ticked(|| {
            let task = task.upgrade();
            task.is_some_and(|task| task.state() == TaskState::Blocked)
        });
    });
}

/// Waits until the timer tick has the phase that the image was told ([`tick_phase`]), and returns
/// that. So a phase of the workload does not depend on how long the boot took. Returns `None` at
/// once where time is real, because the host comes in between anyway.
///
/// Main sleeps until a tick, spins until the next one, and waits for the phase from there. So the
/// start is the same, whatever the policy did with main before.
///
/// [`tick_phase`]: crate::config::tick_phase
#[allow(
    clippy::missing_spin_loop,
    reason = "at its instruction QEMU leaves the translated code and looks for other work, so \
              that a tick's time took most of a second of the host"
)]
pub fn await_tick_phase() -> Option<u64> {
    watch_ticks();
    events::prepare();
    #[cfg(feature = "events")]
    crate::observer::start();
    if TIMING != "icount" {
        return None;
    }
    let phase = config::tick_phase();
    axtask::sleep(Duration::from_millis(1));
    let [before, last] = &LAST_TICKS;
    let slept_until = last.load(Relaxed);
    while last.load(Relaxed) == slept_until {}
    let tick = last.load(Relaxed);
    let begin = (tick - before.load(Relaxed)) * phase / 1_000;
    while axhal::time::current_ticks() - tick < begin {}
    Some(phase)
}

/// Begins the account of all CPU time. Returns the time since boot at which it began. The account ends when the
/// work of the last task of the phase is done.
pub fn open_account() -> u64 {
    axhal::time::ticks_to_nanos(ledger::open())
}

/// Returns the time of the tasks without a meter. Called when all tasks are done.
pub fn unmetered() -> Option<Unmetered> {
    Some(ledger::closed())
}

/// Returns the log of each CPU, if this image keeps any. Called when all tasks are reclaimed.
pub fn events() -> events::Logs {
    events::logs(counter_hz())
}

/// Lets several CPUs share the work, if this image is built for that.
///
/// # Panics
/// Panics if other code has connected to IPIs before.
pub fn connect_cpus() {
    #[cfg(feature = "balanced")]
    axsched_arceos::connect().expect("no other code has connected to IPIs");
}

/// Tells the recorder which task runs on which CPU, if the image has a recorder.
pub fn connect_recording() {
    #[cfg(feature = "recorded")]
    // SAFETY: the pointer is to the running task, which lives while it runs. `axtask` makes a
    // migration helper or idle in the same way.
    unsafe {
        axsched_ext::recorded::RECORDING.connect(|| {
            let task = axtask::current();
            axsched_ext::recorded::Here::new(&task, axhal::percpu::this_cpu_id())
        });
    }
}

/// Ends the application. The verdict is in the result lines, because a guest has no exit status.
pub fn finish(_pass: bool) {}
