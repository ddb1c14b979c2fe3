//! While a planned task keeps the CPU, the tasks that the plan does not know must get their share,
//! however many of them yield. Under PBG that is at least one tick in [`PLAN_TICKS`] + 1, and under
//! round robin half. FIFO promises nothing.
//!
//! | task | what it does |
//! |---|---|
//! | planned | 2.6 s of work, without a yield |
//! | outsider | computes until the planned one has ended, without a yield |
//! | yielders | each yields until the planned one has ended; the case says how many there are |
//!
//! The share is the part of the planned task's time in which it did not have the CPU. Under PBG the
//! outsider must also get the CPU again within [`PLAN_TICKS`] + 2 ticks.

use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::*},
    time::Duration,
};

use axsched_ext::{
    pbg::{CONTROL, PLAN_TICKS},
    syscall,
};
use sched_tests_common::{
    platform::{self, Gate, Handle, now_ns, println, spawn, yield_now},
    work,
};

use super::verdict;

/// The work of the planned task: 2.6 s under icount, 260 ticks.
const ROUNDS: u64 = 1_300_000_000;
/// The length of a tick, as ArceOS has it by default.
const TICK_NS: u64 = 10_000_000;
/// The part of the promise that must be kept. The end of the run may cut off the last round of
/// turns.
const TOLERANCE: f64 = 0.95;
/// The time that gc gets to reclaim the measured task, so that it has no part in the share.
const SETTLE: Duration = Duration::from_millis(50);

static PLANNED_IS_DONE: AtomicBool = AtomicBool::new(false);
/// The longest time that the outsider had to wait for the CPU.
static LONGEST_WAIT_NS: AtomicU64 = AtomicU64::new(0);

/// Runs the case with this many yielders.
pub fn beside<const YIELDERS: usize>() {
    let promise = match platform::SCHED {
        _ if platform::cpus() > 1 => 0.0,
        "pbg" => {
            if plan() != Ok(1) {
                println!("there is no plan to follow\n");
                return verdict(false);
            }
            1.0 / f64::from(PLAN_TICKS + 1)
        }
        "rr" => 0.5,
        _ => 0.0,
    };
    PLANNED_IS_DONE.store(false, Relaxed);
    let gate = Gate::new();
    let (planned, outsider) = gate.submit(|| {
        let planned = spawn_planned(&gate);
        let outsider = spawn("outsider", &gate, outsider);
        for _ in 0..YIELDERS {
            axtask::spawn(yielder);
        }
        (planned, outsider)
    });
    let (planned, outsider) = (planned.join(), outsider.join());

    let took_ns = planned.finish_ns - planned.first_run_ns;
    let share = 1.0 - planned.run_ns as f64 / took_ns as f64;
    let waited_ns = LONGEST_WAIT_NS.load(Relaxed);
    println!(
        "beside {YIELDERS} that yield, the planned task took {took_ns} ns for {} ns of work",
        planned.run_ns
    );
    println!(
        "the outsider had {} ns, and waited for {waited_ns} ns at most",
        outsider.run_ns
    );
    println!("share {share:.4}, promised {promise:.4}, tolerance {TOLERANCE}\n");
    let followed = platform::SCHED != "pbg"
        || platform::cpus() > 1
        || CONTROL.status().is_ok_and(|status| {
            status.matched == 1
                && status.turns > 0
                && share < 2.0 * promise
                && waited_ns <= u64::from(PLAN_TICKS + 2) * TICK_NS
        });
    if !followed {
        println!("the plan was not followed: {:?}\n", CONTROL.status());
    }
    verdict(share >= promise * TOLERANCE && followed);
}

fn outsider() {
    let mut last_ns = None;
    while !PLANNED_IS_DONE.load(Relaxed) {
        core::hint::black_box(work::spin(1, 1_000));
        let now_ns = now_ns();
        // There is no wait before its first turn.
        let wait_ns = last_ns.map_or(0, |last_ns| now_ns - last_ns);
        LONGEST_WAIT_NS.fetch_max(wait_ns, Relaxed);
        last_ns = Some(now_ns);
    }
}

fn yielder() {
    while !PLANNED_IS_DONE.load(Relaxed) {
        yield_now();
    }
}

/// Measures the planned task alone and starts the replay.
fn plan() -> Result<usize, syscall::Error> {
    syscall::measure_start()?;
    let gate = Gate::opened();
    spawn_planned(&gate).join();
    syscall::measure_end()?;
    axtask::sleep(SETTLE);
    syscall::start_pbg()
}

fn spawn_planned(gate: &Arc<Gate>) -> Handle {
    spawn("planned", gate, || {
        core::hint::black_box(work::spin(1, ROUNDS));
        PLANNED_IS_DONE.store(true, Relaxed);
    })
}
