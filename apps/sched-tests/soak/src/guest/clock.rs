//! The clock, and sleeping until a time.

use core::time::Duration;

/// The nanoseconds in a millisecond.
pub const MS: u64 = 1_000_000;

/// Returns the nanoseconds since boot.
pub fn now_ns() -> u64 {
    axhal::time::monotonic_time_nanos()
}

/// Sleeps until `until_ns`, since boot. It sleeps in a loop, because `axtask` ends the sleep of a
/// task too early if the task has changed its CPU.
pub fn sleep_until_ns(until_ns: u64) {
    loop {
        let left = until_ns.saturating_sub(now_ns());
        if left == 0 {
            return;
        }
        axtask::sleep(Duration::from_nanos(left));
    }
}
