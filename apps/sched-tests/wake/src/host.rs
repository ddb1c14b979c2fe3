//! Threads of the host do not run under our policies: there is nothing to measure.

use sched_tests_common::platform;

/// Prints how to run the program on a guest, and fails.
pub fn main() {
    println!("wake measures a guest: make run A=wake SMP=2 FEATURES=sched_rr");
    platform::finish(false);
}
