//! [`ax_hal`] under its old name. There is one CPU.

#![no_std]
#![cfg(target_os = "none")]

pub use ax_hal::*;

/// The calling CPU.
pub mod percpu {
    /// Returns the number of the calling CPU.
    pub const fn this_cpu_id() -> usize {
        0
    }
}
