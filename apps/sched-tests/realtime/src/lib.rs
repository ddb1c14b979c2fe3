//! Four short tasks that yield often and one long task that hardly ever does: how long does each
//! wait?
//!
//! | task | yields | loop before each yield |
//! |---|---|---|
//! | long | 8 | 100,000,000 |
//! | short1 | 50,000 | 10 |
//! | short2 | 100,000 | 5 |
//! | short3 | 200,000 | 2 |
//! | short4 | 500,000 | 1 |
//!
//! The long task is submitted first, and all are submitted before any may start.
//! The parameters are those of the PBG report.
//!
//! `SCALE=n` makes every task n times shorter and keeps its character. The short tasks yield n
//! times less often, with the same loop in between. The long task keeps its 8 yields, with a loop n
//! times shorter. No count falls below 1.

#![cfg_attr(target_os = "none", no_std)]

extern crate alloc;

use alloc::vec::Vec;

use sched_tests_common::{Task, work};

/// The name of each short task, its yields, and the rounds of its loop before each yield.
const SHORT: [(&str, u64, u64); 4] = [
    ("short1", 50_000, 10),
    ("short2", 100_000, 5),
    ("short3", 200_000, 2),
    ("short4", 500_000, 1),
];
const LONG: (&str, u64, u64) = ("long", 8, 100_000_000);

/// Returns the tasks, the long one first.
pub fn tasks(scale: u64) -> Vec<Task> {
    let (name, yields, rounds) = LONG;
    let long = task(name, yields, (rounds / scale).max(1));
    let short = SHORT.map(|(name, yields, rounds)| task(name, (yields / scale).max(1), rounds));
    [long].into_iter().chain(short).collect()
}

fn task(name: &str, yields: u64, rounds: u64) -> Task {
    let seed = rounds;
    Task::new(name, move |ctx| {
        let mut x = seed;
        for _ in 0..yields {
            x = work::spin(x, rounds);
            ctx.yield_now();
        }
        x == work::jump(seed, yields * rounds)
    })
    .yielding(yields)
}
