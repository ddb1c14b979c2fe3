//! A system of Shuttle's threads.

use core::future::Future;
use core::pin::Pin;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use axcoop_summary::{DomainId, SUMMARY};
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;

use crate::domain::Domain;
use crate::kernel::{Kernel, NoWorker};

/// More workers than any scenario has.
const WORKERS: usize = 4;

shuttle::thread_local! {
    static HERE: Cell<*const ()> = const { Cell::new(std::ptr::null()) };
}

/// Of one execution.
pub struct Machine {
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
    parking: [(Mutex<bool>, Condvar); WORKERS],
    /// Is called when a worker gives way.
    gives_way: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Workers of this number and above never begin.
    begin: AtomicUsize,
}

impl Machine {
    /// Has this called whenever a worker of the domain gives way from now on, and has only its first worker begin.
    pub fn watches(domain: &Domain, gives_way: impl Fn() + Send + Sync + 'static) {
        // SAFETY: the machine of `with_domain`.
        let machine = unsafe { &*std::ptr::from_ref(domain.kernel()).cast::<Self>() };
        machine.begin.store(1, Relaxed);
        assert!(machine.gives_way.set(Box::new(gives_way)).is_ok());
    }

    fn new() -> Self {
        Self {
            threads: Mutex::new(Vec::new()),
            parking: std::array::from_fn(|_| (Mutex::new(false), Condvar::new())),
            gives_way: OnceLock::new(),
            begin: AtomicUsize::new(WORKERS),
        }
    }
}

// SAFETY: `HERE` is the thread's, and there are no interrupts.
unsafe impl Kernel for Machine {
    fn start(&self, domain: DomainId, number: usize) -> Result<(), NoWorker> {
        if number >= self.begin.load(Relaxed) {
            return Ok(());
        }
        let thread = thread::spawn(move || crate::worker::serve(domain, number));
        self.threads.lock().unwrap().push(thread);
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
        if let Some(gives_way) = self.gives_way.get() {
            gives_way();
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
        shuttle::future::block_on(future);
    }
}

/// Calls this with a domain of its own, which has to be empty afterwards.
pub fn with_domain(workers: usize, scenario: impl FnOnce(&'static Domain)) {
    let machine = Box::into_raw(Box::new(Machine::new()));
    // SAFETY: it lives until below, when nobody uses it any more.
    let kernel: &'static Machine = unsafe { &*machine };
    let id = DomainId::new(0);
    let domain = Box::into_raw(Box::new(Domain::new(id, &SUMMARY, kernel)));
    // SAFETY: as the machine.
    let here: &'static Domain = unsafe { &*domain };
    here.open().unwrap();
    here.alloc_cpu(workers).unwrap();
    scenario(here);
    here.alloc_cpu(0).unwrap();
    let threads = std::mem::take(&mut *kernel.threads.lock().unwrap());
    for thread in threads {
        thread.join().unwrap();
    }
    here.close().unwrap();
    // A worker may have cleared it, and a wake that came late have marked it again.
    // SAFETY: all threads have ended, and it is closed.
    drop(unsafe { (Box::from_raw(domain), Box::from_raw(machine)) });
}
