//! While a planned task keeps the CPU, one that the plan does not know must get
//! its share: under PBG at least one tick in [`PLAN_TICKS`] + 1, under round robin
//! half. FIFO promises nothing.
//!
//! Neither task yields. The unplanned one runs until the planned one has ended;
//! its share is its CPU time over the time that the planned one took.

use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicBool, Ordering::*},
    time::Duration,
};

use axsched_ext::{
    pbg::{CONTROL, PLAN_TICKS},
    syscall,
};
use sched_tests_common::{
    platform::{self, Gate, Handle, println, spawn},
    work,
};

use super::verdict;

/// 4 s under icount, 400 ticks.
const ROUNDS: u64 = 2_000_000_000;
/// Of the promise: the end may cut off the last round of turns.
const TOLERANCE: f64 = 0.95;
/// Time for gc to reclaim the measured task, so that it has no part in the share.
const SETTLE: Duration = Duration::from_millis(50);

static PLANNED_IS_DONE: AtomicBool = AtomicBool::new(false);

/// Runs the case.
pub fn run() {
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
        let outsider = spawn("outsider", &gate, || {
            while !PLANNED_IS_DONE.load(Relaxed) {
                core::hint::black_box(work::spin(1, 1_000));
            }
        });
        (planned, outsider)
    });
    let (planned, outsider) = (planned.join(), outsider.join());

    let took_ns = planned.finish_ns - planned.first_run_ns;
    let share = outsider.run_ns as f64 / took_ns as f64;
    println!(
        "the planned task took {took_ns} ns, of which the outsider had {} ns",
        outsider.run_ns
    );
    println!("share {share:.4}, promised {promise:.4}, tolerance {TOLERANCE}\n");
    let followed = platform::SCHED != "pbg"
        || platform::cpus() > 1
        || CONTROL
            .status()
            .is_ok_and(|status| status.matched == 1 && status.turns > 0 && share < 2.0 * promise);
    if !followed {
        println!("the plan was not followed: {:?}\n", CONTROL.status());
    }
    verdict(share >= promise * TOLERANCE && followed);
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
