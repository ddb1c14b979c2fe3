//! A program whose tasks wait for one another by polling: a task looks at a flag, gives the
//! CPU away, and looks again, until another has done its work.
//!
//! A record does not say which task waits for which. A poller that was measured after the task that
//! it waits for has looked once and was done. So the plan takes it for the shortest and lets it
//! look first, in vain, and a sleep lasts until the next tick. The task that it waits for may have
//! to wait for all that are shorter. A replay may therefore be slower than the measured run, which
//! PBG must notice and say. `make test T=polls` judges the figures.
//!
//! | case | tasks, in the order of their spawns | look again after |
//! |---|---|---|
//! | `poll-sleep` | four of 1 to 4 ms, a poller after each | a sleep to the next tick |
//! | `poll-sleep-gate` | one of 45 ms, 24 pollers for it, 24 of 40 ms | the same |
//! | `poll-sleep-long` | four of 100 to 400 ms, a poller after each | the same |
//! | `poll-yield` | those of `poll-sleep` | a yield |

use alloc::{format, sync::Arc, vec::Vec};
use core::{
    sync::atomic::{AtomicBool, Ordering::*},
    time::Duration,
};

use sched_tests_common::{App, Task, TaskCtx, results::Question, runner::run_headed, work};

/// The rounds of the loop in a millisecond under icount.
const ROUNDS_MS: u64 = 500_000;

/// The way in which a poller waits before it looks again.
type Wait = fn(&TaskCtx);

fn sleep(ctx: &TaskCtx) {
    ctx.wait_io(Duration::from_millis(1)); // to the next tick
}

/// Makes the tasks of a program. Each kind is the milliseconds of a worker and the number of
/// pollers that follow it.
fn program(kinds: &[(u64, usize)], wait: Wait) -> Vec<Task> {
    let mut tasks = Vec::new();
    for (i, &(run_ms, pollers)) in kinds.iter().enumerate() {
        let done = Arc::new(AtomicBool::new(false));
        for j in 0..pollers {
            let done = done.clone();
            let poller = Task::new(format!("poller{i}.{j}"), move |ctx| {
                while !done.load(Acquire) {
                    wait(ctx);
                }
                true
            });
            tasks.push(poller);
        }
        let worker = Task::new(format!("worker{i}"), move |_| {
            let right = work::spin(1, run_ms * ROUNDS_MS) == work::jump(1, run_ms * ROUNDS_MS);
            done.store(true, Release);
            right
        });
        let at = tasks.len() - pollers;
        tasks.insert(at, worker);
    }
    tasks
}

const SMALL: [(u64, usize); 4] = [(3, 1), (1, 1), (4, 1), (2, 1)];
const LONG: [(u64, usize); 4] = [(300, 1), (100, 1), (400, 1), (200, 1)];
/// All tasks are shorter than a slice of round robin, which is 50 ms.
const GATE: [(u64, usize); 25] = {
    let mut kinds = [(40, 0); 25];
    kinds[0] = (45, 24);
    kinds
};

pub fn small() {
    run("selftest-poll-sleep", |_| program(&SMALL, sleep));
}
pub fn gate() {
    run("selftest-poll-sleep-gate", |_| program(&GATE, sleep));
}
pub fn long() {
    run("selftest-poll-sleep-long", |_| program(&LONG, sleep));
}
pub fn yields() {
    run("selftest-poll-yield", |_| {
        program(&SMALL, TaskCtx::yield_now)
    });
}

fn run(name: &'static str, tasks: fn(u64) -> Vec<Task>) {
    run_headed(&App {
        name,
        question: Question::Ends,
        tasks,
        holds_handles: false,
        spawned_beside: 0,
    });
}
