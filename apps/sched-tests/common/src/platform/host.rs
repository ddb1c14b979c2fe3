//! The host's threads, for debugging an application without a guest.
//!
//! The host's kernel schedules; figures are real time and differ from run to run.
//! On Linux a thread's CPU time and dispatches come from `/proc`; elsewhere the
//! time from its first run to its end stands in.

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

/// The host's scheduler, whichever it is.
pub const SCHED: &str = "host";

/// Whether several CPUs share the work: that is the host's affair.
pub const IS_BALANCED: bool = false;

/// What the clock counts.
pub const TIMING: &str = "real";

/// The number of CPUs.
pub fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// 0: the rate of the CPU's counter is unknown.
pub fn counter_hz() -> u64 {
    0
}

/// Nanoseconds since the program's first call of this function.
pub fn now_ns() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as u64
}

/// Where threads wait, blocked, until something is so.
#[derive(Default)]
pub struct WaitQueue {
    /// Held by who looks at its condition and by who wakes, so that no wake comes in between.
    looking: Mutex<()>,
    woken: Condvar,
}

impl WaitQueue {
    /// A queue in which nobody waits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Blocks the calling thread until `condition` holds; not at all if it holds already.
    pub fn wait_until(&self, mut condition: impl FnMut() -> bool) {
        let looking = self.looking.lock().unwrap();
        drop(self.woken.wait_while(looking, |()| !condition()).unwrap());
    }

    /// Has one thread look at its condition again. Called after what changed it.
    pub fn wake_one(&self) {
        let _looking = self.looking.lock().unwrap();
        self.woken.notify_one();
    }

    /// Has all look at their conditions again.
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
    /// A shut gate.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Runs `submit_all`; no thread that it spawns behind this gate starts before it is done.
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

/// Spawns a thread without a row.
pub fn spawn_beside(name: &str, body: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().name(name.into());
    thread.spawn(body).expect("the host spawns threads");
}

/// Runs this; who gets the CPU is the host's affair.
pub fn without_preemption<R>(run: impl FnOnce() -> R) -> R {
    run()
}

/// The threads of a phase, as a set: when it started.
pub struct TaskSet {
    start_ns: u64,
    deadline_ns: Option<u64>,
}

impl TaskSet {
    /// A set of so many threads; the CPU time of each before `deadline_ns`, a time since the
    /// program's start, is kept apart. The deadline ends no thread.
    pub fn new(_threads: usize, start_ns: u64, deadline_ns: Option<u64>) -> Self {
        Self {
            start_ns,
            deadline_ns,
        }
    }

    /// When the phase started, since the program's start.
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Until when a thread's CPU time counts for the window, if there is one.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.deadline_ns
    }

    /// Nothing: here each join waits.
    pub fn wait_for_all(&self) {}
}

/// Spawns a thread behind `gate`; it is a set of its own.
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
        // Seen by the thread itself, at its end.
        Figures {
            first_run_ns, // when it was let in
            finish_ns,
            run_ns,
            // In proportion: the host does not say how much it was at a given time.
            run_in_window_ns: share_before(deadline_ns, first_run_ns, finish_ns, run_ns),
            dispatches,
            switches: dispatches, // the host does not say who was there before
            ends: 1,
            beside_ns: 0,   // nor what a thread needs to begin and end
            timeline: None, // nor when it was on a CPU
        }
    };
    let thread = thread::Builder::new().name(name.into()).spawn(entry);
    Handle(thread.expect("the host has room for a thread"))
}

/// Time on a CPU and number of dispatches of the calling thread.
fn on_cpu() -> Option<(u64, u64)> {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let mut fields = stat.split_ascii_whitespace().map(str::parse);
    let run_ns = fields.next()?.ok()?;
    let dispatches = fields.nth(1)?.ok()?;
    Some((run_ns, dispatches))
}

/// A thread to be joined.
pub struct Handle(thread::JoinHandle<Figures>);

impl Handle {
    /// Waits for the end of the thread and returns its figures.
    pub fn join(self) -> Figures {
        self.0.join().expect("a task of the workload panicked")
    }

    /// A view of the thread, for somebody else.
    pub fn watch(&self) -> Watch {
        Watch
    }

    /// Keeps nothing: the host's kernel has its own count.
    pub fn hold(&self) -> Option<Held> {
        Some(Held)
    }
}

/// Keeps a thread, which changes nothing here.
#[derive(Debug)]
pub struct Held;

/// A view of a thread.
pub struct Watch;

impl Watch {
    /// Always: the host's kernel reclaims a thread by itself.
    pub fn is_reclaimed(&self) -> bool {
        true
    }
}

/// `None`: the host's timer is its own.
pub fn await_tick_phase() -> Option<u64> {
    None
}

/// The time since the program's start. There is no account.
pub fn open_account() -> u64 {
    now_ns()
}

/// `None`: the host does not say what other threads do.
pub fn unmetered() -> Option<Unmetered> {
    None
}

/// None: the host tells of no switch.
pub fn events() -> Logs {
    Logs::default()
}

/// Nothing: the host's scheduler is not recorded.
pub fn connect_recording() {}

/// Nothing: the host's threads are the host's affair.
pub fn connect_cpus() {}

/// Ends the application, with a status that says whether its results were right.
pub fn finish(pass: bool) {
    if !pass {
        std::process::exit(1);
    }
}
