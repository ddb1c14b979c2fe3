//! A workload that keeps a handle of a task that has ended, as no test program may. Meanwhile `gc`
//! looks for that task again and again, and the other tasks wait for it. The instrument must say
//! so, and refuse the run.
//!
//! A short task leaves a handle of itself behind, while a long one works on. The account still
//! closes, because it includes the time of `gc`.

use alloc::vec::Vec;

use axstd::sync::Mutex;
use axtask::AxTaskRef;
use sched_tests_common::{
    App, Task,
    results::{Phase, Question},
    runner::{print_lines, print_table, run_phase, setting},
    work,
};

/// The groups of the long task, with a yield after each.
const GROUPS: u64 = 20_000;
/// The rounds of a group: 10 us under icount, so that the work of `gc` between two groups is well
/// above a fiftieth.
const ROUNDS: u64 = 5_000;

static KEPT: Mutex<Vec<AxTaskRef>> = Mutex::new(Vec::new());

/// Runs the case. It reports a failure if all is right.
pub fn run() {
    let name = "selftest-handle";
    let phase = run_phase(
        &App {
            name,
            question: Question::Ends,
            tasks,
            holds_handles: false,
            spawned_beside: 0,
        },
        "run",
    );
    print_table(&setting(name), core::slice::from_ref(&phase));
    let noted = phase
        .account
        .is_some_and(|a| a.is_balanced() && a.is_noted());
    // If the phase passed, or its account noted nothing, the kept handle went unnoticed. The line
    // then says `pass`, where a failure is expected.
    let pass = phase.pass || !noted;
    print_lines(&setting(name), &[Phase { pass, ..phase }]);
}

fn tasks(_: u64) -> Vec<Task> {
    let short = Task::new("short", |_| {
        KEPT.lock().push(axtask::current().clone());
        true
    });
    let long = Task::new("long", |ctx| {
        let mut x = 1;
        for _ in 0..GROUPS {
            x = work::spin(x, ROUNDS);
            ctx.yield_now();
        }
        x == work::jump(1, GROUPS * ROUNDS)
    });
    [short, long].into()
}
