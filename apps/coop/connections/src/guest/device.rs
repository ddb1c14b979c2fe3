//! The network's device: an interrupt when a request is due.
//!
//! A guest of this kit has one device that comes at a given time, the CPU's timer, and `axruntime` has
//! it for the tick. Here both share it: a callback of the tick, which `axtask` calls in each interrupt of
//! the timer, delivers what is due and sets the timer to what comes first, the next request or the next
//! tick of 10 ms. `axruntime` has set it before that in the same interrupt, to a tick that moves on by a period
//! with each interrupt: so from the first call on it is this callback that keeps the tick, for ever.
//!
//! Each interrupt is a tick to the policy, too. One that counts ticks for a time slice gives shorter ones
//! here: of those that the experiment is published for, FIFO does not look at ticks.
//!
//! It is of the CPU that [`start`] was called on.

use alloc::{sync::Arc, vec::Vec};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use kernel_guard::NoPreempt;
use kspin::SpinNoIrq;
use sched_tests_common::platform::now_ns;

use super::{
    account,
    connection::{Connection, Window},
    memory,
};

/// The period of the tick.
const TICK_NS: u64 = 10_000_000;

/// What comes, and when.
pub struct Arrivals {
    /// Whose the requests are.
    pub connections: Vec<Arc<Connection>>,
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
    /// From the next tick on.
    Armed(Arrivals),
    /// So many requests have been delivered.
    Open {
        arrivals: Arrivals,
        start_ns: u64,
        delivered: u64,
    },
}

static STATE: SpinNoIrq<State> = SpinNoIrq::new(State::Idle);
/// The most memory that was seen in use at a tick of the window.
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Takes this CPU's timer. Once.
pub fn start() {
    let _here = NoPreempt::new();
    axtask::register_timer_callback(|_| interrupt());
}

/// Has the requests come, the first of them with the next tick.
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
    let now = now_ns();
    let tick_ns = (now / TICK_NS + 1) * TICK_NS;
    let next_ns = deliver(now).map_or(tick_ns, |due_ns| due_ns.min(tick_ns));
    axhal::time::set_oneshot_timer(next_ns);
    account::hand_to(was);
}

/// Delivers what is due; returns when the next is.
fn deliver(now: u64) -> Option<u64> {
    let mut state = STATE.lock();
    if let State::Armed(_) = *state {
        let State::Armed(arrivals) = core::mem::replace(&mut *state, State::Idle) else {
            unreachable!("it was armed");
        };
        arrivals.window.set(now, now + arrivals.window_ns);
        account::open();
        *state = State::Open {
            arrivals,
            start_ns: now,
            delivered: 0,
        };
    }
    let State::Open {
        arrivals,
        start_ns,
        delivered,
    } = &mut *state
    else {
        return None;
    };
    PEAK_BYTES.fetch_max(memory::used_bytes(), Relaxed);
    let end_ns = *start_ns + arrivals.window_ns;
    if now >= end_ns {
        account::close();
        *state = State::Idle;
        return None;
    }
    let all = arrivals.connections.len() as u64;
    while *delivered < all * arrivals.requests {
        // The connections in turn: each is a fraction of the interval after the one before.
        let due_ns = *start_ns + arrivals.interval_ns * *delivered / all;
        if due_ns > now {
            return Some(due_ns.min(end_ns));
        }
        arrivals.connections[(*delivered % all) as usize].request(due_ns);
        *delivered += 1;
    }
    Some(end_ns)
}
