//! Threads of the host do not run under our schedulers.

use sched_tests_common::platform;

/// Prints how to run the program on a guest, and fails.
pub fn main() {
    println!("faults needs a guest: make run A=apps/delegated/faults FEATURES=sched_delegated");
    platform::finish(false);
}
