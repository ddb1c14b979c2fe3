//! Twelve short tasks that wait for a longer one: should it go first?
//!
//! | task | work, ms | waits for |
//! |---|--:|---|
//! | `key` | 60 | |
//! | `behind1` to `behind12` | 5 each | the end of `key` |
//! | `other1` to `other12` | 15 to 37, in steps of 2 | |
//!
//! A millisecond is a million instructions. `key` is longer than each other task, so shortest first
//! takes it last, with the twelve behind it. But `key` and the twelve have 120 ms for 13 tasks, which
//! is less for each than the shortest of the others.
//!
//! `SCALE=n` divides the work. No task has less than a tenth of a millisecond.

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::{format, string::String, sync::Arc, vec::Vec};
use core::sync::atomic::{AtomicBool, Ordering::*};

use sched_tests_common::{App, Task, platform::WaitQueue, run, work};

const APP: App = App::new("key", tasks);

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    run(&APP);
}

/// Rounds of the loop in a tenth of a millisecond under icount.
const ROUNDS_TENTH: u64 = 100_000 / work::INSTRUCTIONS_PER_ROUND;
const TASKS: u64 = 12;

/// The end of `key`.
struct End {
    is_over: AtomicBool,
    waiting: WaitQueue,
}

fn tasks(scale: u64) -> Vec<Task> {
    let end = Arc::new(End {
        is_over: AtomicBool::new(false),
        waiting: WaitQueue::new(),
    });
    let works = move |ms: u64| {
        let rounds = (10 * ms / scale).max(1) * ROUNDS_TENTH;
        work::spin(1, rounds) == work::jump(1, rounds)
    };
    let task = |name: String, body: fn(&End, &dyn Fn(u64) -> bool, u64) -> bool, ms: u64| {
        let end = end.clone();
        Task::new(name, move |_| body(&end, &works, ms)).yielding(0)
    };
    let mut tasks = Vec::new();
    let key = |end: &End, works: &dyn Fn(u64) -> bool, ms| {
        let right = works(ms);
        end.is_over.store(true, Release);
        end.waiting.wake_all();
        right
    };
    tasks.push(task("key".into(), key, 60));
    let behind = |end: &End, works: &dyn Fn(u64) -> bool, ms| {
        end.waiting.wait_until(|| end.is_over.load(Acquire));
        works(ms)
    };
    tasks.extend((1..=TASKS).map(|number| task(format!("behind{number}"), behind, 5)));
    let other = |_: &End, works: &dyn Fn(u64) -> bool, ms| works(ms);
    tasks.extend((1..=TASKS).map(|n| task(format!("other{n}"), other, 13 + 2 * n)));
    tasks
}

#[test]
fn every_task_comes_out_right() {
    let phase = sched_tests_common::runner::run_phase(&APP, "run");
    assert!(phase.pass, "{phase:?}");
}
