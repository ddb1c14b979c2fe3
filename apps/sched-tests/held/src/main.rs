//! The tasks of [`realtime`] under a main that holds a handle of each until all are done: what does
//! that cost?
//!
//! A program that keeps the handles of its threads to join them in order does just this. The
//! kernel's `gc` task cannot reclaim a task while a handle of it is held. It looks again and
//! yields, until the handle is gone. The policy decides how much of the CPU `gc` gets for that, and
//! which tasks lose it. The difference between the rows of this app and those of `realtime` shows
//! both.

#![cfg_attr(target_os = "none", no_std, no_main)]

use sched_tests_common::{App, results::Question, run};

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    run(&App {
        name: "held",
        question: Question::Ends,
        tasks: realtime::tasks,
        holds_handles: true,
        spawned_beside: 0,
    });
}
