//! Tasks that wait for a long one by polling: what does it cost?
//!
//! A poller looks at a flag and yields, until the long task has set the flag.
//!
//! | task | work, ms | |
//! |---|--:|---|
//! | `long` | 600 | never yields; sets the flag at its end |
//! | `poller1` to `poller3` | 20 | after the flag is set |
//! | `other1`, `other2` | 200, 400 | has nothing to do with the flag |
//!
//! A millisecond is a million instructions. All tasks but `long` yield after each millisecond of
//! their work. How often a poller looks depends on the policy, so its record shows how it was
//! scheduled and not what work it has. PBG therefore has little to go by. A program should not be
//! written like this one: it shows what happens if it is. In `pipeline` tasks wait for one another
//! in queues.
//!
//! `SCALE=n` divides the work. No task has less than a millisecond.

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::{format, sync::Arc, vec::Vec};
use core::sync::atomic::{AtomicBool, Ordering::*};

use sched_tests_common::{App, Task, TaskCtx, run, work};

const APP: App = App::new("polling", tasks);

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    run(&APP);
}

/// Rounds of the loop in a millisecond under icount.
const ROUNDS_MS: u64 = 1_000_000 / work::INSTRUCTIONS_PER_ROUND;
const POLLERS: usize = 3;

fn tasks(scale: u64) -> Vec<Task> {
    let scaled = move |work_ms: u64| (work_ms / scale).max(1);
    let is_done = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    let sets = is_done.clone();
    tasks.push(Task::new("long", move |_| {
        let rounds = scaled(600) * ROUNDS_MS;
        let right = work::spin(1, rounds) == work::jump(1, rounds);
        sets.store(true, Release);
        right
    }));
    for number in 1..=POLLERS {
        let is_done = is_done.clone();
        tasks.push(Task::new(format!("poller{number}"), move |ctx| {
            while !is_done.load(Acquire) {
                ctx.yield_now();
            }
            works(ctx, scaled(20))
        }));
    }
    for (number, work_ms) in (1..).zip([200, 400].map(scaled)) {
        let other = Task::new(format!("other{number}"), move |ctx| works(ctx, work_ms));
        tasks.push(other.yielding(work_ms));
    }
    tasks
}

/// Works for `work_ms` milliseconds and yields after each. Returns true if the result is right.
fn works(ctx: &TaskCtx, work_ms: u64) -> bool {
    let mut x = 1;
    for _ in 0..work_ms {
        x = work::spin(x, ROUNDS_MS);
        ctx.yield_now();
    }
    x == work::jump(1, work_ms * ROUNDS_MS)
}

#[test]
fn every_task_comes_out_right() {
    let phase = sched_tests_common::runner::run_phase(&APP, "run");
    assert!(phase.pass, "{phase:?}");
}
