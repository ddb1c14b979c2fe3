//! A domain of services and five programs, all of coroutines with priorities: does the most urgent coroutine's
//! program get the CPU?
//!
//! The programs are described in the library part, [`services`].

#![cfg_attr(target_os = "none", no_std, no_main)]

use sched_tests_common::{App, run};

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    run(&App::new("services", services::tasks));
}
