//! Promises of FIFO.

use axsched_ext::conformance::{Beside, Promises};

use crate::common::each_other_once;

pub const TURNS: &str = "a30 b31 s2";

pub fn promises() -> Promises {
    Promises {
        max_wait: each_other_once,
        done_beside: beside,
        ..Promises::default()
    }
}

/// The job has the CPU to its end, after a round of the others.
fn beside(beside: &Beside) -> Option<u64> {
    Some(beside.job_ticks + beside.round_ticks())
}
