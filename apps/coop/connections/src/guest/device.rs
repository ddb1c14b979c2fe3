//! The network's device: an interrupt when a request is due.
//!
//! A guest of this kit has one device with a programmable time, the CPU's timer, which `axruntime` uses for the tick of
//! 10 ms. Its handler takes each interrupt for a tick, and sets the next one a period after the last one set. Earlier
//! interrupts would push the tick away, by hours within a run. So [`start`] replaces that handler for good. The new
//! handler delivers due requests, sets the timer to the next request or tick, and does the work of `axruntime` only at
//! a tick. So a request is no tick to the policy, as with a device of its own.
//!
//! Ticks are per-CPU; requests come on the CPU that called [`start`].

use alloc::{sync::Arc, vec::Vec};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use axhal::{irq, percpu::this_cpu_id, time::irq_num};
use kernel_guard::NoPreemptIrqSave;
use kspin::SpinNoIrq;
use sched_tests_common::platform::now_ns;

use super::{
    account,
    connection::{Connection, Window},
    memory,
};

/// The period of the tick.
const TICK_NS: u64 = 10_000_000;
/// The number of CPUs that `make` allows.
const MAX_CPUS: usize = 8;

/// The time from a tick to the beginning of the window. Without it, and with few connections, each request would come
/// with a tick, and wait for its work.
const AFTER_TICK_NS: u64 = 3_000_000;

/// The requests to deliver, and their times.
pub struct Arrivals {
    /// All connections of the run. Each sends its requests a fraction of the interval after the connection before it.
    pub connections: Vec<Arc<Connection>>,
    /// Connections of this priority or a less urgent one send nothing.
    pub senders: u8,
    /// The time between two requests of a connection. With 0 each has one at the start, and the next ones come with
    /// the answers.
    pub interval_ns: u64,
    /// The number of requests of each connection.
    pub requests: u64,
    /// The window, which is set when it begins.
    pub window: Arc<Window>,
    /// The length of the window, in nanoseconds.
    pub window_ns: u64,
}

enum State {
    Idle,
    /// The window begins some time after the next tick.
    Armed(Arrivals),
    /// The window begins at this time.
    Soon(Arrivals, u64),
    /// The window has begun, and this many requests have been delivered or skipped.
    Open {
        arrivals: Arrivals,
        start_ns: u64,
        passed: u64,
    },
}

static DEVICE_CPU: AtomicUsize = AtomicUsize::new(0);
/// The time of each CPU's next tick, since boot.
static NEXT_TICKS: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];
static STATE: SpinNoIrq<State> = SpinNoIrq::new(State::Idle);
/// The most memory that was seen in use at a tick of the window.
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Takes the timer's interrupt of all CPUs. Called once.
///
/// # Panics
/// If the interrupt had no handler.
pub fn start() {
    let _here = NoPreemptIrqSave::new();
    DEVICE_CPU.store(this_cpu_id(), Relaxed);
    irq::unregister(irq_num()).expect("axruntime has the timer's interrupt");
    assert!(
        irq::register(irq_num(), interrupt),
        "another handler has taken the interrupt"
    );
}

/// Arms the requests, the first of which comes soon after the next tick.
pub fn arm(arrivals: Arrivals) {
    PEAK_BYTES.store(0, Relaxed);
    *STATE.lock() = State::Armed(arrivals);
}

/// Returns true if there is a window, or one to come.
pub fn is_busy() -> bool {
    !matches!(*STATE.lock(), State::Idle)
}

/// Returns the most memory that was in use at a tick of the last window.
pub fn peak_bytes() -> usize {
    PEAK_BYTES.load(Relaxed)
}

fn interrupt() {
    let was = account::begin_interrupt();
    let (now, cpu) = (now_ns(), this_cpu_id());
    let next_tick = &NEXT_TICKS[cpu];
    let is_tick = now >= next_tick.load(Relaxed);
    if is_tick {
        next_tick.store((now / TICK_NS + 1) * TICK_NS, Relaxed);
    }
    let tick_ns = next_tick.load(Relaxed);
    let due_ns = if cpu == DEVICE_CPU.load(Relaxed) {
        deliver(now, is_tick)
    } else {
        None
    };
    axhal::time::set_oneshot_timer(due_ns.map_or(tick_ns, |due_ns| due_ns.min(tick_ns)));
    if is_tick {
        axtask::on_timer_tick();
    }
    account::hand_to(was);
}

/// Delivers due requests; returns the time of the next one.
fn deliver(now: u64, is_tick: bool) -> Option<u64> {
    let mut state = STATE.lock();
    *state = match core::mem::replace(&mut *state, State::Idle) {
        State::Armed(arrivals) if is_tick => State::Soon(arrivals, now + AFTER_TICK_NS),
        State::Soon(arrivals, start_ns) if now >= start_ns => {
            arrivals.window.set(now, now + arrivals.window_ns);
            account::open();
            State::Open {
                arrivals,
                start_ns: now,
                passed: 0,
            }
        }
        other => other,
    };
    let (arrivals, start_ns, passed) = match &mut *state {
        State::Idle | State::Armed(_) => return None,
        State::Soon(_, start_ns) => return Some(*start_ns),
        State::Open {
            arrivals,
            start_ns,
            passed,
        } => (arrivals, *start_ns, passed),
    };
    if is_tick {
        PEAK_BYTES.fetch_max(memory::used_bytes(), Relaxed);
    }
    let end_ns = start_ns + arrivals.window_ns;
    if now >= end_ns {
        account::close();
        *state = State::Idle;
        return None;
    }
    let all = arrivals.connections.len() as u64;
    while *passed < all * arrivals.requests {
        // Request n of all belongs to connection n modulo their number.
        let due_ns = start_ns + arrivals.interval_ns * *passed / all;
        if due_ns > now {
            return Some(due_ns.min(end_ns));
        }
        let connection = &arrivals.connections[(*passed % all) as usize];
        if connection.priority < arrivals.senders {
            connection.request(due_ns);
        }
        *passed += 1;
    }
    Some(end_ns)
}
