//! Time, and waiting for it.

use core::time::Duration;

/// A millisecond.
pub const MS: u64 = 1_000_000;

/// Nanoseconds since boot.
pub fn now_ns() -> u64 {
    axhal::time::monotonic_time_nanos()
}

/// Sleeps until then. In a loop, as `axtask` ends the sleep of a task that has changed its CPU early.
pub fn sleep_until_ns(until_ns: u64) {
    loop {
        let left = until_ns.saturating_sub(now_ns());
        if left == 0 {
            return;
        }
        axtask::sleep(Duration::from_nanos(left));
    }
}
