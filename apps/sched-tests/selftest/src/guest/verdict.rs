//! The result lines of a case.

use alloc::{format, vec::Vec};

use sched_tests_common::{
    results::{Phase, TaskResult},
    runner::{print_lines, setting},
};

/// The case that this image was built for.
pub const CHOICE: &str = match option_env!("SELFTEST") {
    Some(case) => case,
    None => "",
};

/// Prints the result line of a case that has no tasks to show.
pub fn verdict(pass: bool) {
    verdict_on([].into(), 0, "run", pass);
}

/// Prints the result lines of a case.
pub fn verdict_on(tasks: Vec<TaskResult>, context_switches: u64, phase: &'static str, pass: bool) {
    let app = if CHOICE.is_empty() {
        "selftest".into()
    } else {
        format!("selftest-{CHOICE}")
    };
    let phase = Phase {
        name: phase,
        tasks,
        context_switches,
        pass,
        ..Phase::default()
    };
    print_lines(&setting(&app), &[phase]);
}
