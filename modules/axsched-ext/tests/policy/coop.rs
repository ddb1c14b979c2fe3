//! Promises of COOP for tasks that serve no domain: those of RR if no task sets a priority. Workers with ready
//! coroutines are tested in `src/coop/tests`.

use axsched_ext::conformance::{Load, Promises};
use axsched_ext::coop::{SHARE_TICKS, SLICE_TICKS};
use axsched_ext::model::{Line, MaxWait};

use crate::common::{late_ticks, rr_beside};

pub use super::rr::TURNS;

pub fn promises() -> Promises {
    Promises {
        max_wait: waits,
        done_beside: rr_beside,
        ..Promises::default()
    }
}

/// A share for each, of which the first may wait for the end of a slice. Each of a task's equals runs
/// once before it, unless a timer preempts one of them when a share is due.
fn waits(load: &Load<'_>) -> MaxWait {
    let in_turn = load.config.line == Line::Axtask03 && !load.has_priority_changes;
    let ticks = u64::from(SHARE_TICKS) * load.tasks + SLICE_TICKS as u64;
    MaxWait {
        time: load.config.preempt.then(|| late_ticks(load, ticks)),
        dispatches: in_turn.then_some(load.tasks),
        ..MaxWait::default()
    }
}
