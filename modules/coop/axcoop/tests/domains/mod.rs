//! A domain for each test, and counted buffers, for the tests of all crates with futures.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::boxed::Box;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use std::vec::Vec;

use axcoop::host::HOST;
use axcoop::{Domain, DomainId, Platform, SUMMARY};

/// The number of these domains.
pub const ID: DomainId = DomainId::new(3);

/// Runs a test in a domain of its own on the host, which has to be empty afterwards. One test runs at a time.
pub fn with_domain(workers: usize, test: impl FnOnce(&'static Domain)) {
    drop(with_domain_on(&HOST, workers, test));
}

/// Does the same on another platform. No other test begins before the returned guard is dropped.
pub fn with_domain_on(
    platform: &'static dyn Platform,
    workers: usize,
    test: impl FnOnce(&'static Domain),
) -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let domain = leaked(Domain::new(ID, &SUMMARY, platform));
    domain.open().unwrap();
    domain.set_workers(workers).unwrap();
    test(domain);
    domain.set_workers(0).unwrap();
    wait_until(|| domain.close().is_ok());
    one
}

/// Leaks a value, so that coroutines can refer to it.
pub fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Waits until a condition is true, for 30 s at most.
pub fn wait_until(mut condition: impl FnMut() -> bool) {
    let late = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < late, "the condition is never true");
        thread::yield_now();
    }
}

/// A buffer that is counted.
pub struct Buffer {
    pub bytes: Vec<u8>,
    _counted: Arc<()>,
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

/// Makes and counts buffers. There is one reference more than there are buffers.
#[derive(Default)]
pub struct Buffers(Arc<()>);

impl Buffers {
    pub fn with(&self, bytes: &[u8]) -> Buffer {
        Buffer {
            bytes: bytes.to_vec(),
            _counted: self.0.clone(),
        }
    }

    pub fn count(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }
}
