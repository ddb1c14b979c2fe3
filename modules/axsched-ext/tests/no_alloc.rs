//! No policy allocates or frees in pick, put and tick, nor when a task is added.
//!
//! These calls are made with interrupts off under the run queue's lock. The allocator of this test counts each use
//! while a scheduler call is under way.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::catch_unwind;
use std::sync::Arc;

use axsched_ext::clock::VirtualClock;
use axsched_ext::conformance::Rng;
use axsched_ext::pbg::PerThread;
use axsched_ext::*;
use common::Stock;

thread_local! {
    static REFUSING: Cell<bool> = const { Cell::new(false) };
    static REFUSED: Cell<u32> = const { Cell::new(0) };
}

/// The system's allocator, which counts the calls that it should have refused. It cannot panic, as an allocator
/// must not unwind.
struct Refusing;

impl Refusing {
    fn note() {
        if REFUSING.get() {
            REFUSED.set(REFUSED.get() + 1);
        }
    }
}

// SAFETY: every call is handed on to `System` as it came.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::note();
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        Self::note();
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

/// Makes one scheduler call.
fn guarded<R>(call: impl FnOnce() -> R) -> R {
    REFUSING.set(true);
    let result = call();
    REFUSING.set(false);
    assert_eq!(REFUSED.replace(0), 0, "a scheduler call allocated or freed");
    result
}

/// Drives a scheduler through every kind of call.
struct Driver<S: BaseScheduler> {
    scheduler: S,
    make: fn(u32) -> S::SchedItem,
    blocked: Vec<S::SchedItem>,
    current: Option<S::SchedItem>,
    random: Rng,
}

impl<S: BaseScheduler> Driver<S> {
    fn new(scheduler: S, make: fn(u32) -> S::SchedItem) -> Self {
        let mut this = Self {
            scheduler,
            make,
            blocked: Vec::with_capacity(1000),
            current: None,
            random: Rng(1),
        };
        this.spawn(8);
        this
    }

    fn spawn(&mut self, n: u32) {
        for i in 0..n {
            let task = (self.make)(i);
            guarded(|| self.scheduler.add_task(task));
        }
    }

    fn step(&mut self) {
        let random = self.random.next();
        VirtualClock::advance(random >> 58);
        match (random >> 40) % 6 {
            0 => {
                if let Some(task) = self.blocked.pop() {
                    guarded(|| self.scheduler.put_prev_task(task, false));
                }
            }
            1 => {
                self.blocked.extend(self.current.take());
                self.current = guarded(|| self.scheduler.pick_next_task());
            }
            op @ 2..4 => {
                if let Some(task) = self.current.take() {
                    guarded(|| self.scheduler.put_prev_task(task, op == 2));
                }
                self.current = guarded(|| self.scheduler.pick_next_task());
            }
            _ => {
                if let Some(task) = &self.current {
                    let _ = guarded(|| self.scheduler.task_tick(task));
                }
            }
        }
    }

    fn run(&mut self) {
        (0..20_000).for_each(|_| self.step());
    }
}

#[test]
fn allocation_is_noticed() {
    assert!(catch_unwind(|| guarded(|| drop(Box::new(1)))).is_err());
    REFUSING.set(false);
}

macro_rules! policies {
    ($($feature:literal $module:ident $task:ident $scheduler:ty;)*) => {$(
        #[test]
        fn $module() {
            #[allow(dead_code, reason = "not every policy reads the time")]
            type C = VirtualClock;
            type Scheduler<T> = $scheduler;
            Driver::new(<Scheduler<u32>>::new(), |i| Arc::new($task::new(i))).run();
        }
    )*};
}

for_each_policy!(policies);
policies! {
    "sched_cfs" exact_cfs CfsTask cfs::ExactCfsScheduler<T, C>;
    "sched_eevdf" exact_eevdf EevdfTask eevdf::ExactEevdfScheduler<T, C>;
}

/// Its tree has nodes of its own.
#[test]
fn stock_cfs_allocates() {
    use axsched_upstream::{CFSTask, CFScheduler};
    let run = || {
        let scheduler = Stock(CFScheduler::<u32>::new());
        Driver::new(scheduler, |i| Arc::new(CFSTask::new(i))).run();
    };
    let refused = catch_unwind(run).unwrap_err();
    REFUSING.set(false);
    let message = refused.downcast_ref::<String>().map_or("", String::as_str);
    assert!(message.contains("allocated or freed"), "{message}");
}

#[test]
fn pbg_in_every_phase_and_while_it_changes() {
    let control = PerThread::renew();
    let scheduler: PbgScheduler<u32, VirtualClock, PerThread> = PbgScheduler::new();
    let mut driver = Driver::new(scheduler, |i| Arc::new(PbgTask::new(i)));
    driver.run();
    for _ in 0..3 {
        control.measure_start().unwrap();
        driver.spawn(200);
        driver.run();
        control.measure_end_by::<VirtualClock>().unwrap();
        driver.run();
    }
    control.start_pbg().unwrap();
    driver.spawn(200);
    driver.run();
    let status = control.status().unwrap();
    assert!(
        status.matched > 0 && status.turns > 0 && status.demoted > 0,
        "{status:?}"
    );
}
