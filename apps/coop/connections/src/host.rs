//! Threads of the host do not run under our policies, and its sockets are others: there is nothing to
//! measure.

use sched_tests_common::platform;

/// Says how to run it on a guest, and fails.
pub fn main() {
    println!("connections measures a guest: make cost A=connections");
    platform::finish(false);
}
