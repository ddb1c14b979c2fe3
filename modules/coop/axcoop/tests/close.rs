//! Closing a domain while other threads close and open domains of its number, at the worst moments.

mod on_host;

use std::cell::Cell;
use std::thread;

use axcoop::{Domain, DomainError, DomainId, Priority, SUMMARY};
use on_host::OnHost;

thread_local! {
    /// Called once, where this thread is about to disable interrupts.
    static PREEMPTED_BY: Cell<Option<fn()>> = const { Cell::new(None) };
}

/// The host, with a preemption just before interrupts are off.
static SYSTEM: OnHost = OnHost {
    mask: || {
        if let Some(other) = PREEMPTED_BY.take() {
            thread::spawn(other).join().unwrap();
        }
    },
    ..OnHost::PLAIN
};
const ID: DomainId = DomainId::new(0);

#[test]
fn second_close_does_not_free_the_number_of_a_new_domain() {
    static ONE: Domain = Domain::new(ID, &SUMMARY, &SYSTEM);
    static TWO: Domain = Domain::new(ID, &SUMMARY, &SYSTEM);
    ONE.open().unwrap();
    PREEMPTED_BY.set(Some(|| {
        ONE.close().unwrap();
        TWO.open().unwrap();
        TWO.set_workers(1).unwrap();
    }));
    assert_eq!(ONE.close(), Err(DomainError::NotOpen(ID)));
    assert!(Domain::of(ID).is_some_and(|of| std::ptr::eq(of, &TWO)));
    assert_eq!(TWO.spawn(async { 1 }, Priority::DEFAULT).join(), Ok(1));
    TWO.set_workers(0).unwrap();
    while TWO.close().is_err() {
        thread::yield_now();
    }
    assert!(Domain::of(ID).is_none());
}
