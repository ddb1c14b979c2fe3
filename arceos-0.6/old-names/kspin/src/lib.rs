//! The spin lock of [`ax_task::sync`] under its old name.

#![no_std]
#![cfg(target_os = "none")]

use ax_task::sync::{SpinLock, SpinLockIrqSaveGuard};

/// A spin lock that is held with interrupts and preemption off.
pub struct SpinNoIrq<T>(SpinLock<T>);

impl<T> SpinNoIrq<T> {
    /// Makes an open lock.
    pub const fn new(value: T) -> Self {
        Self(SpinLock::new(value))
    }

    /// Locks the value.
    pub fn lock(&self) -> SpinLockIrqSaveGuard<'_, T> {
        self.0.lock_irqsave()
    }
}
