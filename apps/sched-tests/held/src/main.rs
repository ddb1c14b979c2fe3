//! The tasks of [`realtime`] under a main that holds a handle of each until all are done:
//! what does that cost, and whom?
//!
//! A program that keeps the handles of its threads to join them in order does just this.
//! The kernel's `gc` task cannot reclaim a task while anybody holds a handle of it; it
//! looks again and yields, for as long as it takes. How much of the CPU it gets for that,
//! and who goes without, is up to the policy: the difference between the rows of this app
//! and those of `realtime`.

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
