//! The host as a platform some of whose calls a test replaces.

use std::future::Future;
use std::pin::Pin;

use axcoop::host::HOST;
use axcoop::{DomainId, NoWorker, Platform};

/// The host, with the calls that a test replaces.
pub struct OnHost {
    pub park: fn(DomainId, usize, Option<u64>),
    /// Called before the host's.
    pub unpark: fn(usize),
    pub now: fn() -> u64,
    pub mask: fn(),
}

impl OnHost {
    /// The host itself.
    pub const PLAIN: Self = Self {
        park: |domain, number, until| HOST.park(domain, number, until),
        unpark: |_| {},
        now: || HOST.now(),
        mask: || {},
    };
}

// SAFETY: it is the host, except for a `park` that may be early, a clock that goes forward, and steps of another
// thread before interrupts are off.
unsafe impl Platform for OnHost {
    fn start(&self, domain: DomainId, number: usize) -> Result<(), NoWorker> {
        HOST.start(domain, number)
    }
    fn park(&self, domain: DomainId, number: usize, until: Option<u64>) {
        (self.park)(domain, number, until);
    }
    fn unpark(&self, domain: DomainId, number: usize) {
        (self.unpark)(number);
        HOST.unpark(domain, number);
    }
    fn yield_now(&self) {
        HOST.yield_now();
    }
    fn now(&self) -> u64 {
        (self.now)()
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
        (self.mask)();
        0
    }
    fn unmask(&self, _: usize) {}
    fn block_on(&self, future: Pin<&mut dyn Future<Output = ()>>) {
        HOST.block_on(future);
    }
}
