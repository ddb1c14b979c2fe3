//! A workload of which somebody keeps a task that has ended, as no test program may: `gc`
//! looks for that task again and again meanwhile, and the others wait for it. The
//! instrument must say so, and refuse the run.
//!
//! A short task leaves a handle of itself behind; a long one works on. The account still
//! closes: what `gc` had is in it.

use alloc::vec::Vec;

use axstd::sync::Mutex;
use axtask::AxTaskRef;
use sched_tests_common::{
    App, Task,
    results::{Phase, Question, table},
    runner::{print_lines, run_phase, setting},
    work,
};

/// Groups of the long task, with a yield after each, and the rounds of one: 10 us under
/// icount, so that what `gc` does between two of them is well above a fiftieth.
const GROUPS: u64 = 20_000;
const ROUNDS: u64 = 5_000;

static KEPT: Mutex<Vec<AxTaskRef>> = Mutex::new(Vec::new());

/// Runs the case, which fails if all is right.
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
    axstd::println!("{}", table(&setting(name), core::slice::from_ref(&phase)));
    let noted = phase.account.is_some_and(|a| a.closes() && a.is_noted());
    // Passing here would be the failure: nobody would have noticed.
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
