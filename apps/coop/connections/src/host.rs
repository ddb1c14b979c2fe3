//! On the host there is nothing to measure: its threads do not run under our policies, and its sockets are not ours.

use sched_tests_common::platform;

/// Prints how to run it on a guest, and fails.
pub fn main() {
    println!("connections measures a guest: make cost A=connections");
    platform::finish(false);
}
