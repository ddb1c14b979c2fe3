//! The jobs of [`batch`], which are all there at the start and never wait: how near does a policy
//! come to the best order?
//!
//! Here the SRPT bound can be reached: by running the shortest job first, each in one go. So
//! avg/bound shows what a policy loses because it does not know the lengths. For a policy that
//! knows them it shows the policy's own cost.

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
