//! The summary that a boot ends with.

use alloc::{format, string::String};
use core::{fmt::Write, sync::atomic::Ordering::*};

use axsched_ext::pbg::CONTROL;

use super::{
    clock::MS,
    lock::LOCKS,
    orders::Orders,
    record::{Doing, LONGEST, MIGRATIONS},
    rounds::Done,
    task::{ENDED, MOST, NOT_WOKEN, PRIORITIES, SPAWNED, STEPS},
    watch::{LONGEST_UNWATCHED_NS, LOST},
};

/// The policy's name, as in result lines.
pub const SCHED: &str = if cfg!(feature = "sched_pbg_coop") {
    "pbg-coop"
} else {
    axsched::NAME
};

const ARCH: &str = if cfg!(target_arch = "x86_64") {
    "x86_64"
} else if cfg!(target_arch = "riscv64") {
    "riscv64"
} else {
    "aarch64"
};

/// Returns the summary: one JSON object after its tag.
pub fn line(orders: &Orders, done: &Done) -> String {
    let steps: u64 = STEPS.iter().map(|of_kind| of_kind.load(Relaxed)).sum();
    let mut line = format!(
        r#"SCHED-SOAK {{"sched":"{SCHED}","arch":"{ARCH}","smp":{},"seed":{},"seconds":{},"rounds":{},"spawned":{},"ended":{},"most_alive":{},"steps":{steps}"#,
        axhal::cpu_num(),
        orders.seed,
        orders.seconds,
        done.rounds,
        SPAWNED.load(Relaxed),
        ENDED.load(Relaxed),
        MOST.load(Relaxed),
    );
    for ((_, name), of_kind) in Doing::ALL.iter().zip(&STEPS).skip(1) {
        let _ = write!(line, r#","{name}":{}"#, of_kind.load(Relaxed));
    }
    let locked: u64 = LOCKS.iter().map(|lock| lock.counts().0).sum();
    let longest = *LONGEST.lock();
    let _ = write!(
        line,
        r#","priorities_taken":{},"locked":{locked},"not_woken":{},"lost_wakes":{},"migrations":{},"longest_wait_ms":{},"longest_wait_of":{},"longest_wait_in":"{}","longest_without_tick_ms":{}"#,
        PRIORITIES.load(Relaxed),
        NOT_WOKEN.load(Relaxed),
        LOST.load(Relaxed),
        MIGRATIONS.load(Relaxed),
        longest.ns / MS,
        longest.id,
        Doing::name(longest.doing),
        LONGEST_UNWATCHED_NS.load(Relaxed) / MS,
    );
    if let (Some(planned), Ok(status)) = (done.planned, CONTROL.status()) {
        let measured = done.measured;
        let _ = write!(
            line,
            r#","measured":{measured},"planned":{planned},"pbg":{status}"#
        );
    }
    line + "}"
}
