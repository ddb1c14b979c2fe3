//! The state of a worker that its coroutines see.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::task::block::Header;

/// The coroutine that a worker polls.
pub(crate) struct WorkerState {
    /// Null between polls. Read by the worker, and by interrupts of its CPU.
    current: AtomicPtr<Header>,
}

impl WorkerState {
    pub(crate) const fn new() -> Self {
        Self {
            current: AtomicPtr::new(ptr::null_mut()),
        }
    }

    #[inline]
    pub(crate) fn set_current(&self, header: Option<&'static Header>) {
        let header = header.map_or(ptr::null(), ptr::from_ref);
        self.current.store(header.cast_mut(), Ordering::Relaxed);
    }

    /// Returns the coroutine that is polled.
    #[inline]
    pub(crate) fn current(&self) -> Option<&Header> {
        // SAFETY: a polled coroutine has not ended, and this is called within its poll.
        unsafe { self.current.load(Ordering::Relaxed).as_ref() }
    }
}
