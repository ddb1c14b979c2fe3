//! Promises of CFS.

use axsched_ext::cfs::{GRANULARITY_TICKS, SLEEPER_CREDIT_TICKS};
use axsched_ext::conformance::{Beside, Load, Promises};
use axsched_ext::model::MaxWait;

use crate::common::late_ticks;

/// From two ticks behind to two ahead; the late one starts two ahead.
pub const TURNS: &str = "a1 b3 a4 b4 a4 b4 a4 b4 a4 b4 a4 b3 a3 b2 s2 a3 b4 a4 b2 a0";

/// On one queue, for each other task.
const LONGEST_WAIT: u64 = 2 * GRANULARITY_TICKS + SLEEPER_CREDIT_TICKS + 1;

pub fn promises() -> Promises {
    Promises {
        max_wait: waits,
        done_beside: beside,
        ..Promises::default()
    }
}

/// Among tasks of equal weight.
fn waits(load: &Load<'_>) -> MaxWait {
    let ticks = match load.config.cpus {
        1 => (load.tasks - 1) * LONGEST_WAIT,
        _ => 48 * load.tasks, // queues whose loads differ, and movers among them
    };
    let promised = load.config.preempt && !load.has_priority_changes;
    MaxWait {
        time: promised.then(|| late_ticks(load, ticks)),
        ..MaxWait::default()
    }
}

/// An equal share, and the longest wait.
fn beside(beside: &Beside) -> Option<u64> {
    Some(beside.job_ticks * (beside.yielders + 1) + LONGEST_WAIT * beside.yielders)
}
