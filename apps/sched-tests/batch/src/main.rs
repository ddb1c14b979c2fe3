//! Jobs of very different length, some of which arrive late or wait for a device:
//! how long does a job take to be done?
//!
//! The jobs are described in the library part, [`batch`]. In `batch-at-once` the
//! same jobs are all there at the start, and none waits.

#![cfg_attr(target_os = "none", no_std, no_main)]

use sched_tests_common::{App, results::Question, run};

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    run(&App {
        name: "batch",
        question: Question::Ends,
        tasks: batch::tasks,
        holds_handles: false,
        spawned_beside: 0,
    });
}
