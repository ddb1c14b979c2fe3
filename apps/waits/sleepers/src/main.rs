//! Twelve short tasks that sleep and look until a long one is done: should it go first?
//!
//! | task | work, ms | |
//! |---|--:|---|
//! | `long` | 240 | sets a flag at its end |
//! | `sleeper1` to `sleeper12` | 5 each | looks at the flag every 20 ms until it is set |
//! | `other1` to `other6` | 30 to 80, in steps of 10 | |
//!
//! A millisecond is a million instructions. `long` and the twelve have 300 ms for 13 tasks, which is
//! less for each than the shortest of the others. A record shows that a sleeper sleeps, and not what
//! for. Its looks in two orders of the tasks tell it. In `key` the tasks wait for an event.
//!
//! `SCALE=n` divides the work. No task has less than a tenth of a millisecond.

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::{format, sync::Arc, vec::Vec};
use core::{
    sync::atomic::{AtomicBool, Ordering::*},
    time::Duration,
};

use sched_tests_common::{App, Task, run, work};

const APP: App = App::new("sleepers", tasks);

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    run(&APP);
}

/// Rounds of the loop in a tenth of a millisecond under icount.
const ROUNDS_TENTH: u64 = 100_000 / work::INSTRUCTIONS_PER_ROUND;
const SLEEPERS: usize = 12;
const LOOK_EVERY: Duration = Duration::from_millis(20);

fn tasks(scale: u64) -> Vec<Task> {
    let works = move |ms: u64| {
        let rounds = (10 * ms / scale).max(1) * ROUNDS_TENTH;
        work::spin(1, rounds) == work::jump(1, rounds)
    };
    let is_done = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    let sets = is_done.clone();
    tasks.push(Task::new("long", move |_| {
        let right = works(240);
        sets.store(true, Release);
        right
    }));
    for number in 1..=SLEEPERS {
        let is_done = is_done.clone();
        tasks.push(Task::new(format!("sleeper{number}"), move |ctx| {
            while !is_done.load(Acquire) {
                ctx.wait_io(LOOK_EVERY);
            }
            works(5)
        }));
    }
    for (number, ms) in (1..).zip([30, 40, 50, 60, 70, 80]) {
        tasks.push(Task::new(format!("other{number}"), move |_| works(ms)));
    }
    tasks
}

#[test]
fn every_task_comes_out_right() {
    let phase = sched_tests_common::runner::run_phase(&APP, "run");
    assert!(phase.pass, "{phase:?}");
}
