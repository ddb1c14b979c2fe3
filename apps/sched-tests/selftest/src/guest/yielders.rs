//! Two tasks that do nothing but yield must not keep a job from getting done.
//!
//! | task | what it does |
//! |---|---|
//! | job | 20 ticks of work |
//! | yielder | yields until the job is done |
//! | ended | nothing, and its handle is held until the job is done |
//!
//! `gc` cannot reclaim the ended task, and yields as well. Main blocks. The job must be done within
//! [`BOUND_NS`] under every policy.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

use axtask::WaitQueue;
use sched_tests_common::{
    platform::{Gate, now_ns, println, yield_now},
    work,
};

use super::verdict;

/// The work of the job: 200 ms under icount.
const ROUNDS: u64 = 100_000_000;
/// The longest time that the job may take: ten times as long as alone.
const BOUND_NS: u64 = 2_000_000_000;

static DONE: WaitQueue = WaitQueue::new();
static IS_DONE: AtomicBool = AtomicBool::new(false);
static FINISH_NS: AtomicU64 = AtomicU64::new(0);
static YIELDS: AtomicU64 = AtomicU64::new(0);

/// Runs the case.
pub fn run() {
    let ended = axtask::spawn(|| {});
    ended.join();

    let start_ns = now_ns();
    Gate::new().submit(|| {
        axtask::spawn(job);
        axtask::spawn(yielder);
    });
    DONE.wait_until(|| IS_DONE.load(Acquire));
    drop(ended);

    let took_ns = FINISH_NS.load(Relaxed) - start_ns;
    let yields = YIELDS.load(Relaxed);
    println!("the job took {took_ns} ns beside {yields} yields of one task, and gc");
    println!("at most {BOUND_NS} ns\n");
    verdict(took_ns <= BOUND_NS);
}

fn job() {
    core::hint::black_box(work::spin(1, ROUNDS));
    FINISH_NS.store(now_ns(), Relaxed);
    IS_DONE.store(true, Release);
    DONE.notify_one(false);
}

fn yielder() {
    while !IS_DONE.load(Acquire) {
        YIELDS.fetch_add(1, Relaxed);
        yield_now();
    }
}
