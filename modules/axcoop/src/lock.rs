//! A lock for what is rarely needed and soon done with: spawning, ending, looking up.

use core::cell::UnsafeCell;

use crate::kernel::Kernel;
use crate::sync::{AtomicU32, Ordering, spin_loop};

/// A value that one CPU has at a time, with its interrupts off: so also an interrupt may take it,
/// and nobody waits for a task that does not run.
pub(crate) struct Lock<T> {
    is_held: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by one thread at a time, below.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    #[cfg(not(loom))]
    pub(crate) const fn new(value: T) -> Self {
        Self {
            is_held: AtomicU32::new(0),
            value: UnsafeCell::new(value),
        }
    }

    #[cfg(loom)]
    pub(crate) fn new(value: T) -> Self {
        Self {
            is_held: AtomicU32::new(0),
            value: UnsafeCell::new(value),
        }
    }

    /// Calls this with the value. It must not take the lock again, nor panic.
    #[inline]
    pub(crate) fn with<R>(&self, kernel: &dyn Kernel, on: impl FnOnce(&mut T) -> R) -> R {
        let was = kernel.mask();
        while self
            .is_held
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            spin_loop();
        }
        // SAFETY: `is_held` was 0, and is 1 until below, so nobody else is here.
        let result = on(unsafe { &mut *self.value.get() });
        self.is_held.store(0, Ordering::Release);
        kernel.unmask(was);
        result
    }
}
