//! Four tasks with the same work: are they done at the same time?
//!
//! | task | yields | loop before each yield |
//! |---|---|---|
//! | task1 … task4 | 100 | 5,000,000 |
//!
//! The parameters are those of the PBG report. `SCALE=n` makes the loop n times
//! shorter, and keeps the yields.

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::{format, vec::Vec};

use sched_tests_common::{App, Task, results::Question, run, work};

const TASKS: u64 = 4;
const GROUPS: u64 = 100;
const ROUNDS: u64 = 5_000_000;

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    run(&App {
        name: "equal",
        question: Question::Ends,
        tasks,
        holds_handles: false,
        spawned_beside: 0,
    });
}

fn tasks(scale: u64) -> Vec<Task> {
    let rounds = (ROUNDS / scale).max(1);
    (1..=TASKS).map(|i| task(i, rounds)).collect()
}

fn task(i: u64, rounds: u64) -> Task {
    Task::new(format!("task{i}"), move |ctx| {
        let mut x = i;
        for _ in 0..GROUPS {
            x = work::spin(x, rounds);
            ctx.yield_now();
        }
        x == work::jump(i, GROUPS * rounds)
    })
    .yielding(GROUPS)
}
