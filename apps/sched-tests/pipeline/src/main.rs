//! Four pipelines whose stages wait for one another at bounded buffers: when is each done?
//!
//! The pipelines are described in the library part, [`pipeline`].

#![cfg_attr(target_os = "none", no_std, no_main)]

use sched_tests_common::{App, run};

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    run(&App::new("pipeline", pipeline::tasks));
}
