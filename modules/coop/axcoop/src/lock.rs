//! A lock for rare and short work: spawning, ending, looking up.

use core::cell::UnsafeCell;

use crate::atomics::{AtomicU32, Ordering, spin_loop};
use crate::run::platform::Platform;

/// A value that one CPU has at a time, with its interrupts off. So an interrupt may take the lock, too, and no CPU
/// waits for a preempted task.
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

    /// Calls a closure with the value. The closure must neither take the lock again nor panic.
    #[inline]
    pub(crate) fn with<R>(&self, platform: &dyn Platform, on: impl FnOnce(&mut T) -> R) -> R {
        let was = platform.mask();
        let result = self.with_masked(on);
        platform.unmask(was);
        result
    }

    /// Does what [`with`](Self::with) does, for a caller that has interrupts off, or no system.
    #[inline]
    pub(crate) fn with_masked<R>(&self, on: impl FnOnce(&mut T) -> R) -> R {
        while self
            .is_held
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            spin_loop();
        }
        // SAFETY: `is_held` was 0, and is 1 until below, so no other thread is here.
        let result = on(unsafe { &mut *self.value.get() });
        self.is_held.store(0, Ordering::Release);
        result
    }
}
