//! Threads of the host are none of `axtask`: there is nothing to measure.

use sched_tests_common::platform;

/// Says how to run it on a guest, and fails.
pub fn main() {
    println!("coop-cost measures a guest: make run A=coop-cost FEATURES=stock_fifo");
    platform::finish(false);
}
