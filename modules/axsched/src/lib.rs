//! The selected policy under every name that `axtask` may ask for.
//!
//! `[patch.crates-io]` puts this package in place of the registry's `axsched` 0.3, and an
//! unmodified `axtask` runs on it. The policies live in [`axsched_ext`]. `axtask` uses
//! `FifoTask` without a `sched-*` feature, `RRTask` with `sched-rr`, and `CFSTask` with
//! `sched-cfs`. The name does not affect which policy it gets.
//!
//! | feature | policy |
//! |---|---|
//! | none | first in, first out |
//! | `sched_*` | the one of that name in [`axsched_ext::for_each_policy!`]; all but `sched_fifo` need `axtask/preempt`, `sched_pbg` unless every task yields or blocks |
//! | `stock_fifo`, `stock_rr`, `stock_cfs` | the registry's `axsched` 0.3.1 unchanged; the latter two need `axtask/sched-rr`, `axtask/sched-cfs` |
//! | `observed` | any policy in a layer that calls an observer for each task that becomes ready |
//! | `balanced` | any policy in the layer that keeps several CPUs busy, or PBG with one plan for all of them ([`axsched_ext::balance`]), once they are connected |
//! | `recorded` | any policy but PBG in a layer that records the tasks ([`axsched_ext::recorded`]); on several CPUs [`connect`](axsched_ext::recorded::Recording::connect) it |

#![no_std]
#![forbid(unsafe_code)]

#[cfg(not(any(feature = "stock_fifo", feature = "stock_rr", feature = "stock_cfs")))]
#[path = "ours.rs"]
mod names;
#[cfg(any(feature = "stock_fifo", feature = "stock_rr", feature = "stock_cfs"))]
#[path = "stock.rs"]
mod names;

#[cfg(feature = "recorded")]
mod recorded;
#[cfg(not(feature = "recorded"))]
use names as inner;
#[cfg(feature = "recorded")]
use recorded as inner;

#[cfg(feature = "observed")]
mod observed;
#[cfg(not(feature = "observed"))]
use inner as table;
#[cfg(feature = "observed")]
use observed as table;

pub use table::*;

#[cfg(all(
    feature = "balanced",
    any(feature = "stock_fifo", feature = "stock_rr", feature = "stock_cfs")
))]
compile_error!("feature `balanced`: allowed is one of our policies");

// Two of ours at once are refused by `axsched-ext` as well, in the same words.
macro_rules! refuse_beside_stock {
    ($($feature:literal $module:ident $task:ident $scheduler:ty;)*) => {
        axsched_ext::refuse_two! { "stock_fifo" "stock_rr" "stock_cfs" $($feature)* }
    };
}
axsched_ext::for_each_policy!(refuse_beside_stock);
