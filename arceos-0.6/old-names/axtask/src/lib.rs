//! [`ax_task`] under its old name, with the two calls that have changed.

#![no_std]
#![cfg(target_os = "none")]

mod wait_queue;

use core::time::Duration;

pub use ax_task::*;
pub use wait_queue::WaitQueue;

/// Blocks the calling task until `deadline`, a wall time. [`ax_task::sleep_until`] takes a monotonic
/// time.
pub fn sleep_until(deadline: Duration) {
    let epoch = Duration::from_nanos(ax_hal::time::epochoffset_nanos());
    ax_task::sleep_until(deadline.saturating_sub(epoch));
}
