//! Closing a domain beside others that close and open one of its number, at the worst moments.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::thread;

use axcoop::host::HOST;
use axcoop::{Domain, DomainError, DomainId, Kernel, NoWorker, Priority, SUMMARY};

thread_local! {
    /// Runs once, where this thread is about to disable interrupts.
    static PREEMPTED_BY: Cell<Option<fn()>> = const { Cell::new(None) };
}

/// The host, where a thread may be preempted just before it has interrupts off.
struct Preemptible;

// SAFETY: the host does all of it.
unsafe impl Kernel for Preemptible {
    fn start(&self, domain: DomainId, number: usize) -> Result<(), NoWorker> {
        HOST.start(domain, number)
    }

    fn park(&self, domain: DomainId, number: usize, until: Option<u64>) {
        HOST.park(domain, number, until);
    }

    fn unpark(&self, domain: DomainId, number: usize) {
        HOST.unpark(domain, number);
    }

    fn yield_now(&self) {
        HOST.yield_now();
    }

    fn now(&self) -> u64 {
        HOST.now()
    }

    fn set_here(&self, here: *const ()) {
        HOST.set_here(here);
    }

    fn here(&self) -> *const () {
        HOST.here()
    }

    fn me(&self) -> usize {
        HOST.me()
    }

    fn mask(&self) -> usize {
        if let Some(other) = PREEMPTED_BY.take() {
            thread::spawn(other).join().unwrap();
        }
        0
    }

    fn unmask(&self, _: usize) {}

    fn block_on(&self, future: Pin<&mut dyn Future<Output = ()>>) {
        HOST.block_on(future);
    }
}

static SYSTEM: Preemptible = Preemptible;
const ID: DomainId = DomainId::new(0);

#[test]
fn a_second_close_does_not_free_the_number_of_the_domain_opened_since() {
    static ONE: Domain = Domain::new(ID, &SUMMARY, &SYSTEM);
    static TWO: Domain = Domain::new(ID, &SUMMARY, &SYSTEM);
    ONE.open().unwrap();
    PREEMPTED_BY.set(Some(|| {
        ONE.close().unwrap();
        TWO.open().unwrap();
        TWO.alloc_cpu(1).unwrap();
    }));
    assert_eq!(ONE.close(), Err(DomainError::NotOpen(ID)));
    assert!(Domain::of(ID).is_some_and(|of| std::ptr::eq(of, &TWO)));
    assert_eq!(TWO.spawn(async { 1 }, Priority::DEFAULT).join(), Ok(1));
    TWO.alloc_cpu(0).unwrap();
    while TWO.close().is_err() {
        thread::yield_now();
    }
    assert!(Domain::of(ID).is_none());
}
