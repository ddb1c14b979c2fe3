//! The jobs of [`batch`], all there at the start and none waiting: how near does a
//! policy come to the best order?
//!
//! Here the SRPT bound can be reached: shortest first, each in one go, does. So
//! avg/bound says what a policy loses by not knowing the lengths, and what a policy
//! that knows them loses by itself.

#![cfg_attr(target_os = "none", no_std, no_main)]

use sched_tests_common::{App, results::Question, run};

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    run(&App {
        name: "batch-at-once",
        question: Question::Ends,
        tasks: batch::tasks_at_once,
        holds_handles: false,
        spawned_beside: 0,
    });
}
