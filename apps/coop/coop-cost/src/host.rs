//! On the host there is nothing to measure: its threads are not `axtask`'s.

use sched_tests_common::platform;

/// Prints how to run it on a guest, and fails.
pub fn main() {
    println!("coop-cost measures a guest: make run A=coop-cost FEATURES=stock_fifo");
    platform::finish(false);
}
