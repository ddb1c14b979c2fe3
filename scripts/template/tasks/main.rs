//! Two short tasks behind a long one: which policy lets them go first?

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::vec::Vec;

use sched_tests_common::{App, Task, run, work};

/// A name for the tables, and the tasks.
const APP: App = App::new(env!("CARGO_PKG_NAME"), tasks);

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    run(&APP);
}

/// Returns the tasks. `SCALE=n` of make asks for an n-th of the work.
fn tasks(scale: u64) -> Vec<Task> {
    let groups = |of_scale_one: u64| (of_scale_one / scale).max(1);
    Vec::from([
        task("long", groups(1_000)),
        task("short1", groups(100)),
        task("short2", groups(100)),
    ])
}

/// Works through `groups` of 100,000 instructions, and yields after each.
fn task(name: &str, groups: u64) -> Task {
    const ROUNDS: u64 = 50_000;
    Task::new(name, move |ctx| {
        let mut x = 1;
        for _ in 0..groups {
            x = work::spin(x, ROUNDS);
            ctx.yield_now();
        }
        // A task returns true if its result is right. `jump` computes the result without the work.
        x == work::jump(1, groups * ROUNDS)
    })
    .yielding(groups)
}

#[test]
fn every_task_comes_out_right() {
    assert!(sched_tests_common::runner::run_phase(&APP, "run").pass);
}
