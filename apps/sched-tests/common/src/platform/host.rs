//! The host's threads, for debugging an application without a guest.
//!
//! The host's kernel schedules. Figures are real time and differ from run to run. On Linux a
//! thread's CPU time and dispatches come from `/proc`; elsewhere the time from its first run to its
//! end stands in.

use std::{
    fs,
    sync::{
        Arc, Condvar, LazyLock, Mutex,
        atomic::{AtomicBool, Ordering::*},
    },
    thread,
    time::Instant,
};

use crate::{events::Logs, window::share_before};

pub use crate::measured::{Figures, Unmetered};
pub use std::thread::{sleep, sleep as main_sleeps, yield_now};
pub use std::{print, println};

/// The name of the host's scheduler, whichever it is.
pub const SCHED: &str = "host";

/// False: no scheduler of this kit shares the work here.
pub const IS_BALANCED: bool = false;

/// The unit of the clock: real time.
pub const TIMING: &str = "real";

/// Returns the number of CPUs.
pub fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Returns 0: the rate of the CPU's counter is unknown.
pub fn counter_hz() -> u64 {
    0
}

/// Returns the nanoseconds since the program's first call of this function.
pub fn now_ns() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as u64
}

/// A queue in which threads wait, blocked, until a condition holds.
#[derive(Default)]
pub struct WaitQueue {
    /// Held by a thread while it looks at its condition, and by one that wakes others. So no wake
    /// is lost between the look and the wait.
    looking: Mutex<()>,
    woken: Condvar,
}

impl WaitQueue {
    /// Makes a queue without waiters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Blocks the calling thread until `condition` holds. Returns at once if it holds already.
    pub fn wait_until(&self, mut condition: impl FnMut() -> bool) {
        let looking = self.looking.lock().unwrap();
        drop(self.woken.wait_while(looking, |()| !condition()).unwrap());
    }

    /// Makes one thread look at its condition again. Called after the change that makes the
    /// condition hold.
    pub fn wake_one(&self) {
        let _looking = self.looking.lock().unwrap();
        self.woken.notify_one();
    }

    /// Makes all threads look at their conditions again.
    pub fn wake_all(&self) {
        let _looking = self.looking.lock().unwrap();
        self.woken.notify_all();
    }
}

/// Keeps threads from starting until all of them are submitted.
#[derive(Default)]
pub struct Gate {
    is_open: AtomicBool,
    waiting: WaitQueue,
}

impl Gate {
    /// Makes a closed gate.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Submits threads by `submit_all`. None that it spawns behind this gate starts before it returns.
    pub fn submit<R>(&self, submit_all: impl FnOnce() -> R) -> R {
        let submitted = submit_all();
        self.is_open.store(true, Release);
        self.waiting.wake_all();
        submitted
    }

    fn pass(&self) {
        self.waiting.wait_until(|| self.is_open.load(Acquire));
    }
}

/// Spawns a thread that has no row in the table.
pub fn spawn_beside(name: &str, body: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().name(name.into());
    thread.spawn(body).expect("the host spawns threads");
}

/// Calls `run` and no more: the host decides which thread has the CPU meanwhile.
pub fn without_preemption<R>(run: impl FnOnce() -> R) -> R {
    run()
}

/// The threads of a phase: when it started, and its deadline.
pub struct TaskSet {
    start_ns: u64,
    deadline_ns: Option<u64>,
}

impl TaskSet {
    /// Makes the set of a phase that started at `start_ns`. The CPU time of each thread before
    /// `deadline_ns` is kept apart, but the deadline ends no thread. Both are times since the
    /// program's start.
    pub fn new(_threads: usize, start_ns: u64, deadline_ns: Option<u64>) -> Self {
        Self {
            start_ns,
            deadline_ns,
        }
    }

    /// Returns the start of the phase, since the program's start.
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Returns the time until which a thread's CPU time counts for the window, if there is one.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.deadline_ns
    }

    /// Does nothing: here each join waits.
    pub fn wait_for_all(&self) {}
}

/// Spawns a thread behind `gate`, in a set of its own.
pub fn spawn(name: &str, gate: &Arc<Gate>, body: impl FnOnce() + Send + 'static) -> Handle {
    spawn_in(&TaskSet::new(1, 0, None), name, gate, body)
}

/// Spawns a thread of `set` behind `gate`.
pub fn spawn_in(
    set: &TaskSet,
    name: &str,
    gate: &Arc<Gate>,
    body: impl FnOnce() + Send + 'static,
) -> Handle {
    let deadline_ns = set.deadline_ns;
    let gate = gate.clone();
    let entry = move || {
        gate.pass();
        let (first_run_ns, before) = (now_ns(), on_cpu());
        body();
        let (finish_ns, after) = (now_ns(), on_cpu());
        let (run_ns, dispatches) = match (before, after) {
            (Some(before), Some(after)) => (after.0 - before.0, after.1 - before.1 + 1),
            _ => (finish_ns - first_run_ns, 1),
        };
        let deadline_ns = deadline_ns.unwrap_or(u64::MAX);
        // The thread itself reads its figures, at its end.
        Figures {
            first_run_ns, // when it was let in
            finish_ns,
            run_ns,
            // In proportion, because the host does not tell the CPU time at a given time.
            run_in_window_ns: share_before(deadline_ns, first_run_ns, finish_ns, run_ns),
            dispatches,
            switches: dispatches, // the host does not tell which thread ran before
            ends: 1,
            beside_ns: 0,   // nor what a thread needs to begin and end
            timeline: None, // nor when it was on a CPU
        }
    };
    let thread = thread::Builder::new().name(name.into()).spawn(entry);
    Handle(thread.expect("the host has room for a thread"))
}

/// Returns the time on a CPU and the number of dispatches of the calling thread.
fn on_cpu() -> Option<(u64, u64)> {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let mut fields = stat.split_ascii_whitespace().map(str::parse);
    let run_ns = fields.next()?.ok()?;
    let dispatches = fields.nth(1)?.ok()?;
    Some((run_ns, dispatches))
}

/// A thread that can be joined.
pub struct Handle(thread::JoinHandle<Figures>);

impl Handle {
    /// Waits for the end of the thread and returns its figures.
    pub fn join(self) -> Figures {
        self.0.join().expect("a task of the workload panicked")
    }

    /// Returns a view of the thread.
    pub fn watch(&self) -> Watch {
        Watch
    }

    /// Returns a token that holds nothing: the host's kernel counts its references itself.
    pub fn hold(&self) -> Option<Held> {
        Some(Held)
    }
}

/// A hold on a thread, which has no effect here.
#[derive(Debug)]
pub struct Held;

/// A view of a thread.
pub struct Watch;

impl Watch {
    /// Returns true: the host's kernel reclaims a thread by itself.
    pub fn is_reclaimed(&self) -> bool {
        true
    }
}

/// Returns `None`: a program cannot see the phase of the host's timer.
pub fn await_tick_phase() -> Option<u64> {
    None
}

/// Returns the time since the program's start. There is no account.
pub fn open_account() -> u64 {
    now_ns()
}

/// Returns `None`: the host does not tell what other threads do.
pub fn unmetered() -> Option<Unmetered> {
    None
}

/// Returns no logs: the host reports no switches.
pub fn events() -> Logs {
    Logs::default()
}

/// Does nothing: the host's scheduler is not recorded.
pub fn connect_recording() {}

/// Does nothing: the host places its threads itself.
pub fn connect_cpus() {}

/// Ends the application with status 1 if its results are wrong.
pub fn finish(pass: bool) {
    if !pass {
        std::process::exit(1);
    }
}
