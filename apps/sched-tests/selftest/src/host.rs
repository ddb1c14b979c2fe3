//! On the host there is nothing to check.

use sched_tests_common::platform;

/// Says how to run it on a guest, and fails.
pub fn main() {
    println!(
        "selftest checks a guest: SELFTEST=tasks make A=apps/sched-tests/selftest FEATURES=sched_pbg run"
    );
    platform::finish(false);
}
