//! PACE under every name that `axtask` may ask for.
//!
//! A tree that patches `axsched` with this package runs on [`pace`], whichever `sched-*` feature
//! of `axtask` is on.

#![no_std]
#![forbid(unsafe_code)]

pub use pace::{
    PaceScheduler as FifoScheduler, PaceScheduler as CFScheduler, PaceTask as FifoTask,
    PaceTask as CFSTask,
};
pub use sched_core::BaseScheduler;

/// A task under `sched-rr`. PACE computes its slices itself, so `SLICE_TICKS` has no effect.
pub type RRTask<T, const SLICE_TICKS: usize> = pace::PaceTask<T>;
/// The scheduler under `sched-rr`. See [`RRTask`].
pub type RRScheduler<T, const SLICE_TICKS: usize> = pace::PaceScheduler<T>;
