//! The network's device: an interrupt when a request is due.
//!
//! A guest of this kit has one device that comes at a given time, the CPU's timer, and `axruntime` has it
//! for the tick of 10 ms. Its handler takes each interrupt for a tick, and sets the next one a
//! period later than the one that is set: what came earlier would push the tick away, by hours within a run.
//! So [`start`] puts its own handler in that one's place, for good: it delivers what is due, sets the timer to
//! what comes first, the next request or the next tick, and only at a tick does what
//! `axruntime` did. So a request that comes is no tick to the policy, as it would not be with a device of
//! its own.
//!
//! Ticks are each CPU's; requests come on the one that called [`start`].

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
/// As many as `make` allows.
const MAX_CPUS: usize = 8;

/// How long after a tick the window begins: else, with few connections, each request would come with a
/// tick, and wait for what is done then.
const AFTER_TICK_NS: u64 = 3_000_000;

/// What comes, and when.
pub struct Arrivals {
    /// All of them. Each sends a fraction of the interval after the one before.
    pub connections: Vec<Arc<Connection>>,
    /// Those that are as urgent as this or less send nothing.
    pub senders: u8,
    /// The time between two requests of one of them; 0: each has one, at the start, and the
    /// next ones come with the answers.
    pub interval_ns: u64,
    /// The requests of each.
    pub requests: u64,
    /// Told when it is, as soon as that is known.
    pub window: Arc<Window>,
    /// How long it is.
    pub window_ns: u64,
}

enum State {
    Idle,
    /// The window begins some time after the next tick.
    Armed(Arrivals),
    /// It begins then.
    Soon(Arrivals, u64),
    /// It has begun; so many requests have been delivered, or passed over.
    Open {
        arrivals: Arrivals,
        start_ns: u64,
        passed: u64,
    },
}

static DEVICE_CPU: AtomicUsize = AtomicUsize::new(0);
/// When the next tick of each CPU is, since boot.
static NEXT_TICKS: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];
static STATE: SpinNoIrq<State> = SpinNoIrq::new(State::Idle);
/// The most memory that was seen in use at a tick of the window.
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Takes the timer's interrupt, of all CPUs. Once.
///
/// # Panics
/// If nobody had it.
pub fn start() {
    let _here = NoPreemptIrqSave::new();
    DEVICE_CPU.store(this_cpu_id(), Relaxed);
    irq::unregister(irq_num()).expect("axruntime has the timer's interrupt");
    assert!(irq::register(irq_num(), interrupt), "nobody has it now");
}

/// Has the requests come, the first of them soon after the next tick.
pub fn arm(arrivals: Arrivals) {
    PEAK_BYTES.store(0, Relaxed);
    *STATE.lock() = State::Armed(arrivals);
}

/// Whether there is a window, or one to come.
pub fn is_busy() -> bool {
    !matches!(*STATE.lock(), State::Idle)
}

/// The most memory that was in use at a tick of the last window.
pub fn peak_bytes() -> usize {
    PEAK_BYTES.load(Relaxed)
}

fn interrupt() {
    let was = account::interrupt_begins();
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

/// Delivers what is due; returns when the next is.
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
        // The connections in turn.
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
