//! Four tasks that give the CPU away after more and more work: how much of it does each get?
//!
//! | task | a group, with a yield after it |
//! |---|---|
//! | task1 | 50,000,000 rounds |
//! | task2 | 100,000,000 |
//! | task3 | 150,000,000 |
//! | task4 | 200,000,000 |
//!
//! Each task does as many groups as it can. It starts another one until 5 s have passed since the
//! start of all. CPU time after that does not count: Jain's index is about the CPU time inside the
//! 5 s, to the tick of the counter.
//!
//! Under instruction-counted time one group of each task takes 1 s in all. A policy that takes
//! turns group by group, as FIFO does, gives each task the same number of groups in 5 s. Then task4
//! has four times the time of task1.
//!
//! The parameters are those of the PBG report. `SCALE=n` divides the groups and the 5 s, so that
//! the same number of groups fits. It does not divide the timer tick, so at SCALE=100 the whole
//! window is one time slice of round robin.

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::{format, vec::Vec};

use sched_tests_common::{App, Task, config::SCALE, results::Question, run, work};

const TASKS: u64 = 4;
const ROUNDS: u64 = 50_000_000;
const WINDOW_NS: u64 = 5_000_000_000;

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    let window_ns = WINDOW_NS / SCALE;
    run(&App {
        name: "unequal",
        question: Question::Shares { window_ns },
        tasks,
        holds_handles: false,
        spawned_beside: 0,
    });
}

fn tasks(scale: u64) -> Vec<Task> {
    let rounds = (ROUNDS / scale).max(1);
    (1..=TASKS).map(|i| task(i, i * rounds)).collect()
}

fn task(i: u64, rounds: u64) -> Task {
    Task::new(format!("task{i}"), move |ctx| {
        let mut x = i;
        while ctx.in_window() {
            x = work::spin(x, rounds);
            ctx.finish_group();
            ctx.yield_now();
        }
        x == work::jump(i, ctx.groups() * rounds)
    })
    .saturated()
}
