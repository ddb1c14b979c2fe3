//! A job that forks and joins beside short tasks: when is its last part done?
//!
//! | task | work, ms | waits for |
//! |---|--:|---|
//! | `start` | 100 | |
//! | `part1` to `part6` | 300, 150, 100, 100, 50, 50 | the end of `start` |
//! | `join` | 100 | the ends of all six parts |
//! | `short1` to `short18` | 20 each | |
//!
//! A millisecond is a million instructions. The longest path is `start`, `part1`, `join`: 500 ms.
//! All work together is 1,310 ms, so on four CPUs the longest path sets the least possible time for
//! everything. Shortest first takes the 18 short tasks first, and the path begins late.
//!
//! `SCALE=n` divides the work. No task has less than a millisecond.

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod event;

use alloc::{format, vec::Vec};

use event::{Event, between};
use sched_tests_common::{App, Task, run, work};

const APP: App = App::new("forks", tasks);

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    run(&APP);
}

/// Rounds of the loop in a millisecond under icount.
const ROUNDS_MS: u64 = 1_000_000 / work::INSTRUCTIONS_PER_ROUND;
const PARTS_MS: [u64; 6] = [300, 150, 100, 100, 50, 50];
const SHORTS: usize = 18;

fn tasks(scale: u64) -> Vec<Task> {
    let (started, joined) = (Event::of(1), Event::of(PARTS_MS.len()));
    let rounds = |ms: u64| (ms / scale).max(1) * ROUNDS_MS;
    let mut tasks = Vec::new();
    tasks.push(between(None, "start".into(), rounds(100), Some(&started)));
    for (number, ms) in (1..).zip(PARTS_MS) {
        let name = format!("part{number}");
        tasks.push(between(Some(&started), name, rounds(ms), Some(&joined)));
    }
    tasks.push(between(Some(&joined), "join".into(), rounds(100), None));
    let short = |number| between(None, format!("short{number}"), rounds(20), None);
    tasks.extend((1..=SHORTS).map(short));
    tasks
}

#[test]
fn every_task_comes_out_right() {
    let phase = sched_tests_common::runner::run_phase(&APP, "run");
    assert!(phase.pass, "{phase:?}");
}
