//! Promises of EEVDF.

use axsched_ext::conformance::{Beside, Load, Promises};
use axsched_ext::eevdf::{SLICE_TICKS, WAIT_TICKS};
use axsched_ext::model::MaxWait;

use crate::common::late_ticks;

/// A request each; the late one is without lag, and so before the task that has just run.
pub const TURNS: &str = "a1 b1 a1 b2 a2 b2 a2 b2 a2 b2 a2 b2 a2 b2 a2 b2 a2 b2 a2 b2 a2 b2 a2 b2 s2 \
                         a2 b2 s0 a3 b2 a2 b2 a2 b1 a0";

pub fn promises() -> Promises {
    Promises {
        max_wait: waits,
        done_beside: beside,
        ..Promises::default()
    }
}

/// Among tasks of equal weight, on one queue and on several.
fn waits(load: &Load<'_>) -> MaxWait {
    let bound = || late_ticks(load, WAIT_TICKS * load.tasks);
    let promised = load.config.preempt && !load.has_priority_changes;
    MaxWait {
        time: promised.then(bound),
        ..MaxWait::default()
    }
}

/// A round of the others after each request, the first tick of which may be short.
fn beside(beside: &Beside) -> Option<u64> {
    let requests = beside.job_ticks.div_ceil(SLICE_TICKS - 1);
    Some(beside.job_ticks + (requests + 1) * beside.round_ticks())
}
