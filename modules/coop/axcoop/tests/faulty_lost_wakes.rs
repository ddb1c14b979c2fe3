//! Runs [`lost_wakes`](../lost_wakes.rs) with the seeds' order of steps: a wake checks the state, which is marked
//! blocked only after the poll. The scenarios find the lost wake.
#![allow(dead_code, reason = "not all that the crate offers is called here")]

extern crate alloc;

include!("schedules/executor.rs");

#[path = "schedules/faulty_state.rs"]
mod state;

#[test]
fn the_order_of_the_seeds_loses_a_wake() {
    let lost = std::panic::catch_unwind(|| {
        shuttle::check_random(scenarios::wake_and_pending, 1_000);
    });
    let why = lost.expect_err("1,000 schedules have not found it");
    let why = why.downcast_ref::<String>().expect("Shuttle says why");
    assert!(why.contains("deadlock"), "{why}");
}
