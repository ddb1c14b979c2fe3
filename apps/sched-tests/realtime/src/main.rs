//! Four short tasks that yield often and one long task that hardly ever does: how long does each
//! wait?
//!
//! The tasks are described in the library part, [`realtime`]. In `held` a program that holds their
//! handles runs the same tasks.

#![cfg_attr(target_os = "none", no_std, no_main)]

use sched_tests_common::{App, results::Question, run};

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    run(&App {
        name: "realtime",
        question: Question::Ends,
        tasks: realtime::tasks,
        holds_handles: false,
        spawned_beside: 0,
    });
}
