//! [`ax_hal`] under its old name, with the one call that has moved.

#![no_std]
#![cfg(target_os = "none")]

extern crate alloc;

pub use ax_hal::*;

/// The calling CPU.
pub mod percpu {
    use alloc::sync::Arc;

    pub use ax_hal::percpu::*;

    /// Returns the address of the calling CPU's task in its `Arc`.
    pub fn current_task_ptr<T>() -> *const T {
        Arc::as_ptr(&ax_task::current()).cast()
    }
}
