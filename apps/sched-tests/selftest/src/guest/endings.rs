//! Runs that must count as failed, to test the tools that judge runs.

use axtask::WaitQueue;

use super::verdict;

/// Ends in a panic.
pub fn panic() {
    verdict(true);
    panic!("selftest: a panic was asked for");
}

/// Waits for an event that never comes.
pub fn hang() {
    verdict(true);
    WaitQueue::new().wait_until(|| false);
}

/// Ends in good order with a bad result.
pub fn fail() {
    verdict(false);
}
