//! The queue token of a domain: its holder owns the ready queues.
//!
//! 1. A worker that has the domain alone keeps the token, also while it polls and while it is parked. So a switch
//!    does not take it.
//! 2. Otherwise a worker takes the token to queue and pick, with interrupts off, for about fifty instructions.
//!    Another worker that wants it meanwhile spins.
//! 3. A worker that finds the token kept has nothing to do until that changes, and is told of the change.
//!
//! A call that needs the token is a method of [`QueueToken`], or of [`KeptToken`] if it also needs rule 1. Neither
//! can be made or kept without the lock. This compiles:
//!
//! ```standalone_crate,no_run
//! # #![allow(dead_code)]
//! # extern crate alloc;
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schedules/whole.rs"));
//! fn push(domain: &'static domain::Domain, header: &'static task::block::Header) {
//!     domain.with_queue(|queue| queue.enqueue(header));
//! }
//! # fn main() {}
//! ```
//!
//! This does not, because the token would outlive the lock:
//!
//! ```standalone_crate,compile_fail
//! # #![allow(dead_code)]
//! # extern crate alloc;
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schedules/whole.rs"));
//! fn push(domain: &'static domain::Domain, header: &'static task::block::Header) {
//!     let queue = domain.with_queue(|queue| queue);
//!     queue.unwrap().enqueue(header);
//! }
//! # fn main() {}
//! ```
//!
//! Nor does this, because a worker cannot use the token after it has released it:
//!
//! ```standalone_crate,compile_fail,E0505
//! # #![allow(dead_code)]
//! # extern crate alloc;
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schedules/whole.rs"));
//! fn push(kept: run::queue::KeptQueue, header: &'static task::block::Header) {
//!     let queue = kept.token();
//!     kept.release();
//!     queue.enqueue(header);
//! }
//! # fn main() {}
//! ```

use core::marker::PhantomData;
use core::ops::Deref;

use crate::atomics::{AtomicU32, Ordering, spin_loop};
use crate::domain::Domain;
use crate::run::platform::Platform;
use crate::run::ready::Ready;

const FREE: u32 = 0;
/// A worker has taken the token for a short time (rule 2).
const TAKEN: u32 = 1;
/// A worker keeps the token (rule 1).
const KEPT: u32 = 2;

/// States whether a worker has the token.
pub(crate) struct QueueLock(AtomicU32);

impl QueueLock {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    fn keep(&self) {
        let was = self.0.swap(KEPT, Ordering::AcqRel);
        assert_eq!(was, FREE, "another worker has the queue token");
    }

    /// Releases a token that was kept. A read-modify-write: the caller sees what a worker wrote before it found the
    /// token kept, in [`with`](Self::with).
    fn release(&self) {
        let was = self.0.swap(FREE, Ordering::AcqRel);
        debug_assert_eq!(was, KEPT);
    }

    /// Calls a closure with the token taken (rules 2 and 3). Returns none if another worker keeps it.
    fn with<R>(&self, platform: &dyn Platform, on: impl FnOnce() -> R) -> Option<R> {
        let was = platform.mask();
        loop {
            match self
                .0
                .compare_exchange(FREE, TAKEN, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(TAKEN) => spin_loop(),
                Err(_) => {
                    // For `release`; a failed exchange writes nothing.
                    let still =
                        self.0
                            .compare_exchange(KEPT, KEPT, Ordering::AcqRel, Ordering::Relaxed);
                    if still.is_ok() {
                        platform.unmask(was);
                        return None;
                    }
                }
            }
        }
        let result = on();
        self.0.store(FREE, Ordering::Release);
        platform.unmask(was);
        Some(result)
    }
}

/// The queue token: the right to use the ready queues of a domain. It is a reference to the domain.
#[derive(Clone, Copy)]
pub(crate) struct QueueToken<'a> {
    pub(crate) domain: &'static Domain,
    lock: PhantomData<&'a QueueLock>,
}

impl Deref for QueueToken<'_> {
    type Target = Ready;

    #[inline(always)]
    fn deref(&self) -> &Ready {
        // SAFETY: the token is held, and `Ready` rule 4 allows calls in a poll.
        unsafe { &*self.domain.ready.get() }
    }
}

/// The queue token of a worker that keeps it (rule 1), between two polls or in the worker's own code.
#[derive(Clone, Copy)]
pub(crate) struct KeptToken<'a>(QueueToken<'a>);

impl<'a> Deref for KeptToken<'a> {
    type Target = QueueToken<'a>;

    #[inline(always)]
    fn deref(&self) -> &QueueToken<'a> {
        &self.0
    }
}

/// A kept token, until [`release`](Self::release) (rule 1).
#[must_use]
pub(crate) struct KeptQueue(&'static Domain);

impl KeptQueue {
    /// Returns the token, which cannot outlive this.
    #[inline]
    pub(crate) fn token(&self) -> KeptToken<'_> {
        // SAFETY: this worker keeps the token until `release`, which consumes it.
        KeptToken(unsafe { QueueToken::of(self.0) })
    }

    /// Releases the token.
    pub(crate) fn release(self) {
        self.0.queue_lock.release();
    }
}

impl QueueToken<'_> {
    /// Makes the token of a domain.
    ///
    /// # Safety
    /// The caller holds the token while this exists.
    #[inline(always)]
    pub(crate) const unsafe fn of(domain: &'static Domain) -> Self {
        Self {
            domain,
            lock: PhantomData,
        }
    }
}

impl Domain {
    /// Takes the token to keep (rule 1). Called by the only worker.
    pub(crate) fn keep_queue(&'static self) -> KeptQueue {
        self.queue_lock.keep();
        KeptQueue(self)
    }

    /// Calls a closure with the token. Returns none if another worker keeps it.
    pub(crate) fn with_queue<R>(&'static self, on: impl FnOnce(QueueToken<'_>) -> R) -> Option<R> {
        self.queue_lock.with(self.platform, || {
            // SAFETY: it holds the token during the call.
            on(unsafe { QueueToken::of(self) })
        })
    }
}
