//! The host's threads do not run under this kit's policies, so there is nothing to measure.

use sched_tests_common::platform;

/// Prints how to run the program on a guest, and fails.
pub fn main() {
    println!("cost measures a guest: make A=apps/sched-tests/cost FEATURES=sched_pbg run");
    platform::finish(false);
}
