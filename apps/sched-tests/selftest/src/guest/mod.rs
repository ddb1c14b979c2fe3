//! The cases, and the choice of one.

mod calls;
mod changed;
mod clock;
mod endings;
mod handle;
mod meter;
mod polls;
mod rewrite;
mod share;
mod tasks;
mod yielders;

use alloc::{format, vec::Vec};

use sched_tests_common::{
    platform::println,
    results::{Phase, TaskResult},
    runner::{print_heading, print_lines, setting},
};

const CASES: [(&str, fn()); 20] = [
    ("clock", clock::run),
    ("meter", meter::run),
    ("tasks", tasks::run),
    ("calls", calls::run),
    ("share", share::run),
    ("handle", handle::run),
    ("yielders", yielders::run),
    ("rewrite", rewrite::run),
    ("changed-loops", changed::loops),
    ("changed-more", changed::more),
    ("changed-less", changed::less),
    ("changed-order", changed::order),
    ("changed-order-labelled", changed::order_labelled),
    ("poll-sleep", polls::small),
    ("poll-sleep-gate", polls::gate),
    ("poll-sleep-long", polls::long),
    ("poll-yield", polls::yields),
    ("panic", endings::panic),
    ("hang", endings::hang),
    ("fail", endings::fail),
];

/// The case that this image was built for.
const CHOICE: &str = match option_env!("SELFTEST") {
    Some(case) => case,
    None => "",
};

/// Runs the case, or says which there are.
pub fn main() {
    match CASES.iter().find(|(case, _)| *case == CHOICE) {
        Some((_, run)) => {
            print_heading(&setting(&format!("selftest-{CHOICE}")));
            run();
        }
        None => {
            let known: Vec<_> = CASES.iter().map(|(case, _)| *case).collect();
            println!(
                "SELFTEST={CHOICE}: no such case, choose one of {}\n",
                known.join(" ")
            );
            verdict(false);
        }
    }
}

/// Prints the result line of a case that has no tasks to show.
fn verdict(pass: bool) {
    verdict_on([].into(), 0, "run", pass);
}

/// Prints the result lines of a case.
fn verdict_on(tasks: Vec<TaskResult>, context_switches: u64, phase: &'static str, pass: bool) {
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
