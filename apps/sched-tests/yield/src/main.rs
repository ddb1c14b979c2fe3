//! Four tasks that do hardly anything but yield: what does a yield cost?
//!
//! | task | yields | loop before each yield |
//! |---|---|---|
//! | task1 … task4 | 100,000 | 100 |
//!
//! The answer, `ns_per_yield`, is the makespan without the loops, over all yields. Under
//! instruction-counted time a nanosecond is an instruction, and the price of a loop is known from
//! [`work`]. In real time there is no answer.
//!
//! The parameters are those of the PBG report. `SCALE=n` makes the yields n times
//! fewer, and keeps the loop. The report's experiment on scheduling cost has four
//! times as many yields: `make run A=yield T=400000`.

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::{format, vec::Vec};

use sched_tests_common::{App, Task, results::Question, run, work};

const TASKS: u64 = 4;
const YIELDS: u64 = match option_env!("SCHED_YIELDS") {
    Some(text) => parse_yields(text),
    None => 100_000,
};
const ROUNDS: u64 = 100;

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    run(&App {
        name: "yield",
        question: Question::YieldCost { rounds: ROUNDS },
        tasks,
        holds_handles: false,
        spawned_beside: 0,
    });
}

const fn parse_yields(text: &str) -> u64 {
    match u64::from_str_radix(text, 10) {
        Ok(yields) if yields > 0 => yields,
        _ => panic!("SCHED_YIELDS must be a whole number from 1"),
    }
}

fn tasks(scale: u64) -> Vec<Task> {
    let yields = (YIELDS / scale).max(1);
    (1..=TASKS).map(|i| task(i, yields)).collect()
}

fn task(i: u64, yields: u64) -> Task {
    Task::new(format!("task{i}"), move |ctx| {
        let mut x = i;
        for _ in 0..yields {
            x = work::spin(x, ROUNDS);
            ctx.yield_now();
        }
        x == work::jump(i, yields * ROUNDS)
    })
    .yielding(yields)
}
