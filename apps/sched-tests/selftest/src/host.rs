//! On the host there is nothing to check.

use sched_tests_common::platform;

/// Says how to run it on a guest, and fails.
pub fn main() {
    println!("selftest checks a guest: make run A=selftest T=tasks FEATURES=sched_pbg");
    platform::finish(false);
}
