//! A domain for each test, and values that its coroutines share, for the tests of all crates that have futures.

use std::boxed::Box;
use std::sync::{Mutex, PoisonError};
use std::thread;

use axcoop::host::HOST;
use axcoop::{Domain, DomainId, SUMMARY};

/// Runs a test in a domain of its own on the host, one at a time, which has to be empty afterwards.
pub fn with_domain(workers: usize, test: impl FnOnce(&'static Domain)) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let domain = leaked(Domain::new(DomainId::new(3), &SUMMARY, &HOST));
    domain.open().unwrap();
    domain.alloc_cpu(workers).unwrap();
    test(domain);
    domain.alloc_cpu(0).unwrap();
    while domain.close().is_err() {
        thread::yield_now();
    }
}

/// Leaks a value, so that it lives as long as the program.
pub fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}
