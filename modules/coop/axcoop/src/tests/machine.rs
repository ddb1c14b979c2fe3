//! A system with one thread, which serves until nothing is ready.

use core::alloc::Layout;
use core::cell::Cell;
use core::future::Future;
use core::pin::Pin;
use core::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use axcoop_summary::{DomainId, Summary};

use crate::domain::Domain;
use crate::run::platform::{MAX_WORKERS, NoWorker, Platform};

std::thread_local! {
    static HERE: Cell<*const ()> = const { Cell::new(ptr::null()) };
}

/// A step of another thread, which happens once.
pub type AtMask = Box<dyn FnOnce() + Send>;

/// The counters and the settings of the system.
#[derive(Default)]
pub struct Machine {
    pub memory: AtomicUsize,
    /// The most bytes that can be allocated; 0 is no limit.
    pub limit: AtomicUsize,
    pub unparks: AtomicUsize,
    /// The workers that were unparked (bit mask).
    pub unparked: AtomicU32,
    pub yields: AtomicUsize,
    pub masks: AtomicUsize,
    /// The number of times that interrupts were disabled.
    pub locks: AtomicUsize,
    /// The time, in nanoseconds.
    pub clock: AtomicU64,
    /// A step of another thread, after interrupts were disabled this often.
    pub at_mask: Mutex<Option<(usize, AtMask)>>,
    /// Called once, while a worker is parked or cannot be started.
    pub meanwhile: Mutex<Option<fn(&'static Domain)>>,
    /// Called when a worker yields.
    pub others: Mutex<Option<Box<dyn Fn() + Send>>>,
}

impl Machine {
    fn happens_meanwhile(&self, domain: DomainId) {
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile(Domain::of(domain).unwrap());
        }
    }
}

// SAFETY: `HERE` is the thread's, and there are no interrupts.
unsafe impl Platform for Machine {
    fn start(&self, domain: DomainId, number: usize) -> Result<(), NoWorker> {
        // The test serves the domain itself.
        if number < MAX_WORKERS - 1 {
            return Ok(());
        }
        self.happens_meanwhile(domain);
        Err(NoWorker)
    }

    fn park(&self, domain: DomainId, _: usize, _: Option<u64>) {
        self.happens_meanwhile(domain);
        Domain::of(domain).unwrap().set_workers(0).unwrap();
    }

    fn unpark(&self, _: DomainId, number: usize) {
        self.unparked.fetch_or(1 << number, Relaxed);
        self.unparks.fetch_add(1, Relaxed);
    }

    fn yield_now(&self) {
        self.yields.fetch_add(1, Relaxed);
        if let Some(others) = &*self.others.lock().unwrap() {
            others();
        }
    }

    fn now(&self) -> u64 {
        self.clock.load(Relaxed)
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
        let at_mask = {
            let mut at_mask = self.at_mask.lock().unwrap();
            match &mut *at_mask {
                Some((0, _)) => at_mask.take(),
                Some((left, _)) => {
                    *left -= 1;
                    None
                }
                None => None,
            }
        };
        if let Some((_, does)) = at_mask {
            does();
        }
        self.locks.fetch_add(1, Relaxed);
        self.masks.fetch_add(1, Relaxed)
    }

    fn unmask(&self, was: usize) {
        self.masks.store(was, Relaxed);
    }

    fn block_on(&self, _: Pin<&mut dyn Future<Output = ()>>) {
        unreachable!("there is no other thread");
    }

    fn alloc(&self, layout: Layout) -> *mut u8 {
        let limit = self.limit.load(Relaxed);
        let used = self.memory.load(Relaxed) + layout.size();
        if limit != 0 && used > limit {
            return ptr::null_mut();
        }
        self.memory.store(used, Relaxed);
        // SAFETY: the executor asks for no empty layout.
        unsafe { alloc::alloc::alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        self.memory.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as promised.
        unsafe { alloc::alloc::dealloc(memory, layout) }
    }
}

/// One domain at a time has this number.
static ONE: Mutex<()> = Mutex::new(());

/// Runs a test with a domain of its own, which has to be empty afterwards, with all memory freed.
pub fn with_domain(test: impl FnOnce(&'static Domain, &'static Machine)) {
    let _one = ONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let machine: &'static Machine = Box::leak(Box::default());
    let summary: &'static Summary = Box::leak(Box::default());
    let id = DomainId::new(5);
    let domain: &'static Domain = Box::leak(Box::new(Domain::new(id, summary, machine)));
    struct Fails(&'static Domain);
    impl Drop for Fails {
        fn drop(&mut self) {
            self.0.abandon();
        }
    }
    domain.open().unwrap();
    let fails = Fails(domain);
    test(domain, machine);
    core::mem::forget(fails);
    domain.close().unwrap();
    assert_eq!(summary.most_urgent(), None);
    assert_eq!(machine.memory.load(Relaxed), 0, "memory is freed");
}

/// Serves until no coroutine is ready.
pub fn run(domain: &'static Domain) {
    domain.set_workers(1).unwrap();
    domain.serve(0);
    assert_eq!(domain.summary.of(domain.id()), None, "a coroutine is ready");
    // SAFETY: no worker serves.
    unsafe { (*domain.ready.get()).assert_valid() };
}
