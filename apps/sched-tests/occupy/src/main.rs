//! One long task among two short ones that never end by themselves: when is it done?
//!
//! | task | runs | loop of a run, with a yield after it |
//! |---|---|---|
//! | long | 80 | 10,000,000 |
//! | short1, short2 | until the long task is done; 100 are a group | 2,000,000 |
//!
//! The parameters are those of the PBG report, which does not say where its tasks yield. Here all
//! of them yield after each run, and a short task checks after each run whether the long one is
//! done. So the question has an answer under FIFO too: the long task waits 80 times for one run of
//! each other. If the short tasks yielded after whole groups only, it would wait 80 times for 200
//! runs. A policy that shares time fairly makes it wait for twice its own time. A policy that
//! prefers short runs makes it wait longer.
//!
//! `SCALE=n` makes the loops n times shorter, and keeps the runs.

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::{sync::Arc, vec::Vec};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sched_tests_common::{App, Task, results::Question, run, work};

const LONG_RUNS: u64 = 80;
const LONG_ROUNDS: u64 = 10_000_000;
const SHORT_ROUNDS: u64 = 2_000_000;
const SHORT_GROUP: u64 = 100;

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    run(&App {
        name: "occupy",
        question: Question::Ends,
        tasks,
        holds_handles: false,
        spawned_beside: 0,
    });
}

fn tasks(scale: u64) -> Vec<Task> {
    let done = Arc::new(AtomicBool::new(false));
    let short = (SHORT_ROUNDS / scale).max(1);
    [
        long_task((LONG_ROUNDS / scale).max(1), done.clone()),
        short_task("short1", short, done.clone()),
        short_task("short2", short, done),
    ]
    .into()
}

fn long_task(rounds: u64, done: Arc<AtomicBool>) -> Task {
    let seed = rounds;
    Task::new("long", move |ctx| {
        let mut x = seed;
        for _ in 0..LONG_RUNS {
            x = work::spin(x, rounds);
            ctx.yield_now();
        }
        done.store(true, Relaxed);
        x == work::jump(seed, LONG_RUNS * rounds)
    })
    .yielding(LONG_RUNS)
}

fn short_task(name: &str, rounds: u64, long_is_done: Arc<AtomicBool>) -> Task {
    let seed = rounds;
    Task::new(name, move |ctx| {
        let mut x = seed;
        while !long_is_done.load(Relaxed) {
            x = work::spin(x, rounds);
            ctx.yield_now();
            if ctx.yields() % SHORT_GROUP == 0 {
                ctx.finish_group();
            }
        }
        x == work::jump(seed, ctx.yields() * rounds)
    })
    .saturated()
}
