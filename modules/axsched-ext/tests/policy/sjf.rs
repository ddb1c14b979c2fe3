//! Promises of SJF.

use axsched_ext::classes::SHORTEST;
use axsched_ext::conformance::{Load, Promises};
use axsched_ext::model::MaxWait;
use axsched_ext::sjf::PATIENCE;

use crate::common::{late_ticks, sjf_beside};

/// Nothing is expected of either: each turn makes the other one due first. One that is new, and
/// so as short, has the CPU at the next tick.
pub const TURNS: &str = "a2 b2 a2 b2 a2 b2 a2 b2 a2 b2 a2 b2 a2 b2 a2 b2 a2 b2 a2 b2 a2 s2 b4 \
                         a2 b2 a2 b2 a2 b2 a2 b1 a0";

pub fn promises() -> Promises {
    Promises {
        max_wait: waits,
        done_beside: sjf_beside,
        ..Promises::default()
    }
}

fn waits(load: &Load<'_>) -> MaxWait {
    let bound = || late_ticks(load, 2 * load.tasks) + SHORTEST;
    MaxWait {
        time: load.config.preempt.then(bound),
        own_bursts: PATIENCE * 3 / 2,
        ..MaxWait::default()
    }
}
