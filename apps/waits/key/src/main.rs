//! Twelve short tasks that wait for a longer one: should it go first?
//!
//! | task | work, ms | waits for |
//! |---|--:|---|
//! | `key` | 60 | |
//! | `behind1` to `behind12` | 5 each | the end of `key` |
//! | `other1` to `other12` | 15 to 37, in steps of 2 | |
//!
//! A millisecond is a million instructions. `key` is longer than each other task, so shortest first
//! takes it last, with the twelve behind it. But `key` and the twelve have 120 ms for 13 tasks,
//! which is less for each than the shortest of the others.
//!
//! `SCALE=n` divides the work. No task has less than a tenth of a millisecond.

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

#[path = "../../forks/src/event.rs"]
mod event;

use alloc::{format, vec::Vec};

use event::{Event, between};
use sched_tests_common::{App, Task, run, work};

const APP: App = App::new("key", tasks);

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    run(&APP);
}

/// Rounds of the loop in a tenth of a millisecond under icount.
const ROUNDS_TENTH: u64 = 100_000 / work::INSTRUCTIONS_PER_ROUND;
const TASKS: u64 = 12;

fn tasks(scale: u64) -> Vec<Task> {
    let end = Event::of(1);
    let rounds = |ms: u64| (10 * ms / scale).max(1) * ROUNDS_TENTH;
    let mut tasks = Vec::new();
    tasks.push(between(None, "key".into(), rounds(60), Some(&end)));
    let behind = |number| between(Some(&end), format!("behind{number}"), rounds(5), None);
    tasks.extend((1..=TASKS).map(behind));
    let other = |number| {
        between(
            None,
            format!("other{number}"),
            rounds(13 + 2 * number),
            None,
        )
    };
    tasks.extend((1..=TASKS).map(other));
    tasks
}

#[test]
fn every_task_comes_out_right() {
    let phase = sched_tests_common::runner::run_phase(&APP, "run");
    assert!(phase.pass, "{phase:?}");
}
