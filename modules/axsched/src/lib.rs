//! The selected policy under every name that `axtask` may ask for.
//!
//! `[patch.crates-io]` puts this package where the registry's `axsched` 0.3
//! would be; an unmodified `axtask` then runs on it. There is no logic here:
//! the policies live in [`axsched_ext`], and which name `axtask` asks for
//! (`FifoTask` without a `sched-*` feature, `RRTask` with `sched-rr`, `CFSTask`
//! with `sched-cfs`) has no bearing on which policy it gets.
//!
//! | feature | policy |
//! |---|---|
//! | none, `sched_fifo` | first in, first out |
//! | `sched_rr` | round robin; needs `axtask/preempt` |
//! | `sched_cfs` | completely fair; needs `axtask/preempt` |
//! | `sched_sjf` | shortest job first; needs `axtask/preempt` |
//! | `sched_mlfq` | multi-level feedback queue; needs `axtask/preempt` |
//! | `sched_pbg` | measured, then replayed; needs `axtask/preempt` unless every task yields or blocks |
//! | `stock_fifo`, `stock_rr`, `stock_cfs` | the registry's `axsched` 0.3.1 as it is; the latter two need `axtask/sched-rr`, `axtask/sched-cfs` |

#![no_std]
#![forbid(unsafe_code)]

#[cfg(not(any(feature = "stock_fifo", feature = "stock_rr", feature = "stock_cfs")))]
#[path = "ours.rs"]
mod names;
#[cfg(any(feature = "stock_fifo", feature = "stock_rr", feature = "stock_cfs"))]
#[path = "stock.rs"]
mod names;

pub use names::*;

// Two `sched_*` at once are refused by `axsched-ext` in the same way.
macro_rules! refuse_both {
    ($($a:literal and $b:literal;)*) => {$(
        #[cfg(all(feature = $a, feature = $b))]
        compile_error!(concat!(
            "features `", $a, "` and `", $b, "` are both on: choose one policy per build"
        ));
    )*};
}

refuse_both! {
    "stock_fifo" and "stock_rr";
    "stock_fifo" and "stock_cfs";
    "stock_rr" and "stock_cfs";
    "stock_fifo" and "sched_fifo";
    "stock_fifo" and "sched_rr";
    "stock_fifo" and "sched_cfs";
    "stock_fifo" and "sched_sjf";
    "stock_fifo" and "sched_mlfq";
    "stock_fifo" and "sched_pbg";
    "stock_rr" and "sched_fifo";
    "stock_rr" and "sched_rr";
    "stock_rr" and "sched_cfs";
    "stock_rr" and "sched_sjf";
    "stock_rr" and "sched_mlfq";
    "stock_rr" and "sched_pbg";
    "stock_cfs" and "sched_fifo";
    "stock_cfs" and "sched_rr";
    "stock_cfs" and "sched_cfs";
    "stock_cfs" and "sched_sjf";
    "stock_cfs" and "sched_mlfq";
    "stock_cfs" and "sched_pbg";
}
