//! A system of modelled threads: Shuttle's in `tests/schedules`, loom's in `src/interleavings.rs`, which have the same
//! names in `super::explorer`.

use core::cell::Cell;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::ptr;
use core::task::{Poll, Waker};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use axcoop_summary::{DomainId, Summary};

use super::explorer::{AtomicBool, Condvar, Mutex, Relaxed, block_on, thread, thread_local};
use crate::domain::Domain;
use crate::run::platform::{NoWorker, Platform};

/// The number of the domains.
pub const ID: DomainId = DomainId::new(0);
/// More workers than any scenario has.
const WORKERS: usize = 3;

thread_local! {
    static HERE: Cell<*const ()> = Cell::new(ptr::null());
}

/// The system of one execution.
pub struct Machine {
    summary: Summary,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
    parking: [(Mutex<bool>, Condvar); WORKERS],
    /// Called when a worker yields.
    at_yield: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Workers of this number and above never begin.
    begin: AtomicUsize,
}

impl Machine {
    /// Calls a closure from now on when a worker of the domain yields, and lets only its first worker begin.
    #[allow(dead_code, reason = "loom has no such scenario")]
    pub fn watch(domain: &Domain, at_yield: impl Fn() + Send + Sync + 'static) {
        let machine = Self::of(domain);
        machine.begin.store(1, Relaxed);
        assert!(machine.at_yield.set(Box::new(at_yield)).is_ok());
    }

    /// Waits until all workers that have begun have left.
    pub fn join_workers(domain: &Domain) {
        loop {
            let thread = Self::of(domain).threads.lock().unwrap().pop();
            let Some(thread) = thread else { break };
            thread.join().unwrap();
        }
    }

    fn of(domain: &Domain) -> &Self {
        // SAFETY: every domain here is an `OwnDomain`'s.
        unsafe { &*ptr::from_ref(domain.platform()).cast::<Self>() }
    }
}

// SAFETY: `HERE` is the thread's, and there are no interrupts.
unsafe impl Platform for Machine {
    fn start(&self, domain: DomainId, number: usize) -> Result<(), NoWorker> {
        if number < self.begin.load(Relaxed) {
            let thread = thread::spawn(move || crate::run::worker::serve(domain, number));
            self.threads.lock().unwrap().push(thread);
        }
        Ok(())
    }

    fn park(&self, _: DomainId, number: usize, until: Option<u64>) {
        assert_eq!(until, None, "no scenario has time");
        let (may_go, goes) = &self.parking[number];
        let mut may_go = may_go.lock().unwrap();
        while !*may_go {
            may_go = goes.wait(may_go).unwrap();
        }
        *may_go = false;
    }

    fn unpark(&self, _: DomainId, number: usize) {
        let (may_go, goes) = &self.parking[number];
        *may_go.lock().unwrap() = true;
        goes.notify_one();
    }

    fn yield_now(&self) {
        if let Some(at_yield) = self.at_yield.get() {
            at_yield();
        }
        thread::yield_now();
    }

    fn now(&self) -> u64 {
        0
    }

    fn set_here(&self, here: *const ()) {
        HERE.with(|of| of.set(here));
    }

    fn here(&self) -> *const () {
        HERE.with(Cell::get)
    }

    fn me(&self) -> usize {
        self.here().addr()
    }

    fn mask(&self) -> usize {
        0
    }

    fn unmask(&self, _: usize) {}

    fn block_on(&self, future: Pin<&mut dyn Future<Output = ()>>) {
        block_on(future);
    }
}

/// A domain of one execution that is not opened, and its machine. Both are freed with it.
pub struct OwnDomain {
    pub domain: &'static Domain,
    machine: *mut Machine,
}

impl OwnDomain {
    pub fn new() -> Self {
        let machine = Box::into_raw(Box::new(Machine {
            summary: Summary::new(),
            threads: Mutex::new(Vec::new()),
            parking: core::array::from_fn(|_| (Mutex::new(false), Condvar::new())),
            at_yield: OnceLock::new(),
            begin: AtomicUsize::new(WORKERS),
        }));
        // SAFETY: it lives until `drop`.
        let platform: &'static Machine = unsafe { &*machine };
        let domain = Box::leak(Box::new(Domain::new(ID, &platform.summary, platform)));
        Self { domain, machine }
    }
}

impl Drop for OwnDomain {
    fn drop(&mut self) {
        // SAFETY: all threads have ended, and no number leads to it.
        drop(unsafe { Box::from_raw(ptr::from_ref(self.domain).cast_mut()) });
        // SAFETY: the domain that refers to it is gone.
        drop(unsafe { Box::from_raw(self.machine) });
    }
}

/// An event that a coroutine awaits and another thread signals.
pub struct Event {
    has_come: AtomicBool,
    waits: Mutex<Option<Waker>>,
}

impl Event {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            has_come: AtomicBool::new(false),
            waits: Mutex::new(None),
        })
    }

    /// Signals the event. The wake alone orders the store before the coroutine's load.
    pub fn signal(&self) {
        self.has_come.store(true, Relaxed);
        let waits = self.waits.lock().unwrap().take();
        if let Some(waker) = waits {
            waker.wake();
        }
    }

    /// Signals the event as soon as a coroutine is about to wait for it.
    #[allow(dead_code, reason = "loom has no such scenario")]
    pub fn signal_to_a_waiter(&self) {
        while self.waits.lock().unwrap().is_none() {
            thread::yield_now();
        }
        self.signal();
    }

    pub async fn wait(&self) {
        poll_fn(|context| {
            *self.waits.lock().unwrap() = Some(context.waker().clone());
            match self.has_come.load(Relaxed) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await
    }
}
