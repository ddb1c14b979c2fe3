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

use alloc::{format, string::String, sync::Arc, vec::Vec};
use core::sync::atomic::{AtomicUsize, Ordering::*};

use sched_tests_common::{App, Task, platform::WaitQueue, run, work};

const APP: App = App::new("forks", tasks);

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    run(&APP);
}

/// Rounds of the loop in a millisecond under icount.
const ROUNDS_MS: u64 = 1_000_000 / work::INSTRUCTIONS_PER_ROUND;
const PARTS_MS: [u64; 6] = [300, 150, 100, 100, 50, 50];
const SHORTS: usize = 18;

/// Something that happens once, after a number of tasks have done their part.
struct Event {
    missing: AtomicUsize,
    waiting: WaitQueue,
}

impl Event {
    fn of(tasks: usize) -> Arc<Self> {
        Arc::new(Self {
            missing: AtomicUsize::new(tasks),
            waiting: WaitQueue::new(),
        })
    }

    /// Does the part of one task.
    fn count(&self) {
        if self.missing.fetch_sub(1, AcqRel) == 1 {
            self.waiting.wake_all();
        }
    }

    fn wait(&self) {
        self.waiting.wait_until(|| self.missing.load(Acquire) == 0);
    }
}

fn tasks(scale: u64) -> Vec<Task> {
    let (started, joined) = (Event::of(1), Event::of(PARTS_MS.len()));
    let task = |name: String, ms: u64, before: Option<&Arc<Event>>, after: Option<&Arc<Event>>| {
        let rounds = (ms / scale).max(1) * ROUNDS_MS;
        let (before, after) = (before.cloned(), after.cloned());
        let body = move |_: &_| {
            before.iter().for_each(|event| event.wait());
            let right = work::spin(1, rounds) == work::jump(1, rounds);
            after.iter().for_each(|event| event.count());
            right
        };
        Task::new(name, body).yielding(0)
    };
    let mut tasks = Vec::new();
    tasks.push(task("start".into(), 100, None, Some(&started)));
    for (number, ms) in (1..).zip(PARTS_MS) {
        let name = format!("part{number}");
        tasks.push(task(name, ms, Some(&started), Some(&joined)));
    }
    tasks.push(task("join".into(), 100, Some(&joined), None));
    tasks.extend((1..=SHORTS).map(|number| task(format!("short{number}"), 20, None, None)));
    tasks
}

#[test]
fn every_task_comes_out_right() {
    let phase = sched_tests_common::runner::run_phase(&APP, "run");
    assert!(phase.pass, "{phase:?}");
}
