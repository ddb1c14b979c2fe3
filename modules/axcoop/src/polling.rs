//! What a worker is to those that it polls.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::block::Header;

/// What a worker polls.
pub(crate) struct Polling {
    /// Null if nobody. Read by the worker, and by interrupts of its CPU.
    current: AtomicPtr<Header>,
}

impl Polling {
    pub(crate) const fn new() -> Self {
        Self {
            current: AtomicPtr::new(ptr::null_mut()),
        }
    }

    #[inline]
    pub(crate) fn polls(&self, header: Option<&'static Header>) {
        let header = header.map_or(ptr::null(), ptr::from_ref);
        self.current.store(header.cast_mut(), Ordering::Relaxed);
    }

    /// What it polls.
    #[inline]
    pub(crate) fn current(&self) -> Option<&Header> {
        // SAFETY: what is polled has not ended, and this is called within its poll.
        unsafe { self.current.load(Ordering::Relaxed).as_ref() }
    }
}
