//! The host as a system: threads as workers.

use core::cell::Cell;
use core::future::Future;
use core::pin::Pin;
use core::ptr;
use core::task::{Context, Waker};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Wake;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use axcoop_summary::{DOMAINS, DomainId};

use crate::run::platform::{MAX_WORKERS, NoWorker, Platform};

/// The host's threads as workers.
pub struct Host {
    parking: [[Parking; MAX_WORKERS]; DOMAINS],
}

/// The only value of [`Host`].
pub static HOST: Host = Host {
    parking: [const { [const { Parking::new() }; MAX_WORKERS] }; DOMAINS],
};

std::thread_local! {
    static HERE: Cell<*const ()> = const { Cell::new(ptr::null()) };
}

/// The parking place of one worker.
struct Parking {
    /// True if the worker has been unparked since its last park.
    may_go: Mutex<bool>,
    goes: Condvar,
}

impl Parking {
    const fn new() -> Self {
        Self {
            may_go: Mutex::new(false),
            goes: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.may_go.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the time at which the clock began.
fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

/// A thread that blocks on a future.
struct Blocked(Thread);

impl Wake for Blocked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

// SAFETY: `HERE` is thread-local. Nothing interrupts a host thread and then calls the executor.
unsafe impl Platform for Host {
    fn start(&self, domain: DomainId, number: usize) -> Result<(), NoWorker> {
        let name = format!("axcoop {}.{number}", domain.index());
        let thread = thread::Builder::new()
            .name(name)
            .spawn(move || crate::run::worker::serve(domain, number));
        thread.map(drop).map_err(|_| NoWorker)
    }

    fn park(&self, domain: DomainId, number: usize, until: Option<u64>) {
        let parking = &self.parking[domain.index()][number];
        let mut may_go = parking.lock();
        while !*may_go {
            may_go = match until {
                None => parking
                    .goes
                    .wait(may_go)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let now = self.now();
                    if until <= now {
                        break;
                    }
                    parking
                        .goes
                        .wait_timeout(may_go, Duration::from_nanos(until - now))
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
        }
        *may_go = false;
    }

    fn unpark(&self, domain: DomainId, number: usize) {
        let parking = &self.parking[domain.index()][number];
        *parking.lock() = true;
        parking.goes.notify_one();
    }

    fn yield_now(&self) {
        thread::yield_now();
    }

    fn now(&self) -> u64 {
        start().elapsed().as_nanos() as u64
    }

    fn set_here(&self, here: *const ()) {
        HERE.set(here);
    }

    fn here(&self) -> *const () {
        HERE.get()
    }

    fn me(&self) -> usize {
        self.here().addr()
    }

    fn mask(&self) -> usize {
        0
    }

    fn unmask(&self, _: usize) {}

    fn block_on(&self, mut future: Pin<&mut dyn Future<Output = ()>>) {
        let waker = Waker::from(Arc::new(Blocked(thread::current())));
        let mut context = Context::from_waker(&waker);
        while future.as_mut().poll(&mut context).is_pending() {
            thread::park();
        }
    }
}
